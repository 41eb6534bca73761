"""Writes the page, one self-contained HTML file."""

import html

from . import advice, findings, lattices, plan, plots, points as points_module, views
from .points import is_complete
from .store import write_text
from .formatting import three_digits, duration, join_list, plural, size

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --soft: #55595e; --grid: #d4d7da;
  --line: #c3c7cb; --tint: #f3f5f7; --mark: #e9f2fa; --link: #0b5394;
  --s0: #0072b2; --s1: #d55e00; --s2: #00815c; --s3: #b0578d; --s4: #c98a00; --s5: #5a5f66; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --ink: #e8e8e6; --soft: #a9afb5;
  --grid: #3a4046; --line: #4a5057; --tint: #1f2428; --mark: #1c2c3a; --link: #8fc7f5;
  --s0: #56b4e9; --s1: #ff8a3d; --s2: #2fc79a; --s3: #dd94c3; --s4: #f0c23c; --s5: #aab0b7; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(0.8rem, 3vw, 2.5rem) 4rem; max-width: 72rem;
  background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.6rem 0 0.2rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 0.4rem; padding-top: 0.8rem;
  border-top: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 0.3rem; }
p, ul, dl { max-width: 46rem; }
a { color: var(--link); }
.soft, figcaption, caption { color: var(--soft); font-size: 0.92rem; }
.box { background: var(--mark); border-radius: 0.5rem; padding: 0.7rem 1rem; max-width: none; }
.box dl, .machine { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr;
  gap: 0.3rem 1.2rem; margin: 0.4rem 0; max-width: none; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
nav a { display: inline-block; margin: 0 0.9rem 0.3rem 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr));
  gap: 0.8rem 1.6rem; margin: 0.8rem 0; align-items: start; }
figure { margin: 0; max-width: 34rem; } figure h4 { margin: 0.2rem 0 0; font-size: 0.98rem; }
svg { display: block; width: 100%; height: auto; color: var(--ink); }
.tables { display: flex; flex-wrap: wrap; gap: 0 2rem; }
.table { max-width: 100%; overflow-x: auto; margin: 0.9rem 0; }
table { border-collapse: collapse; font-size: 0.86rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.25rem; }
th, td { padding: 0.22rem 0.5rem; text-align: right; border-bottom: 1px solid var(--grid);
  white-space: nowrap; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { border-bottom: 2px solid var(--line); }
td small { display: block; color: var(--soft); font-size: 0.78rem; line-height: 1.1; }
table.text td { text-align: left; white-space: normal; min-width: 6rem; }
table.text th { text-align: left; }
.choice { border-left: 4px solid var(--s0); padding: 0.2rem 0 0.2rem 0.8rem; margin: 0.8rem 0; }
code { font-size: 0.92em; overflow-wrap: anywhere; }
@media (max-width: 30rem) { .box dl, .machine { grid-template-columns: 1fr; gap: 0; }
  .box dd, .machine dd { margin-bottom: 0.5rem; } h1 { font-size: 1.4rem; }
  th, td { padding: 0.22rem 0.45rem; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444;
  --grid: #ccc; --line: #999; --tint: #fff; --mark: #f2f2f2; --link: #000; --s0: #0072b2;
  --s1: #d55e00; --s2: #00815c; --s3: #b0578d; --s4: #c98a00; --s5: #5a5f66; }
  html { font-size: 9.5pt; } body { max-width: none; padding: 0; }
  nav, .why { display: none; }
  .plots { grid-template-columns: 1fr 1fr; } figure, table, .box, .choice { break-inside: avoid; }
  h2, h3, figure h4 { break-after: avoid; } .table { overflow: visible; }
  a { text-decoration: none; } }
"""

HOW_TO_READ = (
    "Each speed is bytes over the time from before opening the file to after closing it, with the "
    "data on the disk (fsync) for writing; the slowest rank counts. All data that were read were "
    "compared with what was written. Tables give the median of the runs, and below it the slowest "
    "and the fastest. In the text, [low, high] after a median is the interval in which it lies "
    "with 99 % confidence, whatever the distribution of the runs.",
    "Two settings are called different (faster, slower) only where these intervals keep apart, "
    "and probably different where those of 95 % do and the medians differ by 10 % or more. All "
    "else, and whatever differs by less than 3 %, is within the noise. With fewer than ten runs "
    "the runs themselves must keep apart. Back ends take turns within a program, so for two of "
    "them it is also enough that their ratio, turn by turn, keeps apart from 1, in each round. "
    "The rounds of all studies followed each other, every other one backwards, so that "
    "other work of the machine met all settings alike.")


def text(value):
    return html.escape(str(value))


def paragraph(value, kind=""):
    return f"<p{f' class={kind}' if kind else ''}>{text(value)}</p>"


def definitions(pairs, kind=""):
    inside = "".join(f"<dt>{term}</dt><dd>{value}</dd>" for term, value in pairs)
    return f"<dl{f' class={kind}' if kind else ''}>{inside}</dl>"


def table(caption, heads, rows, kind=""):
    """A cell is a text, a pair (text, smaller text below it), or None."""
    def cell(value):
        if value is None:
            return "<td></td>"
        if isinstance(value, tuple):
            return f"<td>{text(value[0])}<small>{text(value[1])}</small></td>"
        return f"<td>{text(value)}</td>"

    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>\n" for row in rows)
    return (f"<div class=table><table{f' class={kind}' if kind else ''}>"
            f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>\n{body}</tbody></table></div>")


# ---- parts ----


def machine_part(store):
    about = store.about
    system, size_ = about.get("system") or {}, plan.Size.from_dict(about["size"])
    hosts = plural(max(points_module.parameter(store, size_, "hosts"), default=1), "host")
    files = system.get("file_system") or {}
    kind = files.get("type", "unknown")
    if files.get("stripe_bytes"):
        kind += (f", stripes of {size(files['stripe_bytes'])}"
                 + (f" on {files['stripe_count']} targets" if files.get("stripe_count") else ""))
    elif files.get("block_bytes"):
        kind += f", blocks of {size(files['block_bytes'])}"
    libraries = [f"{name} {version}" for name, version in (system.get("libraries") or {}).items()]
    rows = [("Host", system.get("host", "unknown")),
            ("Processors", f"{system.get('cpus', '?')}, "
                           f"{size(system.get('memory_bytes') or 0)} of memory"),
            ("System", system.get("kernel", about["machine"]["kernel"])),
            ("File system", f"{kind} ({about['machine']['file system']})"),
            ("MPI", f"{system.get('mpi', '?')}, MPI-IO by {system.get('mpi_io', '?')}"),
            ("Libraries", ", ".join(libraries) or "none"),
            ("Ranks", f"{size_.main}, on {hosts}; compared: {join_list(map(str, size_.ranks))}"),
            ("Data", f"{size(size_.bytes)} a rank; lattice {lattices.lattice_text(size_.extent)}, "
                     f"{three_digits(plan.lattice_bytes(size_.extent) / 1e6)} MB"),
            ("Repetitions", f"{size_.repetitions} in each of {size_.rounds} rounds, after one that "
                            "does not count"),
            ("Measured", about["began"].replace("T", " ").replace("Z", " UTC"))]
    return definitions([(text(term), text(value)) for term, value in rows], "machine")


def advice_part(points, chosen):
    found = advice.collect(points, chosen)
    if not found:
        return paragraph("Nothing has been measured yet.")
    rows = [(text(topic), f"{text(advice_)}. <a class=why href='#{study}'>Why</a>")
            for topic, study, advice_ in found]
    return f"<div class=box>{definitions(rows)}</div>"


def study_part(study, points, store, chosen):
    title, question, source = plan.STUDIES[study]
    parts = [f"<h2 id={study}>{text(title)}</h2>", paragraph(question),
             paragraph(source, "soft")]
    missing = unmeasured(study, store, chosen)
    if not points:
        return "\n".join([*parts, paragraph("Not measured.")])
    if missing:
        parts.append(paragraph(missing, "soft"))
    texts, choice = findings.describe(study, points, chosen)
    if choice:
        parts.append(f"<p class=choice><strong>Choose</strong> {text(choice)}.</p>")
    if texts:
        parts.append("<ul>" + "".join(f"<li>{text(one)}</li>\n" for one in texts) + "</ul>")
    view = views.build(study, points, chosen)
    if plots.available():
        parts += plots_part(study, view)
    shown = [table(caption, heads, rows) for caption, heads, rows in view.tables if rows]
    parts.append(f"<div class=tables>{''.join(shown)}</div>")
    return "\n".join(parts)


def plots_part(study, view):
    shown = []
    for i, (label, make) in enumerate(view.panels):
        svg = plots.inline(make(), f"{study}{i}", f"{plan.STUDIES[study][0]}: {label}")
        shown.append(f"<figure><h4>{text(label)}</h4>{svg}</figure>")
    return [f"<div class=plots>{''.join(shown)}</div>", paragraph(view.errors, "soft")]


def unmeasured(study, store, chosen):
    todo = plan.measurements(study, chosen)
    count = sum(1 for m in todo if points_module.answers(store, m))
    if count == len(todo):
        return ""
    return f"{count} of {len(todo)} measurements exist; the text describes these."


def limits_part(store, chosen):
    """Lists what could not be measured, and why."""
    notes = []
    if "posix_fadvise" in points_module.parameter(store, chosen, "cache"):
        notes.append("Not root: the page cache cannot be dropped before reading. lime-bench asks "
                     "the kernel to forget the file's pages instead, which it may not do for all "
                     "of them; reading may be too fast here.")
    if not plots.available():
        notes.append("gnuplot is not installed: no plots. Install it and run scripts/study "
                     "--html-only.")
    cpus = store.about["machine"]["cpus"]
    if cpus < max(chosen.ranks) and points_module.parameter(store, chosen, "hosts") <= {1}:
        notes.append(f"With more than {cpus} ranks on this host they share its processors, which "
                     "costs time whatever the disk could do.")
    for study in plan.STUDIES:
        todo = plan.measurements(study, chosen)
        left = sum(1 for m in todo if not is_complete(store, m) and not store.failure(m))
        if left:
            notes.append(f"{plan.STUDIES[study][0]}: {plural(left, 'measurement')} of "
                         f"{len(todo)} not done: not requested, stopped before, or skipped "
                         "for lack of time.")
    parts = ["<ul>" + "".join(f"<li>{text(note)}</li>" for note in notes) + "</ul>"] \
        if notes else []
    rows = [[backend, reason, ", ".join(studies)]
            for backend, reason, studies in points_module.skipped(store, chosen)]
    if rows:
        parts.append(table("Left out by lime-bench", ["back end", "reason", "studies"], rows,
                           "text"))
    rows = [list(row) for row in points_module.failures(store, chosen)]
    if rows:
        parts.append(table("Failed; the next start tries these again",
                           ["study", "measurement", "message"], rows, "text"))
    return "\n".join(parts) or paragraph("Nothing was left out.")


def render(store):
    chosen = plan.Size.from_dict(store.about["size"])
    points = {study: points_module.points_of(store, study, chosen) for study in plan.STUDIES}
    host = (store.about.get("system") or {}).get("host", "this machine")
    title = f"Parallel I/O on {text(host)}"
    links = "".join(f"<a href='#{study}'>{text(plan.STUDIES[study][0])}</a>"
                    for study in plan.STUDIES)
    options = {name: value for name, value in store.about["options"].items() if value}
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        paragraph(f"A study by limefs' scripts/study; measuring took "
                  f"{duration(points_module.total_seconds(store, chosen))}.", "soft"),
        "<h2 id=advice>Which settings to choose here</h2>", advice_part(points, chosen),
        f"<nav><p>{links}<a href='#limits'>What could not be measured</a></p></nav>",
        "<h3>The machine</h3>", machine_part(store),
        "<h3>How to read this</h3>", *map(paragraph, HOW_TO_READ),
        *(study_part(study, points[study], store, chosen) for study in plan.STUDIES),
        "<h2 id=limits>What could not be measured here</h2>", limits_part(store, chosen),
        "<h2 id=made>How this was made</h2>",
        paragraph(f"Options: {', '.join(f'{k} {v}' for k, v in options.items()) or 'none'}. Each "
                  "measurement is a file in the directory results next to this page, with its "
                  "command and all times."),
        "</body></html>", ""])


def write(store):
    write_text(store.page, render(store))
