"""Samples from flow cytometers: FCS files, read with the package `flowio` (the `cytometry` extra).

A row is an event (a cell), a column a channel. Channels are called by their label (the keyword $PnS, the marker, such
as CD3) where they have one of their own, else by their short name ($PnN, the detector, such as FL1-A); they may be
chosen by either. Values are on a linear scale: where the file says so, flowio undoes logarithmic amplification and
gain, and brings time to seconds. Then they are compensated, if that is asked for, by the matrix of the file: its row i
says which part of the light of dye i each detector sees, so measured values are true values times the matrix. Then a
transform of each channel is customary, such as arcsinh with a cofactor of 150 (fluorescence) or 5 (mass cytometry).

flowio reads a whole file at once and converts it to float64: unlike a file of the other formats it has to fit in memory
about four times. Files of several data sets are refused.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.arrays import matrix_rows, slices
from pipelines.formats.samples.columns import Opened, Wanted, distinct

SPILL = ("spillover", "spill")  # $SPILLOVER since FCS 3.1, SPILL by custom before

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
def read_fcs(source: str, wanted: Wanted, compensate: bool = False) -> Iterator[Opened]:
    """The events of an FCS file of version 2.0, 3.0 or 3.1; `compensate` undoes the spill between detectors."""
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
            detectors, events, keywords = [name.strip() for name in data.pnn_labels], data.as_array(), data.text
            markers = [name.strip() for name in data.pns_labels]
        except (FlowIOException, *_DAMAGE) as error:
            raise FormatError(
                f"{source}: cannot be read as FCS ({error}); get a new copy or export it as CSV"
            ) from error
    del data
    if compensate:
        _compensate(source, events, detectors, keywords)
    names = _channels(markers, detectors)
    others = [m if name == detector else detector for name, m, detector in zip(names, markers, detectors, strict=True)]
    yield matrix_rows(source, events, wanted, slices(events), distinct(source, names), others)


def _compensate(source: str, events: np.ndarray, detectors: list[str], keywords: dict[str, str]) -> None:
    """Undo the spill that the file states, in place: ``SPILLOVER = n, n detectors, n x n parts by rows``."""
    text = next((keywords[key] for key in SPILL if keywords.get(key, "").strip()), None)
    if text is None:
        raise FormatError(f"{source}: has no matrix of spill ($SPILLOVER); import it without compensation")
    try:
        count, *fields = (field.strip() for field in text.split(","))
        size = int(count)
        among, parts = fields[:size], np.array(fields[size:], np.float64)
        if size < 1 or parts.size != size * size or not np.isfinite(parts).all():
            raise ValueError(f"{parts.size} finite parts for {size} detectors")
        places = [detectors.index(name) for name in among]
        if len(set(places)) < size:
            raise ValueError("a detector is named twice")
        undone = np.linalg.inv(parts.reshape(size, size))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise FormatError(
            f"{source}: its matrix of spill cannot be used ({error}); import it without compensation"
        ) from error
    events[:, places] = events[:, places] @ undone


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
    taken = [label or short for label, short in zip(labels, short_names, strict=True)]
    return [short if taken.count(name) > 1 else name for name, short in zip(taken, short_names, strict=True)]
