#!/usr/bin/env python3
"""Run compute-sanitizer on every kernel of gpuops: each tool on each operation of scripts/kernel_tour.py.

    scripts/sanitize.py                                 memcheck, racecheck, synccheck, initcheck, eight runs at a time
    scripts/sanitize.py --only trees --tools racecheck  one operation with one tool
    scripts/sanitize.py --list                          list the operations and the kernel files of each

Every run is a separate process. First all operations run without a tool: this compiles the kernels, and shows which
kernels no operation launches. The exit status is 1 if a tool reports an error that `EXCEPTIONS` does not explain, if a
run fails or takes too long, or if a kernel is never launched.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

TOOLS = ("racecheck", "initcheck", "memcheck", "synccheck")  # from slow to fast
PLAIN = "no tool"
TIMEOUT = 480.0  # most seconds of a run
REPORTED = 77  # exit status of compute-sanitizer after a report
SHOWN = 5  # different reports printed for a run

# Reports that are not faults: the tool and a pattern of the report, with the reason.
EXCEPTIONS = {
    ("racecheck", "^Warning: .* at cupy_nonzero_kernel_incomplete_scan"): (
        "a kernel of CuPy, in cupy.nonzero; tests compare the results that depend on it with NumPy's"
    ),
}

_running: set[int] = set()  # process groups of the current runs
_NO_REPORT = re.compile(r"COMPUTE-SANITIZER|[A-Z ]*SUMMARY:|Target application returned|Error: process didn't")


class Result(NamedTuple):
    """The result of one run of `operation` under `tool`, or under `PLAIN`.

    `reports` counts each report that no exception explains, `excepted` the other reports. `failure` has the end of the
    output of a failed run, else it is empty.
    """

    tool: str
    operation: str
    seconds: float
    reports: dict[str, int]
    excepted: int
    failure: str

    @property
    def verdict(self) -> str:
        if self.failure:
            return "FAILED"
        return f"{sum(self.reports.values())} REPORTED" if self.reports else "clean"


def find_sanitizer() -> str:
    """Return the path of compute-sanitizer; SystemExit if it is not installed."""
    homes = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX")]
    homes += [*sorted(glob.glob("/usr/local/cuda*"), reverse=True), "/opt/cuda", "/usr/lib/cuda"]
    folders = [
        home + below for home in homes if home for below in ("/bin", "/compute-sanitizer", "/extras/compute-sanitizer")
    ]
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(folders))
    if found is None:
        raise SystemExit("compute-sanitizer is not on the PATH nor in CUDA's folders; install the CUDA toolkit")
    return found


def reports_of(output: str) -> list[str]:
    """Return the reports in the output of compute-sanitizer: the first line of each report, and its "at" line."""
    found: list[list[str]] = []
    for line in output.splitlines():
        said = line.removeprefix("=========")
        if said == line or not said.strip():
            continue
        if not said.startswith("  "):
            found.append([said.strip()])
        elif found:
            found[-1].append(said.strip())
    return [
        " ".join([title, *(line for line in rest if line.startswith("at "))][:2])
        for title, *rest in found
        if not _NO_REPORT.match(title)
    ]


def run(command: list[str], tool: str, operation: str) -> Result:
    """Run `command`, an operation under a tool or without a tool, and collect its reports."""
    begin = time.monotonic()
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])},
        start_new_session=True,
    )
    _running.add(started.pid)
    try:
        output, _ = started.communicate(timeout=TIMEOUT)
        failure = "" if started.returncode in (0, REPORTED) else f"exit status {started.returncode}\n{output[-2000:]}"
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        output, _ = started.communicate()
        failure = f"not done after {TIMEOUT:.0f} s\n{output[-2000:]}"
    finally:
        _running.discard(started.pid)
    reports, excepted = Counter[str](), 0
    for report in reports_of(output):
        if any(of == tool and re.search(pattern, report) for of, pattern in EXCEPTIONS):
            excepted += 1
        else:
            reports[report] += 1
    if started.returncode == REPORTED and not reports and not excepted:
        failure = f"compute-sanitizer reported an error in an unknown format\n{output[-2000:]}"
    return Result(tool, operation, time.monotonic() - begin, dict(reports), excepted, failure)


def show(result: Result) -> None:
    print(f"{result.tool:10} {result.operation:32} {result.seconds:6.1f} s  {result.verdict}", flush=True)
    for report, count in Counter(result.reports).most_common(SHOWN):
        print(f"    {count} x {report}")
    if result.failure:
        print("    " + result.failure.replace("\n", "\n    "), flush=True)


def run_all(jobs: int, tasks: list[tuple[list[str], str, str]]) -> list[Result]:
    """Run commands, at most `jobs` at a time, and show each result when its run ends."""

    def one(task: tuple[list[str], str, str]) -> Result:
        result = run(*task)
        show(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(one, tasks))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in [*_running]:
                os.killpg(group, signal.SIGKILL)
            raise


def never_launched(launched: set[tuple[str, str]]) -> list[str]:
    """Return the kernels of gpuops for this GPU that are not in `launched`, a set of (file, entry)."""
    from gpuops.warming import all_programs

    programs = [program for program in all_programs() if program.runs_on(0)]
    kernels = {(program.file, entry) for program in programs for entry in program.entries}
    return [f"{file}: {entry}" for file, entry in sorted(kernels - launched)]


def print_table(results: list[Result], operations: list[str], tools: list[str]) -> None:
    verdicts = {(result.tool, result.operation): result.verdict for result in results}
    print("\n" + " ".join([f"{'':32}", *(f"{tool:14}" for tool in [PLAIN, *tools])]))
    for name in operations:
        print(" ".join([f"{name:32}", *(f"{verdicts.get((tool, name), '-'):14}" for tool in [PLAIN, *tools])]))


def parsed(operations: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=operations, metavar="OPERATION", help="run these operations only")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS, metavar="TOOL", help="run these tools only")
    parser.add_argument("--jobs", type=int, default=8, help="runs at a time (default 8)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results to this JSON file")
    parser.add_argument("--list", action="store_true", help="list the operations and their kernel files, and end")
    return parser.parse_args()


def require_gpu() -> str:
    """Return the name of the GPU; SystemExit if CuPy cannot use a GPU."""
    try:
        import cupy

        if cupy.cuda.is_available():
            return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except ImportError:
        pass
    raise SystemExit("there is no GPU that CuPy can use; run this on a machine with one (pip install -e '.[cuda13]')")


def write(path: Path, device: str, results: list[Result], never: list[str]) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, Any] = {"device": device, "commit": commit.stdout.strip(), "never_launched": never}
    exceptions = [[*key, reason] for key, reason in EXCEPTIONS.items()]
    found |= {"exceptions": exceptions, "results": [result._asdict() for result in results]}
    path.write_text(json.dumps(found, indent=1) + "\n")


def main() -> int:
    sys.path.insert(1, str(ROOT))  # to import gpuops even if it is not installed
    from kernel_tour import OPERATIONS

    asked = parsed([*OPERATIONS])
    if asked.list:
        for name, operation in OPERATIONS.items():
            print(f"{name:32} {', '.join(operation.files)}")
        return 0
    operations, tools = asked.only or [*OPERATIONS], [tool for tool in TOOLS if tool in asked.tools]
    sanitizer, device = find_sanitizer(), require_gpu()
    tour = [sys.executable, str(ROOT / "scripts" / "kernel_tour.py")]
    with tempfile.TemporaryDirectory() as folder:
        notes = {name: Path(folder) / name for name in operations}
        results = run_all(asked.jobs, [([*tour, name, str(notes[name])], PLAIN, name) for name in operations])
        launched = {
            (file, entry) for note in notes.values() if note.exists() for file, entry in json.loads(note.read_text())
        }
    never = [] if asked.only else never_launched(launched)
    options = f"--error-exitcode {REPORTED} --print-limit 1000 --show-backtrace no --tool"
    command = [sanitizer, *options.split()]
    results += run_all(
        asked.jobs, [([*command, tool, *tour, name], tool, name) for tool in tools for name in operations]
    )
    print_table(results, operations, tools)
    for kernel in never:
        print(f"never launched: {kernel}")
    if asked.out is not None:
        write(asked.out, device, results, never)
    faults = sum(result.verdict != "clean" for result in results)
    print(f"{len(results)} runs, {faults} with faults, {sum(result.excepted for result in results)} reports excepted")
    return int(faults > 0 or bool(never))


if __name__ == "__main__":
    raise SystemExit(main())
