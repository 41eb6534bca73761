"""storage - file systems with servers on several emulated hosts (hosts.py).

    cluster = hosts.Hosts("alpha", "beta", "gamma")
    store = storage.MooseFS(cluster, copies=1)
    put(os.path.join(store.path, "file"), data)

Every host runs a server and mounts the file system at store.path with its own client. The client of
the first host, where tests run, is in the machine's mount namespace. Servers and clients end with
the hosts, or with stop(); their data is on a real disk.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time

import jobtest
import limetest
from limetest import put

START_S = 30 * limetest.SLOWNESS


def program_of(pid):
    """The name under which the process was started (glusterd and glusterfsd are one file)."""
    try:
        return os.path.basename(limetest.read(f"/proc/{pid}/cmdline").split(b"\0")[0]).decode()
    except OSError:
        return None


class Store:
    """Base class: start_servers() and client(host), the command of a client in the foreground, are
    the product's."""

    server = ""  # the program that stores data
    programs = ()  # all programs that it needs

    @classmethod
    def why_not(cls):
        """Returns why it can't run here; None if it can."""
        for name in cls.programs:
            if shutil.which(name) is None:
                return f"needs {name}"
        return None

    def __init__(self, cluster, *options, copies=1, servers=None, clients=None, address=None):
        """By default all hosts are servers and clients, with the addresses of the cluster."""
        self.cluster, self.options, self.copies = cluster, list(options), copies
        self.server_hosts, self.client_hosts = servers or cluster.names, clients or cluster.names
        self.address = address or cluster.address
        self.directory = limetest.tempdir()
        self.path = limetest.tempdir()
        self._processes = []
        limetest._cleanup(self.stop)
        self.start_servers()
        for name in self.client_hosts:
            self.mount(name)
        self.set_up()

    def start_servers(self):
        raise NotImplementedError

    def client(self, name):
        raise NotImplementedError

    def set_up(self):
        """Sets properties of the mounted file system."""

    def log(self, name):
        return limetest.read(os.path.join(self.directory, f"{name}.log")).decode(errors="replace")

    def _popen(self, log, command):
        with open(os.path.join(self.directory, f"{log}.log"), "ab") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self._processes.append(process)
        return process

    def start(self, name, command, log):
        """Starts a command on a host; it ends with the host."""
        return self._popen(f"{name}-{log}", [self.cluster.agent, name, shlex.join(command)])

    def is_mounted(self, name):
        if name == self.cluster.names[0]:
            return self.path in limetest.mounts_under(self.path)
        return self.cluster.try_run(name, ["mountpoint", "-q", self.path])

    def mount(self, name):
        """Mounts on a host and waits for it."""
        command = self.client(name)
        if name == self.cluster.names[0]:
            self._popen(f"{name}-client", [*self.cluster.enter(), *command])
        else:
            self.start(name, command, "client")
        if not jobtest.wait_until(lambda: self.is_mounted(name), START_S):
            raise AssertionError(f"{name} does not mount: {self.log(f'{name}-client')}")

    def servers(self, name):
        """The processes on a host that store data."""
        return [pid for pid in self.cluster.pids(name) if program_of(pid) == self.server]

    def kill_server(self, name):
        for pid in self.servers(name):
            os.kill(pid, signal.SIGKILL)

    def read_on(self, name, path, command="sha256sum"):
        """Returns the SHA-256 of a file as another host's client sees it."""
        return self.cluster.run(name, [command, path]).stdout.split()[0].decode()

    def stop(self):
        self.cluster.stop()
        if self.path in limetest.mounts_under(self.path):
            limetest._detach(self.path)
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    process.kill()
            process.wait()
        self._processes.clear()


class MooseFS(Store):
    """A master on the first server and a chunk server on each. Each chunk of 64 MiB of a file is on
    `copies` servers."""

    server = "mfschunkserver"
    programs = ("mfsmaster", "mfschunkserver", "mfsmount", "mfssetgoal")

    def _configure(self, name, settings, **files):
        """Writes a configuration with its own directory; returns the directory."""
        directory = os.path.join(self.directory, name)
        os.makedirs(os.path.join(directory, "data"))
        settings = {"WORKING_USER": "root", "WORKING_GROUP": "root", "DATA_PATH": directory,
                    "SYSLOG_IDENT": f"limetest-{name}", "LOCK_MEMORY": 0, "NICE_LEVEL": 0,
                    **settings}
        for file, text in files.items():
            put(os.path.join(directory, f"{file}.cfg"), text.encode())
        put(os.path.join(directory, "cfg"),
            "".join(f"{key} = {value}\n" for key, value in settings.items()).encode())
        return directory

    def start_servers(self):
        here = os.path.join(self.directory, "master")
        self._configure("master", {"EXPORTS_FILENAME": f"{here}/exports.cfg",
                                   "TOPOLOGY_FILENAME": f"{here}/topology.cfg"},
                        exports="* / rw,alldirs,maproot=0\n", topology="")
        shutil.copyfile("/var/lib/mfs/metadata.mfs.empty", f"{here}/metadata.mfs")
        self.start(self.server_hosts[0], ["mfsmaster", "-f", "-c", f"{here}/cfg", "start"],
                   "master")
        for name in self.server_hosts:
            self.start_server(name)

    def start_server(self, name):
        here = os.path.join(self.directory, name)
        if not os.path.exists(here):
            self._configure(name, {
                "HDD_CONF_FILENAME": f"{here}/hdd.cfg",
                "MASTER_HOST": self.address(self.server_hosts[0]),
                "BIND_HOST": self.address(name),
                "HDD_FSYNC_BEFORE_CLOSE": 1}, hdd=f"{here}/data\n")
        self.start(name, ["mfschunkserver", "-f", "-c", f"{here}/cfg", "start"], "server")

    def client(self, name):
        return ["mfsmount", "-f", "-o", ",".join(["mfsdelayedinit", *self.options]), "-H",
                self.address(self.server_hosts[0]), self.path]

    def set_up(self):
        command = ["mfssetgoal", "-r", str(self.copies), self.path]
        if not jobtest.wait_until(lambda: self.cluster.try_run_here(command), START_S):
            raise AssertionError(f"{command} fails")


class GlusterFS(Store):
    """A volume with a brick on each host: `layout` is what `gluster volume create` calls it."""

    server = "glusterfsd"
    programs = ("glusterd", "glusterfs", "gluster")
    layout = ("disperse", "3", "redundancy", "1")
    settings = {}

    # Directories that a host has for itself.
    private = ("/var/lib/glusterd", "/var/log/glusterfs", "/run")

    def _cli(self, *command):
        first = self.server_hosts[0]
        for _ in range(20):
            done = limetest.run([*self.cluster.enter(first, mount=True), "gluster",
                                 "--mode=script", *command])
            if done.returncode == 0:
                return
            # glusterd refuses while another command or the handshake of a peer is under way
            time.sleep(0.5)
        raise AssertionError(f"gluster {command}: {done.stdout} {done.stderr}")

    def start_servers(self):
        for name in self.server_hosts:
            for i, path in enumerate(self.private):
                here = os.path.join(self.directory, f"{name}-{i}")
                os.makedirs(here)
                self.cluster.run(name, ["mount", "--bind", here, path])
            self.cluster.run(name, ["mkdir", "/run/gluster"])
            os.mkdir(os.path.join(self.directory, name))
            self.start(name, ["glusterd", "-N"], "server")
        first, *others = self.server_hosts
        for name in others:
            self._cli("peer", "probe", self.address(name))
        self._cli("volume", "create", "v", *self.layout, "transport", "tcp",
                  *(f"{self.address(name)}:{self.directory}/{name}/brick"
                    for name in self.server_hosts), "force")
        for key, value in {"storage.health-check-interval": 0, **self.settings}.items():
            self._cli("volume", "set", "v", key, str(value))
        self._cli("volume", "start", "v")

    def client(self, name):
        log = os.path.join(self.directory, f"{name}-mount.log")
        return ["glusterfs", "-N", f"--log-file={log}",
                f"--volfile-server={self.address(self.server_hosts[0])}", "--volfile-id=v",
                *self.options, self.path]


class NFS(Store):
    """The last host exports a directory. The first host is a client, by FUSE (fuse-nfs in $PATH, or
    FUSE_NFS: no package of Debian has it); the others see the directory itself, as nodes of a
    cluster see a file system of which the login node has an NFS mount.

    The client is libnfs's with NFS 3: with 4, libnfs 4.0 confuses open files with each other."""

    server = "ganesha.nfsd"
    programs = ("ganesha.nfsd", "rpcbind", os.environ.get("FUSE_NFS") or "fuse-nfs")
    CONFIGURATION = """
NFS_CORE_PARAM {{ Protocols = 3; mount_path_pseudo = true; Enable_NLM = false;
  Enable_RQUOTA = false; Enable_UDP = false; }}
EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /v; Access_Type = RW; Squash = none; SecType = sys;
  Protocols = 3; Transports = TCP; FSAL {{ Name = VFS; }} }}
"""

    def start_servers(self):
        here = os.path.join(self.directory, "server")
        os.makedirs(os.path.join(here, "lib", "ganesha"))
        os.makedirs(os.path.join(here, "run", "ganesha"))
        os.mkdir(os.path.join(here, "run", "rpcbind"))
        put(os.path.join(here, "cfg"), self.CONFIGURATION.format(path=self.path).encode())
        host = self.cluster.names[-1]
        for path, source in ("/run", "run"), ("/var/lib/nfs", "lib"):
            self.cluster.run(host, ["mount", "--bind", os.path.join(here, source), path])
        self.start(host, ["rpcbind", "-w", "-f"], "rpcbind")
        self._wait_for(host, 111)
        self.start(host, ["ganesha.nfsd", "-F", "-f", os.path.join(here, "cfg"), "-p",
                          "/run/ganesha.pid", "-L", os.path.join(here, "log")], "server")
        self._wait_for(host, 2049)

    def _wait_for(self, host, port):
        listens = ["sh", "-c", f"ss -Hltn 'sport = :{port}' | grep -q ."]
        if not jobtest.wait_until(lambda: self.cluster.try_run(host, listens), START_S):
            raise AssertionError(f"no program listens to port {port} of {host}")

    def mount(self, name):
        if name == self.cluster.names[0]:
            super().mount(name)

    def client(self, name):
        return [self.programs[-1], "-n",
                f"nfs://{self.cluster.address(self.cluster.names[-1])}/v?version=3",
                "-m", self.path, "-q", "-a", *self.options]  # -q: with the server's inode numbers
