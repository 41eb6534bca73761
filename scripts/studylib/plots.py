"""Draws plots with gnuplot, as SVG for the page. gnuplot gets colour numbers that stand for entries
of the page's palette, so that the plots follow its light or dark scheme."""

import html
import math
import re
import shutil
import subprocess

INK, GREY, FIRST = 1, 2, 3  # entries of the palette; from FIRST on those of series
SERIES = 6
POINTS = (7, 5, 9, 13, 11, 3)  # marks of the series: a disc, a box, triangles, a diamond
DASHES = (1, 1, 2, 1, 4, 2)
WIDTH = 480
FILL = "fs transparent solid 0.6 border"

# Series in the same plot have different entries of the palette.
STYLE = {"posix": 5, "mpiio": 0, "hdf5": 1, "netcdf4": 2, "pnetcdf": 3, "lime": 4, "gather": 0,
         "subarray": 2, "limefs": 1, "limefs-job": 2}

HEAD = """set terminal svg size {width},{height} dynamic noenhanced font 'sans-serif,{font}' \\
    linewidth 1.3 dashlength 0.6
set border 3 lc rgb '{ink}'
set tics nomirror out scale 0.6
set grid {grid} lc rgb '{grey}' lt 1 lw 0.7
set key at screen 0.5,0.015 bottom center horizontal samplen 1.3 maxcols 3 width 1
set tmargin 1
set bmargin {below}
set xlabel offset 0,0.4
set pointintervalbox 0
"""


def colour(place):
    return f"#0000{place:02x}"


def series_colour(i):
    return colour(FIRST + i % SERIES)


def quoted(text):
    return '"' + str(text).replace("\\", "").replace('"', "'") + '"'


def head(height, grid, keys, font=15):
    """keys: number of names below the plot."""
    rows = -(-keys // 3)
    return HEAD.format(width=WIDTH, height=height + 22 * rows, grid=grid, ink=colour(INK),
                       grey=colour(GREY), font=font, below=3.4 + 1.25 * rows)


def nice_step(high):
    """Returns a step that divides a scale from 0 to `high` into four to seven parts."""
    rough = high / 5
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1
    return min((factor * power for factor in (1, 2, 2.5, 5, 10)),
               key=lambda step: abs(high / step - 5))


def available():
    return shutil.which("gnuplot") is not None


def lines(xlabel, ylabel, ticks, series, log_x=True, log_y=False):
    """Draws lines. series: [(name, place, [(x, median, least, most, low, high)])], where low to
    high is the interval of the median; ticks: [(x, text)]."""
    values = [v for _, _, rows in series for row in rows for v in row[1:]]
    script = [head(310, "ytics", len(series))]
    script.append(f"set xlabel {quoted(xlabel)}\nset ylabel {quoted(ylabel)}")
    script.append("set xtics (" + ", ".join(f"{quoted(text)} {x}" for x, text in ticks) + ")")
    if log_x:
        script.append("set logscale x 2")
        low, high = ticks[0][0], ticks[-1][0]
        script.append(f"set xrange [{low / 1.5}:{high * 1.5}]")
    else:
        script.append(f"set xrange [{ticks[0][0] - 0.4}:{ticks[-1][0] + 0.4}]")
    script += vertical(values, log_y)
    plots = []
    for i, (name, place, rows) in enumerate(series):
        script.append(block(f"d{i}", rows))
        style = f"lc rgb '{series_colour(place)}'"
        x = offset_x(ticks, i - (len(series) - 1) / 2, log_x)
        plots.append(f"$d{i} using {x}:2 with lines lw 1.3 dt {DASHES[place]} {style} notitle")
        plots.append(f"$d{i} using {x}:5:(0):($6-$5) with vectors nohead lw 3 {style} notitle")
        plots.append(f"$d{i} using {x}:2:3:4 with yerrorbars pt {POINTS[place]} ps 0.75 "
                     f"lw 0.9 {style} title {quoted(name)}")
    return draw(script, plots)


def offset_x(ticks, step, log_x):
    """Returns gnuplot's x, shifted from the tick so that error bars do not overlap."""
    places = [math.log2(x) if log_x else x for x, _ in ticks]
    gap = min((b - a for a, b in zip(places, places[1:])), default=1)
    shift = 0.1 * gap * step
    return f"($1*{2 ** shift:.4f})" if log_x else f"($1+{shift:.3f})"


def needs_log_scale(values):
    """Returns whether only a logarithmic scale shows all values."""
    return min(values) > 0 and max(values) / min(values) > 40


def vertical(values, log=False):
    """Sets the range of speeds: from 0, or logarithmic."""
    low, high = min(values), max(values)
    if log and low > 0:
        low, high = low * 0.7, high * 1.4
        ticks = [f * 10 ** e for e in range(-3, 7) for f in (1, 2, 5) if low <= f * 10 ** e <= high]
        if len(ticks) > 7:
            ticks = [t for t in ticks if str(t).strip("0.")[:1] == "1"]
        return ["set logscale y 10", f"set yrange [{low}:{high}]", "unset mytics",
                "set ytics (" + ", ".join(f'"{t:g}" {t:g}' for t in ticks) + ")"]
    return [f"set yrange [0:{high * 1.08}]", f"set ytics {nice_step(high)}"]


def bars(xlabel, categories, series):
    """Horizontal bars. series: [(name, place, {category: (median, least, most, low, high)})]."""
    count = len(series)
    thick = 0.8 / count
    height = 70 + max(1, len(categories)) * (16 + 13 * count)
    script = [head(height, "xtics", count), f"set xlabel {quoted(xlabel)}", "set ytics scale 0"]
    high = max(row[2] for _, _, rows in series for row in rows.values())
    script.append(f"set xrange [0:{high * 1.05}]\nset xtics {nice_step(high)}\n"
                  f"set yrange [{len(categories) - 0.4}:-0.6]")
    script.append("set ytics (" + ", ".join(f"{quoted(name)} {i}"
                                            for i, name in enumerate(categories)) + ")")
    plots = []
    for i, (name, place, rows) in enumerate(series):
        script.append(block(f"d{i}", [
            (at + (i - (count - 1) / 2) * thick, *rows[category])
            for at, category in enumerate(categories) if category in rows]))
        style = f"lc rgb '{series_colour(place)}'"
        plots.append(f"$d{i} using (0.5*$2):1:(0.5*$2):({thick * 0.42}) with boxxyerror "
                     f"{style} {FILL} title {quoted(name)}")
        ink = f"lc rgb '{colour(INK)}' notitle"
        plots.append(f"$d{i} using 2:1:3:4 with xerrorbars pt 0 lw 1 {ink}")
        plots.append(f"$d{i} using 5:1:($6-$5):(0) with vectors nohead lw 3.2 {ink}")
    return draw(script, plots)


def boxes(ylabel, rows):
    """Draws box plots. rows: [(name, place, least, low, median, high, most)]."""
    script = [head(310, "ytics", 0), f"set ylabel {quoted(ylabel)}", "unset key"]
    script += vertical([v for row in rows for v in row[2:]])
    script.append(f"set xrange [-0.6:{len(rows) - 0.4}]\nset boxwidth 0.45")
    script.append("set xtics (" + ", ".join(f"{quoted(row[0])} {i}"
                                            for i, row in enumerate(rows)) + ")")
    plots = []
    for i, (_, place, least, low, median, high, most) in enumerate(rows):
        script.append(block(f"d{i}", [(i, low, least, most, high, median)]))
        plots.append(f"$d{i} using 1:2:3:4:5 with candlesticks "
                     f"lc rgb '{series_colour(place)}' {FILL} notitle whiskerbars 0.5")
        plots.append(f"$d{i} using 1:6:6:6:6 with candlesticks lw 2.5 lc rgb '{colour(INK)}' "
                     "notitle")
    return draw(script, plots)


def stacks(xlabel, names, parts):
    """Draws stacked horizontal bars. parts: [(name, place, [length], [(least, most)])], one length
    for each name; least and most are those of the whole bar."""
    script = [head(70 + 34 * len(names), "xtics", len(parts)), f"set xlabel {quoted(xlabel)}",
              "set ytics scale 0", f"set yrange [{len(names) - 0.4}:-0.6]"]
    high = max(most for _, _, _, ends in parts for _, most in ends)
    script.append(f"set xrange [0:{high * 1.05}]\nset xtics {nice_step(high)}")
    script.append("set ytics (" + ", ".join(f"{quoted(name)} {i}"
                                            for i, name in enumerate(names)) + ")")
    begin, plots = [0.0] * len(names), []
    for i, (name, place, lengths, ends) in enumerate(parts):
        rows = [(at, begin[at] + length / 2, length / 2, begin[at] + length, *end)
                for at, (length, end) in enumerate(zip(lengths, ends))]
        begin = [b + length for b, length in zip(begin, lengths)]
        script.append(block(f"d{i}", rows))
        plots.append(f"$d{i} using 2:1:3:(0.33) with boxxyerror "
                     f"lc rgb '{series_colour(place)}' {FILL} title {quoted(name)}")
        if i == len(parts) - 1:
            plots.append(f"$d{i} using 4:1:5:6 with xerrorbars pt 0 lw 1.4 "
                         f"lc rgb '{colour(INK)}' notitle")
    return draw(script, plots)


def block(name, rows):
    return f"${name} << EOD\n" + "\n".join(" ".join(f"{v:.6g}" for v in row)
                                           for row in rows) + "\nEOD"


def draw(script, plots):
    """Returns the SVG that gnuplot draws."""
    text = "\n".join(script) + "\nplot " + ", \\\n     ".join(plots) + "\n"
    done = subprocess.run(["gnuplot"], input=text.encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    svg = done.stdout.decode(errors="replace")
    if done.returncode != 0 or "</svg>" not in svg:
        raise OSError(f"gnuplot: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return svg


def place_colour(match):
    place = int(match.group(1))
    return {INK: "var(--ink)", GREY: "var(--grid)"}.get(place, f"var(--s{place - FIRST})")


def inline(svg, name, label):
    """Prepares an SVG for HTML: unique ids, the page's colours, no empty groups."""
    box = re.search(r'viewBox="([^"]+)"', svg).group(1)
    inside = svg[svg.index("<g id="):svg.rindex("</svg>")]
    inside = re.sub(r"<filter.*?</filter>", "", inside, flags=re.S)
    inside = re.sub(r"rgb\(\s*0,\s*0,\s*(\d+)\s*\)", place_colour, inside)
    for theirs, ours in (("black", "var(--ink)"), ("gray", "var(--grid)"),
                         ("white", "var(--paper)")):
        inside = re.sub(rf"""=(["']){theirs}\1""", rf"=\1{ours}\1", inside)
    inside = inside.replace("xlink:href", "href")
    inside = re.sub(r"""(id=|href=)(["'])(#?)""", rf"\1\2\3{name}-", inside)
    inside = inside.replace("url(#", f"url(#{name}-")
    inside = re.sub(r"<title>.*?</title>", "", inside, flags=re.S)
    while True:
        shorter = re.sub(r"<g[^>]*>\s*</g>\s*", "", inside)
        if shorter == inside:
            break
        inside = shorter
    inside = re.sub(r"\s*\n\s*", "\n", inside)
    return (f'<svg viewBox="{box}" role="img" aria-label="{html.escape(label)}">'
            f"{inside}</svg>")
