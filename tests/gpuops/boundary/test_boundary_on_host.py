"""The kernels of the boundary method on the host (host_shim/): bit for bit the plain formula, and the CPU's half."""

from dataclasses import replace

import numpy as np
import pytest
from closed_parts import random_parts
from families import diagonals
from mutants import break_line, lines_with

from gpuops import _cuda
from gpuops.boundary import boundary_distances, device_bytes, tables_cuda
from gpuops.numbers import DISTANCE_DTYPES, distance_limit, infinity

PROGRAMS = [program for program in _cuda.declared() if program.file in ("boundary/boundary.cu", "boundary/tiles.cu")]

TABLES = ("to_boundary", "from_boundary", "inner", "among")


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start()
    return host_shim


def plain_formula(parts, sources, targets):
    result = np.full((len(sources), len(targets)), infinity(parts.among.dtype))
    for i, s in enumerate(sources):
        p, x = parts.part[s], parts.place[s]
        mine = slice(*parts.starts[p : p + 2])
        onward = np.minimum.reduce(
            parts.to_boundary[p, x, : parts.boundary_sizes[p], None] + parts.among[mine],
            axis=0,
            initial=infinity(parts.among.dtype),
        )
        for j, t in enumerate(targets):
            q, y = parts.part[t], parts.place[t]
            ways = onward[slice(*parts.starts[q : q + 2])] + parts.from_boundary[q, : parts.boundary_sizes[q], y]
            result[i, j] = min([result[i, j], *ways, *([parts.inner[p, x, y]] if p == q else [])])
    return result


def check(parts, sources, targets, expected=None):
    found = boundary_distances(parts.on_gpu(), sources, targets).get()
    expected = boundary_distances(parts, sources, targets) if expected is None else expected
    if parts.among.dtype.kind != "f":  # how far below infinity an unreachable entry ends is not said
        found, expected = (np.where(x >= distance_limit(x.dtype), infinity(x.dtype), x) for x in (found, expected))
    np.testing.assert_array_equal(found.view(f"i{found.itemsize}"), expected.view(f"i{found.itemsize}"))


CUTS = [  # sizes of parts and of their boundaries
    ([3], [0]),
    ([1, 1], [1, 1]),
    ([7, 3, 0, 9], [2, 3, 0, 1]),
    ([140, 30, 70], [17, 16, 33]),
    ([140, 3, 90], [67, 0, 40]),  # by tiles
]


@pytest.mark.parametrize(("cut", "dtype", "lowest"), diagonals(CUTS, DISTANCE_DTYPES, [0, -50], count=2))
def test_equals_the_formula_and_the_cpu(cupy, cut, dtype, lowest):
    sizes, boundaries = cut
    parts = random_parts(len(sizes), sizes, boundaries, dtype, lowest)
    n = len(parts.part)
    rng = np.random.default_rng(n)
    cupy.start(seed=n % 2)
    sources, targets = rng.integers(0, n, 5), rng.integers(0, n, 300 if n > 100 else 9)
    check(parts, sources, targets)
    check(parts, sources, np.arange(n))
    check(parts, sources, targets, plain_formula(parts, sources, targets))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_windows_of_columns(cupy, dtype):
    """So many parts that a window is narrow, and one window after another; odd rows, which begin anywhere."""
    sizes = np.random.default_rng(0).integers(0, 9, 300)
    parts = random_parts(7, sizes, np.minimum(sizes, 3), dtype)
    n = len(parts.part)
    rng = np.random.default_rng(1)
    cupy.start(seed=1)
    sources, targets = rng.integers(0, n, 40), rng.integers(0, n, 1201)
    check(parts, sources, targets)
    tables = parts.on_gpu().device_tables
    window, slots, _, arrival = tables._targets(targets)
    threads = arrival.shape[2] // 4
    assert len(arrival) == -(-len(targets) // window) > 1
    assert window < threads * tables.of_thread * 15 // 16
    columns, places = (x.reshape(len(arrival), -1) for x in slots[1:])
    for w, (own, place) in enumerate(zip(columns, places, strict=True)):
        np.testing.assert_array_equal(np.sort(own), np.arange(own.size))  # no two threads store to the same place
        there = own[place >= 0]
        np.testing.assert_array_equal(np.sort(there), np.arange(min(window, len(targets) - w * window)))
        of_slot = np.repeat(slots.thread_part.reshape(len(arrival), -1)[w], tables.of_thread)[place >= 0]
        np.testing.assert_array_equal(of_slot, parts.part[targets[w * window + there]])


def test_rows_in_pieces(cupy, monkeypatch):
    """More rows than blocks, and then more than the memory between the launches has room for."""
    parts = random_parts(1, [90, 60, 50], [5, 20, 3], "int32")
    sources, targets = np.random.default_rng(0).integers(0, 200, 1300), np.arange(40)
    before = cupy.launches
    check(parts, sources, targets)
    at_once = cupy.launches - before
    monkeypatch.setattr(tables_cuda, "ONWARD_BYTES", 1)
    check(parts, sources, targets)
    assert cupy.launches - before == 2 * at_once + 3


@pytest.mark.parametrize("boundary", [5, 70], ids=["strips", "tiles"])
def test_targets_are_laid_out_once(cupy, boundary):
    parts = random_parts(1, [90, 60], [boundary, 20], "int32")
    on_gpu, rng = parts.on_gpu(), np.random.default_rng(0)
    one, other = rng.integers(0, 150, (2, 40))

    def launches(targets):
        before, sources = cupy.launches, rng.integers(0, 150, 30)
        found = boundary_distances(on_gpu, sources, targets).get()
        np.testing.assert_array_equal(found, boundary_distances(parts, sources, targets))
        return cupy.launches - before

    launches(one)
    again, anew = launches(one.copy()), launches(other)
    assert again == anew - 1 == launches(other)
    other[3] = (other[3] + 1) % 150  # the caller's array is not the one that is kept
    assert launches(other) == anew


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize(
    ("sizes", "boundary"), [([9] * 300, [3] * 300), ([90, 60, 0], [70, 5, 0])], ids=["strips", "tiles"]
)
def test_what_it_takes_to_lay_out_targets_is_known(cupy, dtype, sizes, boundary):
    parts = random_parts(4, sizes, boundary, dtype)
    laid_out = parts.on_gpu().device_tables.all_targets
    arrays = [x for part in laid_out for x in (part if isinstance(part, tuple) else [part]) if hasattr(x, "nbytes")]
    known = device_bytes(parts.part, parts.boundary_sizes, dtype)
    assert known == sum(array.nbytes for array in arrays) + tables_cuda.ONWARD_BYTES


def test_out_is_filled_where_it_lies(cupy):
    parts = random_parts(2, [9, 8], [3, 2], "float32").on_gpu()
    sources, targets = np.array([3, 1, 16]), np.array([0, 12])
    around = cupy.zeros((5, 7), "float32")
    window = around[1:4, 2:4]
    assert boundary_distances(parts, cupy.asarray(sources), targets, out=window) is window
    expected = np.zeros((5, 7), "float32")
    expected[1:4, 2:4] = boundary_distances(parts, sources, targets).get()
    np.testing.assert_array_equal(around.get(), expected)
    assert boundary_distances(parts, [], targets).shape == (0, 2)
    with pytest.raises(ValueError, match="where the tables are, with contiguous rows"):
        boundary_distances(parts, sources, targets, out=np.zeros((3, 2), "float32"))
    with pytest.raises(IndexError, match="targets: the vertices are 0 to 16"):
        boundary_distances(parts, sources, [17])


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_sums_of_infinity_do_not_wrap(cupy, dtype):
    parts = random_parts(3, [40, 40], [9, 9], dtype)
    infinite = replace(parts, **{name: np.full_like(getattr(parts, name), infinity(dtype)) for name in TABLES})
    found = boundary_distances(infinite.on_gpu(), np.arange(80), np.arange(80)).get()
    assert (found == infinity(dtype)).all()


def test_every_kernel_runs_here(cupy):
    cupy.start()
    for dtype in DISTANCE_DTYPES:
        for lowest in 0, -50:
            check(random_parts(0, [5, 4], [2, 2], dtype, lowest), np.arange(9), np.arange(9))
            check(random_parts(0, [5, 70], [2, 66], dtype, lowest), np.arange(9), np.arange(9))
    declared = {(p.source(), p.options, entry) for p in PROGRAMS for entry in p.entries}
    assert not declared - cupy.launched


@pytest.mark.parametrize("dtype", ["float64", "int16"])
@pytest.mark.parametrize("boundaries", [[5, 20], [70, 40]], ids=["strips", "tiles"])
def test_threads_do_not_race_in_shared_memory(cupy, boundaries, dtype):
    cupy.start(races=True)
    check(random_parts(1, [90, 60], boundaries, dtype), np.arange(40), np.arange(130))


@pytest.mark.parametrize("boundary", [5, 70], ids=["strips", "tiles"])
def test_all_that_lies_between_the_launches_is_written(cupy, monkeypatch, boundary):
    """Sources that fill no block of rows: `arrive` loads whole blocks."""
    cupy.start()
    launch, seen = _cuda.Program.launch, []

    def looked_at(program, entry, grid, arguments, **options):
        if entry == "arrive":
            seen.append(arguments["onward"].get())
        launch(program, entry, grid, arguments, **options)

    monkeypatch.setattr(_cuda.Program, "launch", looked_at)
    check(random_parts(1, [90, 60], [boundary, 20], "float32"), np.arange(37), np.arange(150))
    (onward,) = seen
    assert ((onward >= 0) & (onward <= infinity("float32"))).all()


MUTANTS = [
    mutant for file in ("minplus/strip.cuh", "boundary/tiles.cu") for mutant in lines_with(file, r"__sync\w+\(\);", "")
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_missing_barrier_is_caught(cupy, monkeypatch, mutant):
    break_line(monkeypatch, *mutant)

    cupy.start(races=True)
    boundaries = [70, 40] if "tiles" in mutant[0] else [40, 30]
    parts = random_parts(5, [140, 130], boundaries, "int32")
    with pytest.raises(cupy.KernelError, match="races"):
        check(parts, np.arange(150), np.arange(270))
