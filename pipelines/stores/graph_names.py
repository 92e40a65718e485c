"""Names of graphs that are no paths: ``rmat:28`` is generated whenever it is read, ``roads.zarr#length`` has weights.

No store knows how to generate a graph: `pipelines` enters the functions that do in `OPENERS`.
"""

import os
import re
from collections.abc import Callable
from typing import Any

OPENERS: dict[str, Callable[[str], Any]] = {}  # functions that open a graph by its name, by the word before the colon


def generator_of(path: str | os.PathLike[str]) -> Callable[[str], Any] | None:
    """Return the function that opens the generated graph called `path`, or None if `path` does not name one."""
    found = re.match(r"(\w+):\d+(:|$)", os.fspath(path))
    return None if found is None or os.path.exists(path) else OPENERS.get(found[1])


def weights_named_in(store: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], str]:
    """Return the path in a name such as ``roads.zarr#length``, and the name of the weights, "" for none."""
    path, sign, name = os.fspath(store).rpartition("#")
    return (path, name) if sign and not os.path.exists(store) and os.path.isdir(path) else (store, "")
