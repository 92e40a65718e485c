"""The kernels of sequences on a machine without a GPU: same text, fibers for threads (host_shim/).

Results are compared with the Numba halves, which the tests beside compare with others.
"""

import re

import numpy as np
import pytest

from gpuops import cyclic_spectrum, cyclic_spectrum_counts, look_and_say, permutations, spectrum_score
from gpuops._cuda import GPUOPS, Program
from gpuops.sequences import look_and_say_cuda, permutations_cuda, spectrum_cuda

HALVES = look_and_say_cuda, permutations_cuda, spectrum_cuda


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    with pytest.MonkeyPatch.context() as patch:
        for half in HALVES:
            patch.setattr(half, "_PROGRAM", half._PROGRAM.variant(threads=64))
        host_shim.start()
        yield host_shim


def assert_same(result, expected):
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.asarray(result), expected)


def check_look_and_say(cupy, seed, steps):
    term = np.array(list(seed), "uint8")
    assert_same(look_and_say(cupy.asarray(term), steps), look_and_say(term, steps))


def check_spectrum(cupy, n, largest):
    masses = np.random.default_rng(n).integers(0, largest, n)
    x = cupy.asarray(masses)
    for ordered in False, True:
        assert_same(cyclic_spectrum(x, ordered=ordered), cyclic_spectrum(masses, ordered=ordered))
    assert_same(cyclic_spectrum_counts(x), cyclic_spectrum_counts(masses))


def check_permutations(cupy, values, first, count):
    values = np.array(values)
    assert_same(permutations(cupy.asarray(values), first, count), permutations(values, first, count))


def test_look_and_say(cupy):
    for seed, steps in ("1", 30), ("1113122113", 26), ("777777777", 9), ("1" * 700 + "2", 8):
        cupy.start(steps, 3)
        check_look_and_say(cupy, seed, steps)


def test_runs_at_the_ends_of_tiles(cupy):
    cupy.start(1, 2)
    for before in range(1015, 1026):
        check_look_and_say(cupy, "12" * (before // 2) + "2" * (before % 2) + "3" * 9 + "1" * 3 + "2" * 9, 1)


def test_spectra(cupy):
    for n in 0, 1, 2, 3, 64, 65, 130:
        cupy.start(n, 3)
        for largest in 2, 9, 10_000:
            check_spectrum(cupy, n, largest)


def test_a_score(cupy):
    a, b = (np.random.default_rng(seed).integers(0, 9, 50) for seed in (0, 1))
    assert spectrum_score(cupy.asarray(a), cupy.asarray(b)) == spectrum_score(a, b)


@pytest.mark.parametrize(
    ("values", "first", "count"),
    [
        ([], 0, 1),
        ([4], 0, 1),
        (range(5), 0, 120),
        (range(5), 7, 66),
        (range(4), 3, 20),
        (range(7), 119, 3000),
        (range(12), 479001500, 100),
        (range(16), 20922789887999, 1),
        (range(20), 2432902008176639900, 100),
        ([1, 1, 2, 2, 3, 3], 0, 90),
        ([0] * 30 + [1] * 35, 3 * 10**17, 70),
    ],
)
def test_permutations(cupy, values, first, count):
    cupy.start(count, 2)
    check_permutations(cupy, values, first, count)


def test_what_does_not_fit_is_refused(cupy):
    with pytest.raises(ValueError, match="permutations of 15 elements take 160.6 TiB, and there are 80.0 GiB"):
        permutations(cupy.asarray(np.arange(15)))
    with pytest.raises(ValueError, match="a GPU counts to 2\\^63; pass a NumPy array"):
        permutations(cupy.asarray(np.arange(21)), 0, 1)


def run_everything(cupy, seeds):
    for seed in seeds:
        cupy.start(seed, 3)
        check_look_and_say(cupy, "1113122113" + "9" * 9, 26)
        check_spectrum(cupy, 71, 9)
        check_spectrum(cupy, 70, 1000)
        check_permutations(cupy, range(6), 119, 600)
        check_permutations(cupy, range(7), 1, 2500)
        check_permutations(cupy, range(15), 1307674367900, 99)
        check_permutations(cupy, [1, 1, 2, 2, 3, 3, 3], 5, 150)


def test_every_kernel_runs_here(cupy):
    run_everything(cupy, [0])
    programs = [half._PROGRAM for half in HALVES]
    assert {(p.source(), p.options, entry) for p in programs for entry in p.entries} <= cupy.launched


MUTATIONS = [
    ("look_and_say.cu", r"LONGEST = 9", "LONGEST = 8"),
    ("look_and_say.cu", r"digits\[0\] = term\[first - 1\]", "digits[0] = term[first]"),
    ("spectrum.cu", r"2 \* length < n", "2 * length <= n"),
    ("spectrum.cu", r"n / 2 \+ 1", "n / 2"),
    ("spectrum.cu", r"1 \+ \(length - 1\) \* n", "(length - 1) * n"),
    ("spectrum.cu", r"low = middle \+ 1;", "return;"),
    ("permutations.cu", r"IN_32_BITS = 14", "IN_32_BITS = 15"),
    ("permutations.cu", r"    __syncthreads\(\);\n    for", "    for"),
    ("permutations.cu", r"    __syncthreads\(\);\n    const int bytes", "    const int bytes"),
    ("permutations.cu", r"before \+ here \+ GROUP", "here + GROUP"),
    ("permutations.cu", r"16 \* whole \+ threadIdx.x", "16 * whole + 16"),
    ("permutations.cu", r"first \+ row;", "first + row / 2;"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "pattern", "replacement"), MUTATIONS)
def test_what_is_broken_is_caught(cupy, monkeypatch, file, pattern, replacement):
    text = (GPUOPS / "sequences" / file).read_text()
    assert re.search(pattern, text)
    source = Program.source

    def broken(program):
        return re.sub(pattern, replacement, source(program)) if program.file.endswith(file) else source(program)

    monkeypatch.setattr(Program, "source", broken)
    with pytest.raises((AssertionError, IndexError, ValueError, cupy.KernelError)):
        run_everything(cupy, [1, 2])
