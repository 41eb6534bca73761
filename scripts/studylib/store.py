"""The folder of a study: what it was measured on, and a file for each measurement."""

import fcntl
import json
import os
import time

FORMAT = 1


class Refused(Exception):
    """The folder cannot be used; the text says why, and what to do."""


def write_text(path, text):
    """All of it or nothing, whatever happens meanwhile."""
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
    """None if it is not there, or is no JSON object."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class Store:
    def __init__(self, folder, forget=False):
        """forget: whatever is there, it is going to be removed."""
        self.folder = folder
        self.results = os.path.join(folder, "results")
        self.about_path = os.path.join(folder, "study.json")
        self.page = os.path.join(folder, "study.html")
        self.about = None if forget else read_json(self.about_path)
        self.lock = None
        self.known = {}  # results that have been read
        if self.about is None and not forget and os.path.exists(self.about_path):
            raise Refused(f"{self.about_path}: cannot be read; give --fresh to start again")
        if not os.path.exists(self.about_path):
            self.refuse_others()
        if self.about and self.about.get("format") != FORMAT:
            raise Refused(f"{self.about_path}: of another version of this program; give --fresh "
                          "to start again, or --out DIR for another folder")

    def refuse_others(self):
        """Refuses a directory without study.json that has files of these names: no study made them,
        so they are not replaced or removed."""
        others = [self.page] if os.path.lexists(self.page) else []
        if os.path.lexists(self.results) and (not os.path.isdir(self.results)
                                              or os.listdir(self.results)):
            others.append(self.results)
        if others:
            raise Refused(f"{others[0]}: exists already and is not part of a study; give --out DIR "
                          "for another directory")

    def take(self):
        """For this process alone, until it ends."""
        os.makedirs(self.results, exist_ok=True)
        path = os.path.join(self.folder, "lock")
        if os.path.lexists(path) and os.lstat(path).st_size:
            raise Refused(f"{path}: is not part of a study; give --out DIR for another "
                          "directory")
        self.lock = open(path, "a", encoding="ascii")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(f"{self.folder}: another study is running there; wait for its end, or "
                          "give --out DIR") from error

    def release(self):
        if self.lock:
            os.unlink(self.lock.name)
            self.lock.close()
            self.lock = None

    def same(self, key, now):
        """Refused if the folder tells otherwise; `key` is `machine` or `options`."""
        then = self.about[key]
        changed = [f"{name} was {then.get(name)}, is {now.get(name)}"
                   for name in {**then, **now} if then.get(name) != now.get(name)]
        if changed:
            other = "the same options, " if key == "options" else ""
            raise Refused(f"{self.folder}: its results are of another "
                          f"{'size' if key == 'options' else 'machine or build'} "
                          f"({'; '.join(changed)}); give {other}--fresh to remove them and start "
                          "again, or --out DIR to keep them")

    def begin(self, about):
        self.about = {"format": FORMAT, "began": time.strftime("%Y-%m-%dT%H:%M:%SZ",
                                                               time.gmtime()), **about}
        write_json(self.about_path, self.about)

    def path(self, measurement, end="json"):
        return os.path.join(self.results, f"{measurement.name}.{end}")

    def done(self, measurement):
        """What is saved of it: {"seconds": wall, "answer": lime-bench's, "failed": back ends};
        None if nothing."""
        path = self.path(measurement)
        if path not in self.known:
            saved = read_json(path)
            if not saved or not isinstance(saved.get("answer"), dict):
                return None
            self.known[path] = saved
        return self.known[path]

    def save(self, measurement, answer, wall, command, failed=()):
        """failed: back ends that are not in the answer, as they did not end well."""
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
        """What was said when it was last tried; None if it did not fail."""
        try:
            with open(self.path(measurement, "failed"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None

    def clear(self):
        """--fresh: what a study has made here, and nothing else."""
        own = [self.about_path, self.page]
        if os.path.isdir(self.results):
            own += [os.path.join(self.results, name) for name in os.listdir(self.results)
                    if name.endswith((".json", ".failed", ".part"))]
        for path in own:
            if os.path.exists(path):
                os.unlink(path)
        self.about, self.known = None, {}
