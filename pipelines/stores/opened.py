"""Stores that were opened for reading: each read refuses a store that was replaced meanwhile.

An opened store keeps the attributes that it had. Another run may replace the store, and arrays are read at its path
later; rows of the new store would be mixed with attributes or rows of the old one. So an opened store also keeps the
`seal` (`pipelines.stores.contents`), a hash of all that the store records, and compares it after each read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from pipelines.stores.contents import StoredArray


@dataclass(frozen=True, eq=False, repr=False)
class OpenedStore:
    """A store that was opened for reading; `seal` is "" if a replacement must not be noticed."""

    path: str
    seal: str = field(default="", kw_only=True)

    def __getstate__(self) -> dict[str, Any]:
        # Pickles have the fields alone, not what was read since: Dask's scheduler unpickles arguments of tasks, too.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def stored(self, name: str, within: tuple[float, float] | None = None) -> StoredArray:
        """Return an array for reading, opened once; reads raise StoreError if the store was replaced meanwhile."""
        if (name, within) not in self._arrays_opened:
            self._arrays_opened[name, within] = StoredArray(self.path, name, within, seal=self.seal)
        return self._arrays_opened[name, within]

    @cached_property
    def _arrays_opened(self) -> dict[tuple[str, tuple[float, float] | None], StoredArray]:
        return {}
