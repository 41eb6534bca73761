"""Measures what is not there yet, and says how far it is."""

import shutil
import time

from . import machine, plan, points
from .launch import Failed
from .points import parts, settled
from .store import Refused
from .words import duration

ENOUGH = 1.1  # of the time that was asked for: then nothing of a third round is measured
LIMIT = 60, 30  # seconds for a measurement, and times what is predicted


class Progress:
    """One line that is written again and again on a terminal; elsewhere a line for each
    measurement."""

    def __init__(self, stream, forecast):
        self.stream, self.forecast = stream, forecast
        self.terminal = stream.isatty()
        self.shown = 0.0
        self.current, self.since = None, 0.0

    def begin(self, m):
        self.current, self.since, self.shown = m, time.monotonic(), 0.0
        self.tick()

    def tick(self):
        now = time.monotonic()
        if not self.terminal or now - self.shown < 0.5:
            return
        self.shown = now
        left = self.forecast.left() - min(now - self.since, self.forecast.of(self.current))
        done, count = self.forecast.done, self.forecast.count
        width = shutil.get_terminal_size().columns - 1
        bar = "#" * (20 * done // max(1, count))
        line = (f"[{bar:20s}] {done + 1}/{count}, {duration(left)} left, "
                f"{self.current.study}: {what(self.current)}")
        self.stream.write("\r" + line[:width] + "\033[K")
        self.stream.flush()

    def end(self, text):
        """A line that stays; on a terminal only what did not go well."""
        if not self.terminal:
            self.say(text)

    def say(self, text):
        self.stream.write(("\r\033[K" if self.terminal else "") + text + "\n")
        self.stream.flush()

    def clear(self):
        if self.terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()


def what(m):
    return f"{m.label}, {m.ranks} rank{'s' if m.ranks > 1 else ''}, round {m.round}"


class Forecast:
    """Time that is left: what the calibration predicts, corrected by what others took."""

    def __init__(self, todo, finished, calibration):
        self.calibration = calibration
        self.todo = {m.name: m for m in todo}
        self.count, self.done = len(todo), 0
        self.taken = {}  # study: [seconds, predicted seconds]
        for m, wall in finished:
            self.add(m, wall)

    def add(self, m, wall):
        taken = self.taken.setdefault(m.study, [0.0, 0.0])
        taken[0] += wall
        taken[1] += machine.predicted(m, self.calibration)

    def finish(self, m, wall=None):
        """wall: None if it was left out."""
        if self.todo.pop(m.name, None):
            self.done += 1
        if wall is not None:
            self.add(m, wall)

    def of(self, m):
        taken = self.taken.get(m.study) or [sum(column) for column in zip(*self.taken.values())]
        ratio = taken[0] / taken[1] if taken and taken[1] else 1.0
        return ratio * machine.predicted(m, self.calibration)

    def left(self):
        return sum(map(self.of, self.todo.values()))


class Session:
    """The measurements of some studies: the first round of all of them, then the second, and so
    on, so that the rounds of each are as far apart as can be."""

    def __init__(self, store, launcher, size, minutes, stream):
        self.store, self.launcher, self.size = store, launcher, size
        self.enough = ENOUGH * minutes * 60
        self.stream = stream
        self.failed = 0

    def measure(self, names):
        chosen = sorted((m for name in names for m in plan.measurements(name, self.size)),
                        key=lambda m: m.round)
        todo = [m for m in chosen if not settled(self.store, m)]
        finished = [(m, self.store.done(m)["seconds"]) for m in chosen if self.store.done(m)]
        if finished and todo:
            self.stream.write(f"study: {len(chosen) - len(todo)} of {len(chosen)} measurements "
                              "are there; going on with the others\n")
        forecast = Forecast(todo, finished, self.store.about["calibration"])
        progress = Progress(self.stream, forecast)
        spent = points.spent(self.store, self.size)
        try:
            for m in todo:
                self.launcher.signals.check()
                if m.round > 2 and spent > self.enough:
                    forecast.finish(m)
                    continue
                progress.begin(m)
                spent += self.one(m, progress, forecast)
        finally:
            progress.clear()

    def one(self, m, progress, forecast):
        """A measurement; of one that failed, the back ends that did by themselves. The seconds
        that it took."""
        wall = 0.0
        if not parts(self.store, m):
            wall = self.attempt(m, progress)
        for alone in parts(self.store, m):
            if not self.store.done(alone):
                wall += self.attempt(alone, progress)
        forecast.finish(m, wall)
        progress.end(f"{forecast.done}/{forecast.count} {m.study}: {what(m)}: {wall:.1f} s, "
                     f"{duration(forecast.left())} left")
        return wall

    def attempt(self, m, progress):
        """Saves what comes of it, or why nothing does. The seconds that it took."""
        first, times = LIMIT
        limit = first + times * machine.predicted(m, self.store.about["calibration"])
        begin, failed = time.monotonic(), []
        try:
            answer, _ = self.launcher.run(m.ranks, m.arguments(), limit, progress.tick)
        except Failed as error:
            answer, failed = self.rest(m, error)
            if not answer:
                self.store.fail(m, str(error))
                if not m.each():
                    self.failed += 1
                    progress.say(f"study: {m.study}: {what(m)}: {m.backends[0]}: {error}")
                return time.monotonic() - begin
        same_system(self.store, answer)
        wall = time.monotonic() - begin
        self.store.save(m, answer, wall, self.launcher.command(m.ranks, m.arguments()), failed)
        return wall

    @staticmethod
    def rest(m, error):
        """(answer, failed back ends) of a run that did not end well; (None, []) if nothing is
        left of it. A single back end that refuses is one that was left out."""
        if error.status == 2 and len(m.backends) == 1:
            name = m.backends[0]
            reason = str(error).removeprefix("lime-bench: ").removeprefix(f"{name}: ")
            return {"results": [], "skipped": [{"backend": name, "reason": reason}]}, []
        if not error.answer or len(m.backends) == 1:
            return None, []
        left_out = {item["backend"] for item in error.answer.get("skipped") or []}
        operations = max((sum(r["backend"] == name for r in error.answer["results"])
                          for name in m.backends), default=0)
        whole = [name for name in m.backends if operations and operations == sum(
            r["backend"] == name and r.get("verified") is not False
            and len(r["seconds"]) == m.all_repetitions for r in error.answer["results"])]
        failed = [name for name in m.backends if name not in whole and name not in left_out]
        error.answer["results"] = [r for r in error.answer["results"] if r["backend"] in whole]
        return (error.answer, failed) if whole and failed else (None, [])


def same_system(store, answer):
    """The libraries may change while lime-bench stays: shared ones are updated."""
    then, now = store.about["system"], answer.get("system")
    for name in ("mpi", "libraries") if now else ():
        if then.get(name) != now.get(name):
            raise Refused(f"{store.folder}: its results are of another machine or build ({name} "
                          f"was {then.get(name)}, is {now.get(name)}); give --fresh to remove "
                          "them and start again, or --out DIR to keep them")
