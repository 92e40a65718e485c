"""Samples from flow cytometers: FCS files, read with the package `flowio` (the `cytometry` extra).

A row is an event (a cell), a column a channel. Channels are called by their label (the keyword $PnS, the marker, such
as CD3) where they have one of their own, else by their short name ($PnN, the detector, such as FL1-A). Values are on a
linear scale: where the file says so, flowio undoes logarithmic amplification and gain, and brings time to seconds.
Nothing is compensated and nothing transformed; `scaling="arcsinh"` with a cofactor of 150 (fluorescence) or 5 (mass
cytometry) is customary.

flowio reads a whole file at once and converts it to float64: unlike a file of the other formats it has to fit in memory
about four times. Files of several data sets are refused.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.arrays import matrix_rows, slices
from pipelines.formats.samples.columns import Rows, Wanted, distinct

# What flowio raises on a truncated or damaged file, besides errors of its own.
_DAMAGE = (
    ValueError,
    LookupError,
    EOFError,
    ArithmeticError,
    TypeError,
    NotImplementedError,
    UserWarning,
    struct.error,
)


@contextmanager
def read_fcs(source: str, wanted: Wanted) -> Iterator[tuple[list[str], Iterator[Rows]]]:
    """The events of an FCS file of version 2.0, 3.0 or 3.1."""
    try:
        import flowio
        from flowio.exceptions import FlowIOException
    except ImportError as error:
        raise ImportError("FCS files need flowio: pip install 'tilepath[cytometry]'") from error
    with open(source, "rb") as file:
        if file.read(3) != b"FCS":
            raise FormatError(f"{source}: does not begin with FCS; check that it is the file of a cytometer")
        try:
            # An end of the data that is off by one is so common that flowio knows how to read on, with a warning.
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message="unsupported byte order")  # it would read on in another one
                data = flowio.FlowData(file, ignore_offset_error=True)
            _check_channels(data.text, data.channel_count)
            names, events = _channels(data.pns_labels, data.pnn_labels), data.as_array()
        except (FlowIOException, *_DAMAGE) as error:
            raise FormatError(
                f"{source}: cannot be read as FCS ({error}); get a new copy or export it as CSV"
            ) from error
    del data
    yield matrix_rows(source, events, wanted, slices(events), distinct(source, names))


def _check_channels(keywords: dict[str, str], channels: int) -> None:
    """ValueError where a channel has no name, or its bits do not match its type: flowio would read on."""
    kind = keywords["datatype"].strip().upper()
    if kind not in ("I", "F", "D"):
        raise ValueError(f"$DATATYPE is {kind[:40]!r}, not I, F or D")
    for channel in range(1, channels + 1):
        for key in ("n", "b"):
            if f"p{channel}{key}" not in keywords:
                raise ValueError(f"the keyword $P{channel}{key.upper()} is missing")
        bits = keywords[f"p{channel}b"].strip()
        if bits != {"F": "32", "D": "64"}.get(kind, bits):
            raise ValueError(f"$P{channel}B, the bits of a value, is {bits[:40]!r}, but $DATATYPE is {kind}")


def _channels(labels: list[str], short_names: list[str]) -> list[str]:
    """The label of each channel, or its short name where it has none or shares it."""
    labels = [label.strip() for label in labels]
    taken = [label or short for label, short in zip(labels, short_names, strict=True)]
    return [short if taken.count(name) > 1 else name for name, short in zip(taken, short_names, strict=True)]
