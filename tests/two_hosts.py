"""Two hosts played by namespaces of Linux: processes of one see neither the memory nor the processes of the other.

Run as a program it plays a run on them::

    unshare --user --map-root-user --net --mount python tests/two_hosts.py FOLDER CASE

The namespaces of this program are the first host, which has the scheduler, a worker and the client. A child has
network, process, mount and UTS namespaces, a /proc and a boot_id of its own: the second host, with a worker.

The hosts are joined by a pair of virtual Ethernet devices. For a slow link each has a TUN device, and a process
carries the packets from one to the other after a delay.
"""

import fcntl
import json
import os
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from select import select

import numpy as np

FIRST, SECOND, PORT = "10.77.0.1", "10.77.0.2", 8786
TUN, TUNSETIFF, IFF_TUN, IFF_NO_PI = "/dev/net/tun", 0x400454CA, 0x0001, 0x1000  # of linux/if_tun.h
SETUP = "hostname second && mount --bind boot_id /proc/sys/kernel/random/boot_id && ip link set lo up && exec sleep inf"


def run(*command):
    subprocess.run(command, check=True)


def tun_device(name):
    """A new TUN device of this namespace, as an open file of packets."""
    file = os.open(TUN, os.O_RDWR)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


def carry(ends, delay):
    """Carry packets between two TUN devices, each `delay` seconds after it came."""
    waiting = deque()
    while True:
        limit = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select(ends, [], [], limit)[0]:
            other = ends[1 - ends.index(end)]
            waiting.append((time.monotonic() + delay, other, os.read(end, 1 << 16)))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, packet = waiting.popleft()
            with suppress(OSError):  # the device is not up yet
                os.write(end, packet)


class Hosts:
    """The two hosts, and a link between them that can be cut. A packet takes `delay` seconds more each way."""

    def __init__(self, folder, delay=0.0):
        self._stack, self._folder = ExitStack(), folder
        (folder / "boot_id").write_text("00000000-0000-0000-0000-000000000002\n")
        run("ip", "link", "set", "lo", "up")
        spaces = "--net --pid --mount --uts --fork --kill-child --mount-proc".split()
        self._second = self.start("unshare", *spaces, "sh", "-c", SETUP)
        self._child = self._wait_for_child()
        if delay:
            ends = [tun_device("v1"), tun_device("v2")]
            self.start(sys.executable, __file__, "carry", *map(str, [*ends, delay]), pass_fds=ends)
            run(*f"ip link set v2 netns {self._child}".split())
        else:
            run(*f"ip link add v1 type veth peer name v2 netns {self._child}".split())
        self.up()
        self.on_second("ip", "addr", "add", f"{SECOND}/24", "dev", "v2").wait()
        self.on_second("ip", "link", "set", "v2", "up").wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _wait_for_child(self):
        """The process that is number 1 on the second host, once that is set up."""
        for _ in range(500):
            children = Path(f"/proc/{self._second.pid}/task/{self._second.pid}/children").read_text().split()
            if children and Path(f"/proc/{children[0]}/comm").read_text() == "sleep\n":
                return children[0]
            time.sleep(0.02)
        raise TimeoutError("the second host did not start")

    def start(self, *command, **options):
        """A process of the first host, killed in the end."""
        process = subprocess.Popen(command, cwd=self._folder, **options)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def on_second(self, *command):
        """A process of the second host."""
        return self.start("nsenter", "-t", self._child, "--net", "--pid", "--mount", "--uts", *command)

    def up(self):
        run("ip", "link", "set", "v1", "up")
        subprocess.run(["ip", "addr", "add", f"{FIRST}/24", "dev", "v1"], check=False)

    def down(self):
        run("ip", "link", "set", "v1", "down")


def play(folder, case):
    """Solve a graph on both hosts, while something happens after the third stage; what was seen, as a dictionary."""
    from clusters import join
    from pipelines import all_pairs_shortest_paths
    from pipelines.workers.mapped_memory import host
    from pipelines.workers.progress import Progress

    notes, stages, began = [], [], time.monotonic()
    advance, note = Progress.advance, Progress.note
    options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(folder)]
    address = f"tcp://{FIRST}:{PORT}"
    delay = float(case.split()[2]) / 1000 if case.startswith("delayed by") else 0.0
    with Hosts(folder, delay) as hosts:

        def happens(shown, units):
            advance(shown, units)
            stages.append(time.monotonic() - began)
            if len(stages) != 3:
                return
            if case.startswith("cut"):
                hosts.down()
            if case.endswith(" s"):
                time.sleep(int(case.split()[2]))
                hosts.up()
            if case == "stopped":
                run("pkill", "-STOP", "-f", f"host {SECOND}")

        Progress.advance = happens
        Progress.note = lambda shown, text: notes.append((time.monotonic() - began, text)) or note(shown, text)
        dask = [sys.executable, "-m", "dask"]
        hosts.start(*dask, "scheduler", "--host", FIRST, "--port", str(PORT), "--no-dashboard")
        hosts.start(*dask, "worker", address, "--host", FIRST, *options)
        hosts.on_second(*dask, "worker", address, "--host", SECOND, *options)
        with join(address=address, workers=2) as client:
            asked = time.monotonic()
            names = client.run(host)
            answered = time.monotonic()
            found = all_pairs_shortest_paths(
                client, folder / "graph", folder / "out", method="floyd-warshall", block=20, overwrite=True
            )
            np.save(folder / "found.npy", found[:])
            return {
                "hosts": len(set(names.values())),
                "workers": len(client.nthreads()),
                "notes": notes,
                "stages": stages,
                "answer": answered - asked,
                "seconds": time.monotonic() - began,
            }


if __name__ == "__main__":
    if sys.argv[1] == "carry":
        carry([int(sys.argv[2]), int(sys.argv[3])], float(sys.argv[4]))
    folder = Path(sys.argv[1])
    (folder / "seen.json").write_text(json.dumps(play(folder, sys.argv[2])))
