"""Programs: what is listed, and what a launch gets from its declaration. Kernels run elsewhere, on the host shim."""

import numpy as np
import pytest

from gpuops import _cuda
from gpuops._cuda import Program, declared, multiprocessors

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
