"""Families of tests: some of which always run, the others being slow."""

import itertools

import numpy as np
import pytest

SLOW = [pytest.mark.slow]

# By default, a family runs with these dtypes. Compilers take much of the time of the tests, and compile for each dtype.
USUAL = {"float32", "int32", "int16"}


def usual(dtypes, always=USUAL):
    """The dtypes, of which those in `always` run by default; a family without any of these runs its first one."""
    places = _always(dtypes, always)
    return [pytest.param(dtype, marks=[] if i in places else SLOW) for i, dtype in enumerate(dtypes)]


def _always(values, dtypes):
    """The places of the values that run by default: of dtypes those in `dtypes`, of other values all."""
    names = [each if isinstance(each, str) else getattr(each, "name", getattr(each, "__name__", "")) for each in values]
    if not all(name in np.sctypeDict for name in names):
        return [*range(len(values))]
    return [place for place, name in enumerate(names) if name in dtypes] or [0]


def diagonals(*values, count=1, always=USUAL):
    """Parameters of all combinations of the values; by default such that each value occurs in `count` of them or more.

    A diagonal is the first values, the second ones and so on, shorter lists beginning again; the next one begins with
    every list shifted by one against the list before it. Of dtypes, those in `always` occur by default.
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
    """The parameters, of which by default the first of so many runs, and the first of the next so many."""
    return [
        pytest.param(
            *(given.values if hasattr(given, "values") else given if isinstance(given, tuple) else [given]),
            id=getattr(given, "id", None),
            marks=SLOW if number % count else [],
        )
        for number, given in enumerate(parameters)
    ]


every_kernel = pytest.mark.parametrize("variants", [False, pytest.param(True, marks=SLOW)], ids=["one", "all"])


def not_launched(programs, launched, *, variants):
    """The kernels of `programs` that the host has not launched in any variant of their file, or in one of `variants`.

    `launched` has the source, the options and the name of each launch (see host_shim/cupy.py).
    """
    kernels: dict[tuple, list[bool]] = {}
    for program in programs:
        for entry in program.entries:
            variant = program.options if variants else None
            ran = (program.source(), program.options, entry) in launched
            kernels.setdefault((program.file, variant, entry), []).append(ran)
    assert kernels
    return [kernel for kernel, ran in kernels.items() if not any(ran)]
