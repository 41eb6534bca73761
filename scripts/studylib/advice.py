"""Recommended settings, for the list at the top of the page."""

from . import findings, plan
from .lattices import app_times, ranks_text
from .points import pick
from .regions import choose_mode
from .samples import ALIKE, compare
from .sentences import DOING, OPERATIONS, probably, best_backends
from .formatting import join_list, faster_text, percent


def lime_files(points, chosen):
    """Recommends lime or gather for LIME files, or returns None."""
    clear, texts = [], []
    for op in OPERATIONS:
        pair = [pick(points, backend=name, operation=op, ranks=chosen.main)
                for name in ("lime", "gather")]
        if all(pair):
            verdict, ratio = compare(pair[0][0].speed, pair[1][0].speed)
            if verdict == ALIKE:
                texts.append(f"{DOING[op].lower()} does not differ beyond the noise")
            else:
                be = probably(verdict)
                name = "lime" if ratio >= 1 else "gather"
                texts.append(f"{DOING[op].lower()} is {be}{faster_text(ratio)} with {name}")
                clear.append(name)
    if not texts:
        return None
    ranks = ranks_text(chosen.main)
    if not clear:
        return f"lime or gather: on {ranks}, they do not differ beyond the noise"
    choice = clear[0] if len(set(clear)) == 1 else "lime or gather, by what you do more"
    return f"{choice}: on {ranks}, {join_list(texts)}"


def formats(points, chosen):
    here = pick(points, ranks=chosen.main)
    return "; ".join(filter(None, (best_backends(here, op) for op in OPERATIONS))) or None


def apps(points):
    parts = []
    for app in ("hmc", "inversion", "mms"):
        times = app_times(points, app)
        if {"gather", "lime"} <= set(times):
            verdict, ratio = compare(times["lime"][0], times["gather"][0], 1.005)
            title = plan.APPS[app][0]
            parts.append(f"{title}: no difference beyond the noise" if verdict == ALIKE
                         else f"{title}: {probably(verdict)}{percent(ratio)} of the time")
    return "with lime instead of gather, " + "; ".join(parts) if parts else None


def get_choice(study):
    return lambda points, chosen: findings.describe(study, points[study], chosen)[1] or None


def modes(points, _):
    return choose_mode(points["disjoint"] + points["interleaved"])


# topic, study, function that returns the text
TOPICS = (
    ("Back end for LIME files", "formats",
     lambda points, chosen: lime_files(points["formats"] or points["scaling"], chosen)),
    ("Back end, whatever the format", "formats",
     lambda points, chosen: formats(points["formats"], chosen)),
    ("Transfer size", "transfer-size", get_choice("transfer-size")),
    ("Alignment", "alignment", get_choice("alignment")),
    ("Collective or independent", "disjoint", modes),
    ("Chunk size", "chunk-size", get_choice("chunk-size")),
    ("Number of ranks", "scaling", get_choice("scaling")),
    ("Block size", "block-size", get_choice("block-size")),
    ("Measuring", "variability", get_choice("variability")),
    ("Applications", "app", lambda points, _: apps(points["app"])),
)


def collect(points, chosen):
    """Returns [(topic, study, text)]. points: {study: [Point]} with all studies."""
    found = []
    for topic, study, describe in TOPICS:
        text = describe(points, chosen)
        if text:
            found.append((topic, study, text))
    return found
