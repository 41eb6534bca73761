"""The directory of a study: the machine, the options, and a file for each measurement."""

import fcntl
import json
import os
import time

FORMAT = 1


class StudyError(Exception):
    """An error of the user or the environment: the text states the problem and what to do."""


def write_text(path, text):
    """Writes a file atomically."""
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def write_json(path, value):
    write_text(path, json.dumps(value, indent=1) + "\n")


def read_json(path):
    """Returns the JSON object in a file, or None."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class Store:
    def __init__(self, directory, forget=False):
        """forget: ignore existing results, which the caller removes."""
        self.directory = directory
        self.results = os.path.join(directory, "results")
        self.about_path = os.path.join(directory, "study.json")
        self.page = os.path.join(directory, "study.html")
        self.about = None if forget else read_json(self.about_path)
        self.lock_file = None
        self.cache = {}  # results by path
        if self.about is None and not forget and os.path.exists(self.about_path):
            raise StudyError(f"{self.about_path}: cannot be read; give --fresh to start again")
        if not os.path.exists(self.about_path):
            self.check_unused()
        if self.about and self.about.get("format") != FORMAT:
            raise StudyError(f"{self.about_path}: written by another version of this program; give "
                             "--fresh to start again, or --out DIR for another directory")

    def check_unused(self):
        """Refuses a directory without study.json that has files of these names: no study made them,
        so they are not replaced or removed."""
        others = [self.page] if os.path.lexists(self.page) else []
        if os.path.lexists(self.results) and (not os.path.isdir(self.results)
                                              or os.listdir(self.results)):
            others.append(self.results)
        if others:
            raise StudyError(f"{others[0]}: exists already and is not part of a study; give --out "
                             "DIR for another directory")

    def lock(self):
        """Locks the directory for this process."""
        os.makedirs(self.results, exist_ok=True)
        path = os.path.join(self.directory, "lock")
        if os.path.lexists(path) and os.lstat(path).st_size:
            raise StudyError(f"{path}: is not part of a study; give --out DIR for another "
                             "directory")
        self.lock_file = open(path, "a", encoding="ascii")
        try:
            fcntl.flock(self.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StudyError(f"{self.directory}: another study is running there; wait for its end, "
                             "or give --out DIR") from error

    def unlock(self):
        if self.lock_file:
            os.unlink(self.lock_file.name)
            self.lock_file.close()
            self.lock_file = None

    def require_same(self, key, now):
        """Raises StudyError if the saved values differ; key: "machine" or "options"."""
        then = self.about[key]
        changed = [f"{name} was {then.get(name)}, is {now.get(name)}"
                   for name in {**then, **now} if then.get(name) != now.get(name)]
        if changed:
            other = "the same options, " if key == "options" else ""
            raise StudyError(f"{self.directory}: its results are of another "
                             f"{'size' if key == 'options' else 'machine or build'} "
                             f"({'; '.join(changed)}); give {other}--fresh to remove them and "
                             "start again, or --out DIR to keep them")

    def create(self, about):
        self.about = {"format": FORMAT, "began": time.strftime("%Y-%m-%dT%H:%M:%SZ",
                                                               time.gmtime()), **about}
        write_json(self.about_path, self.about)

    def path(self, measurement, end="json"):
        return os.path.join(self.results, f"{measurement.name}.{end}")

    def load(self, measurement):
        """Returns the saved result {"seconds": wall, "answer": of lime-bench, "failed": back ends}
        or None."""
        path = self.path(measurement)
        if path not in self.cache:
            saved = read_json(path)
            if not saved or not isinstance(saved.get("answer"), dict):
                return None
            self.cache[path] = saved
        return self.cache[path]

    def save(self, measurement, answer, wall, command, failed=()):
        """failed: back ends that failed, so the answer lacks them."""
        write_json(self.path(measurement), {"command": command, "seconds": wall,
                                            "failed": list(failed), "answer": answer})
        self.forget_failure(measurement)

    def fail(self, measurement, why):
        with open(self.path(measurement, "failed"), "w", encoding="utf-8") as file:
            file.write(why + "\n")

    def forget_failure(self, measurement):
        if os.path.exists(self.path(measurement, "failed")):
            os.unlink(self.path(measurement, "failed"))

    def failure(self, measurement):
        """Returns the message of the last failure, or None."""
        try:
            with open(self.path(measurement, "failed"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None

    def clear(self):
        """--fresh: removes the files of the study and no others."""
        own = [self.about_path, self.page]
        if os.path.isdir(self.results):
            own += [os.path.join(self.results, name) for name in os.listdir(self.results)
                    if name.endswith((".json", ".failed", ".part"))]
        for path in own:
            if os.path.exists(path):
                os.unlink(path)
        self.about, self.cache = None, {}
