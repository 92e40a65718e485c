"""Operations take and return the arrays of libraries that speak DLPack, without a copy."""

import inspect
import pickle
import types

import numpy as np
import pytest

import gpuops
from gpuops import arrays


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
MATRIX = np.array([[0, 3, np.inf], [np.inf, 0, 1], [2, np.inf, 0]])
SAMPLES = np.random.default_rng(0).random((20, 3), np.float32)

CALLS = {
    "minplus_update": lambda f, of: f(of(MATRIX), of(MATRIX), of(MATRIX)),
    "floyd_warshall": lambda f, of: f(of(MATRIX)),
    "dijkstra": lambda f, of: f(*map(of, GRAPH), 0),
    "dijkstra_rows": lambda f, of: f(*map(of, GRAPH), [0, 2], predecessors=True),
    "degrees": lambda f, of: f(*map(of, GRAPH[:2])),
    "edge_expansion": lambda f, of: f(*map(of, GRAPH[:2])),
    "reverse": lambda f, of: f(*map(of, GRAPH)),
    "weak_components": lambda f, of: f(*map(of, GRAPH[:2])),
    "spanning_forest": lambda f, of: f(*map(of, GRAPH[:2])),
    "hop_distances": lambda f, of: f(*map(of, GRAPH[:2]), [0, 2]),
    "butterfly_reduction": lambda f, of: f(of(MATRIX), "minimum"),
    "pair_arcs": lambda f, of: f(of(np.array([0, 1, 2])), of(np.array([1, 0]))),
    "euler_circuit": lambda f, of: f(of(np.array([0, 1, 2])), of(np.array([1, 0]))),
    "best_matching_units": lambda f, of: f(of(SAMPLES), of(SAMPLES[:4])),
    "shortest_distances": lambda f, of: f(gpuops.search_graph(*map(of, GRAPH)), [0]),
    "batched_shortest_distances": lambda f, of: f(gpuops.search_graph(*map(of, GRAPH)), [0, 1]),
    "shortest_path_tree": lambda f, of: f(gpuops.search_graph(*map(of, GRAPH)), of(np.array([0.0, 4, 1])), [0]),
    "search_graph": lambda f, of: f(*map(of, GRAPH)),
}


def leaves(result):
    return list(arrays._arrays(tuple_of(result)))


def tuple_of(result):
    return types.SimpleNamespace(_asdict=lambda: dict(enumerate(result))) if type(result) is tuple else result


@pytest.mark.parametrize("name", CALLS)
def test_results_are_what_the_arguments_are(name):
    operation = getattr(gpuops, name)
    expected, found = leaves(CALLS[name](operation, np.asarray)), leaves(CALLS[name](operation, Tensor))
    assert found
    for tensor, array in zip(found, expected, strict=True):
        assert isinstance(tensor, Tensor)
        np.testing.assert_array_equal(tensor.values, array)


def test_every_operation_is_open_to_other_libraries():
    for operation in (getattr(gpuops, name) for name in gpuops.__all__):
        if inspect.isfunction(operation):
            assert operation.__module__ == "gpuops"
            assert inspect.isfunction(operation.__wrapped__)
            assert pickle.loads(pickle.dumps(operation)) is operation


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


@pytest.mark.gpu
def test_objects_of_the_cuda_array_interface():
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")

    class Device:
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    matrix = cupy.asarray(MATRIX)
    found = gpuops.floyd_warshall(Device(matrix))
    assert isinstance(found, cupy.ndarray)
    out = Device(cupy.empty_like(matrix))
    assert gpuops.floyd_warshall(Device(matrix), out=out) is out
    np.testing.assert_array_equal(out.array.get(), gpuops.floyd_warshall(MATRIX))
