"""Numbers and lists as the page and the terminal say them."""

from .samples import ALIKE, PROBABLY, compare

UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def size(nbytes):
    """4096 -> 4 KiB."""
    for unit, factor in UNITS:
        if nbytes >= factor:
            return f"{digits(nbytes / factor)} {unit}"
    return f"{nbytes} bytes"


def option_size(nbytes):
    """As lime-bench takes it: 4096 -> 4k."""
    for unit, factor in UNITS:
        if nbytes >= factor and nbytes % factor == 0:
            return f"{nbytes // factor}{unit[0].replace('K', 'k')}"
    return str(nbytes)


def digits(value):
    """Three of them, and never an exponent."""
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def speed(value, unit=True):
    return digits(value / 1e6) + (" MB/s" if unit else "")


def speeds(sample):
    """812 MB/s [790, 840]: the median and its interval."""
    low, high = sample.interval()
    return f"{speed(sample.median)} [{speed(low, False)}, {speed(high, False)}]"


def seconds(value):
    if value < 1:
        return f"{digits(value * 1e3)} ms"
    return f"{digits(value)} s"


def duration(value):
    """For a clock: 1:04:09, 12:40, 0:07."""
    value = max(0, round(value))
    hours, minutes = value // 3600, value // 60 % 60
    return f"{hours}:{minutes:02d}:{value % 60:02d}" if hours else f"{minutes}:{value % 60:02d}"


def percent(part):
    shown = f"{part * 100:.0f}"
    return f"{shown} %" if shown != "0" else "less than 1 %"


def more(ratio):
    """How much faster the faster one of two is: 1.35 -> 35 % faster."""
    ratio = ratio if ratio >= 1 else 1 / ratio
    return f"{percent(ratio - 1)} faster" if ratio < 1.995 else f"{digits(ratio)} times as fast"


def than(a, b, name_a, name_b):
    """A sentence's core on two Samples: `a is 35 % faster than b`, or that nothing can be told."""
    verdict, ratio = compare(a, b)
    if verdict == ALIKE:
        return f"{name_a} and {name_b} do not differ beyond the noise"
    if ratio < 1:
        name_a, name_b = name_b, name_a
    be = "is probably" if verdict == PROBABLY else "is"
    tail = "as" if "times" in more(ratio) else "than"
    return f"{name_a} {be} {more(ratio)} {tail} {name_b}"


def listed(items, last="and"):
    items = list(items)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def sentence(text):
    """Its first letter large, its end a full stop; names of back ends stay as they are."""
    text = text.strip()
    return text if text.endswith((".", ":")) else text + "."


def plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
