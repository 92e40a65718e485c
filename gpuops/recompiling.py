"""Functions that Numba compiles again whenever code changes that they contain.

Numba keeps compiled functions on disk, and takes one from there as long as the file of the function is the same. But
compiled code also contains functions and constants of other modules, and Numba does not look at these: after an update
of tilepath, an old ring size would run beside a new one. So a function gets a closure with a digest of its module and
of all modules of the project that this module imports. Numba compares closures.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

_ROOT = Path(__file__).parents[1]
# Statements of a module's own level. Functions import at a later time, and their imports are never compiled.
_IMPORT = re.compile(r"\nfrom ((?:gpuops|pipelines)[.\w]*) import (\([^)]*\)|.*)")


def recompiled_with_imports(function: Any) -> Any:
    """Return `function` for `numba.njit`, so that it is compiled again when an imported module has changed.

    Functions of a module that compiled code of the same module calls count as well.
    """
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    code = function.__code__.replace(co_freevars=(*names, "imports"))
    closure = (*cells, CellType(_digest(function.__module__)))
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)


@functools.cache
def _digest(module: str) -> str:
    """Return a digest of a module and of all modules that it imports, and that these import."""
    digests: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in digests:
            digests[name], imported = _read(name)
            waiting += imported
    return hashlib.sha256("".join(digests[name] for name in sorted(digests)).encode()).hexdigest()


@functools.cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """Return a digest of the text of one module, and the names that it imports; "" and () if it is not a module."""
    path = f"{_ROOT}/{module.replace('.', '/')}"
    file = f"{path}/__init__.py" if os.path.isdir(path) else f"{path}.py"
    if not os.path.exists(file):
        return "", ()
    with open(file, encoding="utf-8") as opened:
        text = f"\n{opened.read()}"
    imported = [f"{package}.{name}" for package, names in _IMPORT.findall(text) for name in re.findall(r"\w+", names)]
    packages = [name.rpartition(".")[0] for name in imported]
    return hashlib.sha256(text.encode()).hexdigest(), (*packages, *imported)
