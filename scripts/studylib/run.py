"""Runs the missing measurements and shows the progress."""

import shutil
import time

from . import machine, plan, points
from .launch import RunError
from .points import separate_runs, is_complete
from .store import StudyError
from .formatting import duration

TIME_FACTOR = 1.1  # of the requested time: after that, third and later rounds are skipped
LIMIT = 60, 30  # limit of a measurement: seconds, plus a multiple of the prediction


class Progress:
    """Updates one line on a terminal; otherwise prints a line for each measurement."""

    def __init__(self, stream, forecast):
        self.stream, self.forecast = stream, forecast
        self.terminal = stream.isatty()
        self.shown = 0.0
        self.current, self.started = None, 0.0

    def begin(self, m):
        self.current, self.started, self.shown = m, time.monotonic(), 0.0
        self.tick()

    def tick(self):
        now = time.monotonic()
        if not self.terminal or now - self.shown < 0.5:
            return
        self.shown = now
        left = self.forecast.left() - min(now - self.started, self.forecast.of(self.current))
        done, count = self.forecast.done, self.forecast.count
        width = shutil.get_terminal_size().columns - 1
        bar = "#" * (20 * done // max(1, count))
        line = (f"[{bar:20s}] {done + 1}/{count}, {duration(left)} left, "
                f"{self.current.study}: {what(self.current)}")
        self.stream.write("\r" + line[:width] + "\033[K")
        self.stream.flush()

    def end(self, text):
        """Prints the result of a measurement, but not on a terminal."""
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
    """Predicts the remaining time from the calibration and the times measured so far."""

    def __init__(self, todo, finished, calibration):
        self.calibration = calibration
        self.todo = {m.name: m for m in todo}
        self.count, self.done = len(todo), 0
        self.times = {}  # study: [seconds, predicted seconds]
        for m, wall in finished:
            self.add(m, wall)

    def add(self, m, wall):
        taken = self.times.setdefault(m.study, [0.0, 0.0])
        taken[0] += wall
        taken[1] += machine.predict(m, self.calibration)

    def finish(self, m, wall=None):
        """wall: None if it was skipped."""
        if self.todo.pop(m.name, None):
            self.done += 1
        if wall is not None:
            self.add(m, wall)

    def of(self, m):
        taken = self.times.get(m.study) or [sum(column) for column in zip(*self.times.values())]
        ratio = taken[0] / taken[1] if taken and taken[1] else 1.0
        return ratio * machine.predict(m, self.calibration)

    def left(self):
        return sum(map(self.of, self.todo.values()))


class Session:
    """Runs the measurements of some studies: first round 1 of all studies, then round 2, and so
    on, so that the rounds of a study are far apart in time."""

    def __init__(self, store, launcher, size, minutes, stream):
        self.store, self.launcher, self.size = store, launcher, size
        self.enough = TIME_FACTOR * minutes * 60
        self.stream = stream
        self.failed = 0

    def measure(self, names):
        chosen = sorted((m for name in names for m in plan.measurements(name, self.size)),
                        key=lambda m: m.round)
        todo = [m for m in chosen if not is_complete(self.store, m)]
        finished = [(m, self.store.load(m)["seconds"]) for m in chosen if self.store.load(m)]
        if finished and todo:
            self.stream.write(f"study: {len(chosen) - len(todo)} of {len(chosen)} measurements "
                              "exist; continuing with the others\n")
        forecast = Forecast(todo, finished, self.store.about["calibration"])
        progress = Progress(self.stream, forecast)
        spent = points.total_seconds(self.store, self.size)
        try:
            for m in todo:
                self.launcher.signals.check()
                if m.round > 2 and spent > self.enough:
                    forecast.finish(m)
                    continue
                progress.begin(m)
                spent += self.measure_one(m, progress, forecast)
        finally:
            progress.clear()

    def measure_one(self, m, progress, forecast):
        """Runs a measurement; if it fails, runs the failed back ends one by one. Returns its
        seconds."""
        wall = 0.0
        if not separate_runs(self.store, m):
            wall = self.attempt(m, progress)
        for alone in separate_runs(self.store, m):
            if not self.store.load(alone):
                wall += self.attempt(alone, progress)
        forecast.finish(m, wall)
        progress.end(f"{forecast.done}/{forecast.count} {m.study}: {what(m)}: {wall:.1f} s, "
                     f"{duration(forecast.left())} left")
        return wall

    def attempt(self, m, progress):
        """Runs a measurement once and saves the result or the error. Returns its seconds."""
        first, times = LIMIT
        limit = first + times * machine.predict(m, self.store.about["calibration"])
        begin, failed = time.monotonic(), []
        try:
            answer, _ = self.launcher.run(m.ranks, m.arguments(), limit, progress.tick)
        except RunError as error:
            answer, failed = self.usable_answer(m, error)
            if not answer:
                self.store.fail(m, str(error))
                if not m.each():
                    self.failed += 1
                    progress.say(f"study: {m.study}: {what(m)}: {m.backends[0]}: {error}")
                return time.monotonic() - begin
        require_same_system(self.store, answer)
        wall = time.monotonic() - begin
        self.store.save(m, answer, wall, self.launcher.command(m.ranks, m.arguments()), failed)
        return wall

    @staticmethod
    def usable_answer(m, error):
        """Returns (answer, failed back ends) of a failed run, or (None, []) if it has no usable
        results. Exit status 2 of a single back end means that it is skipped."""
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


def require_same_system(store, answer):
    """Checks MPI and libraries: shared libraries may change although lime-bench does not."""
    then, now = store.about["system"], answer.get("system")
    for name in ("mpi", "libraries") if now else ():
        if then.get(name) != now.get(name):
            raise StudyError(f"{store.directory}: its results are of another machine or build "
                             f"({name} was {then.get(name)}, is {now.get(name)}); give --fresh to "
                             "remove them and start again, or --out DIR to keep them")
