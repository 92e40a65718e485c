"""`--device` of commands without a cluster: the same results from kernels run on the host, and who chooses a GPU."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gpuops.extras import install
from pipelines import open_graph
from pipelines.stores import on_device
from tilepath.cli import sequence

pytestmark = pytest.mark.usefixtures("cupy")
TEXT = "a -> b, c, a\nb -> c\nc -> a, a\nd -> e\ne\nf\n"


@pytest.fixture
def graph(tilepath, tmp_path):
    (tmp_path / "g.adj").write_text(TEXT)
    tilepath("import", "g.adj", "g.zarr")
    return "g.zarr"


COMMANDS = ("degrees g.zarr --json", "components g.zarr --json", "degrees g.zarr --out {}.csv", "tree g.zarr {}.csv")
COMMANDS += ("components g.zarr --out {}.csv", "reverse g.zarr {}.zarr", "tree g.zarr {}.zarr")


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_graphs(tilepath, tmp_path, cupy, command):
    found = []
    for device in "cpu", "gpu":
        before = cupy.launches
        text = tilepath("graph", *command.format(device).split(), "--device", device).replace(device, "")
        assert (cupy.launches > before) == (device == "gpu") or "degrees" in command  # degrees are one call of CuPy
        table, store = tmp_path / f"{device}.csv", tmp_path / f"{device}.zarr"
        digest = open_graph(store).digest if store.exists() else ""
        found.append((text, table.read_text() if table.exists() else "", digest))
    assert found[0] == found[1]


def test_auto_takes_a_gpu_for_a_large_graph(tilepath, graph, tmp_path, cupy, monkeypatch):
    def launched(*arguments):
        before = cupy.launches
        tilepath("graph", *arguments, "--overwrite")
        return cupy.launches > before

    assert on_device.GPU_ARCS == 30_000_000  # the size of the record that the constant names
    assert not launched("reverse", graph, "r.zarr")
    opened = open_graph(tmp_path / graph)
    expected = opened.reverse
    monkeypatch.setattr(on_device, "GPU_ARCS", opened.m + 1)
    assert not launched("reverse", graph, "r.zarr")
    monkeypatch.setattr(on_device, "GPU_ARCS", opened.m)
    assert launched("reverse", graph, "r.zarr")
    assert launched("tree", graph, "t.csv")
    assert not launched("tree", graph, "t.csv", "--device", "cpu")
    before = cupy.launches
    turned = open_graph(tmp_path / graph).reverse
    assert cupy.launches > before
    for name in "arcs", "_indptr", "_indices":
        array = getattr(turned, name)
        assert type(array) is np.ndarray
        np.testing.assert_array_equal(array, getattr(expected, name))
    monkeypatch.setattr(on_device, "ARC_BYTES", 1 << 40)
    assert not launched("reverse", graph, "r.zarr")
    fault = "7 arcs on a GPU take 7.0 TiB, and there are 80.0 GiB of memory; use device='cpu'"
    tilepath("graph", "components", graph, "--device", "gpu", fault=fault)


SEQUENCES = ("look-and-say 1113122113 12", "spectrum 57,71,113,113,128", "spectrum 2 3 3 --counts", "permutations 4")
SEQUENCES += ("permutations 3 1 2 1 --first 5", "look-and-say 1 20 --out {}.npy", "permutations 5 --out {}.npy")
SEQUENCES += ("spectrum NQEL --out {}.txt", "spectrum NQEL --against s.txt")


@pytest.mark.parametrize("command", SEQUENCES)
def test_commands_of_sequences(tilepath, tmp_path, cupy, command):
    (tmp_path / "s.txt").write_text("0 113 114 128")
    found = []
    for device in "cpu", "gpu":
        before = cupy.launches
        text = tilepath("sequence", *command.format(device).split(), "--device", device).replace(device, "")
        assert (cupy.launches > before) == (device == "gpu")
        files = sorted(tmp_path.glob(f"{device}.*"))
        found.append((text, [file.read_bytes() for file in files]))
    assert found[0] == found[1]


@pytest.mark.parametrize(("command", "size"), [
    ("look-and-say 1 20 --out {}.npy", 408),
    ("spectrum 57 71 113", 64),
    ("spectrum 2 3 3 --counts", 72),
    ("permutations 4 --out {}.npy", 96),
])  # fmt: skip
def test_auto_takes_a_gpu_for_a_large_result(tilepath, cupy, monkeypatch, command, size):
    for least in sequence.GPU_BYTES, size + 1, size:
        monkeypatch.setattr(sequence, "GPU_BYTES", least)
        before = cupy.launches
        tilepath("sequence", *command.format(least).split())
        assert (cupy.launches > before) == (least == size)


def test_auto_takes_no_gpu_for_text_or_more_permutations_than_it_counts(tilepath, cupy, monkeypatch):
    monkeypatch.setattr(sequence, "GPU_BYTES", 1)
    before = cupy.launches
    tilepath("sequence", "permutations", 4, "--out", "p.txt")
    tilepath("sequence", "permutations", 21, "--count", 5, "--out", "p.npy")
    assert cupy.launches == before
    tilepath("sequence", "permutations", 21, "--count", 5, "--device", "gpu", fault="use --device cpu")
    tilepath("sequence", "look-and-say", 1, 9, "--lengths", "--device", "gpu", fault="leave out --device")


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("command", ["graph components g.zarr", "graph reverse g.zarr r.zarr", "sequence spectrum 1 2"])
def test_without_a_gpu(tilepath, tmp_path, monkeypatch, command):
    no_gpu = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    for module, says in (
        (None, f"device is 'gpu', which needs CuPy: {install('cuda13')} (or cuda12); or pass 'cpu'"),
        (no_gpu, "but CuPy finds no GPU; pass 'cpu' or 'auto'"),
    ):
        monkeypatch.setitem(sys.modules, "cupy", module)
        tilepath(*command.split(), "--device", "gpu", fault=says)
        assert not (tmp_path / "r.zarr").exists()
    monkeypatch.setattr(on_device, "GPU_ARCS", 1)
    monkeypatch.setattr(sequence, "GPU_BYTES", 1)
    tilepath(*command.split())
