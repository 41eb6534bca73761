"""Builds the plots and tables of each study."""

import dataclasses

from . import plan, plots
from .lattices import app_times, lattice_text, ranks_text
from .points import pick, values
from .regions import alignment_name
from .samples import Sample
from .sentences import DOING, OPERATIONS
from .formatting import three_digits, seconds, size, speed

MODES = {"independent": 0, "collective": 1}
SPEED = "MB/s"
ERRORS = ("Marks and bars: medians. Error bars: from the slowest to the fastest run; their thick "
          "part holds the median with 99 % confidence (of fewer than eight runs it is all).")


@dataclasses.dataclass
class View:
    panels: list  # [(label, function that returns SVG)]
    tables: list  # [(caption, [heads], [[cells]])]
    errors: str = ERRORS  # meaning of the error bars


def to_mb(sample):
    """Returns median, minimum, maximum and the interval of the median, in MB/s."""
    return tuple(v / 1e6 for v in (sample.median, sample.least, sample.most, *sample.interval()))


def cell(sample):
    """Returns the median, and the range for the smaller text."""
    return (speed(sample.median, False),
            f"{speed(sample.least, False)} to {speed(sample.most, False)}")


def table(caption, corner, rows, columns, points, **fixed):
    """rows, columns: [(text, {condition: value})]; omits columns and rows without values."""
    def find(row, column):
        found = pick(points, **fixed, **row, **column)
        return cell(found[0].speed) if found else None

    cells = [[find(row, column) for _, column in columns] for _, row in rows]
    used = [i for i in range(len(columns)) if any(line[i] for line in cells)]
    lines = [[text, *(line[i] for i in used)] for (text, _), line in zip(rows, cells) if any(line)]
    return f"{caption}, MB/s", [corner, *(columns[i][0] for i in used)], lines


def operations(points):
    return [op for op in OPERATIONS if pick(points, operation=op)]


def patterns(points, _):
    panels, tables = [], []
    names = values(points, "backend")
    for op in operations(points):
        series = []
        for mode, place in MODES.items():
            rows = {p.backend: to_mb(p.speed) for p in pick(points, operation=op, mode=mode)}
            if rows:
                series.append((mode, place, rows))
        here = [name for name in names if pick(points, operation=op, backend=name)]
        panels.append((DOING[op], lambda here=here, series=series:
                       plots.bars(SPEED, here, series)))
        tables.append(table(DOING[op], "back end", [(n, {"backend": n}) for n in here],
                            [(m, {"mode": m}) for m in MODES], points, operation=op))
    return View(panels, tables)


def curves(points, x, xlabel, ticks, log_x=True, log_y=False):
    """Returns a panel with a line for each back end."""
    series = []
    at = {value: place for value, place, _ in ticks}
    for name in values(points, "backend"):
        rows = sorted((at[p[x]], *to_mb(p.speed)) for p in pick(points, backend=name))
        series.append((name, plots.STYLE.get(name, 0), rows))
    return lambda: plots.lines(xlabel, SPEED, [(place, text) for _, place, text in ticks], series,
                               log_x, log_y)


def short_size(nbytes):
    """Returns a size for an axis: 64K."""
    return size(nbytes).replace(" ", "").replace("iB", "").replace("bytes", "")


def swept(points, x, xlabel, show, log_x=True):
    """Returns panels and tables of each access pattern and mode, for writing and reading."""
    panels, tables = [], []
    log_y = plots.needs_log_scale([p.speed.median for p in points])
    for pattern, mode in dict.fromkeys((p["pattern"], p["mode"]) for p in points):
        for op in operations(points):
            here = pick(points, pattern=pattern, mode=mode, operation=op)
            if not here:
                continue
            settings = sorted(values(here, x))
            if log_x:
                # "No chunks" comes after the largest size.
                most = max(settings) or 1
                ticks = sorted(((s, s or most * 4, short_size(s) if s else show(s))
                                for s in settings), key=lambda tick: tick[1])
            else:
                ticks = [(s, i, short_size(s) if s else show(s)) for i, s in enumerate(settings)]
            label = f"{DOING[op]}, {pattern}, {mode}"
            panels.append((label, curves(here, x, xlabel, ticks, log_x, log_y)))
            tables.append(table(label, xlabel.partition(" (")[0],
                                [(show(s), {x: s}) for s, _, _ in ticks],
                                [(n, {"backend": n}) for n in values(here, "backend")], here))
    return View(panels, tables)


def transfer_sizes(points, _):
    return swept(points, "transfer", "transfer size (K = KiB, M = MiB)", size)


def chunk_sizes(points, _):
    return swept(points, "chunk", "chunk size (K = KiB, M = MiB)",
                 lambda s: size(s) if s else "no chunks")


def aligned(points, _):
    return swept(points, "alignment", "alignment (K = KiB, M = MiB)", alignment_name, log_x=False)


def over(points, x, xlabel, ticks, corner, show):
    """Returns panels and tables of lattices over ranks or sizes."""
    panels, tables = [], []
    log_y = plots.needs_log_scale([p.speed.median for p in points])
    for op in operations(points):
        here = pick(points, operation=op)
        panels.append((DOING[op], curves(here, x, xlabel, ticks, log_y=log_y)))
        tables.append(table(DOING[op], corner, [(show(s), {x: s}) for s in sorted(values(here, x))],
                            [(n, {"backend": n}) for n in values(here, "backend")], here))
    return View(panels, tables)


def scaled(points, chosen):
    ranks = sorted(values(points, "ranks"))
    return over(points, "ranks", f"ranks, lattice {lattice_text(chosen.extent)}",
                [(n, n, str(n)) for n in ranks], "ranks", ranks_text)


def sized(points, _):
    first = {p["extent"]: p.nbytes / p.ranks / 1e6 for p in points}
    ticks = [(extent, first[extent], three_digits(first[extent])) for extent in sorted(first)]
    return over(points, "extent", "MB for each rank", ticks, "lattice",
                lambda e: f"{lattice_text(e)}, {three_digits(first[e])} MB a rank")


def varied(points, _):
    panels, tables = [], []
    for op in operations(points):
        here = pick(points, operation=op)
        rows = [(p.backend, plots.STYLE.get(p.backend, 0),
                 *(v / 1e6 for v in (p.speed.least, p.speed.low, p.speed.median, p.speed.high,
                                     p.speed.most))) for p in here]
        panels.append((f"{DOING[op]}: all runs", lambda rows=rows: plots.boxes(SPEED, rows)))
        panels.append((f"{DOING[op]}: in the order of repetitions", repetition_curve(here)))
        heads = ["back end", "runs", "median", "slowest", "10 % are slower", "90 % are slower",
                 "fastest", "standard deviation"]
        lines = [[p.backend, str(p.speed.count),
                  *(speed(v, False) for v in (
                      p.speed.median, p.speed.least, p.speed.quantile(10), p.speed.quantile(90),
                      p.speed.most, p.speed.deviation))] for p in here]
        tables.append((f"{DOING[op]}, MB/s", heads, lines))
    return View(panels, tables, "Boxes: the middle half of the runs with the median; whiskers: "
                "the slowest and the fastest. In order: the median of that repetition over "
                "several programs; error bars: the slowest and the fastest.")


def repetition_curve(points):
    """Plots the speed against the number of the repetition within its program."""
    series = []
    for p in points:
        programs = len(p.firsts)
        each = p.speed.count // max(1, programs)
        if each * programs != p.speed.count or not each:
            continue
        rows = []
        for i in range(each):
            sample = Sample(p.speed.values[i::each])
            rows.append((i + 1, *to_mb(sample)[:3], *2 * [sample.median / 1e6]))
        series.append((p.backend, plots.STYLE.get(p.backend, 0), rows))
    ticks = [(row[0], str(row[0])) for row in series[0][2]]
    return lambda: plots.lines("repetition in a program", SPEED, ticks, series, log_x=False)


def formatted(points, _):
    panels, tables = [], []
    ranks = sorted(values(points, "ranks"))
    for op in operations(points):
        here = pick(points, operation=op)
        names = values(here, "backend")
        series = [(ranks_text(n), i, {p.backend: to_mb(p.speed) for p in pick(here, ranks=n)})
                  for i, n in enumerate(ranks)]
        panels.append((DOING[op], lambda names=names, series=series:
                       plots.bars(SPEED, names, [s for s in series if s[2]])))
        tables.append(table(DOING[op], "back end", [(n, {"backend": n}) for n in names],
                            [(ranks_text(n), {"ranks": n}) for n in ranks], here))
    return View(panels, tables)


def applied(points, _):
    names, compute, io, ends, lines = [], [], [], [], []
    for app, (title, short_title, *_) in plan.APPS.items():
        times = dict(sorted(app_times(points, app).items()))
        if not times:
            continue
        base = times["gather" if "gather" in times else next(iter(times))][0].median
        for backend, (whole, moved) in times.items():
            names.append(f"{short_title}, {backend}")
            io.append(100 * moved / base)
            compute.append(100 * (whole.median - moved) / base)
            ends.append((100 * whole.least / base, 100 * whole.most / base))
            lines.append([f"{title}, {backend}", seconds(whole.median),
                          f"{seconds(whole.least)} to {seconds(whole.most)}",
                          seconds(whole.median - moved), seconds(moved),
                          f"{100 * whole.median / base:.0f} %"])
    if not names:
        return View([], [])
    parts = [("computing", 5, compute, ends), ("I/O, waiting included", 1, io, ends)]
    heads = ["application", "time", "from and to", "computing", "I/O, waiting", "of gather's time"]
    return View([("Time of an application, in % of that with gather",
                  lambda: plots.stacks("% of the time with gather", names, parts))],
                [("Time of an application, medians", heads, lines)],
                "Lengths: medians. Error bars: the shortest and the longest run.")


VIEWS = {
    "disjoint": patterns, "interleaved": patterns, "transfer-size": transfer_sizes,
    "chunk-size": chunk_sizes, "alignment": aligned, "scaling": scaled, "block-size": sized,
    "variability": varied, "formats": formatted, "app": applied,
}


def build(study, points, chosen):
    return VIEWS[study](points, chosen) if points else View([], [])
