"""tilepath.csgraph against SciPy: five functions, forms of matrices, kinds of weights, all keywords.

The reference is SciPy's function of the same name on the same arcs, stored as a sorted csr_array of float64: the quirks
of its readers (docs/doors.md) are left out. Predecessors are followed to their sources. The long campaign:
``pytest -m slow -s tests/tilepath/test_csgraph_campaign.py``
"""

import inspect
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from campaigns import campaign, pick, play, random_arcs, without_negative_cycle
from scipy.sparse import csgraph as theirs

from tilepath import csgraph as ours

FUNCTIONS = ("shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson")


def sixteenths(rng, m):
    return rng.integers(0, 400, m) / 16


WEIGHTS = {
    "small": lambda rng, m: rng.integers(0, 9, m),
    "sixteenths": sixteenths,  # their sums are exact in any order
    "random": lambda rng, m: rng.random(m),
    "signed": lambda rng, m: rng.integers(0, 9, m),
    "signed sixteenths": sixteenths,
    "any sign": lambda rng, m: rng.integers(-2, 30, m),
    "bool": lambda rng, m: rng.random(m) < 0.9,
    "tiny": lambda rng, m: rng.random(m) * 1e-300,
    "subnormal": lambda rng, m: rng.integers(1, 9, m) * 5e-324,
    "huge": lambda rng, m: rng.random(m) * 1.7e308,
    "huge negative": lambda rng, m: np.where(rng.random(m) < 0.3, -1e308, 1.5e308),
    "near": lambda rng, m: rng.integers(1, 9, m) * 10.0 ** -rng.integers(6, 12),  # SciPy drops such from dense arrays
    "exact": lambda rng, m: pick(rng, [2**53, 2**52, 2**24, 2**23]) + rng.integers(-2, 2, m),
    "int32": lambda rng, m: 2**31 - rng.integers(1, 4, m),
    "infinite": lambda rng, m: np.where(rng.random(m) < 0.3, pick(rng, [np.inf, np.nan]), sixteenths(rng, m)),
    "minus infinity": lambda rng, m: np.where(rng.random(m) < 0.2, -np.inf, sixteenths(rng, m)),
}
DTYPES = ["bool", "int8", "uint8", "int16", "uint32", "int32", "int64", "uint64", "float32", "float64"]
DENSE_ONLY = ["float16", ">f8", ">i4"]  # SciPy's sparse arrays refuse these
DTYPES += [*DENSE_ONLY, "longdouble"]


def parallel(shape, tails, heads, weights):
    """Rows that are not sorted and hold an arc twice: of two lengths, the shorter one counts."""
    indptr = np.searchsorted(np.sort(tails), np.arange(shape[0] + 1))
    order = np.argsort(tails, kind="stable")
    arcs = np.repeat(order, 2)[::-1]
    arcs = arcs[np.argsort(tails[arcs], kind="stable")]
    return sp.csr_array((weights[arcs], heads[arcs], 2 * indptr), shape=shape)


def dense(shape, tails, heads, weights):
    matrix = np.zeros(shape, weights.dtype)
    matrix[tails, heads] = weights
    return matrix


def masked(shape, tails, heads, weights):
    mask = np.ones(shape, bool)
    mask[tails, heads] = False
    return np.ma.masked_array(np.where(mask, np.ones(1, weights.dtype), dense(shape, tails, heads, weights)), mask)


def sparse(kind):
    return lambda shape, tails, heads, weights: kind(sp.coo_array((weights, (tails, heads)), shape=shape))


def view(shape, tails, heads, weights):
    return dense((2 * shape[0], 3 * shape[1]), 2 * tails, 3 * heads, weights)[::2, ::3]


FORMS = {
    "csr": sparse(sp.csr_array),
    "csc": sparse(sp.csc_array),
    "triplets": sparse(sp.coo_array),
    "lil": sparse(sp.lil_array),
    "csr matrix": sparse(sp.csr_matrix),
    "csc matrix": sparse(sp.csc_matrix),
    "not summed": parallel,
    "dense": dense,
    "masked": masked,
    "Fortran": lambda *arcs: np.asfortranarray(dense(*arcs)),
    "view": view,
    "reversed": lambda *arcs: np.ascontiguousarray(dense(*arcs)[::-1, ::-1])[::-1, ::-1],
    "lists": lambda *arcs: dense(*arcs).tolist(),
    "matrix": lambda *arcs: np.asmatrix(dense(*arcs)),
}
DENSE = ("dense", "Fortran", "view", "reversed", "lists", "matrix")


def draw(rng):
    """A graph (tails, heads, weights), no arc twice, in one of the forms; its form and the kind of its weights."""
    n = int(pick(rng, [0, 1, 2, 3, 5, 9, 20, 50]))
    tails, heads = random_arcs(rng, n, int(pick(rng, [0, n, 3 * n, n * n]))) if n else np.zeros((2, 0), int)
    tails, heads = np.divmod(np.unique(tails * n + heads), max(n, 1))
    kind, form = pick(rng, [*WEIGHTS]), pick(rng, [*FORMS]) if n else "csr"
    weights = WEIGHTS[kind](rng, len(tails))
    if kind.startswith("signed"):
        weights = without_negative_cycle(rng, tails, heads, weights)
    fitting = [dtype for dtype in DTYPES if same(weights.astype(dtype), weights)] or ["float64"]
    weights = weights.astype(pick(rng, fitting))
    if form in DENSE or weights.dtype in DENSE_ONLY:
        form = form if form in DENSE else "dense"
        kept = weights != 0
        tails, heads, weights = tails[kept], heads[kept], weights[kept]
    return n, (tails, heads, weights), form, kind


def same(converted, weights):
    return len(weights) == 0 or np.array_equal(converted.astype("float64"), weights.astype("float64"), equal_nan=True)


def draw_options(rng, name, n):
    """Keywords that the function has, each given or left out."""
    scalar = int(rng.integers(-n, n)) if n else None
    indices = [scalar, rng.integers(-n, max(n, 1), (2, 2)) if n else [], [], [scalar] * 2 if n else []]
    indices += [None, np.arange(n)[::2].astype("uint8"), [float(scalar)] if n else None]
    choices = {
        "directed": [True, False],
        "return_predecessors": [True, False],
        "unweighted": [True, False, False],
        "overwrite": [True, False],
        "indices": indices,
        "limit": [0, 3, 7.5, np.inf],
        "min_only": [True, False],
        "method": ["auto", "FW", "D", "BF", "J"],
        "dtype": ["float64", "float64", "float32", "int32"],
    }
    known = inspect.signature(getattr(ours, name)).parameters
    options = {key: pick(rng, values) for key, values in choices.items() if key in known and rng.random() < 0.5}
    if options.get("method") == "FW" or (options.get("method", "auto") == "auto" and rng.random() < 0.5):
        options.pop("indices", None)
    return options


@np.errstate(all="ignore")
def trial(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare_one_call(rng)


def compare_one_call(rng):
    n, (tails, heads, weights), form, kind = draw(rng)
    name = pick(rng, FUNCTIONS)
    options = draw_options(rng, name, n)
    given = FORMS[form]((n, n), tails, heads, weights)
    case = f"{name} of form {form}, weights of {kind}, {weights.dtype}, {options}"
    lengths = np.ones(len(weights)) if options.get("unweighted") else weights.astype(float)
    kept = np.isfinite(weights.astype(float))
    if options.get("dtype") == "float32":
        lengths = lengths.astype("float32").astype(float)
    plain = sp.csr_array((lengths[kept], (tails[kept], heads[kept])), shape=(n, n))
    try:
        found = getattr(ours, name)(given, **options)
    except (ValueError, TypeError, OverflowError, ours.NegativeCycleError) as error:
        check_refusal(error, case, plain, kind, options)
        return f"refused ({type(error).__name__})"
    assert form in DENSE or not np.isneginf(weights.astype(float)).any(), f"{case}: -inf was taken"
    asked = {key: value for key, value in options.items() if key not in ("dtype", "overwrite", "unweighted")}
    if (plain.data < 0).any() and (name == "dijkstra" or options.get("method") == "D"):
        return "not compared (Dijkstra of SciPy on negative weights)"
    if np.isinf(np.abs(plain.data).sum()) and name != "dijkstra":  # SciPy overflows on the way
        exact = exact_distances(n, tails[kept], heads[kept], lengths[kept], options.get("directed", True))
        rows = slice(None) if options.get("indices") is None else np.array(options["indices"], int)
        distances = found[0] if isinstance(found, tuple) else found
        np.testing.assert_allclose(distances, exact.astype(float)[rows], rtol=1e-12, err_msg=case)
        return None
    try:
        expected = getattr(theirs, name)(plain, **asked)
    except theirs.NegativeCycleError:
        assert not (plain.data < 0).any(), f"{case}: SciPy finds a negative cycle"
        return "not compared (Bellman-Ford of SciPy on sums beyond 2^53)"
    compare(found, expected, plain, case, options)
    if weights.dtype.kind in "iu" and not {"unweighted", "indices", "limit", "min_only"} & {*options}:
        distances = np.asarray(found[0] if isinstance(found, tuple) else found)
        exact = exact_distances(n, tails, heads, weights, options.get("directed", True))
        reached = np.isfinite(exact)
        assert (distances[reached] == exact[reached]).all(), f"{case}: rounded"
    return None


def exact_distances(n, tails, heads, weights, directed):
    """By Floyd and Warshall, in numbers of 64 bits and a sign."""
    matrix = np.full((n, n), np.inf, np.longdouble)
    matrix[tails, heads] = weights
    if not directed:
        matrix = np.minimum(matrix, matrix.T)
    np.fill_diagonal(matrix, 0)
    for k in range(n):
        np.minimum(matrix, matrix[:, k, None] + matrix[k], out=matrix)
    return matrix


def check_refusal(error, case, plain, kind, options):
    """Our refusals must have a reason."""
    text = f"{case}: refused, {error!r}"
    if isinstance(error, ours.NegativeCycleError):
        assert error.weight < 0, text
        closed = [*error.vertices, error.vertices[0]]
        both = plain if options.get("directed", True) else plain.minimum(plain.T)
        assert float(sum(np.longdouble(both[u, v]) for u, v in pairwise(closed))) == pytest.approx(error.weight), text
    elif "-inf" in str(error):
        assert kind == "minus infinity", text
    elif isinstance(error, OverflowError):
        limit = {"float64": 2**53, "float32": 2**24, "int32": 2**31 - 1}[options.get("dtype", "float64")]
        assert np.abs(plain.data).sum() * 2 >= min(limit, 3e38), text
    else:
        assert options.get("dtype") == "int32", text
        assert "fractions" in str(error), text


def compare(found, expected, plain, case, options):
    single = not isinstance(expected, tuple)
    found, expected = ((found,), (expected,)) if single else (found, expected)
    assert [array.shape for array in found] == [array.shape for array in expected], case
    dtype = options.get("dtype", "float64")
    distances = found[0].astype(float)
    assert found[0].dtype == dtype, case
    if dtype == "int32":
        distances[found[0] == 2**31 - 1] = np.inf
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    assert np.allclose(distances, expected[0], rtol=tolerance, atol=tolerance * (plain.data < 0).any()), case
    if not single and options.get("min_only"):
        np.testing.assert_array_equal(found[2] < 0, expected[2] < 0, case)
    if not single and distances.size:
        rows = distances.reshape(-1, plain.shape[0]), found[1].reshape(-1, plain.shape[0])
        assert found[1].dtype == np.int32, case
        np.testing.assert_array_equal(found[1] < 0, expected[1] < 0, case)
        check_trees(plain, *rows, tolerance, options, case)


def check_trees(plain, distances, trees, tolerance, options, case):
    """Each predecessor is an arc away, and all lead to a vertex that has none."""
    lengths = np.full(plain.shape, np.inf)
    tails, heads = plain.nonzero() if plain.nnz == len(plain.data) and (plain.data != 0).all() else plain.tocoo().coords
    lengths[tails, heads] = plain.tocoo().data
    if not options.get("directed", True):
        lengths = np.minimum(lengths, lengths.T)
    for row, tree in zip(distances, trees, strict=True):
        (reached,) = np.nonzero(tree >= 0)
        sums = row[tree[reached]] + lengths[tree[reached], reached]
        assert np.allclose(sums, row[reached], rtol=tolerance, atol=tolerance), case
        ends = np.where(tree < 0, np.arange(len(tree)), tree)
        for _ in range(len(tree).bit_length()):
            ends = ends[ends]
        assert (tree[ends] < 0).all(), f"{case}: a circle of predecessors"


@campaign(few=200, many=160_000)
def test_csgraph_agrees_with_scipy(seeds):
    counts = play(seeds, trial)
    assert counts["equal"] > len(seeds) / 2
