"""hosts - emulate several hosts on one machine, for jobs that run on more than one.

    with hosts.Hosts("alpha", "beta") as cluster:
        job = hosts.Job(cluster, "alpha:2,beta:1").start()

A host is a process with its own namespaces: network, host name, processes, mounts. It has its own
/dev/shm, which also holds its temporary files, and sees the other files of this machine. An agent
takes the place of sshd: `mpirun --mca plm_rsh_agent AGENT` starts its daemons through it, with an
environment of their own, and they are not descendants of mpirun. Tests run on the first host, with
its network and name but with the machine's processes and mounts; the other hosts are connected to
its bridge.

No namespace has a name, and nothing is mounted outside of them: they end with their process, which
ends with this one, however it ends. The hosts unmount their copies of FUSE mounts, so that other
tests can unmount theirs. (`ip netns exec` would make such a copy, too.)

As a program, this file is a host (--host) or the agent (--agent).
"""

import array
import contextlib
import ctypes
import functools
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys

PREFIX, SECOND_PREFIX = "10.99.77", "10.99.78"  # no other network sees these addresses
MNT_DETACH, MS_BIND, MS_REC, MS_PRIVATE = 2, 4096, 1 << 14, 1 << 18


# ---- inside a host ----


def _libc(function, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*args) != 0:
        raise OSError(ctypes.get_errno(), f"{function}: {os.strerror(ctypes.get_errno())}", args)


def _detach_fuse():
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            fields, _, rest = line.partition(b" - ")
            if rest.startswith(b"fuse"):
                point = fields.split(b" ")[4].decode("unicode_escape").encode("latin-1")
                with contextlib.suppress(OSError):  # below a mount that is already detached
                    _libc("umount2", point, MNT_DETACH)


def _set_up(directory, name):
    _libc("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _detach_fuse()
    socket.sethostname(name)
    for name, target in (f"{name}.shm", "/dev/shm"), ("hosts", "/etc/hosts"):
        if os.path.exists(target):
            source = os.fsencode(os.path.join(directory, name))
            _libc("mount", source, target.encode(), None, MS_BIND, None)


def _start(connection, running):
    """Handles a request: a command line, the marks of a test, and a pipe for the exit status."""
    data, ancillary, _, _ = connection.recvmsg(1 << 18, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _, _, raw in ancillary:
        fds.frombytes(raw)
    if not data or len(fds) != 1:
        return
    command, marks = json.loads(data)
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TMPDIR": "/dev/shm",
           **marks}
    out = connection.fileno()
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], env, setsid=True, setsigmask=[],
                         file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                                       (os.POSIX_SPAWN_DUP2, out, 1),
                                       (os.POSIX_SPAWN_DUP2, out, 2)])
    running[pid] = fds[0]


def _reap(running):
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in running:
                pipe = running.pop(pid)
                with contextlib.suppress(OSError):  # the agent has exited
                    os.write(pipe, bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
                os.close(pipe)


def _be_host(directory, name):
    """Runs until end of file on standard input; as process 1, its exit kills all others."""
    _set_up(directory, name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(os.path.join(directory, name))
    listener.listen(64)
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running = {}
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, woken, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        if woken in ready:
            woken.recv(4096)
            _reap(running)
        if listener in ready:
            connection, _ = listener.accept()
            with connection:
                _start(connection, running)


def _be_agent(directory, name, *command):
    """Prints the command's output as ssh does and returns its status; 255 if it was killed."""
    ours, theirs = os.pipe()
    marks = {key: value for key, value in os.environ.items() if key.startswith("LIMETEST_")}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(os.path.join(directory, name))
        socket.send_fds(connection, [json.dumps([" ".join(command), marks]).encode()], [theirs])
        os.close(theirs)
        sources = [connection, ours]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if connection in ready:
                data = connection.recv(65536)
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
                if not data:
                    sources.remove(connection)
            elif ours in ready:
                status = os.read(ours, 1)
                return status[0] if status else 255


if __name__ == "__main__":
    if sys.argv[1] == "--host":
        _be_host(*sys.argv[2:])
        sys.exit(0)
    sys.exit(_be_agent(*sys.argv[2:]))


# ---- for tests ----

import jobtest  # noqa: E402
import limetest  # noqa: E402
import mpitest  # noqa: E402

NAMESPACES = ["--net", "--uts", "--mount", "--pid", "--fork", "--kill-child"]


@functools.lru_cache(maxsize=None)
def why_not():
    """Returns why there can be no hosts here; None if there can."""
    if mpitest.MPICH:
        return "needs Open MPI"
    for name in ("unshare", "nsenter", "ip", mpitest.MPIRUN):
        if shutil.which(name) is None:
            return f"needs {name}"
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    attempt = subprocess.run(["unshare", *NAMESPACES, "sh", "-c",
                              "ip link add name br0 type bridge && "
                              "ip link add name one type veth peer name two"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
    if attempt.returncode != 0:
        text = attempt.stderr.decode(errors="replace").strip().replace("\n", ": ")
        return f"needs network namespaces: {text}"
    return None


def export():
    """Arguments for mpirun: leak reports of MPI are off on the other hosts, too."""
    return ["-x", "ASAN_OPTIONS", "-x", "TSAN_OPTIONS"] if limetest.SANITIZED else []


class Hosts:
    """The hosts run until stop(), or to the end of the test."""

    def __init__(self, *names):
        self.names = names
        self.directory = limetest.tempdir()
        self._processes = {}
        limetest._cleanup(self.stop)
        with open(os.path.join(self.directory, "hosts"), "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n")
            for name in names:
                file.write(f"{self.address(name)} {name}\n")
        self.agent = os.path.join(self.directory, "agent")
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec " + shlex.join(
                [sys.executable, os.path.abspath(__file__), "--agent", self.directory]) + ' "$@"\n')
        os.chmod(self.agent, 0o755)
        for name in names:
            self._boot(name)
        for name in names:
            if self._processes[name].stdout.readline() != b"ready\n":
                raise AssertionError(f"the host {name} does not start")
        self._connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def address(self, name):
        return f"{PREFIX}.{self.names.index(name) + 1}"

    def shm(self, name):
        """Returns the directory that is the host's /dev/shm."""
        return os.path.join(self.directory, f"{name}.shm")

    def _boot(self, name):
        os.mkdir(self.shm(name))
        self._processes[name] = subprocess.Popen(
            ["unshare", *NAMESPACES, sys.executable, os.path.abspath(__file__), "--host",
             self.directory, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _connect(self):
        first, *others = self.names
        self.run(first, ["sh", "-ec", f"ip link set lo up; ip link add name br0 type bridge; "
                                      f"ip link set br0 up; "
                                      f"ip addr add {self.address(first)}/24 dev br0"])
        for name in others:
            self._plug(name)

    def _plug(self, name):
        """Connects a host to the first host's bridge."""
        self.run(self.names[0], ["sh", "-ec", f"ip link add name {name} type veth peer name eth0 "
                                 f"netns {self._processes[name].pid}; "
                                 f"ip link set {name} master br0 up"])
        self.run(name, ["sh", "-ec", f"ip link set lo up; ip link set eth0 up; "
                                     f"ip addr add {self.address(name)}/24 dev eth0"])

    def add_network(self, rate, limited):
        """Connects all hosts by a second network. The links of the hosts in `limited` carry at most
        `rate` (as tc takes it) in each direction."""
        first = self.names[0]
        self.run(first, ["sh", "-ec", "ip link add name br1 type bridge; ip link set br1 up"])
        limit = f"root tbf rate {rate} burst 256kb latency 50ms"
        for name in self.names:
            where = "" if name == first else f" netns {self._processes[name].pid}"
            lines = [f"ip link add name {name}1 type veth peer name eth1{where}",
                     f"ip link set {name}1 master br1 up"]
            there = ["ip link set eth1 up", f"ip addr add {self.second_address(name)}/24 dev eth1"]
            if name in limited:
                lines.append(f"tc qdisc add dev {name}1 {limit}")
                there.append(f"tc qdisc add dev eth1 {limit}")
            self.run(first, ["sh", "-ec", "; ".join(lines)])
            self.run(name, ["sh", "-ec", "; ".join(there)])

    def second_address(self, name):
        """A host's address in the network of add_network()."""
        return f"{SECOND_PREFIX}.{self.names.index(name) + 1}"

    def enter(self, name=None, mount=False):
        """Returns the command prefix to run a program in a host's network and under its name (the
        first host by default); with `mount`, also with its mounts."""
        pid = self._processes[name or self.names[0]].pid
        mounts = [f"--mount=/proc/{pid}/ns/mnt", f"--root=/proc/{pid}/root"]  # also in a chroot
        return ["nsenter", f"--net=/proc/{pid}/ns/net", f"--uts=/proc/{pid}/ns/uts",
                *(mounts if mount else [])]

    def run(self, name, command):
        """Runs the command in a host, with the host's mounts."""
        return limetest.run([*self.enter(name, mount=True), *command], check=True)

    def try_run_here(self, command):
        """Returns whether the command succeeds on the first host, with the machine's mounts."""
        return limetest.run([*self.enter(), *command]).returncode == 0

    def try_run(self, name, command):
        """Returns whether the command succeeds in a host."""
        return limetest.run([*self.enter(name, mount=True), *command]).returncode == 0

    def link(self, name, state):
        """Sets the link of a host other than the first "down" or "up"."""
        self.run(self.names[0], ["ip", "link", "set", name, state])

    def mpirun(self, where):
        """Returns the mpirun command; `where` is for --host."""
        return [mpitest.MPIRUN, "--mca", "plm_rsh_agent", self.agent, *export(), "--host", where]

    def pids(self, name):
        """The processes in a host other than the first."""
        process = self._processes[name]
        own = jobtest.children_of(process.pid)[:1]
        return [pid for pid in jobtest.children_of(process.pid)
                if pid not in own and jobtest.is_alive(pid)]

    def temporary_files(self, name):
        """The host's temporary files."""
        return sorted(os.listdir(self.shm(name)))

    def power_off(self, name):
        """Powers the host off."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def stop(self):
        for name in list(self._processes):
            self.power_off(name)


class Job(jobtest.Job):
    """limefs-io on hosts: by default as many ranks as `where` has slots. mpirun: its options."""

    def __init__(self, cluster, where, *options, ranks=None, mpirun=(), **kw):
        slots = sum(int(host.partition(":")[2]) for host in where.split(","))
        super().__init__(ranks or slots, *options, **kw)
        self.cluster, self.where, self.mpirun = cluster, where, mpirun

    def command(self):
        return [*self.cluster.enter(), *self.cluster.mpirun(self.where), *self.mpirun, "-n",
                str(self.ranks), jobtest.IO, "--socket", self.path, "--ready", "1", *self.options]

    def pids_on(self, name):
        """The job's ranks in a host other than the first."""
        return sorted(set(self.cluster.pids(name)) & set(self.rank_pids()))
