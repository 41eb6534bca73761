"""Formats numbers and lists for the page and the terminal."""

from .samples import ALIKE, PROBABLY, compare

UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def size(nbytes):
    """Example: 4096 -> "4 KiB"."""
    for unit, factor in UNITS:
        if nbytes >= factor:
            return f"{three_digits(nbytes / factor)} {unit}"
    return f"{nbytes} bytes"


def option_size(nbytes):
    """Formats a size as an option of lime-bench: 4096 -> "4k"."""
    for unit, factor in UNITS:
        if nbytes >= factor and nbytes % factor == 0:
            return f"{nbytes // factor}{unit[0].replace('K', 'k')}"
    return str(nbytes)


def three_digits(value):
    """Formats a number with three digits and without exponent."""
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def speed(value, unit=True):
    return three_digits(value / 1e6) + (" MB/s" if unit else "")


def speeds(sample):
    """Median and its interval: "812 MB/s [790, 840]"."""
    low, high = sample.interval()
    return f"{speed(sample.median)} [{speed(low, False)}, {speed(high, False)}]"


def seconds(value):
    if value < 1:
        return f"{three_digits(value * 1e3)} ms"
    return f"{three_digits(value)} s"


def duration(value):
    """Examples: 1:04:09, 12:40, 0:07."""
    value = max(0, round(value))
    hours, minutes = value // 3600, value // 60 % 60
    return f"{hours}:{minutes:02d}:{value % 60:02d}" if hours else f"{minutes}:{value % 60:02d}"


def percent(part):
    shown = f"{part * 100:.0f}"
    return f"{shown} %" if shown != "0" else "less than 1 %"


def faster_text(ratio):
    """Describes a ratio of speeds: 1.35 -> "35 % faster"."""
    ratio = ratio if ratio >= 1 else 1 / ratio
    if ratio < 1.995:
        return f"{percent(ratio - 1)} faster"
    return f"{three_digits(ratio)} times as fast"


def compare_text(a, b, name_a, name_b):
    """Compares two Samples: "a is 35 % faster than b", or that they do not differ."""
    verdict, ratio = compare(a, b)
    if verdict == ALIKE:
        return f"{name_a} and {name_b} do not differ beyond the noise"
    if ratio < 1:
        name_a, name_b = name_b, name_a
    be = "is probably" if verdict == PROBABLY else "is"
    tail = "as" if "times" in faster_text(ratio) else "than"
    return f"{name_a} {be} {faster_text(ratio)} {tail} {name_b}"


def join_list(items, last="and"):
    items = list(items)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
