"""The short list at the top of the page: which settings to choose, each from its study."""

from . import findings, plan
from .lattices import app_times, ranks_text
from .points import pick
from .regions import choose_mode
from .samples import ALIKE, compare
from .telling import DOING, OPERATIONS, sure, winners
from .words import listed, more, percent


def lime_files(points, chosen):
    """lime or gather: for files that are to be LIME containers."""
    clear, told = [], []
    for op in OPERATIONS:
        pair = [pick(points, backend=name, operation=op, ranks=chosen.main)
                for name in ("lime", "gather")]
        if all(pair):
            verdict, ratio = compare(pair[0][0].speed, pair[1][0].speed)
            if verdict == ALIKE:
                told.append(f"{DOING[op].lower()} does not differ beyond the noise")
            else:
                be = sure(verdict)
                name = "lime" if ratio >= 1 else "gather"
                told.append(f"{DOING[op].lower()} is {be}{more(ratio)} with {name}")
                clear.append(name)
    if not told:
        return None
    ranks = ranks_text(chosen.main)
    if not clear:
        return f"lime or gather: on {ranks}, they do not differ beyond the noise"
    choice = clear[0] if len(set(clear)) == 1 else "lime or gather, by what you do more"
    return f"{choice}: on {ranks}, {listed(told)}"


def formats(points, chosen):
    here = pick(points, ranks=chosen.main)
    return "; ".join(filter(None, (winners(here, op) for op in OPERATIONS))) or None


def apps(points):
    parts = []
    for app in ("hmc", "inversion", "mms"):
        times = app_times(points, app)
        if {"gather", "lime"} <= set(times):
            verdict, ratio = compare(times["lime"][0], times["gather"][0], 1.005)
            title = plan.APPS[app][0]
            parts.append(f"{title}: no difference beyond the noise" if verdict == ALIKE
                         else f"{title}: {sure(verdict)}{percent(ratio)} of the time")
    return "with lime instead of gather, " + "; ".join(parts) if parts else None


def choice(study):
    return lambda points, chosen: findings.of(study, points[study], chosen)[1] or None


def modes(points, _):
    return choose_mode(points["disjoint"] + points["interleaved"])


# topic, study, what says it
TOPICS = (
    ("Back end for LIME files", "formats",
     lambda points, chosen: lime_files(points["formats"] or points["scaling"], chosen)),
    ("Back end, whatever the format", "formats",
     lambda points, chosen: formats(points["formats"], chosen)),
    ("Transfer size", "transfer-size", choice("transfer-size")),
    ("Alignment", "alignment", choice("alignment")),
    ("Collective or independent", "disjoint", modes),
    ("Chunk size", "chunk-size", choice("chunk-size")),
    ("Number of ranks", "scaling", choice("scaling")),
    ("Block size", "block-size", choice("block-size")),
    ("Measuring", "variability", choice("variability")),
    ("Applications", "app", lambda points, _: apps(points["app"])),
)


def of(points, chosen):
    """[(topic, study, text)] of what is there; points: {study: [Point]}, all studies."""
    found = []
    for topic, study, tell in TOPICS:
        text = tell(points, chosen)
        if text:
            found.append((topic, study, text))
    return found
