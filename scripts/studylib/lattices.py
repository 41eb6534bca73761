"""Describes the results of the studies of lattices and applications."""

import math

from . import plan
from .points import pick, values
from .regions import count_best
from .samples import ALIKE, FASTER, Sample, best_of, compare, plateau
from .sentences import (DOING, OPERATIONS, PAST, add_groups, best_backends, capitalize,
                        describe_fastest, gain_text, probably)
from .formatting import three_digits, join_list, percent, seconds, speed, compare_text


def ranks_text(n):
    return f"{n} rank" + ("" if n == 1 else "s")


def lattice_text(extent):
    return f"{extent}^3 x {2 * extent}"


def select_by(points, name, backend, operation):
    return sorted(((p[name], p.speed) for p in pick(points, backend=backend, operation=operation)),
                  key=lambda pair: pair[0])


def describe_scaling(points, _):
    texts, series = [], {}
    ranks = sorted(values(points, "ranks"))
    for op in OPERATIONS:
        up, down, same = [], [], []
        for backend in values(points, "backend"):
            pairs = select_by(points, "ranks", backend, op)
            if [n for n, _ in pairs] != ranks or len(ranks) < 2:
                continue
            if backend != "gather":
                series[(None, None, backend, op)] = pairs
            verdict, ratio = compare(pairs[-1][1], pairs[0][1])
            if verdict == ALIKE:
                same.append(backend)
            elif ratio >= 1:
                up.append(f"{backend} ({gain_text(verdict, ratio)})")
            else:
                down.append(f"{backend} ({gain_text(verdict, 1 / ratio)})")
        ends = f"on {ranks_text(ranks[-1])} than on {ranks[0]}"
        add_groups(texts, ((f"{DOING[op]} is faster {ends} with {{}}.", up),
                           (f"{DOING[op]} is faster on {ranks_text(ranks[0])} than on {ranks[-1]} "
                            "with {}.", down),
                           (f"{DOING[op]} does not differ between {ranks[0]} and "
                            f"{ranks_text(ranks[-1])} beyond the noise with {{}}.", same)))
    texts += compare_backends(points, "lime", "gather")
    if not series:
        return texts, ""
    best, good = count_best(series)
    return texts, (f"{ranks_text(best)}: there {good} of {len(series)} parallel ways to write or "
                   "read are as fast as anywhere, within the noise")


def compare_backends(points, one, other):
    """Compares two back ends on the largest number of ranks that both have run on."""
    texts = []
    for op in OPERATIONS:
        ours, theirs = (dict(select_by(points, "ranks", name, op)) for name in (one, other))
        both = sorted(set(ours) & set(theirs))
        if both:
            n = both[-1]
            texts.append(f"{DOING[op]} on {ranks_text(n)}: "
                         f"{compare_text(ours[n], theirs[n], one, other)}.")
    return texts


def per_rank(points, extent):
    p = pick(points, extent=extent)[0]
    return p.nbytes / p.ranks


def describe_blocks(points, _):
    texts, first = [], {}
    for op in OPERATIONS:
        flat, peak, full = [], [], {}
        for backend in values(points, "backend"):
            pairs = select_by(points, "extent", backend, op)
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
        add_groups(texts, [(f"{DOING[op]} does not depend on the size of the lattice beyond the "
                            "noise with {}.", flat),
                           *((f"{DOING[op]} reaches full speed from {lattice_text(begin)} on with "
                              "{}.", names) for begin, names in sorted(full.items())),
                           (f"{DOING[op]} is fastest with a lattice in between, and slower with "
                            "larger ones: {}.", peak)])
    if not first:
        return texts, ""
    begin = max(first.values())
    return texts, (f"with lime, at least {three_digits(per_rank(points, begin) / 1e6)} MB a rank "
                   f"(lattice {lattice_text(begin)}): larger ones are not "
                   f"{join_list((PAST[op] for op in first), 'or')} faster beyond the noise")


def describe_variability(points, _):
    texts, runs = [], {}
    for op in OPERATIONS:
        shown = []
        for p in pick(points, operation=op):
            shown.append(f"{p.backend} {percent(p.speed.spread)}")
            if p.backend == "lime":
                runs[DOING[op].lower()] = max(3, math.ceil((p.speed.spread / 0.05) ** 2))
        if shown:
            count = pick(points, operation=op)[0].speed.count
            texts.append(f"{DOING[op]} varies, as a standard deviation over {count} runs, by "
                         f"{join_list(shown)}.")
        texts += compare_widths(points, op)
    texts += [text for p in points for text in describe_first_write(p) if p.operation == "write"]
    if not runs:
        return texts, ""
    need = join_list(f"{count} runs for {doing}" for doing, count in runs.items())
    return texts, f"averages over {need} to know lime's speed to 5 % (standard error)"


def compare_widths(points, operation):
    """Compares the interquartile ranges of lime and gather; the paper found Lemon's wider."""
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


def describe_first_write(point):
    """Compares the first write of each program with its later writes."""
    if len(point.firsts) < 3 or not point.others:
        return []
    first, later = Sample(point.firsts), Sample(point.others)
    verdict, ratio = compare(first, later)
    shown = (f"{point.backend}: the first write of a program has a median of "
             f"{speed(first.median)}, later ones {speed(later.median)}")
    if verdict == ALIKE:
        return [f"{shown}: no slow first write beyond the noise."]
    if ratio > 1:
        return [f"{shown}: the first is {probably(verdict)}faster."]
    return [f"{shown}: the first is {probably(verdict)}slow, {percent(ratio)} of the others."]


def describe_formats(points, chosen):
    texts = []
    for n in values(points, "ranks"):
        here = pick(points, ranks=n)
        for op in OPERATIONS:
            texts += [f"On {ranks_text(n)}: {text[0].lower() + text[1:]}"
                      for text in describe_fastest(here, op)[:1]]
    here = pick(points, ranks=chosen.main)
    texts += compare_with_lime(here)
    choice = [text for text in (best_backends(here, op) for op in OPERATIONS) if text]
    if not choice:
        return texts, ""
    return texts, f"on {ranks_text(chosen.main)}, " + "; ".join(choice)


def compare_with_lime(points):
    """Compares lime with each other back end, grouped by the result."""
    texts = []
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
                    small = 0.5 < ratio < 1.995
                    gain = percent(abs(ratio - 1)) if small else f"{three_digits(ratio)} times"
                    groups[place].append(f"{p.backend} ({probably(verdict)}{gain})")
        parts = [f"{verb} {join_list(names)}" for verb, names in groups.items() if names]
        if parts:
            texts.append(f"{DOING[op]} on {ranks_text(ours[0].ranks)}, lime {join_list(parts)}."
                         .replace("does not differ from", "does not differ beyond the noise from"))
    return texts


# ---- applications ----


def app_times(points, app):
    """Returns {back end: (Sample of total seconds, median seconds without computing)}, including
    the reading of one configuration. The computing time is the requested one: lime-bench reports
    that of the slowest rank, which with gather may include waiting for the writing rank."""
    found = {}
    for p in pick(points, app=app):
        reading = pick(points, app="configuration", backend=p.backend, operation="read")
        if reading:
            read = reading[0].seconds.values
            whole = Sample([a + b for a, b in zip(p.seconds.values, read)], p.seconds.group,
                           p.seconds.rounds)
            found[p.backend] = (whole, max(0.0, whole.median - p.compute))
    return found


def describe_apps(points, _):
    texts, best = [], None
    for app, (title, *_) in plan.APPS.items():
        times = app_times(points, app)
        if not {"gather", "lime"} <= set(times):
            continue
        (old, old_io), (new, new_io) = times["gather"], times["lime"]
        verdict, ratio = compare(new, old, 1.005)  # computing hardly varies
        io = (f"I/O, waiting included, takes {percent(old_io / old.median)} of the time with "
              f"gather, {percent(new_io / new.median)} with lime")
        if verdict == ALIKE:
            texts.append(f"{capitalize(title)}: {seconds(old.median)} with gather and "
                         f"{seconds(new.median)} with lime do not differ beyond the noise; {io}.")
        else:
            texts.append(f"{capitalize(title)}: with lime it {probably(verdict)}takes "
                         f"{percent(ratio)} of the time that it takes with gather "
                         f"({seconds(new.median)} against {seconds(old.median)}); {io}.")
            if ratio < 1 and verdict == FASTER and (best is None or ratio < best[0]):
                best = (ratio, title)
    if not texts:
        return texts, ""
    if best is None:
        return texts, "lime or gather: no application ends clearly sooner with either"
    return texts, f"lime: the {best[1]} ends in {percent(best[0])} of the time"
