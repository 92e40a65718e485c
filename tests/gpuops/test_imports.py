"""Nobody outside gpuops knows on what hardware an operation runs: that the type of the arrays decides.

import-linter matches whole module names only, so that this contract is tested here.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRIVATE = re.compile(r"\bgpuops\.(?:\w+\.)*(?:_\w+|\w+_numba|\w+_cuda)\b")

ALLOWED = {
    "benchmarks": {"gpuops._cuda"},  # kernels of their own are launched like those of gpuops
    "scripts/kernel_tour.py": {"gpuops._cuda"},  # notes which kernels are launched
    "scripts/kernels_wheel.py": {"gpuops._cuda", "gpuops._binaries"},  # compiles all kernels
}


def imported(path):
    """The full names that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_parts(path):
    return {found[0] for name in imported(path) if (found := PRIVATE.match(name))}


def files():
    for folder in "benchmarks", "clusters", "pipelines", "scripts", "tilepath":
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_only_public_modules_of_gpuops_are_imported():
    broken = {}
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        allowed = ALLOWED.get(name, set()) | ALLOWED.get(name.split("/")[0], set())
        if private := private_parts(path) - allowed:
            broken[name] = private
    assert not broken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from gpuops._threads import for_all", "gpuops._threads"),
        ("from gpuops import _threads", "gpuops._threads"),
        ("def f():\n    import gpuops.sssp.sssp_cuda", "gpuops.sssp.sssp_cuda"),
        ("from gpuops.label_setting import dijkstra_numba", "gpuops.label_setting.dijkstra_numba"),
        ("from gpuops.minplus.product_numba import ROWS", "gpuops.minplus.product_numba"),
        ("from gpuops.sssp import shortest_distances", None),
        ("import gpuops.numbers", None),
    ],
)
def test_which_parts_are_private(tmp_path, text, expected):
    path = tmp_path / "module.py"
    path.write_text(text)
    assert private_parts(path) == ({expected} if expected else set())


def test_operations_on_a_gpu_import_no_numba():
    names = (
        *("best_matching_units", "butterfly_reduction", "cyclic_spectrum", "distinct", "euler_circuit"),
        *("exclusive_scan", "floyd_warshall", "hop_distances", "search_graph", "shortest_distances", "smooth"),
        "weak_components",
    )
    script = f"import sys, gpuops; [getattr(gpuops, name) for name in {names}]; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
