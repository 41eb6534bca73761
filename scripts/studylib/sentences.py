"""Sentences that several studies share."""

from .points import pick
from .samples import FASTER, best_of, compare
from .formatting import three_digits, join_list, faster_text, percent, speeds

DOING = {"write": "Writing", "read": "Reading"}
OPERATIONS = ("write", "read")
PAST = {"write": "written", "read": "read"}


def capitalize(text):
    return text[:1].upper() + text[1:]


def backend_name(point):
    """Returns the name of a back end, with its mode if that is part of the setting."""
    return f"{point.backend} ({point['mode']})" if point["mode"] else point.backend


def describe_fastest(points, operation, label=backend_name):
    """Returns up to two sentences that name the fastest and the slowest back end."""
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
        texts = [f"{doing} {sure} fastest with {best[0]}: {speeds(best[1])}, {faster_text(ratio)} "
                 f"{'as' if 'times' in faster_text(ratio) else 'than'} the next, {rest[0][0]}."]
    elif len(alike) < 5:
        shown = join_list(name for name, _ in alike)
        texts = [f"{doing} is fastest with {shown}, which do not differ beyond the noise (best: "
                 f"{speeds(best[1])})."]
    else:
        texts = [f"{doing} is fastest with {best[0]}: {speeds(best[1])}; {len(alike) - 1} others "
                 "do not differ from that beyond the noise."]
    slow = rest[-1]
    if len(rest) > 1 or len(alike) > 1:
        texts.append(f"{doing} is slowest with {slow[0]}: {speeds(slow[1])}, "
                     f"{percent(slow[1].median / best[1].median)} of the best.")
    return texts


def best_backends(points, operation):
    """Names the back ends that do not differ from the best, in any mode: "lime or posix for
    writing". Returns None without points."""
    pairs = [(p.backend, p.speed) for p in pick(points, operation=operation)]
    if not pairs:
        return None
    names = list(dict.fromkeys(name for name, _ in best_of(pairs)[1]))
    doing = DOING[operation].lower()
    if len(names) > 1 and len(names) == len({name for name, _ in pairs}):
        return f"any back end for {doing}, as none differs from the best beyond the noise"
    if len(names) > 6:
        return (f"{names[0]} for {doing}, or one of {len(names) - 1} others that do not differ "
                "from it beyond the noise")
    return f"{join_list(names, 'or')} for {doing}"


def add_groups(texts, groups):
    """Appends a sentence for each (text, names) that has names."""
    texts += [text.format(join_list(names)) for text, names in groups if names]


def gain_text(verdict, ratio):
    return f"{probably(verdict)}{three_digits(ratio)} times" if ratio >= 1.995 else \
        f"{probably(verdict)}{percent(ratio - 1)}"


def probably(verdict):
    return "" if verdict == FASTER else "probably "
