"""Reads the results of a study as points: the runs of one back end, operation and setting."""

import dataclasses

from . import plan
from .samples import Sample


@dataclasses.dataclass(frozen=True)
class Point:
    backend: str
    operation: str
    where: tuple  # ((name, value), ...)
    speed: Sample  # bytes per second of each run
    seconds: Sample  # total of each run
    compute: float  # requested seconds of computing, included in the total
    firsts: tuple  # speeds of the first counted repetition of each program
    others: tuple  # speeds of the later repetitions
    nbytes: int
    ranks: int

    def __getitem__(self, name):
        return dict(self.where).get(name)


def separate_runs(store, m):
    """Returns the measurements of single back ends that replace a failed common one."""
    saved = store.load(m)
    if saved:
        return [one for one in m.each() if one.backends[0] in saved["failed"]]
    return m.each() if store.failure(m) else []


def answers(store, m):
    """Returns the saved answers of a measurement and of its single back ends."""
    return [saved["answer"] for saved in map(store.load, [m, *separate_runs(store, m)]) if saved]


def is_complete(store, m):
    """Returns whether nothing of it remains to be measured."""
    alone = separate_runs(store, m)
    return bool(store.load(m) or alone) and all(map(store.load, alone))


def points_of(store, study, size):
    """Returns the points in the order of the plan, with all rounds combined."""
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
    """Returns the points that match all conditions."""
    own = {"backend": lambda p: p.backend, "operation": lambda p: p.operation}
    return [p for p in points
            if all(own.get(name, lambda p, name=name: p[name])(p) == value
                   for name, value in conditions.items())]


def values(points, name):
    """Returns the distinct values in order of appearance."""
    get = (lambda p: p.backend) if name == "backend" else lambda p: p[name]
    return list(dict.fromkeys(get(p) for p in points))


def parameter(store, size, name):
    """Returns the set of values that lime-bench reports for a parameter."""
    found = (answer.get("parameters", {}).get(name) for study in plan.STUDIES
             for m in plan.measurements(study, size) for answer in answers(store, m))
    return {value for value in found if value is not None}


def total_seconds(store, size):
    """Returns the seconds that all measurements took."""
    return sum(saved["seconds"] for study in plan.STUDIES for m in plan.measurements(study, size)
               for saved in map(store.load, [m, *separate_runs(store, m)]) if saved)


def skipped(store, size):
    """Returns [(back end, reason, [studies])] of what lime-bench skipped."""
    found = {}
    for study in plan.STUDIES:
        for m in plan.measurements(study, size):
            for answer in answers(store, m):
                for item in answer.get("skipped") or []:
                    key = (str(item.get("backend")), str(item.get("reason")))
                    found.setdefault(key, {})[study] = True
    return [(backend, reason, list(studies)) for (backend, reason), studies in found.items()]


def failures(store, size):
    """Returns [(study, label, message)] of failed measurements."""
    found = []
    for study in plan.STUDIES:
        for m in plan.measurements(study, size):
            for one in separate_runs(store, m) or [m]:
                why = store.failure(one)
                if why and not store.load(one):
                    found.append((study, f"{one.label}, {one.ranks} ranks, "
                                         f"{', '.join(one.backends)}", why))
    return found
