"""pairs - few combinations that have each pair of values: what fails with a certain combination
mostly fails with two of its values already."""

import collections
import itertools

import limetest


def pairwise(*factors):
    """Rows of one value of each factor, so that each two values of two factors are together in one
    of them; with STRESS all rows that there are."""
    if limetest.STRESS:
        return list(itertools.product(*factors))
    ranges = [range(len(factor)) for factor in factors]
    longest = sorted(range(len(factors)), key=lambda i: -len(factors[i]))
    made = collections.Counter()  # how often each pair of values, as (factor, value), is in a row
    rows = []

    def add(given):
        """The row with these values that has the most pairs that are in no other, or few."""
        choices = itertools.product(*([given[i]] if i in given else values
                                      for i, values in enumerate(ranges)))
        best = max(choices, key=lambda row: [sum(not made[pair] for pair in _pairs(row)),
                                             -sum(made[pair] for pair in _pairs(row))])
        made.update(_pairs(best))
        rows.append(best)

    for values in itertools.product(*(ranges[i] for i in longest[:2])):
        add(dict(zip(longest, values)))
    for pair in sorted(pair for row in itertools.product(*ranges) for pair in _pairs(row)):
        if not made[pair]:
            add(dict(pair))
    return [tuple(factor[i] for factor, i in zip(factors, row)) for row in rows]


def _pairs(row):
    return itertools.combinations(enumerate(row), 2)
