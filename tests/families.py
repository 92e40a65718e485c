"""Parameters of families of tests: some members of a family run by default, the others are slow."""

import itertools

import numpy as np
import pytest

SLOW = [pytest.mark.slow]

# By default, a family runs with these dtypes. Compilers take much of the time of the tests, and compile for each dtype.
USUAL = {"float32", "int32", "int16"}
# For families that run pipelines on a CPU: other tests compile its functions for float64, too.
ALL = {*USUAL, "float64"}


def usual(dtypes, always=USUAL):
    """Return the dtypes as parameters. Those in `always` run by default; if there are none, the first dtype does."""
    places = _always(dtypes, always)
    return [pytest.param(dtype, marks=[] if i in places else SLOW) for i, dtype in enumerate(dtypes)]


def _always(values, dtypes):
    """Return the places of the values that run by default: the dtypes in `dtypes`, or all, if they are no dtypes."""
    names = [each if isinstance(each, str) else getattr(each, "name", getattr(each, "__name__", "")) for each in values]
    if not all(name in np.sctypeDict for name in names):
        return [*range(len(values))]
    return [place for place, name in enumerate(names) if name in dtypes] or [0]


def diagonals(*values, count=1, always=USUAL):
    """Return all combinations of the values as parameters. Those of `count` diagonals run by default.

    A diagonal combines the first values of all lists, then the second values, and so on; shorter lists begin again. So
    each value occurs in each diagonal. In the next diagonal, every list is shifted by one against the list before it.
    Of a list of dtypes, only those in `always` run by default.
    """
    places = [_always(each, always) for each in values]
    default = {
        tuple(each[(step + shift * i) % len(each)] for i, each in enumerate(places))
        for shift in range(count)
        for step in range(max(map(len, places)))
    }
    return [
        pytest.param(
            *(each[i] for each, i in zip(values, chosen, strict=True)), marks=[] if chosen in default else SLOW
        )
        for chosen in itertools.product(*(range(len(each)) for each in values))
    ]


def one_in(count, parameters):
    """Return the parameters. Every `count`-th of them runs by default, beginning with the first."""
    return [
        pytest.param(
            *(given.values if hasattr(given, "values") else given if isinstance(given, tuple) else [given]),
            id=getattr(given, "id", None),
            marks=SLOW if number % count else [],
        )
        for number, given in enumerate(parameters)
    ]


# By default, a test launches each kernel in one variant, such as for one dtype.
every_kernel = pytest.mark.parametrize("variants", [False, pytest.param(True, marks=SLOW)], ids=["one", "all"])


def not_launched(programs, launched, *, variants):
    """Return the kernels of `programs` that the host has not launched in any variant, or, if `variants`, in each one.

    `launched` has the source, the options and the name of each kernel that was launched (see host_shim/cupy.py).
    """
    kernels: dict[tuple, list[bool]] = {}
    for program in programs:
        for entry in program.entries:
            variant = program.options if variants else None
            ran = (program.source(), program.options, entry) in launched
            kernels.setdefault((program.file, variant, entry), []).append(ran)
    assert kernels
    return [kernel for kernel, ran in kernels.items() if not any(ran)]
