"""The checks of scripts/doors in an environment with tilepath and one library, sys.argv[1]: scipy or networkx."""

import importlib.metadata
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

RUNS = 15  # timed runs of `import networkx` with tilepath, and again without
HEAVY = {"numpy", "numba", "zarr", "dask", "distributed", "scipy", "gpuops"}  # `import networkx` must not load these


def main(library: str) -> None:
    other = {"scipy": "networkx", "networkx": "scipy"}[library]
    assert importlib.util.find_spec(other) is None, f"{other} is installed, too"
    assert importlib.util.find_spec("tilepath").origin.startswith(sys.prefix), "tilepath is not of this environment"
    {"scipy": check_csgraph, "networkx": check_backend}[library]()


def check_csgraph() -> None:
    import numpy as np
    from scipy.sparse import csgraph as theirs
    from scipy.sparse import random_array

    from tilepath import csgraph as ours

    graph = random_array((60, 60), density=0.1, rng=1, format="csr")
    for name in "shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson":
        expected = getattr(theirs, name)(graph)
        np.testing.assert_allclose(getattr(ours, name)(graph), expected, rtol=1e-12)
        np.testing.assert_allclose(getattr(ours, name)(graph, return_predecessors=True)[0], expected, rtol=1e-12)
    print(f"tilepath.csgraph agrees with SciPy {importlib.metadata.version('scipy')}, installed without NetworkX")


def check_backend() -> None:
    with_us, without = import_seconds()
    import networkx as nx

    from tilepath.networkx.info import FUNCTIONS

    nx.config.warnings_to_ignore.add("cache")
    graph = nx.path_graph(30)  # shortest paths are unique, so results must be equal
    directed = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    nx.set_edge_attributes(directed, -1, "weight")
    arguments = {"source": 0, "target": 29, "sources": {0}}
    names = [name for of_module in FUNCTIONS.values() for name in of_module]
    for name in names:
        function = getattr(nx, name)
        given = {
            argument: arguments[argument] for argument in inspect.signature(function).parameters & arguments.keys()
        }
        asked = directed if "weakly" in name or name == "find_negative_cycle" else graph
        ours, theirs = (function(asked, **given, backend=backend) for backend in ("tilepath", "networkx"))
        if hasattr(theirs, "__next__"):
            ours, theirs = list(ours), list(theirs)
        same = ours == theirs
        assert same if isinstance(same, bool) else same.all(), f"{name}: {ours}, not {theirs}"
    print(f"{len(names)} functions agree with NetworkX {importlib.metadata.version('networkx')}, without SciPy")
    print(f"import networkx: {with_us:.3f} s with tilepath, {without:.3f} s without")
    script = "import sys, networkx; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    assert "tilepath" in loaded.split(), "NetworkX has not found the backend"
    assert not (heavy := HEAVY & set(loaded.split())), f"import networkx loads {', '.join(sorted(heavy))}"


def import_seconds() -> tuple[float, float]:
    """Return the least seconds of `import networkx` with the entry points of tilepath and without, run alternately."""
    there = Path(str(importlib.metadata.distribution("tilepath").locate_file(""))) / entry_points()
    away = there.with_suffix(".away")
    script = "from time import perf_counter as now; start = now(); import networkx; print(now() - start)"
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for run in range(2 * RUNS):
        with_us = run % 2 == 0
        if not with_us:
            there.rename(away)
        try:
            done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
        finally:
            if not with_us:
                away.rename(there)
        seconds[with_us].append(float(done.stdout))
    return min(seconds[True]), min(seconds[False])


def entry_points() -> Path:
    (file,) = (f for f in importlib.metadata.files("tilepath") or () if f.name == "entry_points.txt")
    return Path(str(file))


if __name__ == "__main__":
    main(sys.argv[1])
