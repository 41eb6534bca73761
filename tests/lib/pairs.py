"""pairs - a few combinations that contain each pair of values: a bug that needs a certain
combination mostly needs only two of its values."""

import collections
import itertools

import limetest


def pairwise(*factors):
    """Returns rows of one value of each factor; some row has each pair of values of two factors.
    With STRESS, returns all combinations."""
    if limetest.STRESS:
        return list(itertools.product(*factors))
    ranges = [range(len(factor)) for factor in factors]
    longest = sorted(range(len(factors)), key=lambda i: -len(factors[i]))
    made = collections.Counter()  # {pair of (factor, value): number of rows that have it}
    rows = []

    def add(fixed):
        """Adds the row with the fixed values that has the most new pairs, or the rarest ones."""
        choices = itertools.product(*([fixed[i]] if i in fixed else values
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
