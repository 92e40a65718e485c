"""How functions are compiled that only compiled functions call.

They get no entry for calls from Python or from C: the entries take a third of the time that a short function takes to
compile.
"""

from __future__ import annotations

from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
