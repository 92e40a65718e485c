"""The names that a package offers and imports at their first use: NumPy, Numba and Dask take most of a second."""

import re
from pathlib import Path

_IMPORT = re.compile(r"^    from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def offered_names(file: str) -> dict[str, str]:
    """Return the names that the `__init__.py` of a package imports for type checkers, each with its module.

    Those imports, in the block ``if TYPE_CHECKING:``, are the one list of the names of the package: type checkers and
    editors read them, and the package imports the same names when they are used.
    """
    return {name: module for module, name in _IMPORT.findall(Path(file).read_text(encoding="utf-8"))}
