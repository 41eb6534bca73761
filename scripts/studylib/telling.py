"""Parts of sentences that several studies need."""

from .points import pick
from .samples import FASTER, best_of, compare
from .words import digits, listed, more, percent, speeds

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
    if len(names) > 6:
        return (f"{names[0]} for {doing}, or one of {len(names) - 1} others that do not differ "
                "from it beyond the noise")
    return f"{listed(names, 'or')} for {doing}"


def grouped(told, groups):
    """Adds `text: names` for each of [(text, names)] that has names."""
    told += [text.format(listed(names)) for text, names in groups if names]


def amount(verdict, ratio):
    return f"{sure(verdict)}{digits(ratio)} times" if ratio >= 1.995 else \
        f"{sure(verdict)}{percent(ratio - 1)}"


def sure(verdict):
    return "" if verdict == FASTER else "probably "
