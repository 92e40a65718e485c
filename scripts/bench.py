#!/usr/bin/env python3
"""Run a benchmark suite: warm up, verify, repeat. Each case is one JSON record with median, minimum and maximum.

scripts/bench.py SUITE --help shows the options of a suite. The records are written to
benchmarks/results/SUITE-DEVICE.json. scripts/bench.py all runs every suite, in pieces of at most ten minutes.
scripts/bench.py records lists the records: their commits, and what has changed in their kernels since.
scripts/bench.py chart CHART draws records (chart --help lists the charts). scripts/bench.py gallery draws the charts of
docs/gallery again, each from the records that it is of.
"""

from __future__ import annotations

import argparse
import ast
import math
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import bmu_chart, chart_style, euler_chart, pieces, record_ages, series_charts
from benchmarks.harness import RESULTS, ROOT, Bench
from gpuops.devices import DEVICES, array_library
from gpuops.errors import NoGpuError

CHARTS = {"eulergpu": euler_chart.draw} | series_charts.CHARTS | {"bmu": bmu_chart.draw}
# The suite that each chart draws.
SUITE_OF = {"eulergpu": "euler"} | series_charts.SUITE_OF | {"bmu": "som"}

# The records that each chart of docs/gallery is drawn from.
GALLERY = {
    "bmu": ("som-h200", "som-intel-xeon-processor"),
    "cyc": ("sequences-h200",),
    "cyc-nonlog": ("sequences-h200",),
    "distinct": ("distinct-amd-epyc-2-cores", "distinct-h200"),
    "eulergpu": ("euler-h200", "euler-amd-epyc"),
    "fw-rate": ("fw-table-h200",),
    "fw-time": ("fw-table-h200",),
    "looksay": ("sequences-h200",),
    "looksay-fast": ("sequences-h200",),
    "sssp-rates": ("sssp-table-nvidia-h200",),
    "sssp-searches": ("sssp-table-nvidia-h200",),
    "sssp-speedups": ("sssp-table-nvidia-h200",),
}

SUITES = tuple(pieces.SPLITS)


def suite_of(name: str) -> Any:
    """Import a suite, alone: suites import packages to compare with, of which a machine may have only some."""
    return import_module(f"benchmarks.suites.{name.replace('-', '_')}")


def title_of(name: str) -> str:
    """Return what a suite measures: the first line of its docstring, which is read without an import."""
    file = ROOT / "benchmarks" / "suites" / f"{name.replace('-', '_')}.py"
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.partition("\n")[0].partition(": ")[2].rstrip(".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parsers = parser.add_subparsers(dest="suite", required=True, metavar="SUITE")
    for name in SUITES:
        options = parsers.add_parser(name, help=title_of(name), formatter_class=argparse.RawDescriptionHelpFormatter)
        if sys.argv[1:2] == [name]:
            suite = suite_of(name)
            options.description = suite.__doc__
            device = pieces.SPLITS[name].device
            options.add_argument("--device", choices=DEVICES, default="auto" if device == "any" else device)
            options.add_argument("--repeats", type=int, default=5)
            options.add_argument("--out", type=Path, help=f"default: benchmarks/results/{name}-DEVICE.json")
            suite.add_arguments(options)
    chart = parsers.add_parser("chart", description="Draw the results of a suite and the published results.")
    chart.add_argument("chart", choices=CHARTS, metavar="CHART", help=", ".join(CHARTS))
    chart.add_argument("results", type=Path, nargs="*", help="default: benchmarks/results/SUITE-*.json")
    chart.add_argument("--out", type=Path, help="the image; default: the chart's image in docs/gallery")
    gallery = parsers.add_parser("gallery", description="Draw the charts of docs/gallery from their records.")
    gallery.add_argument("--out", type=Path, default=chart_style.GALLERY, help="folder; default: docs/gallery")
    every = parsers.add_parser("all", description=pieces.__doc__)
    every.formatter_class = argparse.RawDescriptionHelpFormatter
    every.add_argument("--only", choices=SUITES, nargs="+", metavar="SUITE", default=SUITES)
    every.add_argument("--minutes", type=float, default=math.inf, help="end after so many minutes; default: never")
    every.add_argument("--out", type=Path, default=RESULTS, help="folder; default: benchmarks/results")
    ages = parsers.add_parser("records", description=record_ages.__doc__)
    ages.add_argument("results", type=Path, nargs="*", help="default: benchmarks/results/*.json")
    ages.add_argument("--files", action="store_true", help="also list the files that have changed")
    args = parser.parse_args()
    if args.suite == "chart":
        _draw(args)
        return
    if args.suite == "gallery":
        for name, files in GALLERY.items():
            print(CHARTS[name]([RESULTS / f"{file}.json" for file in files], args.out / f"{name}.svg"))
        return
    if args.suite == "all":
        sys.exit(not pieces.run_all(args.only, array_library("auto"), args.out, args.minutes))
    if args.suite == "records":
        print(*record_ages.describe(args.results or RESULTS.glob("*.json"), args.files), sep="\n")
        return

    try:
        bench = Bench(args.suite, array_library(args.device), args.repeats)
    except (ImportError, NoGpuError) as error:
        sys.exit(str(error))
    path = bench.keep(args.out, suite.CONVENTION)
    print(f"{bench.device}\n")
    # A run that a time limit ends prints where its records are.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        table = suite.run(bench, args)
    finally:
        if bench.records:
            print(f"\n{path}")
    if table:
        print(f"\n{table}")


def _draw(args: argparse.Namespace) -> None:
    suite = SUITE_OF[args.chart]
    longer = tuple(
        f"{name}-" for name in SUITES if name.startswith(f"{suite}-")
    )  # other suites, such as sssp-table for sssp
    found = sorted(RESULTS.glob(f"{suite}-*.json"))
    results = args.results or [path for path in found if not path.name.startswith(longer)]
    try:
        print(CHARTS[args.chart](results, args.out))
    except (ImportError, OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
