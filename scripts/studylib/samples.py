"""What a few runs of one thing tell, and when two things differ.

Speeds are in bytes a second; more is better. The words of the page rest on compare() alone.
"""

import math
import statistics

FASTER, PROBABLY, ALIKE = "faster", "probably", "alike"
# Ratios of medians; what is less is no difference, or not probably one.
LEAST, LEAST_PROBABLY = 1.03, 1.1
CHANCE = 0.01


class Sample:
    """Values of the same thing measured again and again; `values` in the order of measuring."""

    def __init__(self, values):
        self.values = list(values)
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

    @property
    def spread(self):
        """Standard deviation in parts of the mean."""
        return self.deviation / self.mean if self.mean else 0.0


def compare(a, b, least=LEAST):
    """(verdict, ratio of the medians, a over b). The verdict is about the greater of the two:
    FASTER if each of its runs beat each of the other's, and they are so many that this happens
    by chance once in a hundred times at most (five of each are enough); PROBABLY if they are
    fewer, or few runs of one of them (one of six) stand against it, and the medians differ by
    10 %; ALIKE otherwise. least: the ratio of medians from which on they differ."""
    ratio = a.median / b.median if b.median else float("inf")
    above, below = (a, b) if ratio >= 1 else (b, a)
    amount = max(ratio, 1 / ratio) if ratio else float("inf")
    chance = 2 / math.comb(a.count + b.count, a.count)
    apart = above.least > below.most
    if apart and chance < CHANCE and amount >= least:
        return FASTER, ratio
    likely = apart or min(a.count, b.count) > 3 and nearly_apart(above, below)
    if likely and min(a.count, b.count) > 2 and amount >= LEAST_PROBABLY:
        return PROBABLY, ratio
    return ALIKE, ratio


def nearly_apart(above, below):
    spared = [max(1, sample.count // 6) for sample in (above, below)]
    return above.ordered[spared[0]] > below.most or above.least > below.ordered[-1 - spared[1]]


def differ(a, b):
    return compare(a, b)[0] != ALIKE


def best_of(pairs):
    """Of [(name, Sample)]: the best by its median, those that are alike with it (the best
    included, best first), and the others."""
    ordered = sorted(pairs, key=lambda pair: -pair[1].median)
    best = ordered[0]
    alike = [pair for pair in ordered if pair is best or not differ(best[1], pair[1])]
    return best, alike, [pair for pair in ordered if pair not in alike]


def plateau(pairs):
    """Of [(setting, Sample)] in rising order of the setting: the first from which on all are
    alike with the best; None if the last one is not."""
    _, alike, _ = best_of(pairs)
    names = {name for name, _ in alike}
    first = None
    for name, _ in reversed(pairs):
        if name not in names:
            break
        first = name
    return first
