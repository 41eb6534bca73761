"""The results of a study as points: one back end, one operation, one setting, a few runs."""

import dataclasses

from . import plan
from .samples import Sample


@dataclasses.dataclass(frozen=True)
class Point:
    backend: str
    operation: str
    where: tuple  # ((name, value), ...)
    speed: Sample  # bytes a second of each run
    seconds: Sample  # of each run, in total
    compute: float  # of that, asked for as computing
    firsts: tuple  # speeds of the first repetition of each program that counts
    others: tuple  # of its later ones
    nbytes: int
    ranks: int

    def __getitem__(self, name):
        return dict(self.where).get(name)


def parts(store, m):
    """Those of its back ends that are measured by themselves, as they failed together."""
    saved = store.done(m)
    if saved:
        return [one for one in m.each() if one.backends[0] in saved["failed"]]
    return m.each() if store.failure(m) else []


def answers(store, m):
    """What is there of a measurement: its answer, and those of back ends by themselves."""
    return [saved["answer"] for saved in map(store.done, [m, *parts(store, m)]) if saved]


def settled(store, m):
    """Nothing is left to be measured of it."""
    alone = parts(store, m)
    return bool(store.done(m) or alone) and all(map(store.done, alone))


def points_of(store, study, size):
    """In the order of the plan; rounds are put together."""
    found = {}
    for m in plan.measurements(study, size):
        for answer in answers(store, m):
            for result in answer["results"]:
                totals = [run["total"] for run in result["seconds"][m.warm_up:]
                          if run["total"] > 0]
                if totals:
                    key = (result["backend"], result["operation"], m.where, m.ranks)
                    found.setdefault(key, (result["bytes"], m.idle, {}))[2][m.round] = totals
    points = []
    for (backend, operation, where, ranks), (nbytes, idle, rounds) in found.items():
        group, runs = (study, where, ranks, tuple(rounds)), list(rounds.values())
        rates = [[nbytes / total for total in totals] for totals in runs]
        points.append(Point(
            backend, operation, where, Sample(sum(rates, []), group, len(runs)),
            Sample(sum(runs, []), group, len(runs)), idle,
            tuple(run[0] for run in rates), tuple(r for run in rates for r in run[1:]), nbytes,
            ranks))
    order = {m.where: i for i, m in enumerate(plan.measurements(study, size)) if m.round == 1}
    return sorted(points, key=lambda p: (order[p.where], plan.ALL.index(p.backend)
                                         if p.backend in plan.ALL else len(plan.ALL),
                                         p.operation != "write"))


def pick(points, **conditions):
    """Those whose back end, operation or setting is so."""
    own = {"backend": lambda p: p.backend, "operation": lambda p: p.operation}
    return [p for p in points
            if all(own.get(name, lambda p, name=name: p[name])(p) == value
                   for name, value in conditions.items())]


def values(points, name):
    """The different ones, in order of appearance."""
    get = (lambda p: p.backend) if name == "backend" else lambda p: p[name]
    return list(dict.fromkeys(get(p) for p in points))


def parameter(store, size, name):
    """The different values that lime-bench tells of it."""
    told = (answer.get("parameters", {}).get(name) for study in plan.STUDIES
            for m in plan.measurements(study, size) for answer in answers(store, m))
    return {value for value in told if value is not None}


def spent(store, size):
    """Seconds that all measurements have taken."""
    return sum(saved["seconds"] for study in plan.STUDIES for m in plan.measurements(study, size)
               for saved in map(store.done, [m, *parts(store, m)]) if saved)


def skipped(store, size):
    """[(back end, reason, [studies])] of what lime-bench left out."""
    found = {}
    for study in plan.STUDIES:
        for m in plan.measurements(study, size):
            for answer in answers(store, m):
                for item in answer.get("skipped") or []:
                    key = (str(item.get("backend")), str(item.get("reason")))
                    found.setdefault(key, {})[study] = True
    return [(backend, reason, list(studies)) for (backend, reason), studies in found.items()]


def failures(store, size):
    """[(study, label, what was said)] of measurements that gave nothing."""
    found = []
    for study in plan.STUDIES:
        for m in plan.measurements(study, size):
            for one in parts(store, m) or [m]:
                why = store.failure(one)
                if why and not store.done(one):
                    found.append((study, f"{one.label}, {one.ranks} ranks, "
                                         f"{', '.join(one.backends)}", why))
    return found
