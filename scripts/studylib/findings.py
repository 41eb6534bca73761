"""What the numbers of a study say: sentences made from the data, and a choice.

Two settings are only called different where compare() tells them apart. A choice rests on clear
differences; where there are none, it says so.
"""

import math

from . import plan
from .points import pick, values
from .samples import ALIKE, FASTER, PROBABLY, Sample, best_of, compare, differ, plateau
from .words import (digits, listed, more, percent, plural, seconds, size, speed, speeds, than)

DOING = {"write": "Writing", "read": "Reading"}
OPERATIONS = ("write", "read")
PAST = {"write": "written", "read": "read"}


def capital(text):
    return text[:1].upper() + text[1:]


def named(point):
    """A back end with its mode, where that is a part of the setting."""
    return f"{point.backend} ({point['mode']})" if point["mode"] else point.backend


def fastest(points, operation, label=named):
    """One or two sentences on who is fastest and who is slowest; none if there is nothing."""
    pairs = [(label(p), p.speed) for p in pick(points, operation=operation)]
    if not pairs:
        return []
    doing = DOING[operation]
    best, alike, rest = best_of(pairs)
    if len(pairs) == 1:
        return [f"{doing} was measured with {best[0]} only: {speeds(best[1])}."]
    if not rest:
        return [f"{doing}: nothing differs from the best beyond the noise; the highest median is "
                f"that of {best[0]}, {speeds(best[1])}."]
    if len(alike) == 1:
        verdict, ratio = compare(best[1], rest[0][1])
        sure = "is" if verdict == FASTER else "is probably"
        told = [f"{doing} {sure} fastest with {best[0]}: {speeds(best[1])}, {more(ratio)} "
                f"{'as' if 'times' in more(ratio) else 'than'} the next, {rest[0][0]}."]
    elif len(alike) < 5:
        shown = [name for name, _ in alike]
        told = [f"{doing} is fastest with {listed(shown)}, which do not differ beyond the noise "
                f"(the best: {speeds(best[1])})."]
    else:
        told = [f"{doing} is fastest with {best[0]}: {speeds(best[1])}; {len(alike) - 1} others "
                "do not differ from that beyond the noise."]
    slow = rest[-1]
    if len(rest) > 1 or len(alike) > 1:
        told.append(f"{doing} is slowest with {slow[0]}: {speeds(slow[1])}, "
                    f"{percent(slow[1].median / best[1].median)} of the best.")
    return told


def winners(points, operation):
    """`lime or posix for writing`: the back ends that are alike with the best, in any mode; None
    if there are none."""
    pairs = [(p.backend, p.speed) for p in pick(points, operation=operation)]
    if not pairs:
        return None
    names = list(dict.fromkeys(name for name, _ in best_of(pairs)[1]))
    doing = DOING[operation].lower()
    if len(names) > 1 and len(names) == len({name for name, _ in pairs}):
        return f"any back end for {doing}, as none differs from the best beyond the noise"
    if len(names) > 4:
        return (f"{names[0]} for {doing}, or one of {len(names) - 1} others that do not differ "
                "from it beyond the noise")
    return f"{listed(names, 'or')} for {doing}"


# ---- collective or independent ----


def modes(points):
    """{mode that is faster, or ALIKE: [(what, ratio, verdict)]} of all that was done both ways."""
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


def on_modes(points):
    found = modes(points)
    told = []
    for mode in ("collective", "independent"):
        if found[mode]:
            shown = [f"{what} ({'probably ' if verdict == PROBABLY else ''}{more(ratio)})"
                     for what, ratio, verdict in found[mode]]
            told.append(f"{capital(mode)} I/O is faster for {listed(shown)}.")
    count = len(found[ALIKE])
    if count and not told:
        told.append(f"Collective and independent I/O do not differ beyond the noise in any of "
                    f"{plural(count, 'comparison')}.")
    elif count:
        told.append(f"In {plural(count, 'other comparison')} they do not differ beyond the noise.")
    return told


def choose_mode(points):
    """A phrase; None where nothing was done both ways."""
    found = modes(points)
    clear = {mode: [what for what, _, verdict in found[mode] if verdict == FASTER]
             for mode in ("collective", "independent")}
    count = sum(map(len, found.values()))
    if not count:
        return None
    few, many = sorted(clear, key=lambda mode: len(clear[mode]))
    if not clear[many]:
        return "collective or independent I/O: nothing differs clearly"
    shown = "; ".join(f"{mode} I/O is clearly faster for {listed(clear[mode])}"
                      for mode in (many, few) if clear[mode])
    if len(clear[many]) == len(clear[few]) or len(clear[many]) < count / 8:
        return f"collective or independent I/O by what you do: {shown}"
    if not clear[few]:
        return (f"{many} I/O: clearly faster in {len(clear[many])} of {count} comparisons, "
                "clearly slower in none")
    return (f"{many} I/O (clearly faster in {len(clear[many])} of {count} comparisons), but "
            f"{few} I/O for {listed(clear[few])}")


def on_pattern(points, _):
    told = [text for op in OPERATIONS for text in fastest(points, op)] + on_modes(points)
    choice = [text for text in (winners(points, op) for op in OPERATIONS) if text]
    if choose_mode(points):
        choice.append(choose_mode(points))
    return told, "; ".join(choice)


# ---- settings that are swept ----


def sweeps(points, name):
    """{(pattern, mode, back end, operation): [(setting, Sample)]}, settings rising."""
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


def votes(series):
    """(setting, how many are alike with their best there): the smallest of the most."""
    settings = sorted({setting for pairs in series.values() for setting, _ in pairs})
    counts = {s: sum(1 for pairs in series.values()
                     if s in [name for name, _ in best_of(pairs)[1]]) for s in settings}
    best = max(settings, key=lambda s: (counts[s], -s))
    return best, counts[best]


def exceptions(series, setting, show):
    """Of those that are not alike with their best at the setting, the largest losses."""
    found = []
    for key, pairs in series.items():
        best, alike, _ = best_of(pairs)
        here = dict(pairs).get(setting)
        if here and setting not in [name for name, _ in alike]:
            found.append((best[1].median / here.median,
                          f"{series_name(key)}, {more(best[1].median / here.median)} with "
                          f"{show(best[0])}"))
    return [text for _, text in sorted(found, reverse=True)[:4]]


def on_sweep(series, noun, show):
    """Sentences, and the setting to choose; (…, None) if all are alike everywhere."""
    if not series:
        return [], None
    count = len(series)
    setting, good = votes(series)
    if all(len(best_of(pairs)[1]) == len(pairs) for pairs in series.values()):
        return [f"The {noun} makes no difference beyond the noise in any of {count} series (each "
                "a back end that writes or reads in one way)."], None
    told = [f"With {show(setting)}, {good} of {count} series (each a back end that writes or "
            "reads in one way) are as fast as with their best, within the noise."]
    others = exceptions(series, setting, show)
    if others:
        told.append(f"Others gain by another {noun}: {listed(others)}.")
    least = min(pairs[0][0] for pairs in series.values())
    worst = [(pairs[0][1].median / best_of(pairs)[0][1].median, key)
             for key, pairs in series.items()
             if pairs[0][0] == least and differ(pairs[0][1], best_of(pairs)[0][1])]
    if worst and least != setting:
        part, key = min(worst)
        told.append(f"With {show(least)}, {plural(len(worst), 'series')} of {count} "
                    f"{'is' if len(worst) == 1 else 'are'} slower than with their best; worst is "
                    f"{series_name(key)}, {percent(part)} of its best.".replace("seriess",
                                                                                "series"))
    return told, setting


def on_transfer(points, _):
    told, setting = on_sweep(sweeps(points, "transfer"), "transfer size", size)
    if setting is None:
        return told, "any transfer size: nothing differs beyond the noise" if told else ""
    return told, f"transfers of {size(setting)}"


def on_chunks(points, _):
    chunked = [p for p in points if p["chunk"]]
    told, setting = on_sweep(sweeps(chunked, "chunk"), "chunk size", size)
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
            text = f"{what} ({more(ratio)}, chunks of {size(chunk)})"
            (faster if ratio > 1 else slower).append(text)
    for found, text in ((slower, "Faster without chunks than with the best ones: {}."),
                        (faster, "Faster with the best chunks than without: {}."),
                        (same, "As fast with the best chunks as without, within the noise: {}.")):
        if found:
            told.append(text.format(listed(found)))
    if setting is None:
        choice = "any chunk size: nothing differs beyond the noise" if told else ""
    else:
        choice = f"chunks of {size(setting)}"
    if slower and not faster:
        choice += ", and no chunks where the format does not need them"
    return told, choice


def alignment_name(nbytes):
    return size(nbytes) if nbytes else "none"


def gains(points):
    """{alignment: ([gains], [losses])} against none, each (ratio, verdict, series)."""
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


def on_alignment(points, _):
    told, net, none = [], {}, []
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
        told.append(f"Aligned to {size(setting)}, of {count} series {listed(parts)}; "
                    f"{len(same)} do not differ beyond the noise.")
    if none:
        told.append(f"Aligned to {listed(none, 'or')}, no series (a back end that writes or reads "
                    "in one way) differs from unaligned beyond the noise.")
    if not net:
        return told, ""
    best = max(net, key=lambda setting: (net[setting], -setting))
    if net[best] <= 0:
        return told, "no alignment: none is clearly faster than unaligned more often than slower"
    return told, (f"alignment to {size(best)}: clearly faster than unaligned in {net[best]} "
                  f"series more than slower")


# ---- lattices ----


def ranks_text(n):
    return f"{n} rank" + ("" if n == 1 else "s")


def lattice_text(extent):
    return f"{extent}^3 x {2 * extent}"


def by(points, name, backend, operation):
    return sorted(((p[name], p.speed) for p in pick(points, backend=backend, operation=operation)),
                  key=lambda pair: pair[0])


def grouped(told, groups):
    """Adds `text: names` for each of [(text, names)] that has names."""
    told += [text.format(listed(names)) for text, names in groups if names]


def amount(verdict, ratio):
    return f"{sure(verdict)}{digits(ratio)} times" if ratio >= 1.995 else \
        f"{sure(verdict)}{percent(ratio - 1)}"


def on_scaling(points, _):
    told, series = [], {}
    ranks = sorted(values(points, "ranks"))
    for op in OPERATIONS:
        up, down, same = [], [], []
        for backend in values(points, "backend"):
            pairs = by(points, "ranks", backend, op)
            if [n for n, _ in pairs] != ranks or len(ranks) < 2:
                continue
            if backend != "gather":
                series[(None, None, backend, op)] = pairs
            verdict, ratio = compare(pairs[-1][1], pairs[0][1])
            if verdict == ALIKE:
                same.append(backend)
            elif ratio >= 1:
                up.append(f"{backend} ({amount(verdict, ratio)})")
            else:
                down.append(f"{backend} ({amount(verdict, 1 / ratio)})")
        ends = f"on {ranks_text(ranks[-1])} than on {ranks[0]}"
        grouped(told, ((f"{DOING[op]} is faster {ends} with {{}}.", up),
                       (f"{DOING[op]} is faster on {ranks_text(ranks[0])} than on {ranks[-1]} "
                        "with {}.", down),
                       (f"{DOING[op]} does not differ between {ranks[0]} and "
                        f"{ranks_text(ranks[-1])} beyond the noise with {{}}.", same)))
    told += beside(points, "lime", "gather")
    if not series:
        return told, ""
    best, good = votes(series)
    return told, (f"{ranks_text(best)}: there {good} of {len(series)} parallel ways to write or "
                  "read are as fast as anywhere, within the noise")


def sure(verdict):
    return "" if verdict == FASTER else "probably "


def beside(points, one, other):
    """How two back ends compare on the most ranks that both have run on."""
    told = []
    for op in OPERATIONS:
        ours, theirs = dict(by(points, "ranks", one, op)), dict(by(points, "ranks", other, op))
        both = sorted(set(ours) & set(theirs))
        if both:
            n = both[-1]
            told.append(f"{DOING[op]} on {ranks_text(n)}: "
                        f"{than(ours[n], theirs[n], one, other)}.")
    return told


def per_rank(points, extent):
    p = pick(points, extent=extent)[0]
    return p.nbytes / p.ranks


def on_blocks(points, _):
    told, first = [], {}
    for op in OPERATIONS:
        flat, peak, full = [], [], {}
        for backend in values(points, "backend"):
            pairs = by(points, "extent", backend, op)
            if len(pairs) < 2:
                continue
            begin, best = plateau(pairs), best_of(pairs)[0]
            if begin == pairs[0][0]:
                flat.append(backend)
            elif begin is None:
                peak.append(f"{backend} with {lattice_text(best[0])}")
            else:
                part = percent(pairs[0][1].median / best[1].median)
                full.setdefault(begin, []).append(f"{backend} ({part} with the smallest)")
            if backend == "lime" and begin is not None:
                first[op] = begin
        grouped(told, [(f"{DOING[op]} does not depend on the size of the lattice beyond the "
                        "noise with {}.", flat),
                       *((f"{DOING[op]} reaches full speed from {lattice_text(begin)} on with "
                          "{}.", names) for begin, names in sorted(full.items())),
                       (f"{DOING[op]} is fastest with a lattice in between, and slower again with "
                        "larger ones: {}.", peak)])
    if not first:
        return told, ""
    begin = max(first.values())
    return told, (f"with lime, at least {digits(per_rank(points, begin) / 1e6)} MB for each rank "
                  f"(lattice {lattice_text(begin)}): larger ones are not "
                  f"{listed((PAST[op] for op in first), 'or')} faster beyond the noise")


def on_variability(points, _):
    told, runs = [], {}
    for op in OPERATIONS:
        shown = []
        for p in pick(points, operation=op):
            shown.append(f"{p.backend} {percent(p.speed.spread)}")
            if p.backend == "lime":
                runs[DOING[op].lower()] = max(3, math.ceil((p.speed.spread / 0.05) ** 2))
        if shown:
            count = pick(points, operation=op)[0].speed.count
            told.append(f"{DOING[op]} varies, as a standard deviation over {count} runs, by "
                        f"{listed(shown)}.")
        told += wider(points, op)
    told += [text for p in points for text in first_write(p) if p.operation == "write"]
    if not runs:
        return told, ""
    need = listed(f"{count} runs for {doing}" for doing, count in runs.items())
    return told, f"averages over {need} to know lime's speed to 5 % (standard error)"


def wider(points, operation):
    """Whether lime's middle half is wider than gather's, as the paper found it for Lemon."""
    found = {p.backend: (p.speed.high - p.speed.low) / p.speed.median
             for p in pick(points, operation=operation) if p.speed.count > 7}
    if "lime" not in found or not found.get("gather"):
        return []
    ratio = found["lime"] / found["gather"]
    shown = f"{percent(found['lime'])} of the median against {percent(found['gather'])}"
    if 0.5 < ratio < 2:
        return [f"The middle half of lime's runs is about as wide as that of gather's ({shown})."]
    return [f"The middle half of lime's runs is {'wider' if ratio > 1 else 'narrower'} than that "
            f"of gather's ({shown})."]


def first_write(point):
    """On the first write of each program, beside the later ones."""
    if len(point.firsts) < 3 or not point.others:
        return []
    first, later = Sample(point.firsts), Sample(point.others)
    verdict, ratio = compare(first, later)
    shown = (f"{point.backend}: the first write of a program has a median of "
             f"{speed(first.median)}, later ones {speed(later.median)}")
    if verdict == ALIKE:
        return [f"{shown}: no slow first write beyond the noise."]
    if ratio > 1:
        return [f"{shown}: the first is {sure(verdict)}faster."]
    return [f"{shown}: the first is {sure(verdict)}slow, {percent(ratio)} of the others."]


def on_formats(points, chosen):
    told = []
    for n in values(points, "ranks"):
        here = pick(points, ranks=n)
        for op in OPERATIONS:
            told += [f"On {ranks_text(n)}: {text[0].lower() + text[1:]}"
                     for text in fastest(here, op)[:1]]
    here = pick(points, ranks=chosen.main)
    told += against_lime(here)
    choice = [text for text in (winners(here, op) for op in OPERATIONS) if text]
    if not choice:
        return told, ""
    return told, f"on {ranks_text(chosen.main)}, " + "; ".join(choice)


def against_lime(points):
    """lime beside each other one, in groups."""
    told = []
    for op in OPERATIONS:
        ours = pick(points, backend="lime", operation=op)
        groups = {"is faster than": [], "is slower than": [], "does not differ from": []}
        for p in pick(points, operation=op):
            if ours and p.backend != "lime":
                verdict, ratio = compare(ours[0].speed, p.speed)
                if verdict == ALIKE:
                    groups["does not differ from"].append(p.backend)
                else:
                    place = "is faster than" if ratio >= 1 else "is slower than"
                    groups[place].append(f"{p.backend} ({sure(verdict)}{percent(abs(ratio - 1))})"
                                         if 0.5 < ratio < 1.995 else
                                         f"{p.backend} ({sure(verdict)}{digits(ratio)} times)")
        parts = [f"{verb} {listed(names)}" for verb, names in groups.items() if names]
        if parts:
            told.append(f"{DOING[op]} on {ranks_text(ours[0].ranks)}, lime {listed(parts)}."
                        .replace("does not differ from", "does not differ beyond the noise from"))
    return told


# ---- applications ----


def app_times(points, app):
    """{back end: (Sample of seconds in total, median of those in I/O)}, with the reading of one
    configuration."""
    found = {}
    for p in pick(points, app=app):
        reading = pick(points, app="configuration", backend=p.backend, operation="read")
        if reading:
            read = reading[0].seconds.values
            whole = [a + b for a, b in zip(p.seconds.values, read)]
            io = [a - c for a, c in zip(whole, p.compute.values)]
            found[p.backend] = (Sample(whole), Sample(io).median)
    return found


def on_apps(points, _):
    told, best = [], None
    for app, (title, *_) in plan.APPS.items():
        times = app_times(points, app)
        if not {"gather", "lime"} <= set(times):
            continue
        (old, old_io), (new, new_io) = times["gather"], times["lime"]
        verdict, ratio = compare(new, old, 1.005)  # computing hardly varies
        io = (f"I/O takes {percent(old_io / old.median)} of the time with gather, "
              f"{percent(new_io / new.median)} with lime")
        if verdict == ALIKE:
            told.append(f"{capital(title)}: {seconds(old.median)} with gather and "
                        f"{seconds(new.median)} with lime do not differ beyond the noise; {io}.")
        else:
            told.append(f"{capital(title)}: with lime it {'probably ' if verdict == PROBABLY else ''}"
                        f"takes {percent(ratio)} of the time that it takes with gather "
                        f"({seconds(new.median)} against {seconds(old.median)}); {io}.")
            if ratio < 1 and verdict == FASTER and (best is None or ratio < best[0]):
                best = (ratio, title)
    if not told:
        return told, ""
    if best is None:
        return told, "lime or gather: no application ends clearly sooner with either"
    return told, f"lime: the {best[1]} ends in {percent(best[0])} of the time"


FOUND = {
    "disjoint": on_pattern, "interleaved": on_pattern, "transfer-size": on_transfer,
    "chunk-size": on_chunks, "alignment": on_alignment, "scaling": on_scaling,
    "block-size": on_blocks, "variability": on_variability, "formats": on_formats,
    "app": on_apps,
}


def of(study, points, chosen):
    """(sentences, choice): the choice is a phrase, or empty."""
    return FOUND[study](points, chosen) if points else ([], "")
