"""The table of estimates in docs/out-of-core.md has the numbers of the planner."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pipelines.apsp import batched
from pipelines.apsp.methods import Job, Request
from pipelines.apsp.out_of_core import plan
from pipelines.workers.capacity import WorkerFacts

PAGE = Path(__file__).parents[4] / "docs/out-of-core.md"
UNITS = {"GiB": 1 << 30, "TiB": 1 << 40, "": 1}
CPU = WorkerFacts("w", "h", "CPU", False, 64 * 10**9, 48e9, 2, 64 * 10**9)
GPU = WorkerFacts("w", "h", "H100", True, 79 << 30, 16.9e12, 1, 64 * 10**9)


@dataclass(frozen=True)
class Regular:
    """A graph whose vertices have 16 arcs each, as far as planners look at it."""

    n: int
    directed = False
    weight_min, weight_max = 0.0, 1.0

    @property
    def m(self):
        return 16 * self.n

    def indptr(self):
        return 16 * np.arange(self.n + 1)


def rows():
    for line in re.findall(r"^\|(.*)\|$", PAGE.read_text(), re.MULTILINE):
        name, *cells = (cell.strip() for cell in line.split("|"))
        yield name.partition(" (")[0], cells


def about(cell):
    """The number of a cell, and half of the unit of its last place."""
    number, _, unit = cell.replace(",", "").partition(" ")
    half = 5 if number.endswith("0") and "." not in number else 0.5 * 10 ** -len(number.partition(".")[2])
    return pytest.approx(float(number) * UNITS[unit], abs=half * UNITS[unit])


def test_the_table_of_the_page_has_the_numbers_of_the_planner():
    found = dict(rows())
    for column, name in enumerate(found[""]):
        n = int(name.removeprefix("n = ").replace(",", ""))
        job = Job(Regular(n), np.dtype("float32"), np.ones(n, bool), None, True)
        cpu, gpu = (Request(job, None, None, 60.0, [fact], None) for fact in (CPU, GPU))
        on_cpu, on_gpu = plan.make_plan(cpu), plan.make_plan(gpu)
        numbers = {
            "matrix": 4 * n * n,
            "disk": on_cpu.needs.disk,
            "traffic on the CPU": on_cpu.traffic_bytes,
            "traffic on the GPU": on_gpu.traffic_bytes,
            "minutes on the CPU": on_cpu.seconds / 60,
            "minutes on the GPU": on_gpu.seconds / 60,
            "minutes by searches, on the CPU": batched.estimate(cpu).seconds / 60,
        }
        for row, number in numbers.items():
            assert number == about(found[row][column]), (name, row)
        assert on_gpu.needs.disk == on_cpu.needs.disk
