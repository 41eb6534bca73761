"""scripts/study with a lime-bench and an mpirun that print results chosen by the test
(tests/lib/fakebench.py), and once with the real ones if MPI and lime-bench are available."""

import contextlib
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import mpitest

STUDY = os.path.join(limetest.REPO, "scripts", "study")
FAKE = os.path.join(limetest.REPO, "tests", "lib", "fakebench.py")
sys.path.insert(0, os.path.join(limetest.REPO, "scripts"))
from studylib import findings, formatting, plan, plots, points, samples, views  # noqa: E402

VOID = {"meta", "path", "rect", "circle", "use"}
TINY = ("--scale", "0.01", "--ranks", "1,2", "--rounds", "2")


class Fake(limetest.TestCase):
    """The script in a directory of its own, with fake programs."""

    def setUp(self):
        self.directory = self.tempdir()
        self.out = os.path.join(self.directory, "out")
        os.mkdir(os.path.join(self.directory, "bin"))
        with open(FAKE, encoding="utf-8") as file:
            program = file.read().partition("\n")[2]
        for name in ("bin/lime-bench", "mpirun"):
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write(f"#!{sys.executable} -SE\n{program}")  # starts in half the time
            os.chmod(os.path.join(self.directory, name), 0o755)
        self.calls = os.path.join(self.directory, "calls")
        self.configure()

    def configure(self, **settings):
        with open(os.path.join(self.directory, "fake.json"), "w", encoding="utf-8") as file:
            json.dump({"calls": self.calls, **settings}, file)

    def environment(self):
        return {**os.environ, "B": self.directory, "MPIRUN": os.path.join(self.directory, "mpirun"),
                "FAKEBENCH": os.path.join(self.directory, "fake.json")}

    def command(self, *args):
        return [sys.executable, STUDY, "--out", self.out, *args]

    def study(self, *args, status=0):
        done = limetest.run(self.command(*args), env=self.environment(), timeout=120)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done.stdout.decode(), done.stderr.decode()

    def called(self):
        """Returns how often lime-bench was started."""
        if not os.path.exists(self.calls):
            return 0
        with open(self.calls, encoding="utf-8") as file:
            return len(file.readlines())

    def results(self):
        """Returns {name: modification time} of the results directory."""
        directory = os.path.join(self.out, "results")
        return {name: os.stat(os.path.join(directory, name)).st_mtime_ns
                for name in os.listdir(directory)}

    def page(self):
        with open(os.path.join(self.out, "study.html"), encoding="utf-8") as file:
            return file.read()

    def study_text(self, study):
        """Returns the text of a study on the page."""
        part = self.page().split(f"<h2 id={study}>")[1].split("<h2 ")[0]
        return re.sub(r"<[^>]*>", " ", part)


class CommandLine(Fake):
    def test_wrong_options(self):
        for args, message in ((["disjoint", "no-such"],
                               "'no-such': unknown study; choose from: "),
                            (["--scale", "0"], "study: error:"),
                            (["--scale", "much"], "study: error:"),
                            (["--ranks", "2,x"], "study: error:"),
                            (["--minutes"], "study: error:"), (["--nothing"], "study: error:")):
            _, errors = self.study(*args, status=2)
            self.assertIn(message, errors)
        self.assertFalse(os.path.exists(self.out))

    def test_list(self):
        shown, _ = self.study("--list")
        for name in plan.STUDIES:
            self.assertRegex(shown, rf"(?m)^{name} ")
        self.assertEqual(self.called(), 0)

    def test_dry_run(self):
        shown, _ = self.study("--dry-run", "scaling", "--ranks", "1,2,4", "--rounds", "2")
        commands = [line for line in shown.splitlines() if not line.startswith("#")]
        self.assertEqual(len(commands), 6, shown)  # three numbers of ranks, two rounds
        for line in commands:
            self.assertIn("--backend lime,gather,posix,subarray --pattern lattice", line)
        self.assertEqual([line.split(" -n ")[1][0] for line in commands], list("124421"))
        self.assertEqual(self.called(), 0)
        self.assertFalse(os.path.exists(self.out))

    def test_no_study_to_show(self):
        _, errors = self.study("--html-only", status=1)
        self.assertIn("no study there", errors)

    def test_no_lime_bench(self):
        os.unlink(os.path.join(self.directory, "bin/lime-bench"))
        _, errors = self.study(status=1)
        self.assertIn("bin/lime-bench: not built; install MPI and run `make`", errors)


class Progress(Fake):
    def test_piped(self):
        shown, errors = self.study("disjoint", *TINY)
        self.assertEqual(errors, "")
        self.assertNotIn("\r", shown)
        self.assertNotIn("\033", shown)
        lines = [line for line in shown.splitlines() if re.match(r"\d+/4 disjoint: ", line)]
        self.assertEqual([line[0] for line in lines], list("1234"), shown)

    def test_terminal(self):
        done, shown = limetest.run_on_terminal(self.command("disjoint", *TINY),
                                               env=self.environment())
        self.assertEqual(done.returncode, 0, (done.stderr, shown))
        text = shown.decode()
        self.assertRegex(text, r"\r\[[# ]{20}\] 1/4, \d+:\d\d left, disjoint: independent, "
                               r"2 ranks, round 1")
        # The progress line is cleared before the name of the page.
        self.assertRegex(text, r"\r\033\[K[^\r]*study\.html: written\r\n$")

    def test_time_left(self):
        """The estimate uses measured times, not only predictions."""
        from studylib import run
        size = plan.Size((1, 2), 2, 1 << 20, 6, (4, 6), 6, 0.01, 3, 2, 0)
        todo = plan.measurements("scaling", size)
        forecast = run.Forecast(todo, [], {"startup": 1.0, "seconds_per_byte": 0.0})
        before = forecast.left()
        forecast.finish(todo[0], 3 * forecast.of(todo[0]))
        self.assertAlmostEqual(forecast.left(), 3 * before * (len(todo) - 1) / len(todo))


class Resume(Fake):
    def interrupt(self, number, status):
        started = os.path.join(self.directory, "started")
        # The third of four: collective, second round first.
        self.configure(hang=["--collective", "--seed 2 "], started=started)
        with subprocess.Popen(self.command("disjoint", *TINY), env=self.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            begun = limetest._wait(lambda: os.path.exists(started) or process.poll() is not None,
                                   60 * limetest.SLOWNESS)
            self.assertTrue(begun)
            self.assertIsNone(process.poll())
            with open(started, encoding="ascii") as file:
                child = int(file.read())
            process.send_signal(number)
            out, errors = process.communicate(timeout=60 * limetest.SLOWNESS)
        self.assertEqual(process.returncode, status, (out, errors))
        self.assertIn(b"stopped", errors)
        self.assertFalse(os.path.exists(f"/proc/{child}"))
        os.unlink(started)

    def test_interrupted(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            shutil.rmtree(self.out, ignore_errors=True)
            self.interrupt(number, status)
            # Only finished results.
            before = self.results()
            self.assertEqual(len(before), 2, before)
            for name in before:
                with open(os.path.join(self.out, "results", name), encoding="utf-8") as file:
                    self.assertTrue(json.load(file)["answer"]["results"])
            self.assertEqual(sorted(os.listdir(self.out)), ["results", "study.json"])
            self.configure()
            calls = self.called()
            shown, _ = self.study("disjoint", *TINY)
            self.assertIn("2 of 4 measurements exist", shown)
            self.assertEqual(self.called(), calls + 2)
            after = self.results()
            self.assertEqual(len(after), 4)
            self.assertEqual({name: after[name] for name in before}, before)

    def test_nothing_left_to_do(self):
        self.study("disjoint", *TINY)
        calls, page = self.called(), self.page()
        self.study("disjoint", *TINY)
        self.assertEqual(self.called(), calls)
        self.study("--html-only")
        self.assertEqual(self.called(), calls)
        self.assertEqual(self.page(), page)

    def test_damaged_result(self):
        self.study("disjoint", *TINY)
        calls = self.called()
        name = next(iter(self.results()))
        with open(os.path.join(self.out, "results", name), "w", encoding="utf-8") as file:
            file.write('{"seconds": 1, "ans')
        self.study("disjoint", *TINY)
        self.assertEqual(self.called(), calls + 1)

    def test_two_at_once(self):
        self.study("disjoint", *TINY)
        import fcntl
        with open(os.path.join(self.out, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _, errors = self.study("disjoint", *TINY, status=1)
        self.assertIn("another study is running there", errors)


class Changed(Fake):
    def change(self, section, **facts):
        path = os.path.join(self.out, "study.json")
        with open(path, encoding="utf-8") as file:
            about = json.load(file)
        about[section].update(facts)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(about, file)

    def test_machine(self):
        self.study("disjoint", *TINY)
        self.change("machine", cpus=4711)
        before = self.results()
        _, errors = self.study("disjoint", *TINY, status=1)
        for message in ("cpus was 4711", "another machine or build", "--fresh"):
            self.assertIn(message, errors)
        self.assertEqual(self.results(), before)
        self.study("--html-only")  # a page does not depend on the machine
        self.study("disjoint", *TINY, "--fresh")
        self.assertEqual(set(self.results()) & set(before), set(before))
        self.assertNotEqual(self.results(), before)

    def test_size_libraries_and_build(self):
        """A shared library may change while lime-bench does not."""
        self.study("disjoint", *TINY)
        _, errors = self.study("disjoint", *TINY[2:], status=1)
        self.assertIn("scale was 0.01, is 1.0", errors)
        self.assertIn("give the same options, --fresh", errors)
        self.change("system", libraries={"hdf5": "1.8.11"})
        _, errors = self.study("interleaved", *TINY, status=1)
        self.assertIn("libraries was", errors)
        with open(os.path.join(self.directory, "bin/lime-bench"), "a", encoding="ascii") as file:
            file.write("# another build\n")
        _, errors = self.study("interleaved", *TINY, status=1)
        self.assertRegex(errors, "lime-bench was [0-9a-f]{16}, is [0-9a-f]{16}")

    def test_fresh_removes_its_own_only(self):
        self.study("disjoint", *TINY)
        for name in ("notes.txt", "results/notes.txt"):
            with open(os.path.join(self.out, name), "w", encoding="ascii") as file:
                file.write("mine")
        self.study("scaling", *TINY, "--fresh")
        self.assertTrue(os.path.exists(os.path.join(self.out, "notes.txt")))
        self.assertIn("notes.txt", self.results())
        self.assertEqual([n for n in self.results() if n.startswith("disjoint")], [])

    def test_foreign_directory(self):
        """Without study.json the script replaces or removes no file of a directory."""
        for name in ("study.html", "results/mine.json", "lock"):
            path = os.path.join(self.out, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write("mine")
            for more in ((), ("--fresh",)):
                _, errors = self.study("disjoint", *TINY, *more, status=1)
                self.assertIn("not part of a study; give --out DIR", errors)
                with open(path, encoding="ascii") as file:
                    self.assertEqual(file.read(), "mine")
            os.unlink(path)


class Failures(Fake):
    def test_one_back_end(self):
        """The page names a failed back end and the next start measures it again, not the others."""
        self.configure(fail={"hdf5": "write: no space left <on device>"})
        _, _ = self.study("disjoint", *TINY, status=1)
        self.assertIn("write: no space left &lt;on device&gt;", self.page())
        self.assertIn("netcdf4", self.study_text("disjoint"))
        self.assertNotIn("hdf5 ", self.study_text("disjoint"))
        self.configure()
        calls = self.called()
        self.study("disjoint", *TINY)
        self.assertEqual(self.called(), calls + 4)  # hdf5 by itself, each time
        self.assertNotIn("no space left", self.page())
        self.assertIn("hdf5 ", self.study_text("disjoint"))

    def test_everything_fails(self):
        self.study("scaling", *TINY)
        self.configure(abort="job aborted")
        shown, _ = self.study("disjoint", *TINY, status=1)
        self.assertIn("study: disjoint: independent", shown)
        self.assertIn("job aborted", shown)
        self.assertIn("Not measured.", self.study_text("disjoint"))

    def test_absent(self):
        self.configure(absent={"pnetcdf": "not available: no pnetcdf.pc"})
        self.study("disjoint", *TINY)
        part = self.page().split("<h2 id=limits>")[1]
        self.assertIn("no pnetcdf.pc", part)
        self.assertIn("posix has no collective I/O", part)

    def test_all_absent(self):
        """lime-bench refuses; that is not a failure and is not retried."""
        why = "not available: built without HDF5"
        self.configure(absent={"hdf5": why, "netcdf4": why})
        self.study("chunk-size", *TINY)
        self.assertIn("Not measured.", self.study_text("chunk-size"))
        part = self.page().split("<h2 id=limits>")[1]
        for name in ("hdf5", "netcdf4"):
            self.assertIn(f"<td>{name}</td><td>{why}</td><td>chunk-size</td>", part)
        calls = self.called()
        self.study("chunk-size", *TINY)
        self.assertEqual(self.called(), calls)


class Structure(html.parser.HTMLParser):
    """The elements of a page; they must be closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids, self.links, self.tags = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "src", "xlink:href", "data", "action"):
                self.links.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append((tag, self.getpos()))


class Page(Fake):
    def test_well_formed(self):
        """All studies on one page that needs no other file."""
        self.study("--scale", "0.05", "--ranks", "1,2", "--rounds", "2")
        page = self.page()
        found = Structure()
        found.feed(page)
        found.close()
        self.assertEqual((found.wrong, found.open), ([], []))
        self.assertEqual(len(found.ids), len(set(found.ids)))
        for link in found.links:
            self.assertTrue(link.startswith("#"), link)
            self.assertIn(link[1:], found.ids)
        self.assertEqual(set(found.tags) & {"script", "link", "img", "iframe", "object"}, set())
        for outside in ("http:", "https:", "@import", "file:", self.directory):
            self.assertNotIn(outside, page)
        self.assertEqual(re.findall(r"url\((?!#)", page), [])
        self.assertIn('<meta name="viewport"', page)
        self.assertIn("prefers-color-scheme: dark", page)
        self.assertIn("@media print", page)
        self.assertIn("node &lt;1&gt;", page)
        for study in plan.STUDIES:
            part = page.split(f"<h2 id={study}>")[1].split("<h2 ")[0]
            self.assertIn("<strong>Choose</strong>", part, study)
            self.assertIn("<table", part, study)
            if plots.available():
                self.assertIn("<svg", part, study)
                self.assertIn("rror bars: ", part + "rror bars: " * (study == "variability"))
        # Colours are the page's own, for both schemes.
        for svg in re.findall(r"<svg.*?</svg>", page, flags=re.S):
            self.assertEqual(re.findall(r"rgb\(|#[0-9a-f]{6}\b|=.black.|=.white.", svg), [])
        self.assertEqual(sorted(os.listdir(self.out)), ["results", "study.html", "study.json"])

    def test_without_gnuplot(self):
        self.study("disjoint", *TINY)
        env = {**self.environment(), "PATH": self.directory}
        done = limetest.run(self.command("--html-only"), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gnuplot is not installed", self.page())
        self.assertNotIn("<svg", self.page())
        self.assertIn("<table", self.page())


class Statements(Fake):
    """The page's statements about known numbers."""

    def test_clear_winner(self):
        self.configure(speeds={"lime": 900e6},
                       rules=[[{"backend": "gather"}, 0.5],
                              [{"backend": "hdf5", "collective": True}, 0.7]])
        self.study("disjoint", *TINY)
        text = self.study_text("disjoint")
        self.assertIn("Writing is fastest with lime (", text)
        self.assertIn("Reading is fastest with lime (", text)
        self.assertIn("Choose lime for writing; lime for reading; independent I/O",
                      " ".join(text.split()))
        self.assertRegex(text, r"Writing is slowest with gather \(\w+\): 2[45]\d MB/s")
        self.assertRegex(text, r"Independent I/O is faster for hdf5 writing \(\d+ % faster\) and "
                               r"hdf5 reading")
        self.assertNotIn("Collective I/O is faster", text)

    def test_tie(self):
        self.configure(speeds={}, noise=0.05)
        self.study("disjoint", "scaling", "app", *TINY)
        text = self.study_text("disjoint")
        for doing in ("Writing", "Reading"):
            self.assertIn(f"{doing}: nothing differs from the best beyond the noise", text)
        self.assertIn("do not differ beyond the noise in any of", text)
        self.assertIn("nothing differs clearly", text)
        for word in ("faster for", "Writing is fastest", "is slowest"):
            self.assertNotIn(word, text)
        text = self.study_text("scaling")
        self.assertRegex(text, "Writing does not differ between 1 and 2 ranks beyond the noise "
                               "with .*lime.* and ")
        self.assertIn("lime and gather do not differ beyond the noise", text)
        self.assertIn("Choose 1 rank", " ".join(text.split()))
        self.assertIn("no application ends clearly sooner", self.study_text("app"))

    def test_scaling(self):
        self.configure(rules=[[{"backend": "lime", "ranks": 2}, 1.9],
                              [{"backend": "posix", "ranks": 2}, 0.6],
                              [{"backend": "subarray", "ranks": 2}, 1.9]])
        self.study("scaling", *TINY)
        text = self.study_text("scaling")
        self.assertRegex(text, r"Writing is faster on 2 ranks than on 1 with .*lime \([89]\d %\)")
        self.assertRegex(text, r"Reading is faster on 1 rank than on 2 with posix \([67]\d %\)")
        self.assertIn("with gather", text)
        self.assertIn("Choose 2 ranks: there 4 of 6", " ".join(text.split()))
        self.assertRegex(text, r"Writing on 2 ranks: lime is [34]\.\d+ times as fast as gather")

    def test_first_write(self):
        self.configure(noise=0.05, rules=[[{"first": True, "operation": "write", "backend": "lime"},
                                           0.3]])
        self.study("variability", *TINY)
        text = self.study_text("variability")
        self.assertRegex(text, r"lime: the first write .*: the first is slow, [23]\d % of the "
                               r"others")
        self.assertRegex(text,
                         r"gather: the first write .*: no slow first write beyond the noise")

    def test_applications(self):
        """gather's I/O takes the paper's share of the time by construction; lime's is measured."""
        self.configure(noise=0.01, speeds={"gather": 200e6, "lime": 2000e6})
        self.study("app", *TINY)
        text = self.study_text("app")
        shares = [int(n) for n in re.findall(r"takes (\d+) % of the time that it takes with "
                                             r"gather", text)]
        self.assertEqual(len(shares), 3, text)
        self.assertTrue(shares[0] > shares[1] > shares[2], shares)
        # 19 results of one unit each and a configuration that is read in 1.5: 20.5 of 49.7 units.
        self.assertAlmostEqual(shares[2], 100 * (29.2 + 2.05) / (29.2 + 20.5), delta=3)
        self.assertIn("Choose lime: the multiple-mass inversion ends in",
                      " ".join(text.split()))

    def point(self, backend, operation, speeds, **where):
        return points.Point(backend, operation, tuple(where.items()), samples.Sample(speeds),
                            samples.Sample([1 / v for v in speeds]), 0.0,
                            (), (), 1 << 20, 2)

    def sweep(self, name, speeds, backend="hdf5", pattern="disjoint"):
        return [self.point(backend, op, [v * f for f in (0.99, 1, 1.01, 1, 0.99, 1.01)],
                           pattern=pattern, mode="collective", **{name: setting})
                for op in ("write", "read") for setting, v in speeds.items()]

    def test_transfer_size(self):
        found = self.sweep("transfer", {4096: 1e8, 65536: 5e8, 1 << 20: 9e8, 1 << 24: 9e8})
        sentences, choice = findings.describe("transfer-size", found, None)
        self.assertEqual(choice, "transfers of 1 MiB")
        self.assertIn("With 4 KiB, 2 series of 2 are slower", " ".join(sentences))
        self.assertIn("11 % of its best", " ".join(sentences))
        found += self.sweep("transfer", {4096: 1e8, 65536: 5e8, 1 << 20: 6e8, 1 << 24: 9e8},
                            "mpiio")[:4]
        sentences, choice = findings.describe("transfer-size", found, None)
        self.assertEqual(choice, "transfers of 16 MiB")
        found = self.sweep("transfer", {4096: 5e8, 1 << 20: 5.02e8})
        self.assertEqual(findings.describe("transfer-size", found, None)[1],
                         "any transfer size: nothing differs beyond the noise")

    def test_chunk_size(self):
        found = self.sweep("chunk", {0: 9e8, 65536: 2e8, 1 << 20: 6e8})
        sentences, choice = findings.describe("chunk-size", found, None)
        self.assertEqual(choice, "chunks of 1 MiB, and no chunks where the format does not need "
                                 "them")
        self.assertIn("Faster without chunks than with the best ones: hdf5 writing (50 % faster, "
                      "chunks of 1 MiB) and hdf5 reading", " ".join(sentences))
        found = self.sweep("chunk", {0: 9e8, 65536: 2e8, 1 << 20: 9e8})
        sentences, choice = findings.describe("chunk-size", found, None)
        self.assertEqual(choice, "chunks of 1 MiB")
        self.assertIn("As fast with the best chunks as without, within the noise: hdf5 writing "
                      "and hdf5 reading.", sentences)

    def test_alignment(self):
        found = self.sweep("alignment", {0: 5e8, 4096: 5e8, 1 << 20: 8e8})
        sentences, choice = findings.describe("alignment", found, None)
        self.assertTrue(choice.startswith("alignment to 1 MiB: "), choice)
        self.assertIn("2 are faster (2 clearly; most: hdf5 writing (disjoint, collective), 60 %)",
                      " ".join(sentences))
        found = self.sweep("alignment", {0: 8e8, 1 << 20: 5e8})
        self.assertTrue(findings.describe("alignment", found, None)[1].startswith("no alignment"))

    def test_block_size(self):
        found = [self.point("lime", op, [v, v * 1.01, v * 0.99, v], ranks=2, extent=extent)
                 for op in ("write", "read")
                 for extent, v in ((4, 1e8), (8, 3e8), (12, 6e8), (16, 6.05e8))]
        sentences, choice = findings.describe("block-size", found, None)
        self.assertIn("Writing reaches full speed from 12^3 x 24 on with lime (17 % with the "
                      "smallest).", sentences)
        self.assertIn("12^3 x 24", choice)

    def test_no_points(self):
        """A study without measurements has no findings and no panels."""
        for study in plan.STUDIES:
            self.assertEqual(findings.describe(study, [], None), ([], ""))
            self.assertEqual(views.build(study, [], None).panels, [])


class Numbers(limetest.TestCase):
    def test_compare(self):
        fast = samples.Sample([5, 5.1, 5.2, 5, 5.1])
        slow = samples.Sample([3, 3.1, 4.9, 3, 3.1])
        self.assertEqual(samples.compare(fast, slow)[0], samples.FASTER)
        self.assertEqual(samples.compare(slow, fast)[0], samples.FASTER)
        self.assertLess(samples.compare(slow, fast)[1], 1)
        # With enough runs one exception of six does not matter; two do.
        steady = samples.Sample([5, 5, 5, 5.1, 5.1, 5.1])
        for runs, verdict in (([3, 3, 3, 3.1, 3.1, 9], samples.PROBABLY),
                              ([3, 3, 3, 3.1, 9, 9], samples.ALIKE),
                              ([4.7, 4.7, 4.7, 4.7, 4.7, 9], samples.ALIKE)):
            self.assertEqual(samples.compare(steady, samples.Sample(runs))[0], verdict, runs)
        self.assertEqual(samples.compare(samples.Sample([5, 5, 5]), samples.Sample([3, 3, 9]))[0],
                         samples.ALIKE)
        # With many runs, a few that are slow for other reasons do not hide a difference.
        many = samples.Sample([5, 5.1, 5, 5.2, 5, 5.1, 5, 5.1, 5, 5, 5.1, 5.1, 5, 3, 2])
        less = samples.Sample([4, 4.1, 4, 4.2, 4, 4.1, 4, 4.1, 4, 4, 4.1, 4.1, 4, 6, 7])
        self.assertEqual(samples.compare(many, less)[0], samples.FASTER)
        # Three runs of each may differ by chance; a large difference probably does not.
        self.assertEqual(samples.compare(samples.Sample([9, 9, 9]), samples.Sample([3, 3, 3]))[0],
                         samples.PROBABLY)
        # Two runs prove nothing, nor does a difference of 2 %.
        self.assertEqual(samples.compare(samples.Sample([9, 9]), samples.Sample([1, 1]))[0],
                         samples.ALIKE)
        self.assertEqual(samples.compare(samples.Sample([51] * 6), samples.Sample([50] * 6))[0],
                         samples.ALIKE)

    def test_in_turn(self):
        """The machine's speed changes, but the ratio within each turn is the same."""
        speeds = [1, 3, 2, 5, 4, 2, 3, 1, 5, 4]
        a = [1.2 * speed * f for speed, f in zip(speeds, (1, 1.01, 0.99) * 4)]
        pair = samples.Sample(a, "turns"), samples.Sample(speeds, "turns")
        self.assertEqual(samples.compare(*pair)[0], samples.FASTER)
        self.assertEqual(samples.compare(pair[1], pair[0])[0], samples.FASTER)
        for other in (samples.Sample(speeds), samples.Sample(speeds, "other turns"),
                      samples.Sample(speeds[::-1], "turns")):
            self.assertEqual(samples.compare(pair[0], other)[0], samples.ALIKE)
        # In one round of five the order is reversed.
        b = [2 * value for value in a[:2]] + speeds[2:]
        turned = [samples.Sample(values, "turns", 5) for values in (a, b)]
        self.assertEqual(samples.compare(*turned)[0], samples.ALIKE)
        # Seven turns are too few for certainty.
        few = samples.Sample(a[:7], "turns"), samples.Sample(speeds[:7], "turns")
        self.assertEqual(samples.compare(*few)[0], samples.PROBABLY)

    def test_interval(self):
        """Interval of the median, by the binomial distribution of the number of values below it."""
        def ranks(count, confidence=0.99):
            return samples.Sample(range(1, count + 1)).interval(confidence)

        self.assertEqual(ranks(15), (3, 13))  # 99.3 %; the next narrower one has 96.5 %
        self.assertEqual(ranks(15, 0.95), (4, 12))
        self.assertEqual(ranks(8), (1, 8))  # 99.2 %
        self.assertEqual(ranks(5), (1, 5))  # fewer than requested
        self.assertEqual(ranks(1), (1, 1))
        self.assertEqual(ranks(50), (16, 35))

    def test_plateau(self):
        low, high = samples.Sample([1, 1, 1.1]), samples.Sample([2, 2, 2.1])
        self.assertEqual(samples.plateau([(1, low), (2, high), (3, high)]), 2)
        self.assertEqual(samples.plateau([(1, high), (2, high)]), 1)
        self.assertIsNone(samples.plateau([(1, low), (2, high), (3, low)]))

    def test_text(self):
        self.assertEqual([formatting.size(n) for n in (100, 4096, 1 << 20, 3 << 29)],
                         ["100 bytes", "4 KiB", "1 MiB", "1.50 GiB"])
        self.assertEqual([formatting.option_size(n) for n in (100, 4096, 1 << 20, 1000000)],
                         ["100", "4k", "1M", "1000000"])
        self.assertEqual([formatting.three_digits(v)
                          for v in (0.0123, 0.5, 3, 12.34, 512.6, 1234567)],
                         ["0.012", "0.50", "3", "12.3", "513", "1234567"])
        self.assertEqual([formatting.faster_text(r) for r in (1.35, 0.5, 2.5, 1 / 1.35)],
                         ["35 % faster", "2 times as fast", "2.50 times as fast", "35 % faster"])
        self.assertEqual([formatting.duration(s) for s in (7, 760, 3849)],
                         ["0:07", "12:40", "1:04:09"])
        self.assertEqual(formatting.join_list(["a", "b", "c"]), "a, b and c")

    def test_names(self):
        """Equal parameters give equal names, different ones different names."""
        size = plan.Size((1, 2), 2, 1 << 20, 6, (4, 6), 6, 0.01, 3, 2, 0)
        every = [m for study in plan.STUDIES for m in plan.measurements(study, size)]
        names = [m.name for m in every]
        self.assertEqual(len(set(names)), len(names))
        again = [m.name for study in plan.STUDIES for m in plan.measurements(study, size)]
        self.assertEqual(names, again)
        for name in names:
            self.assertRegex(name, r"^[a-zA-Z0-9_-]+$")

    def test_requested_time(self):
        """The size after the calibration fits the requested time."""
        from studylib import machine
        for cost in (2e-10, 2e-9, 2e-8):
            known = {"startup": 0.7, "seconds_per_byte": cost}
            nbytes, rounds = machine.fit_size((1, 2, 4), 2, 1 << 30, known, 1500)
            total = machine.total(machine.make_size((1, 2, 4), 2, nbytes, rounds), known)
            self.assertLess(total, 1500)
            self.assertGreaterEqual(nbytes, 64 << 10)


class Real(limetest.TestCase):
    """One short study by the real programs."""

    def setUp(self):
        bench = os.path.join(limetest.BIN, "lime-bench")
        if not os.path.exists(bench) or not shutil.which(mpitest.MPIRUN):
            self.skipTest("needs MPI and lime-bench")
        self.out = os.path.join(self.tempdir(), "out")
        self.results = os.path.join(self.out, "results")
        self.command = [sys.executable, STUDY, "--out", self.out, "--cold-file", "--scale", "0.001",
                        "--ranks", "1,2", "--rounds", "2", "scaling"]
        self.env = mpitest.environment({"B": limetest.B, "MPIRUN": mpitest.MPIRUN})

    def own_processes(self):
        """Returns the command lines of processes that work in this directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read()
            if os.fsencode(self.out) in command:
                found.append(command)
        return found

    def test_scaling(self):
        """A study that is interrupted after its first measurement resumes and finishes."""
        with subprocess.Popen(self.command, env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            limetest._wait(lambda: process.poll() is not None or os.path.isdir(self.results)
                           and os.listdir(self.results), 120 * limetest.SLOWNESS)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60 * limetest.SLOWNESS)
        self.assertEqual(process.returncode, 130, (out, errors))
        self.assertEqual(self.own_processes(), [])
        self.assertEqual(sorted(os.listdir(self.out)), ["results", "study.json"])
        done = limetest.run(self.command, env=self.env, timeout=300)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        self.assertIn(b"of 4 measurements exist", done.stdout)
        with open(os.path.join(self.out, "study.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("<strong>Choose</strong>", page)
        self.assertEqual(len(os.listdir(self.results)), 4)
        self.assertEqual(sorted(os.listdir(self.out)), ["results", "study.html", "study.json"])


if __name__ == "__main__":
    limetest.main()
