"""A real SLURM of two nodes on this machine, for scripts/slurm_trial.py: Debian's packages, started by root.

Its daemons are processes that are children of the script and listen on the loopback address alone. A node has two
character devices in place of GPUs: SLURM refuses plain files, and would then set no CUDA_VISIBLE_DEVICES. Munge, which
signs SLURM's messages, has a key and a socket of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("slurmctld", "slurmd", "munged", "mungekey")
CONFIGURATION = """\
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
SlurmdLogFile={folder}/%n.log
SlurmdTimeout=10
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
MpiDefault=none
MailProg=/bin/true
NodeName=n1 Port={ports[1]} {node}
NodeName=n2 Port={ports[2]} {node}
PartitionName=trial Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


class Failure(Exception):
    """A trial failed; the message says why."""


class Slurm:
    """A controller and the nodes n1 and n2, as a context manager.

    Attributes
    ----------
    folder : an empty folder that any user may enter, as munge demands
    work : the folder that jobs are submitted from
    env : the environment of all commands; `folder`/bin comes first in its PATH
    """

    def __init__(self, folder: Path):
        self.folder, self.work = folder, folder / "work"
        self.env = os.environ | {
            "SLURM_CONF": f"{folder}/slurm.conf",
            "PATH": f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Slurm:
        folder = self.folder
        for name in ("state", "n1", "n2", "work", "bin"):
            (folder / name).mkdir()
        for device in ("nvidia0", "nvidia1"):
            subprocess.run(["mknod", folder / device, "c", "1", "3"], check=True)
        host = socket.gethostname().partition(".")[0]
        node = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4000 Gres=gpu:2 State=UNKNOWN"
        text = CONFIGURATION.format(folder=folder, host=host, node=node, ports=_free_ports(3))
        (folder / "slurm.conf").write_text(text)
        (folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={folder}/nvidia[0-1]\n")
        key, door = folder / "munge.key", folder / "munge.socket"
        subprocess.run(["mungekey", "--create", f"--keyfile={key}"], check=True)
        files = [f"--{what}-file={folder}/munge.{what}" for what in ("pid", "log", "seed")]
        try:
            self._start("munged", "--foreground", f"--key-file={key}", f"--socket={door}", *files)
            wait_for(door.exists, "munged")
            self._start("slurmctld", "-D", "-c")
            for node in ("n1", "n2"):
                self.start_node(node)
            wait_for(lambda: self.ask("sinfo", "--noheader", "--format=%D %T") == "2 idle", "two idle nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in ("n1", "n2"):
            self.lose(node)
        for daemon in self._daemons.values():
            daemon.terminate()
            daemon.wait()

    def start_node(self, node: str) -> None:
        self._start("slurmd", "-D", "-N", node, name=node)

    def _start(self, *command: str, name: str = "") -> None:
        with open(self.folder / f"{name or command[0]}.out", "ab") as out:
            daemon = subprocess.Popen(command, env=self.env, stdout=out, stderr=out, start_new_session=True)
        self._daemons[name or command[0]] = daemon

    def lose(self, node: str) -> None:
        """Kill all processes of a node: its slurmd, and what it has started."""
        if daemon := self._daemons.pop(node, None):
            daemon.kill()
            daemon.wait()
        while found := list(self._started_by(node)):
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, SIGKILL)

    def _started_by(self, node: str) -> Iterator[int]:
        """Yield the processes of jobs on a node of this SLURM, and the slurmstepd of each step."""
        marks = {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.folder}/slurm.conf".encode()}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if marks <= set((entry / "environ").read_bytes().split(b"\0")):
                    yield int(entry.name)
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    if (Path("/proc") / parent / "comm").read_text().startswith("slurmstepd"):
                        yield int(parent)

    def ask(self, *command: str) -> str:
        """Run a command from `work` and return what it prints; raises Failure with its errors if it fails."""
        done = subprocess.run(command, env=self.env, cwd=self.work, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(command)} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def submit(self, *arguments: str) -> str:
        """Submit a job by sbatch, and return its number."""
        return self.ask("sbatch", "--parsable", *arguments)

    def jobs(self, number: str) -> list[dict[str, str]]:
        """Return the properties of a job, or of each job of an array."""
        lines = self.ask("scontrol", "--oneliner", "show", "job", number).splitlines()
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]

    def job(self, number: str) -> dict[str, str]:
        return self.jobs(number)[0]

    def states(self, number: str) -> list[str]:
        return [job["JobState"] for job in self.jobs(number)]

    def log(self, number: str) -> str:
        return Path(self.job(number)["StdOut"]).read_text()


def wait_for(done: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait until `done` returns True; raises Failure when the time is over."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise Failure(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
