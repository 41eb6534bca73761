"""What the studies of lattices say, and of the applications."""

import math

from . import plan
from .points import pick, values
from .regions import votes
from .samples import ALIKE, FASTER, Sample, best_of, compare, plateau
from .telling import DOING, OPERATIONS, PAST, amount, capital, fastest, grouped, sure, winners
from .words import digits, listed, percent, seconds, speed, than


def ranks_text(n):
    return f"{n} rank" + ("" if n == 1 else "s")


def lattice_text(extent):
    return f"{extent}^3 x {2 * extent}"


def by(points, name, backend, operation):
    return sorted(((p[name], p.speed) for p in pick(points, backend=backend, operation=operation)),
                  key=lambda pair: pair[0])


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
    """{back end: (Sample of seconds in total, median of those beside computing)}, with the reading
    of one configuration. What lime-bench reports as computing is the slowest rank's, which with
    gather may have waited for another one's writing: the time that was asked for counts."""
    found = {}
    for p in pick(points, app=app):
        reading = pick(points, app="configuration", backend=p.backend, operation="read")
        if reading:
            read = reading[0].seconds.values
            whole = Sample([a + b for a, b in zip(p.seconds.values, read)], p.seconds.group,
                           p.seconds.rounds)
            found[p.backend] = (whole, max(0.0, whole.median - p.compute))
    return found


def on_apps(points, _):
    told, best = [], None
    for app, (title, *_) in plan.APPS.items():
        times = app_times(points, app)
        if not {"gather", "lime"} <= set(times):
            continue
        (old, old_io), (new, new_io) = times["gather"], times["lime"]
        verdict, ratio = compare(new, old, 1.005)  # computing hardly varies
        io = (f"I/O, waiting included, takes {percent(old_io / old.median)} of the time with gather, "
              f"{percent(new_io / new.median)} with lime")
        if verdict == ALIKE:
            told.append(f"{capital(title)}: {seconds(old.median)} with gather and "
                        f"{seconds(new.median)} with lime do not differ beyond the noise; {io}.")
        else:
            told.append(f"{capital(title)}: with lime it {sure(verdict)}takes {percent(ratio)} of "
                        "the time that it takes with gather "
                        f"({seconds(new.median)} against {seconds(old.median)}); {io}.")
            if ratio < 1 and verdict == FASTER and (best is None or ratio < best[0]):
                best = (ratio, title)
    if not told:
        return told, ""
    if best is None:
        return told, "lime or gather: no application ends clearly sooner with either"
    return told, f"lime: the {best[1]} ends in {percent(best[0])} of the time"
