"""Operations take and return the arrays of libraries that speak DLPack, without a copy."""

import inspect
import pickle
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import gpuops
from gpuops import arrays
from gpuops.som.grid import Grid


class Tensor:
    """An array of a library of its own: it offers DLPack, and nothing else that NumPy could read."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __array_namespace__(self):
        return types.SimpleNamespace(from_dlpack=lambda array: Tensor(np.from_dlpack(array)))

    def __array__(self, *_, **__):
        raise AssertionError("was copied")

    @property
    def address(self):
        return self.values.ctypes.data


def tensors(*values):
    return [Tensor(value) for value in values]


GRAPH = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0], np.int32), np.array([4.0, 1.0, 1.0, 2.0])
ROADS = *GRAPH[:2], GRAPH[2].astype(np.int32)  # the dtype for which tests of hierarchies compile anyway
UNREACHED = np.array([0, np.inf, np.inf])
MATRIX = np.array([[0, 3, np.inf], [np.inf, 0, 1], [2, np.inf, 0]])
SAMPLES = np.random.default_rng(0).random((20, 3), np.float32)
UNITS, GRID = np.arange(20, dtype=np.int32) % 4, Grid(2, 2)
PAIRS = np.stack([UNITS, (UNITS + 1) % 4], axis=1)
NUMBERS = np.array([1, 2, 2, 3])
ROWS, CYCLES, LABELS = np.array([0, 2]), np.array([0, 1]), np.array([0, 1])  # two loops of a vertex, two circuits

CALLS = {
    "minplus_update": lambda f, of: f(of(MATRIX), of(MATRIX), of(MATRIX)),
    "floyd_warshall": lambda f, of: f(of(MATRIX)),
    "dijkstra": lambda f, of: f(*map(of, GRAPH), 0),
    "distances_within": lambda f, of: f(*map(of, GRAPH), [0, 2], 4),
    "k_nearest": lambda f, of: f(*map(of, GRAPH), [0, 2], 1),
    "k_shortest_paths": lambda f, of: f(*map(of, GRAPH), 0, 2, 2),
    "dijkstra_rows": lambda f, of: f(*map(of, GRAPH), [0, 2], predecessors=True),
    "degrees": lambda f, of: f(*map(of, GRAPH[:2])),
    "edge_expansion": lambda f, of: f(*map(of, GRAPH[:2])),
    "reverse": lambda f, of: f(*map(of, GRAPH)),
    "weak_components": lambda f, of: f(*map(of, GRAPH[:2])),
    "spanning_forest": lambda f, of: f(*map(of, GRAPH[:2])),
    "betweenness": lambda f, of: f(*map(of, GRAPH), arcs=True),
    "verify_betweenness": lambda f, of: f(
        gpuops.betweenness(*map(of, GRAPH)), sources=3, arcs=4, symmetric=False, endpoints=False
    ),
    "link_flows": lambda f, of: f(*map(of, GRAPH), [0], [1], [2.0]),
    "verify_flows": lambda f, of: f(*map(of, GRAPH), gpuops.link_flows(*map(of, GRAPH), [0], [1], [2]), [0], [1], [2]),
    "hop_distances": lambda f, of: f(*map(of, GRAPH[:2]), [0, 2]),
    "path_encodings": lambda f, of: f(*map(of, GRAPH[:2]), [0, 3]),
    "batch_closures": lambda f, of: f(*map(of, GRAPH), [0, 3]),
    "hierarchy_order": lambda f, of: f(*map(of, GRAPH[:2])),
    "hierarchy_structure": lambda f, of: f(*map(of, GRAPH[:2]), of(np.arange(3))),
    "close_hierarchy": lambda f, of: f(structure_of(of), *map(of, ROADS)),
    "one_to_all": lambda f, of: f(gpuops.close_hierarchy(structure_of(of), *map(of, ROADS)), 0),
    "distance_rows": lambda f, of: f(gpuops.close_hierarchy(structure_of(of), *map(of, ROADS)), [0, 2]),
    "distance_block": lambda f, of: f(gpuops.close_hierarchy(structure_of(of), *map(of, ROADS)), [0, 2], [1]),
    "butterfly_reduction": lambda f, of: f(of(MATRIX), "minimum"),
    "pair_arcs": lambda f, of: f(of(np.array([0, 1, 2])), of(np.array([1, 0]))),
    "euler_circuit": lambda f, of: f(of(np.array([0, 1, 2])), of(np.array([1, 0]))),
    "best_matching_units": lambda f, of: f(of(SAMPLES), of(SAMPLES[:4])),
    "shortest_distances": lambda f, of: f(gpuops.search_graph(*map(of, GRAPH)), [0]),
    "batched_shortest_distances": lambda f, of: f(gpuops.search_graph(*map(of, GRAPH)), [0, 1]),
    "shortest_path_tree": lambda f, of: f(gpuops.search_graph(*map(of, GRAPH)), of(np.array([0.0, 4, 1])), [0]),
    "search_graph": lambda f, of: f(*map(of, GRAPH)),
    "improve_distances": lambda f, of: improved(f, gpuops.search_graph(*map(of, GRAPH)), of(UNREACHED.copy())),
    "minplus_product": lambda f, of: f(of(MATRIX), of(MATRIX)),
    "distinct": lambda f, of: f(of(NUMBERS), return_counts=True, return_inverse=True),
    "compact": lambda f, of: f(of(NUMBERS), of(NUMBERS > 1)),
    "exclusive_scan": lambda f, of: f(of(NUMBERS)),
    "inclusive_scan": lambda f, of: f(of(NUMBERS)),
    "mates_of": lambda f, of: f(of(np.array([0, 1, 2])), of(np.array([1, 0]))),
    "cycle_labels": lambda f, of: f(of(CYCLES)),
    "circuit_graph": lambda f, of: f(of(ROWS), of(LABELS)),
    "spanning_links": lambda f, of: f(of(ROWS), of(LABELS)),
    "join_circuits": lambda f, of: f(of(CYCLES), of(np.array([1]))),
    "walk_circuits": lambda f, of: f(of(CYCLES)),
    "verify_circuit": lambda f, of: f(*map(of, (ROWS, np.array([0, 0]), np.array([0, 1]), np.array([0, 2])))),
    "look_and_say": lambda f, of: f(of(NUMBERS.astype(np.uint8)), 3),
    "look_and_say_lengths": lambda f, of: f(of(NUMBERS.astype(np.uint8)), 3),
    "permutations": lambda f, of: f(of(NUMBERS)),
    "permutation_chunks": lambda f, of: tuple(f(of(NUMBERS), rows=5)),
    "permutation_count": lambda f, of: f(of(NUMBERS)),
    "permutation_rank": lambda f, of: f(of(NUMBERS)),
    "next_permutation": lambda f, of: f(of(NUMBERS)),
    "cyclic_spectrum": lambda f, of: f(of(NUMBERS)),
    "cyclic_spectrum_counts": lambda f, of: f(of(NUMBERS)),
    "spectrum_score": lambda f, of: f(of(NUMBERS), of(NUMBERS[:2])),
    "quantization_error": lambda f, of: f(of(SAMPLES[0])),
    "topographic_error": lambda f, of: f(of(PAIRS), GRID),
    "fixed_point": lambda f, of: f(20, of(SAMPLES.max(axis=0))),
    "unit_sums": lambda f, of: f(of(SAMPLES), of(UNITS), 4),
    "from_fixed_point": lambda f, of: f(*scaled_sums(of), gpuops.fixed_point(20, 1.0)),
    "smooth": lambda f, of: f(*gpuops.unit_sums(of(SAMPLES), of(UNITS), 4), of(SAMPLES[:4]), GRID, 1.0),
    "train_online": lambda f, of: f(of(SAMPLES[:4]), of(SAMPLES), of(np.arange(20)), GRID, 1.0, 0.5),
}
TAKE_NO_ARRAYS = {"betweenness_factors", "peptide_masses"}
HIERARCHIES = {name for name in CALLS if name.startswith(("hierarchy", "close_h", "one_to", "distance_"))}
ON_CPUS = {
    "dijkstra_rows",
    "distances_within",
    "k_nearest",
    "k_shortest_paths",
    "link_flows",
    "path_encodings",
    "train_online",
    "verify_flows",
    "fixed_point",
}
ON_CPUS |= HIERARCHIES  # and nowhere else


def improved(improve_distances, graph, row):
    """The row: the number of rounds depends on the device."""
    assert improve_distances(graph, row) > 0
    return row


def structure_of(of):
    return gpuops.hierarchy_structure(*map(of, GRAPH[:2]), of(np.arange(3)))[0]


def scaled_sums(of):
    return gpuops.unit_sums(of(SAMPLES), of(UNITS), 4, scale=gpuops.fixed_point(20, 1.0))


def leaves(result):
    """The arrays of a result in turn, or what there is instead."""
    return list(arrays._arrays(tuple_of(result))) or [result]


def tuple_of(result):
    return types.SimpleNamespace(_asdict=lambda: dict(enumerate(result))) if type(result) is tuple else result


@pytest.mark.parametrize("name", CALLS)
def test_results_are_what_the_arguments_are(name):
    operation = getattr(gpuops, name)
    expected, found = leaves(CALLS[name](operation, np.asarray)), leaves(CALLS[name](operation, Tensor))
    for tensor, array in zip(found, expected, strict=True):
        assert isinstance(tensor, Tensor) == isinstance(array, np.ndarray)
        np.testing.assert_array_equal(getattr(tensor, "values", tensor), array)


def swapped(values):
    return np.asarray(values).astype(np.asarray(values).dtype.newbyteorder(">"))


def masked(values):
    return np.ma.array(values, mask=True)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_would_be_misread_are_refused(name):
    for of, says in (swapped, "in the byte order of other machines"), (masked, "has masked elements"):
        if of is masked or not name.startswith("look_and_say"):  # bytes have no order
            with pytest.raises(TypeError, match=says):
                CALLS[name](getattr(gpuops, name), of)


def test_every_operation_is_open_to_other_libraries():
    for name in gpuops.__all__:
        operation = getattr(gpuops, name)
        if inspect.isfunction(operation):
            assert operation.__module__ == "gpuops"
            assert inspect.isfunction(operation.__wrapped__)
            assert pickle.loads(pickle.dumps(operation)) is operation
            assert (name in CALLS) != (name in TAKE_NO_ARRAYS)


def section_of_the_page():
    page = (Path(__file__).parents[2] / "docs/doors.md").read_text()
    return re.search(r"\n## Arrays of CuPy.*?(?=\n## )", page, re.DOTALL)[0]


def test_the_page_names_the_operations_that_refuse_arrays_of_cupy():
    """Their first arguments are NumPy arrays, by their docstrings."""
    listed = re.search(r"refuse CuPy arrays: (.*?)\.\s", section_of_the_page(), re.DOTALL)
    only_numpy = re.compile(r"^[\w, ]+ : \(.*\) NumPy arrays?$", re.MULTILINE)
    found = [name for name in CALLS if only_numpy.search(inspect.getdoc(getattr(gpuops, name)))]
    assert sorted(re.findall(r"`(\w+)`", listed[1])) == sorted(found)


def test_the_example_of_the_page_gives_arrays_of_cupy(host_shim):
    (example,) = re.findall(r"```py\n(.*?)```", section_of_the_page(), re.DOTALL)
    names = {}
    exec(example, names)
    for name, expected in ("distances", [0, 3, 4]), ("matrix", [[0, 3, 4], [np.inf, 0, 1]]):
        assert arrays.is_cupy(names[name])
        np.testing.assert_array_equal(names[name], expected)


def test_out_is_filled_where_it_lies_and_returned():
    c, a, out = tensors(MATRIX.copy(), MATRIX, np.empty((3, 3)))
    assert gpuops.minplus_update(c, a, a, out=out) is out
    np.testing.assert_array_equal(out.values, gpuops.minplus_update(MATRIX, MATRIX, MATRIX))
    address = c.address
    assert gpuops.floyd_warshall(c, out=c) is c
    assert c.address == address
    np.testing.assert_array_equal(c.values, gpuops.floyd_warshall(MATRIX))


def test_nothing_is_copied():
    seen = []

    @arrays.of_any_library
    def keep(array, *, pair=None):
        seen.append(array)
        return array[1:], array, pair

    tensor, other = tensors(np.arange(5.0), np.arange(3))
    rest, same, pair = keep(tensor, pair=other)
    assert seen[0].ctypes.data == tensor.address
    assert rest.address == tensor.address + 8
    assert (same, pair) == (tensor, other)


def test_a_graph_of_tensors_is_one_graph_to_every_search():
    graph = gpuops.search_graph(*tensors(*GRAPH))
    assert isinstance(graph.weights, Tensor)
    native = arrays._view(graph, {})
    assert arrays._view(graph, {}) is native
    assert native.weights.ctypes.data == graph.weights.address
    row = Tensor(np.array([0.0, np.inf, np.inf])[graph.order.values])
    gpuops.improve_distances(graph, row)
    np.testing.assert_array_equal(row.values[graph.rank.values], [0, 4, 1])


def test_a_symmetric_graph_keeps_its_one_set_of_rows():
    both = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.array([3.0, 3.0])
    graph = gpuops.search_graph(*tensors(*both), symmetric=True)
    assert graph.symmetric
    assert arrays._view(graph, {}).symmetric


def test_the_first_array_decides():
    found = gpuops.minplus_update(MATRIX, Tensor(MATRIX), Tensor(MATRIX))
    assert type(found) is np.ndarray
    assert isinstance(gpuops.minplus_update(Tensor(MATRIX), MATRIX, MATRIX), Tensor)


def test_read_only_arrays_are_operands():
    """As those of JAX are."""
    fixed = MATRIX.copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(gpuops.minplus_update(fixed, fixed, fixed), gpuops.floyd_warshall(MATRIX))
    np.testing.assert_array_equal(gpuops.floyd_warshall(fixed), gpuops.floyd_warshall(MATRIX))


def test_arrays_on_a_gpu_without_cupy_are_an_error_that_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # so that it cannot be imported

    class OnGpu(Tensor):
        def __dlpack_device__(self):
            return 2, 0

    interface = types.SimpleNamespace(__cuda_array_interface__={})
    for array in OnGpu(MATRIX), interface:
        with pytest.raises(ImportError, match=r"a \S+ on a GPU needs CuPy: pip install -e .*\[cuda13\]"):
            gpuops.floyd_warshall(array)


@pytest.mark.gpu
def test_objects_of_the_cuda_array_interface(gpu):
    class Device:
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    matrix = gpu.asarray(MATRIX)
    found = gpuops.floyd_warshall(Device(matrix))
    assert isinstance(found, gpu.ndarray)
    out = Device(gpu.empty_like(matrix))
    assert gpuops.floyd_warshall(Device(matrix), out=out) is out
    np.testing.assert_array_equal(out.array.get(), gpuops.floyd_warshall(MATRIX))


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return torch


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(CALLS.keys() - ON_CPUS))
def test_tensors_of_torch_on_a_gpu(torch, name):
    operation = getattr(gpuops, name)
    found = leaves(CALLS[name](operation, lambda array: torch.from_numpy(np.array(array)).cuda()))
    for tensor, array in zip(found, leaves(CALLS[name](operation, np.asarray)), strict=True):
        assert isinstance(tensor, torch.Tensor) == isinstance(array, np.ndarray)
        if array is None:  # an operation that returns nothing, and raises
            assert tensor is None
        else:
            np.testing.assert_allclose(tensor.cpu().numpy() if isinstance(tensor, torch.Tensor) else tensor, array)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(ON_CPUS))
def test_tensors_on_a_gpu_are_refused_by_what_runs_on_cpus(torch, name):
    with pytest.raises(TypeError, match="NumPy"):
        CALLS[name](getattr(gpuops, name), lambda array: torch.from_numpy(np.array(array)).cuda())


@pytest.mark.gpu
def test_tensors_of_torch_on_a_gpu_are_not_copied(torch):
    seen = []

    @arrays.of_any_library
    def keep(array):
        seen.append(array)
        return array[1:], array

    tensor = torch.arange(5.0, device="cuda")
    rest, same = keep(tensor)
    assert seen[0].data.ptr == tensor.data_ptr()
    assert (rest.data_ptr(), rest.device) == (tensor.data_ptr() + 4, tensor.device)
    assert same is tensor
    matrix = torch.from_numpy(MATRIX.copy()).cuda()
    place = matrix.data_ptr()
    assert gpuops.floyd_warshall(matrix, out=matrix) is matrix
    assert matrix.data_ptr() == place
    np.testing.assert_array_equal(matrix.cpu().numpy(), gpuops.floyd_warshall(MATRIX))
