#!/usr/bin/env python3
"""Try the recipes of scripts/slurm, and dask-jobqueue, on a real SLURM of this machine. Run this before a release.

    apt-get install -y --no-install-recommends slurm-wlm slurm-wlm-basic-plugins munge charliecloud-runtime
    pip install dask-jobqueue
    scripts/slurm_trial.py [TRIAL ...]      as root; all trials by default

A node of this SLURM is a process of this machine, with two character devices in place of GPUs. A stand-in for `dask
cuda worker` starts a CPU worker for each device that SLURM gives to the job, and a stand-in for `tilepath warm`
compiles nothing. All else is real. The containers are those of Charliecloud, which Debian has.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from slurm_nodes import PROGRAMS, ROOT, Failure, Slurm, wait_for

RECIPES = ROOT / "scripts" / "slurm"
STAND_INS = ROOT / "tests" / "clusters" / "stand_ins"
UNDER_WAY = {"PENDING", "RUNNING", "COMPLETING"}
SAMPLES = 1000
POINTS = ("0", "17", "200")  # vertices of the road network


def commands(slurm: Slurm) -> None:
    """The recipe for CPUs runs each command on a cluster of two nodes, or of one."""
    run(slurm, "cpu", "apsp", "roads.zarr", "distances.zarr", "--verify")
    run(slurm, "cpu", "sssp", "roads.zarr", "paths.zarr", "--sources-file", "sources.txt", "--verify")
    run(slurm, "cpu", "som", "train", "samples.zarr", "map.zarr", "--rows", "8", "--columns", "10", "--epochs", "5")
    run(slurm, "cpu", "som", "map", "map.zarr", "samples.zarr", "units.zarr")
    run(slurm, "cpu", "hierarchy", "roads.zarr", "roads.hierarchy.zarr", "--verify", nodes=1)
    run(slurm, "cpu", "od", "roads.hierarchy.zarr", "near.csv", "--origins", "points.csv", "--reduce", "count")
    run(slurm, "cpu", "betweenness", "roads.zarr", "betweenness.csv")
    run(slurm, "cpu", "euler", "deep.zarr", "circuit.zarr", "--verify", nodes=1)
    for store in ("distances", "paths", "map", "units", "circuit"):
        slurm.ask("tilepath", "info", f"{store}.zarr", "--verify")
    rows = (slurm.work / "near.csv").read_text().splitlines()[1:]
    expect(len(rows) == len(POINTS), f"near.csv has {len(rows)} rows")


def gpus(slurm: Slurm) -> None:
    """The recipe for GPUs starts a worker for each device: four on two nodes."""
    said = run(slurm, "gpu", "apsp", "roads.zarr", "by-gpus.zarr", "--verify", options=["--gpus-per-node=2"])
    expect("4 workers" in said, said)


def arrays(slurm: Slurm) -> None:
    """A job array runs two clusters at the same time, each for a store of its own."""
    run(slurm, "cpu", "sssp", "roads.zarr", "paths-%a.zarr", "--source", "%a", nodes=1, options=["--array=3-4"])
    for number in ("3", "4"):
        slurm.ask("tilepath", "path", f"paths-{number}.zarr", number, "9")


def containers(slurm: Slurm) -> None:
    """All processes run in containers; PATH leads to neither Python nor tilepath outside of a container."""
    image = slurm.folder / "image"
    shown = [str(ROOT), *{os.path.realpath(folder) for folder in ("/usr", sys.prefix, sys.base_prefix)}]
    for folder in ("dev", "proc", "sys", "tmp", "etc", "home", "run", *(each.lstrip("/") for each in shown)):
        (image / folder).mkdir(parents=True, exist_ok=True)
    for file in ("passwd", "group", "hosts", "resolv.conf"):
        (image / "etc" / file).touch()
    for link in ("bin", "sbin", "lib", "lib64"):
        (image / link).symlink_to(f"usr/{link}")
    # ch-run gives its command the environment outside, with these changes, and shares /tmp, where the stores are.
    inside = [f"--set-env={name}={slurm.env[name]}" for name in ("PATH", "PYTHONPATH")]
    container = ["ch-run", f"--cd={slurm.work}", *inside, *(f"--bind={folder}" for folder in shown), str(image), "--"]
    outside = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "", "USER": "root", "CONTAINER": " ".join(container)}
    run(slurm, "cpu", "apsp", "roads.zarr", "contained.zarr", "--verify", env=outside)


def lost_node(slurm: Slurm) -> None:
    """SLURM requeues a job after the loss of a node, and the second run resumes from the last commit of the first."""
    slurm.ask("tilepath", "generate", "random", "large.zarr", "--vertices", "6000")
    command = ("apsp", "large.zarr", "large-distances.zarr", "--method", "floyd-warshall", "--commit-seconds", "1")
    job = slurm.submit("--nodes=2", "--cpus-per-task=1", f"{RECIPES}/cpu.sbatch", *command)
    out = slurm.work / "large-distances.zarr"
    wait_for(lambda: out.exists() and progress(slurm, out) > 0, "the first commit", 300)
    host = slurm.job(job)["BatchHost"]
    slurm.lose(host)
    kept = progress(slurm, out)
    wait_for(lambda: slurm.job(job)["Restarts"] == "1", "the job to be requeued", 120)
    slurm.start_node(host)
    wait_for(lambda: slurm.job(job)["Reason"] == "BeginTime", "the requeued job to wait for two minutes")
    slurm.ask("scontrol", "update", f"jobid={job}", "StartTime=now")
    wait_for(lambda: not UNDER_WAY & set(slurm.states(job)), "the second run", 300)
    expect(slurm.states(job) == ["COMPLETED"], own_lines(slurm.log(job)))
    slurm.ask("tilepath", "verify", str(out))
    print(f"    resumed after {kept} stages")


def jobqueue(slurm: Slurm) -> None:
    """The code of docs/slurm.md with dask-jobqueue starts two workers, which compute distances."""
    page = (ROOT / "docs" / "slurm.md").read_text()
    (code,) = re.findall(r"```python\n([^`]*from dask_jobqueue[^`]*)```", page)
    settings = {
        "job_cpu=64": "job_cpu=1",
        'memory="240GB"': 'memory="1GB"',
        "=4": "=2",
    }
    for here, there in settings.items():
        expect(here in code, f"{here} is not in the code of docs/slurm.md")
        code = code.replace(here, there)
    slurm.ask("python", "-c", f"{code}\n{COMPUTE}")
    slurm.ask("tilepath", "verify", "queued.zarr")


COMPUTE = """\
tilepath.all_pairs_shortest_paths(client, "roads.zarr", "queued.zarr")
assert len(client.run(lambda: __import__("os").environ["SLURM_JOB_ID"])) == 2
client.close()
cluster.close()
"""
TRIALS = {
    "commands": commands,
    "gpus": gpus,
    "arrays": arrays,
    "containers": containers,
    "lost-node": lost_node,
    "jobqueue": jobqueue,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", nargs="*", metavar="TRIAL", help=", ".join(TRIALS))
    names = parser.parse_args().trial or list(TRIALS)
    if unknown := set(names) - set(TRIALS):
        parser.error(f"there is no trial {', '.join(unknown)}; choose among {', '.join(TRIALS)}")
    lack = [name for name in (*PROGRAMS, "ch-run") if shutil.which(name) is None]
    lack += ["dask-jobqueue"] * (importlib.util.find_spec("dask_jobqueue") is None)
    if lack or os.geteuid():
        sys.exit(f"{', '.join(lack) or 'root'} is missing here; slurm_trial.py --help says what the trials need")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        os.chmod(folder, 0o755)
        with Slurm(Path(folder)) as slurm:
            prepare(slurm)
            for name in names:
                print(f"{name}: {TRIALS[name].__doc__}", flush=True)
                begin = time.monotonic()
                TRIALS[name](slurm)
                print(f"    passed in {time.monotonic() - begin:.0f} s", flush=True)


def prepare(slurm: Slurm) -> None:
    """Make the stand-ins, and the stores and tables that the trials read."""
    os.symlink(STAND_INS / "dask", slurm.folder / "bin" / "dask")
    tilepath = slurm.folder / "bin" / "tilepath"
    tilepath.write_text(f'#!/bin/sh\n[ "$*" = warm ] || exec {shutil.which("tilepath")} "$@"\n')
    tilepath.chmod(0o755)
    # Schedulers and workers listen on the loopback address, too.
    slurm.env |= {"INTERFACE": "lo", "DASK_JOBQUEUE__SLURM__INTERFACE": "lo"}
    slurm.ask("tilepath", "generate", "road", "roads.zarr", "--scale", "9")
    slurm.ask("tilepath", "generate", "euler", "deep.zarr", "--scale", "10")
    (slurm.work / "sources.txt").write_text("\n".join(POINTS))
    (slurm.work / "points.csv").write_text("\n".join(["origin", *POINTS]))
    rows = (f"{i % 7},{i % 11},{i % 13}" for i in range(SAMPLES))
    (slurm.work / "samples.csv").write_text("\n".join(["a,b,c", *rows]))
    slurm.ask("tilepath", "som", "import", "samples.csv", "samples.zarr")


def run(
    slurm: Slurm,
    recipe: str,
    *command: str,
    nodes: int = 2,
    options: Iterable[str] = (),
    env: dict[str, str] | None = None,
) -> str:
    """Run a command of tilepath by a recipe, and return its log; raises Failure with the log if the job fails."""
    before = slurm.env
    slurm.env = before | (env or {})
    try:
        given = [f"--nodes={nodes}", "--cpus-per-task=1", "--time=10", *options]
        job = slurm.submit(*given, f"{RECIPES}/{recipe}.sbatch", *command)
    finally:
        slurm.env = before
    wait_for(lambda: not UNDER_WAY & set(slurm.states(job)), f"job {job}, {' '.join(command)}", 300)
    expect(set(slurm.states(job)) == {"COMPLETED"}, own_lines(slurm.log(job)))
    return slurm.log(job)


def progress(slurm: Slurm, store: Path) -> int:
    """Return how many stages of a store of distances are committed."""
    found = re.search(r"unfinished distances, (\d+) of", slurm.ask("tilepath", "info", str(store)))
    expect(found is not None, f"{store} is finished; a larger graph would be lost in time")
    return int(found[1])


def own_lines(log: str) -> str:
    """Return a log without the lines of Dask."""
    return "\n".join(line for line in log.splitlines() if " - distributed." not in line)


def expect(true: bool, otherwise: str) -> None:
    if not true:
        raise Failure(otherwise)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
