"""Functions that Numba compiles again whenever code changes that they contain.

Numba keeps compiled functions on disk, and takes one from there as long as the file of the function is the same. But
compiled code also contains functions and constants of other modules, and Numba does not look at these: after an update
of tilepath, an old ring size would run beside a new one. So a function gets a closure with a digest of its module and
of all modules of the project that this module imports. Numba compares closures.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

_ROOT = Path(__file__).parents[1]
# Statements of a module's own level. Functions import at a later time, and their imports are never compiled.
_IMPORT = re.compile(r"^from ((?:gpuops|pipelines)[.\w]*) import (\([^)]*\)|.*)", re.M)


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
    texts: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in texts:
            texts[name] = _text(name)
            for package, names in _IMPORT.findall(texts[name]):
                waiting += [package, *(f"{package}.{each}" for each in re.findall(r"\w+", names))]
    return hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()


@functools.cache
def _text(module: str) -> str:
    """Return the text of a module; "" if this is the name of something else, such as a function."""
    path = _ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text() if file.exists() else ""
