"""All suites, in pieces of at most ten minutes each: `scripts/bench.py all`.

Every piece is a process of its own. Its records go to the folder `pieces` beside the results. When all pieces of a
suite are there, their records are put together in one file. A later call runs the pieces that are missing or were
measured at another commit. A call may be limited in time, for machines that stop a command: the piece that is then
running begins again in the next call. A piece that takes longer than ten minutes is stopped; the records of its
finished cases are kept.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, commit, device_name, slug

LONGEST = 600.0  # seconds of a piece
GRACE = 30.0  # seconds that a stopped piece has to end


@dataclass(frozen=True)
class Split:
    """How a suite is split.

    Attributes
    ----------
    pieces : the options of each piece
    device : "any": a GPU if there is one; "gpu" or "cpu": the only device of the suite
    several : whether the suite by default compares one worker with two; where there is one GPU, it has one worker
    """

    pieces: tuple[str, ...] = ("",)
    device: str = "any"
    several: bool = False


def only(*groups: str) -> tuple[str, ...]:
    return tuple(f"--only {group}" for group in groups)


SPLITS = {
    "limits": Split(device="gpu"),
    "apsp": Split(only("product", "floyd-warshall", "pipeline")),
    "cores": Split(device="cpu"),
    "commits": Split(device="cpu"),
    "minisom": Split(device="cpu"),
    "csgraph": Split(("--n 500 1500", "--n 5000"), "cpu"),
    "scaling": Split(("--sizes 16384 32768", "--sizes 65536 --no-constants"), "gpu", several=True),
    "fw-table": Split(device="gpu"),
    "sssp": Split(only("rmat", "grid", "together", "negative")),
    "sssp-table": Split(
        tuple(
            f"--scales {scales} --dtypes {dtype}"
            for dtype in ("float64", "float32")
            for scales in ("14 15 16 17 18 19 20", "21 22", "23", "24")
        ),
        "gpu",
    ),
    "euler": Split(only("deep", "shallow", "series", "large", "bidirected")),
    "reduction": Split(),
    "graphs": Split(only("near", "random")),
    "hierarchy": Split(only("rome", "road-340-0.95", "road-340-0.7", "grid-250", "road-1000-0.95", "road-1000-0.7")),
    "hierarchy-commands": Split(only("road-4900-0.95", "road-4900-0.7"), "cpu"),
    "imports": Split(only("edge-list", "gr", "road", "integer", "real", "pattern"), "cpu"),
    "distinct": Split(),
    "sequences": Split(only("look-and-say", "spectra", "permutations")),
    "som": Split(),
    "som-commands": Split(),
    "som-training": Split(),
    "sources": Split(several=True),
    "od-tables": Split(several=True),
    "large-tables": Split(device="cpu"),
    "out-of-core": Split(),
    "plans": Split(device="cpu"),
    "preparation": Split(device="cpu"),
    "networkx": Split(device="cpu"),
    "hops": Split(device="cpu"),
    "hops-gpu": Split(only("rmat", "random", "road"), "gpu"),
}


@dataclass(frozen=True)
class Piece:
    """A part of a suite, run by one process: its options, the device, and the file of its records."""

    suite: str
    options: tuple[str, ...]
    device: str
    path: Path

    def done(self) -> bool:
        return _measured(self.path, self.device)


def pieces_of(suite: str, xp: Any, folder: Path) -> list[Piece]:
    """Return the pieces of a suite on this machine; none if the suite needs a GPU and there is none."""
    split, gpu = SPLITS[suite], xp is not np
    if split.device == "gpu" and not gpu:
        return []
    on_gpu = gpu and split.device != "cpu"
    name = device_name(xp if on_gpu else np)
    shared = ["--device", "gpu" if on_gpu else "cpu"] * (split.device == "any")
    if split.several and on_gpu and xp.cuda.runtime.getDeviceCount() == 1:
        shared += ["--workers", "1"]
    return [
        Piece(suite, (*options.split(), *shared), name, folder / "pieces" / f"{suite}-{slug(name)}-{number}.json")
        for number, options in enumerate(split.pieces, 1)
    ]


def run_all(suites: Iterable[str], xp: Any, folder: Path, minutes: float = math.inf) -> bool:
    """Run the missing pieces of `suites` in at most `minutes`, and put together the records of each finished suite.

    Returns
    -------
    bool
        Whether all pieces are done. If not, the output says which failed, or that the time is over.
    """
    end = time.monotonic() + 60 * minutes
    complete, began = True, False
    for suite in suites:
        pieces = pieces_of(suite, xp, folder)
        if not pieces:
            print(f"{suite} needs a GPU", flush=True)
            continue
        out = folder / f"{suite}-{slug(pieces[0].device)}.json"
        if _measured(out, pieces[0].device):
            continue
        for piece in pieces:
            if piece.done():
                continue
            left = end - time.monotonic()
            # What takes all the time of a call would never end: it counts as a piece that takes too long.
            if left <= 0 or not _run(piece, min(LONGEST, left), final=not began or left >= LONGEST):
                complete = False
            began = True
        if time.monotonic() >= end and not complete:
            print("The time is over; call again to go on.", flush=True)
            return False
        if all(piece.done() for piece in pieces):
            _join(pieces, out)
            print(out, flush=True)
    return complete


def _run(piece: Piece, seconds: float, final: bool) -> bool:
    """Run a piece, and return whether it is done. One that takes longer than `seconds` is done if that is `final`."""
    unfinished = piece.path.with_suffix(".unfinished")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    unfinished.unlink(missing_ok=True)
    title = " ".join([piece.suite, *piece.options])
    print(f"$ bench.py {title}", flush=True)
    command = [sys.executable, ROOT / "scripts" / "bench.py", piece.suite, *piece.options, "--out", unfinished]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        stopped, status = False, process.wait(seconds)
    except subprocess.TimeoutExpired:
        stopped, status = True, 0
    finally:
        _stop(process)  # and what it has started
    if status or not unfinished.exists() or (stopped and not final):
        print(f"{title}: {f'failed with status {status}' if status else 'not done'}", flush=True)
        return False
    if stopped:
        found = json.loads(unfinished.read_text())
        found["records"].append({"case": f"the rest of {title}", "stopped_after_seconds": round(seconds)})
        unfinished.write_text(json.dumps(found, indent=1) + "\n")
    unfinished.replace(piece.path)
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process group of `process`; its records are already written."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def _join(pieces: list[Piece], out: Path) -> None:
    """Write the records of all pieces to one file, with the facts of the last piece, and remove the pieces."""
    found = [json.loads(piece.path.read_text()) for piece in pieces]
    records = [record for each in found for record in each["records"]]
    out.write_text(json.dumps(found[-1] | {"records": records}, indent=1) + "\n")
    for piece in pieces:
        piece.path.unlink()


def _measured(path: Path, device: str) -> bool:
    """Return whether the file has records of this device at this commit."""
    if not path.exists():
        return False
    found = json.loads(path.read_text())
    return (found["device"], found["commit"]) == (device, commit())
