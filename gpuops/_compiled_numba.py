"""How functions are compiled that take part in a first search: each entry of a function takes time to compile.

* `entry`: Python calls the function. It gets no entry for calls from C.
* `inner`: only compiled functions call it. It gets no entry for calls from Python either; the two entries take a third
  of the time that a short function takes to compile.
* `compiled`: an entry for given types alone, compiled at once.

`copy` and `reverse` take the place of assignments to slices: Numba would compile the message of an error of shapes.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from gpuops.recompiling import recompiled_with_imports


def entry(function: Any) -> Any:
    """Return `function` compiled at its first call."""
    return njit(nogil=True, cache=True, no_cfunc_wrapper=True)(recompiled_with_imports(function))


def inner(function: Any) -> Any:
    """Return `function` for calls by compiled functions."""
    options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return njit(nogil=True, cache=True, **options)(recompiled_with_imports(function))


@inner
def copy(values, to):
    """Assign to[: len(values)] = values. In a process, the first assignment to a slice takes Numba a second longer."""
    for i in range(len(values)):
        to[i] = values[i]


@inner
def reverse(values):
    """Reverse an array where it lies."""
    for i in range(len(values) // 2):
        values[i], values[-1 - i] = values[-1 - i], values[i]


def compiled(signature: Any, function: Any) -> Any:
    """Return `function` compiled for one signature. Python calls it."""
    return njit(signature, nogil=True, cache=True, no_cfunc_wrapper=True)(recompiled_with_imports(function))
