"""Describes the studies of byte regions: patterns, transfers, chunks, alignment."""

from .points import pick
from .samples import ALIKE, FASTER, PROBABLY, best_of, compare, differ
from .sentences import DOING, OPERATIONS, capitalize, describe_fastest, best_backends
from .formatting import join_list, faster_text, percent, plural, size

# ---- collective or independent ----


def compare_modes(points):
    """Returns {faster mode, or ALIKE: [(what, ratio, verdict)]} of what was done in both modes."""
    found = {"collective": [], "independent": [], ALIKE: []}
    for p in pick(points, mode="collective"):
        others = [q for q in pick(points, mode="independent", backend=p.backend,
                                  operation=p.operation)
                  if dict(q.where) == {**dict(p.where), "mode": "independent"}]
        for q in others:
            verdict, ratio = compare(p.speed, q.speed)
            place = ALIKE if verdict == ALIKE else "collective" if ratio >= 1 else "independent"
            what = f"{p.backend} {DOING[p.operation].lower()}"
            found[place].append((what, ratio, verdict))
    return found


def describe_modes(points):
    found = compare_modes(points)
    texts = []
    for mode in ("collective", "independent"):
        if found[mode]:
            shown = [f"{what} ({'probably ' if verdict == PROBABLY else ''}{faster_text(ratio)})"
                     for what, ratio, verdict in found[mode]]
            texts.append(f"{capitalize(mode)} I/O is faster for {join_list(shown)}.")
    count = len(found[ALIKE])
    if count and not texts:
        texts.append(f"Collective and independent I/O do not differ beyond the noise in any of "
                     f"{plural(count, 'comparison')}.")
    elif count:
        texts.append(f"In {plural(count, 'other comparison')} they do not differ beyond the noise.")
    return texts


def choose_mode(points):
    """Recommends a mode in a phrase, or returns None if nothing was done in both modes."""
    found = compare_modes(points)
    clear = {mode: [what for what, _, verdict in found[mode] if verdict == FASTER]
             for mode in ("collective", "independent")}
    count = sum(map(len, found.values()))
    if not count:
        return None
    few, many = sorted(clear, key=lambda mode: len(clear[mode]))
    if not clear[many]:
        return "collective or independent I/O: nothing differs clearly"
    shown = "; ".join(f"{mode} I/O is clearly faster for {join_list(clear[mode])}"
                      for mode in (many, few) if clear[mode])
    if len(clear[many]) == len(clear[few]) or len(clear[many]) < count / 8:
        return f"collective or independent I/O by what you do: {shown}"
    if not clear[few]:
        return (f"{many} I/O: clearly faster in {len(clear[many])} of {count} comparisons, "
                "clearly slower in none")
    return (f"{many} I/O (clearly faster in {len(clear[many])} of {count} comparisons), but "
            f"{few} I/O for {join_list(clear[few])}")


def describe_pattern(points, _):
    texts = [text for op in OPERATIONS for text in describe_fastest(points, op)]
    texts += describe_modes(points)
    choice = [text for text in (best_backends(points, op) for op in OPERATIONS) if text]
    if choose_mode(points):
        choice.append(choose_mode(points))
    return texts, "; ".join(choice)


# ---- settings that are swept ----


def sweeps(points, name):
    """Returns {(pattern, mode, back end, operation): [(setting, Sample)]}, sorted by setting."""
    found = {}
    for p in points:
        key = (p["pattern"], p["mode"], p.backend, p.operation)
        found.setdefault(key, []).append((p[name], p.speed))
    return {key: sorted(pairs, key=lambda pair: pair[0]) for key, pairs in found.items()
            if len(pairs) > 1}


def series_name(key):
    pattern, mode, backend, operation = key
    place = [word for word in (pattern, mode) if word]
    return f"{backend} {DOING[operation].lower()}" + (f" ({', '.join(place)})" if place else "")


def count_best(series):
    """Returns (setting, number of series that are as fast as with their best there)."""
    settings = sorted({setting for pairs in series.values() for setting, _ in pairs})
    counts = {s: sum(1 for pairs in series.values()
                     if s in [name for name, _ in best_of(pairs)[1]]) for s in settings}
    best = max(settings, key=lambda s: (counts[s], -s))
    return best, counts[best]


def find_losses(series, setting, show):
    """Describes the largest losses of series that are slower at the setting than at their best."""
    found = []
    for key, pairs in series.items():
        best, alike, _ = best_of(pairs)
        here = dict(pairs).get(setting)
        if here and setting not in [name for name, _ in alike]:
            found.append((best[1].median / here.median,
                          f"{series_name(key)}, {faster_text(best[1].median / here.median)} with "
                          f"{show(best[0])}"))
    return [text for _, text in sorted(found, reverse=True)[:4]]


def describe_sweep(series, noun, show):
    """Returns (sentences, recommended setting); None if no series differs."""
    if not series:
        return [], None
    count = len(series)
    setting, good = count_best(series)
    if all(len(best_of(pairs)[1]) == len(pairs) for pairs in series.values()):
        return [f"The {noun} makes no difference beyond the noise in any of {count} series (each "
                "a back end that writes or reads in one way)."], None
    texts = [f"With {show(setting)}, {good} of {count} series (each a back end that writes or "
             "reads in one way) are as fast as with their best, within the noise."]
    others = find_losses(series, setting, show)
    if others:
        texts.append(f"Others gain by another {noun}: {join_list(others)}.")
    least = min(pairs[0][0] for pairs in series.values())
    worst = [(pairs[0][1].median / best_of(pairs)[0][1].median, key)
             for key, pairs in series.items()
             if pairs[0][0] == least and differ(pairs[0][1], best_of(pairs)[0][1])]
    if worst and least != setting:
        part, key = min(worst)
        texts.append(f"With {show(least)}, {plural(len(worst), 'series')} of {count} "
                     f"{'is' if len(worst) == 1 else 'are'} slower than with their best; worst is "
                     f"{series_name(key)}, {percent(part)} of its best.".replace("seriess",
                                                                                 "series"))
    return texts, setting


def describe_transfer(points, _):
    texts, setting = describe_sweep(sweeps(points, "transfer"), "transfer size", size)
    if setting is None:
        return texts, "any transfer size: nothing differs beyond the noise" if texts else ""
    return texts, f"transfers of {size(setting)}"


def describe_chunks(points, _):
    chunked = [p for p in points if p["chunk"]]
    texts, setting = describe_sweep(sweeps(chunked, "chunk"), "chunk size", size)
    slower, faster, same = [], [], []
    for p in pick(points, chunk=0):
        pairs = [(q["chunk"], q.speed) for q in
                 pick(chunked, pattern=p["pattern"], mode=p["mode"], backend=p.backend,
                      operation=p.operation)]
        if not pairs:
            continue
        (chunk, best), _, _ = best_of(pairs)
        verdict, ratio = compare(best, p.speed)
        what = f"{p.backend} {DOING[p.operation].lower()}"
        if verdict == ALIKE:
            same.append(what)
        else:
            text = f"{what} ({faster_text(ratio)}, chunks of {size(chunk)})"
            (faster if ratio > 1 else slower).append(text)
    for found, text in ((slower, "Faster without chunks than with the best ones: {}."),
                        (faster, "Faster with the best chunks than without: {}."),
                        (same, "As fast with the best chunks as without, within the noise: {}.")):
        if found:
            texts.append(text.format(join_list(found)))
    if setting is None:
        choice = "any chunk size: nothing differs beyond the noise" if texts else ""
    else:
        choice = f"chunks of {size(setting)}"
    if slower and not faster:
        choice += ", and no chunks where the format does not need them"
    return texts, choice


def alignment_name(nbytes):
    return size(nbytes) if nbytes else "none"


def gains(points):
    """Returns {alignment: (gains, losses, equals)} against none, each (ratio, verdict, series)."""
    found = {}
    for key, pairs in sweeps(points, "alignment").items():
        none = dict(pairs).get(0)
        for setting, sample in pairs:
            if none and setting:
                verdict, ratio = compare(sample, none)
                place = found.setdefault(setting, ([], [], []))
                place[2 if verdict == ALIKE else 0 if ratio > 1 else 1].append(
                    (ratio, verdict, key))
    return found


def describe_alignment(points, _):
    texts, net, none = [], {}, []
    for setting, (up, down, same) in gains(points).items():
        count = len(up) + len(down) + len(same)
        clear = [sum(1 for _, verdict, _ in place if verdict == FASTER) for place in (up, down)]
        net[setting] = clear[0] - clear[1]
        if not up and not down:
            none.append(size(setting))
            continue
        parts = []
        for place, word in ((up, "faster"), (down, "slower")):
            if place:
                sure = sum(1 for _, verdict, _ in place if verdict == FASTER)
                ratio, _, key = max(place, key=lambda item: max(item[0], 1 / item[0]))
                parts.append(f"{len(place)} {'is' if len(place) == 1 else 'are'} {word} "
                             f"({sure} clearly; most: {series_name(key)}, "
                             f"{percent(abs(ratio - 1))})")
        texts.append(f"Aligned to {size(setting)}, of {count} series {join_list(parts)}; "
                     f"{len(same)} do not differ beyond the noise.")
    if none:
        texts.append(f"Aligned to {join_list(none, 'or')}, no series (a back end that writes or "
                     "reads in one way) differs from unaligned beyond the noise.")
    if not net:
        return texts, ""
    best = max(net, key=lambda setting: (net[setting], -setting))
    if net[best] <= 0:
        return texts, "no alignment: none is clearly faster than unaligned more often than slower"
    return texts, (f"alignment to {size(best)}: clearly faster than unaligned in {net[best]} "
                   f"series more than slower")
