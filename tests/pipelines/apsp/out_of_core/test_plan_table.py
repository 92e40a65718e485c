"""The tables of estimates in docs/out-of-core.md and docs/slurm.md have the numbers of the planner."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.apsp import batched
from pipelines.apsp.in_memory import plan as in_memory
from pipelines.apsp.layout import make_layout
from pipelines.apsp.methods import Job, Request
from pipelines.apsp.out_of_core import plan
from pipelines.workers.capacity import WorkerFacts

DOCS = Path(__file__).parents[4] / "docs"
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


def rows(page):
    for line in re.findall(r"^\|(.*)\|$", (DOCS / page).read_text(), re.MULTILINE):
        name, *cells = (cell.strip() for cell in line.split("|"))
        yield name.partition(" (")[0], cells


def job_of(n):
    return Job(Regular(n), np.dtype("float32"), np.ones(n, bool), None, True)


def about(cell):
    """The number of a cell, and half of the unit of its last place that is not 0."""
    number, _, unit = cell.replace(",", "").partition(" ")
    zeros = 0 if "." in number or number == "0" else len(number) - len(number.rstrip("0"))
    half = 0.5 * 10 ** (zeros - len(number.partition(".")[2]))
    return pytest.approx(float(number) * UNITS[unit], abs=half * UNITS[unit])


def test_the_table_of_the_page_has_the_numbers_of_the_planner():
    found = dict(rows("out-of-core.md"))
    for column, name in enumerate(found[""]):
        n = int(name.removeprefix("n = ").replace(",", ""))
        job = job_of(n)
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
            "minutes by searches, on the GPU": batched.estimate(gpu).seconds / 60,
        }
        for row, number in numbers.items():
            assert number == about(found[row][column]), (name, row)
        assert on_gpu.needs.disk == on_cpu.needs.disk


@pytest.mark.parametrize(("column", "count", "hosts"), [(0, 1, 1), (1, 4, 1), (2, 16, 4)])
def test_the_predictions_for_a_cluster_are_those_of_the_planner(column, count, hosts):
    found = {name: cells[column] for name, cells in rows("slurm.md") if len(cells) == 3}
    facts = [replace(GPU, address=f"w{i}", host=f"h{i * hosts // count}") for i in range(count)]
    request = Request(job_of(100_000), None, None, 60.0, facts, None)
    arithmetic = in_memory.arithmetic_seconds(make_layout(100_000, count, 4), 4, GPU.rate, hosts == 1)
    assert arithmetic == about(found["Floyd-Warshall on all GPUs, without writing"])
    assert in_memory.estimate(request).seconds == about(found["Floyd-Warshall"])
    assert batched.estimate(request).seconds == about(found["searches"])
