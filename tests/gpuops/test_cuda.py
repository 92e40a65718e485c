"""Programs: what is listed, and what a launch gets from its declaration. Kernels run elsewhere, on the host shim."""

import numpy as np
import pytest

from gpuops import _cuda
from gpuops._cuda import Program, declared, multiprocessors, struct

FILL = """
extern "C" __global__ void fill(int* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = THREADS * 1000 + STEP * i;
}
extern "C" __global__ void wait_for_another(int* arrived) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        unsigned now;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"((unsigned*)arrived) : "memory");
        } while (now < gridDim.x);
    }
}
"""


@pytest.fixture
def fill(tmp_path, monkeypatch):
    monkeypatch.setattr(_cuda, "_declared", [])
    (tmp_path / "fill.cu").write_text(FILL)
    return Program("fill.cu", ("fill", "wait_for_another"), ("STEP=1",), threads=4, blocks=2, folder=tmp_path)


def test_a_program_is_listed_under_its_folder_and_a_variant_nowhere(fill, tmp_path):
    fill.variant(threads=2, STEP=5)
    assert declared(tmp_path) == [fill]
    assert declared() == []


def test_a_variant_has_other_threads_and_macros(fill):
    variant = fill.variant(threads=2, STEP=5)
    assert fill.options == ("--std=c++17", "-DSTEP=1", "-DTHREADS=4", "-DBLOCKS=2")
    assert variant.options == ("--std=c++17", "-DSTEP=5", "-DTHREADS=2", "-DBLOCKS=2")
    with pytest.raises(KeyError, match="declared without STRIDE"):
        fill.variant(STRIDE=2)


def test_threads_of_a_launch_are_those_of_the_macro(fill, host_shim):
    for program, threads in (fill, 4), (fill.variant(threads=2), 2):
        x = host_shim.zeros((2 * threads,), np.int32)
        program.launch("fill", 2, (x,))
        assert x.tolist() == [1000 * threads + i for i in range(2 * threads)]
    x = host_shim.zeros((8,), np.int32)
    fill.launch("fill", (1, 1), (x,), threads=(8, 1))
    assert x.tolist() == [4000 + i for i in range(8)]
    with pytest.raises(KeyError, match="declared without the entry full"):
        fill.launch("full", 1, (x,))


def test_a_cooperative_launch_fills_the_device(fill, host_shim):
    host_shim.start(0, multiprocessors=3)
    arrived = host_shim.zeros((1,), np.int32)
    fill.launch_cooperative("wait_for_another", (arrived,))
    assert arrived.tolist() == [6]
    for most, blocks in (4, 4), (100, 6):
        arrived[...] = 0
        fill.launch_cooperative("wait_for_another", (arrived,), most=most)
        assert arrived.tolist() == [blocks]
    assert multiprocessors(host_shim.cuda.Device().id) == 3


STRUCT = """
struct Pair {  // two numbers
    int first, second;
};
struct Given {
    bool flag;
    const double* values;  // (n)
    Value *low, *high;
    Value limit;
    unsigned counts[3];
    Pair pairs[2];
    unsigned long long seed;
    short_t kind;
};
extern "C" __global__ void lay_out(long long* x) {
    Given given;
    const void* fields[] = {&given.flag,   &given.values, &given.low,  &given.high, &given.limit,
                            &given.counts, &given.pairs,  &given.seed, &given.kind, &given + 1};
    for (int i = 0; i < 10; ++i) x[i] = (const char*)fields[i] - (const char*)&given;
}
"""


@pytest.mark.parametrize(("value", "c"), [("float32", "float"), ("float64", "double")])
def test_a_struct_has_the_layout_of_the_compiler(tmp_path, host_shim, value, c):
    (tmp_path / "given.cu").write_text(f"using Value = {c};\nusing short_t = short;\n{STRUCT}")
    pair = struct("given.cu", "Pair", folder=tmp_path)
    given = struct("given.cu", "Given", folder=tmp_path, Value=np.dtype(value), Pair=pair, short_t=np.dtype("int16"))
    x = host_shim.zeros((10,), np.int64)
    Program("given.cu", ("lay_out",), folder=tmp_path, threads=1, listed=False).launch("lay_out", 1, (x,))
    assert [*(given.fields[name][1] for name in given.names), given.itemsize] == x.tolist()
    assert given["counts"].shape == (3,)
    assert given["pairs"].base == pair


def test_a_struct_that_is_not_declared_is_named(tmp_path):
    (tmp_path / "given.cu").write_text(STRUCT)
    with pytest.raises(KeyError, match=r"given.cu declares no struct Taken"):
        struct("given.cu", "Taken", folder=tmp_path)


def test_a_program_for_one_architecture_runs_on_no_other(fill, host_shim, tmp_path):
    for capability, runs in ("90", True), ("100", False), ("80", False):
        host_shim.start(capability=capability)
        device = host_shim.cuda.Device().id
        assert fill.runs_on(device)
        only = Program("fill.cu", ("fill",), threads=4, architecture="sm_90a", folder=tmp_path, listed=False)
        assert only.runs_on(device) is runs
