"""The names that a package offers and imports at their first use: NumPy, Numba and Dask take most of a second."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^    from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def offered_names(file: str) -> dict[str, str]:
    """Return the names that the `__init__.py` of a package imports for type checkers, each with its module.

    Those imports, in the block ``if TYPE_CHECKING:``, are the one list of the names of the package: type checkers and
    editors read them, and the package imports the same names when they are used.
    """
    return {name: module for module, name in _IMPORT.findall(Path(file).read_text(encoding="utf-8"))}


def imported(module: str) -> Any:
    """Import the module of an offered name; raises ImportError on systems where no name works."""
    refuse_other_systems()
    return import_module(module)


def refuse_other_systems() -> None:
    """Raise ImportError unless this is Linux: workers share memory by its calls, and stores need its files."""
    if sys.platform != "linux":
        raise ImportError(f"tilepath needs Linux, and this is {sys.platform}; use it in a container or WSL 2")
