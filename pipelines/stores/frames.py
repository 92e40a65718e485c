"""Convert samples in memory, matrices and data frames, to arrays that can be stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import unmasked


def columns_of(values: Any) -> list[str] | None:
    """Return the names of the columns of a data frame (pandas, polars, pyarrow or another), or None for a matrix."""
    if not _is_frame(values):
        return None
    return list(map(str, getattr(values, "column_names", None) or values.columns))


def as_matrix(values: Any) -> np.ndarray:
    """Return the values (N, d) of a matrix or of a data frame; a masked value, or a null, becomes NaN.

    A data frame becomes float64, or float32 if no column has more bits.

    Raises
    ------
    ValueError
        A column of the frame does not hold numbers; the message names it.
    """
    if not _is_frame(values):
        return np.asarray(unmasked(values))
    import pyarrow as pa

    try:  # by default, pandas would export its index as an additional column
        table = pa.Table.from_pandas(values, preserve_index=False) if hasattr(values, "iloc") else pa.table(values)
    except pa.ArrowException as error:
        raise ValueError(f"the data frame is not all numbers ({error}); keep the columns of numbers") from error
    matrix = np.empty((table.num_rows, table.num_columns))
    for place, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
        kind = field.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise ValueError(f"column {field.name!r} of the data frame holds {kind}; keep the columns of numbers")
        matrix[:, place] = column.cast(pa.float64(), safe=False).to_numpy()
    narrow = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in table.schema.types)
    return matrix.astype(np.float32) if narrow else matrix


def _is_frame(values: Any) -> bool:
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "iloc")
