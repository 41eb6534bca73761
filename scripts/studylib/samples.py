"""What a few runs of one thing tell, and when two things differ.

Speeds are in bytes a second; more is better. The words of the page rest on compare() alone.
"""

import statistics

FASTER, PROBABLY, ALIKE = "faster", "probably", "alike"
# Ratios of medians; what is less is no difference, or not probably one.
LEAST, LEAST_PROBABLY = 1.03, 1.1


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
    FASTER if each of its runs beat each of the other's, PROBABLY if few runs of one of them (one
    of six) stand against that, ALIKE otherwise, and where three runs are not there to tell.

    Of two sets of six runs of the same thing, one in 460 looks FASTER, one in 36 PROBABLY: there
    the medians have to differ by 10 %, too. least: the ratio from which on they differ."""
    ratio = a.median / b.median if b.median else float("inf")
    above, below = (a, b) if ratio >= 1 else (b, a)
    amount = max(ratio, 1 / ratio) if ratio else float("inf")
    if min(a.count, b.count) < 3 or amount < least:
        return ALIKE, ratio
    if above.least > below.most:
        return FASTER, ratio
    if amount >= LEAST_PROBABLY and min(a.count, b.count) > 3 and nearly_apart(above, below):
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
