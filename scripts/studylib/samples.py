"""Statistics of repeated runs, and the decision whether two samples differ.

Speeds are in bytes per second. All statements of the page rest on compare().
"""

import math
import statistics

FASTER, PROBABLY, ALIKE = "faster", "probably", "alike"
# Smallest ratios of medians that count as a difference, or as a probable one.
MIN_RATIO, MIN_RATIO_PROBABLY = 1.03, 1.1
SURE, LIKELY = 0.99, 0.95  # confidence levels of intervals
CHANCE = 0.01  # probability that all runs of one of two equal samples are the faster ones


class Sample:
    """Repeated measurements of one quantity, in the order of measuring. Samples of the same group
    were measured in turn, value by value; None: no group. rounds: number of equal parts that were
    measured at different times."""

    def __init__(self, values, group=None, rounds=1):
        self.values, self.group, self.rounds = list(values), group, rounds
        ordered = sorted(self.values)
        self.count = len(ordered)
        self.ordered = ordered
        self.least, self.most = ordered[0], ordered[-1]
        self.median = statistics.median(ordered)
        self.mean = statistics.fmean(ordered)
        self.deviation = statistics.stdev(ordered) if self.count > 1 else 0.0
        if self.count > 1:
            self.low, _, self.high = statistics.quantiles(ordered, n=4, method="inclusive")
        else:
            self.low = self.high = self.median

    def quantile(self, percent):
        if self.count < 2:
            return self.median
        return statistics.quantiles(self.values, n=100, method="inclusive")[percent - 1]

    def interval(self, confidence=SURE):
        """Returns the interval (low, high) of the median with this confidence, for any
        distribution. With too few values, the minimum and the maximum."""
        outside, below, rank = (1 - confidence) / 2, 0.0, 0
        while True:  # the chance that at most `rank` of the values are below the median
            below += math.comb(self.count, rank) / 2 ** self.count
            if below > outside:
                break
            rank += 1
        rank = max(rank, 1)
        return self.ordered[rank - 1], self.ordered[self.count - rank]

    @property
    def spread(self):
        """Relative standard deviation."""
        return self.deviation / self.mean if self.mean else 0.0


def compare(a, b, least=MIN_RATIO):
    """Returns (verdict, ratio of the medians, a over b). The verdict is about the larger one:

    FASTER    the 99 % intervals of the medians do not overlap (with fewer than eight runs: at
              least five runs each, and all are apart); or both were measured in turn at least
              eight times and the interval of the ratios excludes 1, as the median of each
              round does
    PROBABLY  the same with 95 % (with fewer than ten runs: all but one of one side are apart; in
              turn: at least six times), and the medians differ by 10 %
    ALIKE     otherwise

    least: the smallest ratio of medians that counts as a difference."""
    ratio = a.median / b.median if b.median else float("inf")
    above, below = (a, b) if ratio >= 1 else (b, a)
    amount = max(ratio, 1 / ratio) if ratio else float("inf")
    chance = 2 / math.comb(a.count + b.count, a.count)
    surely = apart(above, below, SURE) and chance < CHANCE
    if (surely or in_turn(above, below, SURE, 8)) and amount >= least:
        return FASTER, ratio
    likely = (apart(above, below, LIKELY) or nearly_apart(above, below)
              or in_turn(above, below, LIKELY, 6))
    if likely and min(a.count, b.count) > 2 and amount >= MIN_RATIO_PROBABLY:
        return PROBABLY, ratio
    return ALIKE, ratio


def in_turn(above, below, confidence, count):
    """Returns whether the ratios of two samples that were measured in turn are above 1 in each
    round. Measurements that follow each other are correlated."""
    if above.group is None or above.group != below.group or above.count != below.count \
            or above.count < count:
        return False
    ratios = [a / b for a, b in zip(above.values, below.values)]
    length = -(-len(ratios) // above.rounds)
    each = (ratios[i:i + length] for i in range(0, len(ratios), length))
    return Sample(ratios).interval(confidence)[0] > 1 and all(
        statistics.median(part) > 1 for part in each)


def apart(above, below, confidence):
    return above.interval(confidence)[0] > below.interval(confidence)[1]


def nearly_apart(above, below):
    if not all(3 < sample.count < 10 for sample in (above, below)):
        return False
    return above.ordered[1] > below.most or above.least > below.ordered[-2]


def differ(a, b):
    return compare(a, b)[0] != ALIKE


def best_of(pairs):
    """pairs: [(name, Sample)]. Returns the pair with the best median, the pairs that do not differ
    from it (including it, best first), and the others."""
    ordered = sorted(pairs, key=lambda pair: -pair[1].median)
    best = ordered[0]
    alike = [pair for pair in ordered if pair is best or not differ(best[1], pair[1])]
    return best, alike, [pair for pair in ordered if pair not in alike]


def plateau(pairs):
    """pairs: [(setting, Sample)], sorted by setting. Returns the first setting from which on no
    sample differs from the best, or None."""
    _, alike, _ = best_of(pairs)
    names = {name for name, _ in alike}
    first = None
    for name, _ in reversed(pairs):
        if name not in names:
            break
        first = name
    return first
