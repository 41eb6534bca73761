"""slurm - a Slurm cluster on the hosts of hosts.py, for tests.

    cluster = slurm.Cluster()
    job = cluster.submit(script, "--nodes=2")
    cluster.wait(job)

Each host runs munged and slurmd, the first one also slurmctld. All their files are in the hosts'
directory; a host's munge socket is in its /dev/shm. Slurm tracks the processes of a job without
cgroups, which a container may lack.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess

import hosts
import jobtest
import limetest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "sinfo")
OWN_FILES = {"munge"}  # in /dev/shm of each host
OWN_PROCESS = re.compile("(munged|slurmd|slurmctld|: slurmscriptd) ")
PATH = f"{limetest.BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

CONF = """
ClusterName=limetest
SlurmctldHost={first}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/dev/shm/munge/socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
TmpFS=/dev/shm
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill,UsePss
DefMemPerNode=1200
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdTimeout={node_timeout}
InactiveLimit=0
MinJobAge=3600
ReturnToService=2
JobRequeue=0
KillWait=30
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""
NODE = "NodeName={name} NodeAddr={address} CPUs=4 RealMemory=4000 State=UNKNOWN\n"


def why_not():
    """Returns why there can be no cluster here; None if there can."""
    for name in PROGRAMS:
        if shutil.which(name, path=PATH) is None:
            return f"needs {name}"
    return hosts.why_not()


class Cluster(hosts.Hosts):
    """The cluster runs until stop(), or to the end of the test."""

    def __init__(self, *names, node_timeout=300):
        super().__init__(*(names or ("alpha", "beta", "gamma")))
        self.conf = os.path.join(self.directory, "slurm.conf")
        limetest.put(os.path.join(self.directory, "munge.key"), os.urandom(128))
        os.chmod(os.path.join(self.directory, "munge.key"), 0o600)
        os.mkdir(os.path.join(self.directory, "state"))
        text = CONF.format(first=self.names[0], address=self.address(self.names[0]),
                           directory=self.directory, node_timeout=node_timeout)
        for name in self.names:
            text += NODE.format(name=name, address=self.address(name))
        limetest.put(self.conf, text.encode())
        for name in self.names:
            self.start_node(name)
        self.on(self.names[0], "setsid slurmctld -D </dev/null >/dev/null 2>&1 &")
        self._wait_for_nodes()

    def _wait_for_nodes(self):
        def are_idle():
            return self.states() == ["idle"] * len(self.names)
        if not limetest._wait(are_idle, 20 * limetest.SLOWNESS):
            raise AssertionError(f"nodes are {self.states()}: {self.logs()}")

    def start_node(self, name):
        """Starts munged and slurmd on a host, which sees its own processes in /proc."""
        munge = shlex.join(["munged", "--key-file", os.path.join(self.directory, "munge.key"),
                            "--pid-file=/dev/shm/munge/pid", "--socket=/dev/shm/munge/socket",
                            "--log-file=/dev/shm/munge/log", "--seed-file=/dev/shm/munge/seed"])
        self.on(name, f"mount -t proc proc /proc; mkdir -p /dev/shm/munge; {munge} && "
                      f"setsid slurmd -D </dev/null >/dev/null 2>&1 &")

    def boot(self, name):
        """Starts a host again that was powered off."""
        shutil.rmtree(self.shm(name))
        os.unlink(os.path.join(self.directory, name))
        self._boot(name)
        self._processes[name].stdout.readline()
        self._plug(name)
        self.start_node(name)
        self._wait_for_nodes()

    def environ(self):
        """Settings for the commands and their jobs."""
        return {"PATH": PATH, "SLURM_CONF": self.conf, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "LANG": "C"}

    def on(self, name, command, check=True):
        """Runs a shell command inside a host; returns its output."""
        settings = shlex.join(f"{key}={value}" for key, value in self.environ().items())
        done = limetest.run([self.agent, name, f"export {settings}; {command}"],
                            stderr=subprocess.STDOUT)
        output = done.stdout.decode(errors="replace")
        if check and done.returncode != 0:
            raise AssertionError(f"{name}: {command}: exit {done.returncode}: {output}")
        return output

    def command(self, *arguments, check=True):
        """Runs a command of Slurm on the first host; returns its output."""
        return self.on(self.names[0], shlex.join(arguments), check)

    def states(self):
        """Returns the state of each node."""
        return self.command("sinfo", "-h", "-N", "-o", "%T", check=False).split()

    def logs(self):
        """Returns the ends of all logs."""
        text = ""
        for entry in sorted(os.listdir(self.directory)):
            if entry.endswith(".log"):
                with open(os.path.join(self.directory, entry), errors="replace") as file:
                    text += f"\n{entry}:\n{file.read()[-2000:]}"
        return text

    def submit(self, script, *options):
        """Submits a batch script; returns the job's number."""
        return self.command("sbatch", "--parsable", "-o", f"{self.directory}/%j.out", *options,
                            *(script if isinstance(script, list) else [script])).strip()

    def output(self, job):
        with contextlib.suppress(FileNotFoundError):
            return limetest.read(f"{self.directory}/{job}.out").decode(errors="replace")
        return ""

    def state(self, job):
        """Returns the job's state and exit status, like "COMPLETED 0:0"."""
        shown = self.command("scontrol", "show", "job", str(job))
        return " ".join(re.search(rf"{key}=(\S+)", shown).group(1)
                        for key in ("JobState", "ExitCode"))

    def has_ended(self, job):
        return self.state(job).split()[0] not in ("PENDING", "RUNNING", "COMPLETING")

    def wait(self, job, timeout=60):
        """Waits until the job has ended and its nodes are free; returns its state."""
        def ended():
            return self.has_ended(job) and self.state(job)
        state = limetest._wait(ended, timeout * limetest.SLOWNESS, 0.1)
        if not state:
            raise AssertionError(f"{self.state(job)}: {self.output(job)}{self.logs()}")
        return state

    def left(self, name):
        """Returns the processes, temporary files and FUSE mounts of jobs on a host."""
        files = set(self.temporary_files(name)) - OWN_FILES
        init = jobtest.children_of(self._processes[name].pid)[0]
        mounts = [line for line in limetest.read(f"/proc/{init}/mountinfo").decode().splitlines()
                  if " fuse.limefs " in line]
        return [*self.processes(name).values(), *sorted(files), *mounts]

    def processes(self, name):
        """Returns the command line of each process of a host that a job has started or left."""
        found = {}
        for pid in self.pids(name):
            with contextlib.suppress(OSError):
                line = limetest.read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode()
                if line and not OWN_PROCESS.match(line):
                    found[pid] = line
        return found
