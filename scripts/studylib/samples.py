"""What a few runs of one thing tell, and when two things differ.

Speeds are in bytes a second; more is better. The words of the page rest on compare() alone.
"""

import math
import statistics

FASTER, PROBABLY, ALIKE = "faster", "probably", "alike"
# Ratios of medians; what is less is no difference, or not probably one.
LEAST, LEAST_PROBABLY = 1.03, 1.1
SURE, LIKELY = 0.99, 0.95  # confidence of intervals
CHANCE = 0.01  # that all runs of one thing beat all of the same thing again


class Sample:
    """Values of the same thing measured again and again; `values` in the order of measuring.
    Samples of one group were measured in turn, value by value; None: of no group. rounds: into
    how many parts of equal length the values were measured apart."""

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
        """(low, high) between which the median lies with that confidence, whatever the
        distribution: two of the values. Where they are too few for that, the least and the
        greatest."""
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
        """Standard deviation in parts of the mean."""
        return self.deviation / self.mean if self.mean else 0.0


def compare(a, b, least=LEAST):
    """(verdict, ratio of the medians, a over b). The verdict is about the greater of the two:

    FASTER    the intervals of their medians with 99 % confidence keep apart (with fewer than
              eight runs: all of their runs do, and there are five of each at least); or, of two
              that were measured in turn, eight times at least, that of the ratios keeps from
              1, as does their median in each round
    PROBABLY  the same with 95 % (with fewer than ten runs: all but one of one side keep apart;
              in turn, six times at least), and the medians differ by 10 %
    ALIKE     otherwise

    least: the ratio of medians from which on they differ."""
    ratio = a.median / b.median if b.median else float("inf")
    above, below = (a, b) if ratio >= 1 else (b, a)
    amount = max(ratio, 1 / ratio) if ratio else float("inf")
    chance = 2 / math.comb(a.count + b.count, a.count)
    surely = apart(above, below, SURE) and chance < CHANCE
    if (surely or in_turn(above, below, SURE, 8)) and amount >= least:
        return FASTER, ratio
    likely = (apart(above, below, LIKELY) or nearly_apart(above, below)
              or in_turn(above, below, LIKELY, 6))
    if likely and min(a.count, b.count) > 2 and amount >= LEAST_PROBABLY:
        return PROBABLY, ratio
    return ALIKE, ratio


def in_turn(above, below, confidence, count):
    """Whether, of two that were measured in turn, the ratios are above 1, in each round: what is
    measured shortly after each other is alike for other reasons, too."""
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
