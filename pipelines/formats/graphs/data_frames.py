"""Tables that other libraries hold in memory: data frames of pandas, GeoPandas and Polars, tables of Arrow.

No library but pyarrow is imported: a caller that passes a frame has done so. Only the columns of edges are looked at;
others, such as geometries, may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from pipelines.formats.arc_sort import ArcStream, FormatError
from pipelines.formats.graphs.columns import choose_columns
from pipelines.formats.graphs.parquet import BATCH_ROWS, stream_of_batches


def is_data_frame(source: Any) -> bool:
    return isinstance(source, pa.Table) or hasattr(source, "reset_index") or hasattr(source, "to_arrow")


@contextmanager
def read_data_frame(
    source: Any,
    columns: Sequence[str | int] | None = None,
    weight: str | int | None = None,
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """The edges of a data frame, a row for each, with the options of `read_parquet`.

    The levels of a pandas index that have names, such as u, v and key in frames of OSMnx, are columns too.
    """
    what = f"the {type(source).__name__}"
    names, column = _columns(source)
    chosen = choose_columns(what, len(names), names, columns, weight)
    positions = [position for position in chosen if position is not None]
    try:
        table = pa.Table.from_arrays([column(at) for at in positions], [names[at] for at in positions])
    except pa.ArrowException as error:
        raise FormatError(f"{what}: {listed_names(names, positions)} cannot be read ({error}); convert them") from error
    yield stream_of_batches(
        what,
        list(table.schema),
        lambda: iter(table.to_batches(BATCH_ROWS)),
        base=base,
        n=vertices,
        labels=labels,
        directed=directed,
        remarks=[f"{what}: {chosen.described(names)}"],
    )


def listed_names(names: Sequence[str], positions: Sequence[int]) -> str:
    return "columns " + ", ".join(repr(names[at][:40]) for at in positions)


def _columns(source: Any) -> tuple[list[str], Callable[[int], Any]]:
    """The names of the columns, and each by its position as an Arrow array."""
    if hasattr(source, "reset_index"):
        levels = [level for level, name in enumerate(source.index.names) if name is not None]
        own = list(source.columns)
        names = [str(source.index.names[level]) for level in levels] + list(map(str, own))

        def column(at: int) -> Any:
            if at < len(levels):
                return pa.array(source.index.get_level_values(levels[at]), from_pandas=True)
            return pa.array(source.iloc[:, at - len(levels)], from_pandas=True)

        return names, column
    table = source if isinstance(source, pa.Table) else source.to_arrow()
    return table.column_names, table.column
