"""Read samples from FCS files of flow cytometers, with the package `flowio` (the `cytometry` extra).

A row is an event (a cell), a column a channel. The name of a channel is its label ($PnS, the marker, such as CD3), or
its short name ($PnN, the detector, such as FL1-A) if it has no label or shares it with another channel. Either name
selects the channel. Values are on a linear scale: flowio undoes logarithmic amplification and gain as the file states
them, and converts time to seconds. On request, values are then compensated with the matrix in the file: row i of the
matrix holds the share of the light of dye i that each detector sees, so measured values are true values times the
matrix. After that, a transform of each channel is customary, such as arcsinh with a cofactor of 150 (fluorescence) or 5
(mass cytometry).

flowio reads the header and scales pieces of events. This module reads the events, so that a file may be larger than
memory. Files of several data sets are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import recfunctions

from gpuops.extras import install
from pipelines.formats.errors import FormatError
from pipelines.formats.samples.arrays import matrix_rows
from pipelines.formats.samples.columns import Opened, Wanted, distinct

_ORDERS = {"1,2,3,4": "<", "1,2": "<", "4,3,2,1": ">", "2,1": ">"}  # $BYTEORD, as FCS writes it
_KINDS = {"F": "f4", "D": "f8"}
SPILL = ("spillover", "spill")  # keywords of the spillover matrix: $SPILLOVER since FCS 3.1, SPILL by custom before

# The errors that flowio raises on a truncated or damaged file, apart from FlowIOException.
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


class _Events(NamedTuple):
    """The place and format of the events in a file: each event is a record with a field for each channel."""

    source: str
    first_byte: int
    record: np.dtype
    masks: np.ndarray | None  # for integer values: a mask of the valid bits of each channel
    shape: tuple[int, int]
    dtype: np.dtype = np.dtype(np.float64)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the events from `start` to `stop` - 1, not yet scaled, (k, channels)."""
        place = self.first_byte + start * self.record.itemsize
        records = np.fromfile(self.source, self.record, stop - start, offset=place)
        if len(records) < stop - start:
            raise FormatError(f"{self.source}: ends before event {stop} (from 0); get a new copy")
        if self.masks is None:
            return recfunctions.structured_to_unstructured(records, dtype=self.dtype)
        return recfunctions.structured_to_unstructured(records, dtype=np.int64) & self.masks


@contextmanager
def read_fcs(source: str, wanted: Wanted, compensate: bool = False) -> Iterator[Opened]:
    """Yield the events of an FCS file of version 2.0, 3.0 or 3.1; `compensate` undoes spillover between detectors."""
    try:
        import flowio
        from flowio.exceptions import FlowIOException
    except ImportError as error:
        raise ImportError(f"FCS files need flowio: {install('cytometry')}") from error
    with open(source, "rb") as file:
        if file.read(3) != b"FCS":
            raise FormatError(f"{source}: does not begin with FCS; check that it is the file of a cytometer")
        try:
            data = flowio.FlowData(file, only_text=True)
            _check_channels(data.text, data.channel_count)
            events = _find_events(source, data)
            data.events = np.zeros(data.channel_count)
            data.as_array()  # raises if the keywords about scales are not valid
        except (FlowIOException, *_DAMAGE) as error:
            raise FormatError(
                f"{source}: cannot be read as FCS ({error}); get a new copy or export it as CSV"
            ) from error
    detectors, markers = ([name.strip() for name in names] for names in (data.pnn_labels, data.pns_labels))
    among, undone = _compensation(source, detectors, data.text) if compensate else ([], np.empty((0, 0)))

    def read(start: int, stop: int) -> np.ndarray:
        data.events = events.read(start, stop)
        scaled = data.as_array()
        if among:
            scaled[:, among] = scaled[:, among] @ undone
        return scaled

    names = _channels(markers, detectors)
    others = [m if name == detector else detector for name, m, detector in zip(names, markers, detectors, strict=True)]
    yield matrix_rows(source, events, wanted, read, distinct(source, names), others)


def _find_events(source: str, data: Any) -> _Events:
    """Return the place and format of the events in an FCS file; ValueError or LookupError if keywords are not valid."""
    text, channels, numbers = data.text, data.channel_count, range(1, data.channel_count + 1)
    if text["mode"].strip().upper() != "L":
        raise ValueError(f"$MODE is {text['mode'][:40]!r}, not L: it holds histograms, not events")
    order = _ORDERS.get(text["byteord"].strip())
    if order is None:
        raise ValueError(f"$BYTEORD is {text['byteord'][:40]!r}, not 1,2,3,4 or 4,3,2,1")
    kind, masks = text["datatype"].strip().upper(), None
    if kind == "I":
        bits = [int(text[f"p{channel}b"]) for channel in numbers]
        if not {*bits} <= {8, 16, 32}:
            raise ValueError(f"integers have {', '.join(map(str, sorted({*bits})))} bits, not 8, 16 or 32")
        kinds = [f"u{size // 8}" for size in bits]
        masks = np.array([_mask(channel, int(text[f"p{channel}r"])) for channel in numbers])
    else:
        kinds = [_KINDS[kind]] * channels
    record = np.dtype([(str(channel), order + size) for channel, size in zip(numbers, kinds, strict=True)])
    if data.version == "2.0":
        first, last = data.header["data_start"], data.header["data_stop"]
    else:
        first, last = int(text["begindata"]), int(text["enddata"])
    # Many files state an end that is one byte too far, so this is accepted.
    count, rest = divmod(last + 1 - first, record.itemsize)
    if rest > 1 or first < 0 or count < 0 or first + count * record.itemsize > data.file_size:
        raise ValueError(f"bytes {first} to {last} do not hold whole events of {record.itemsize} bytes")
    if count != int(text["tot"]):
        raise ValueError(f"$TOT is {int(text['tot'])}, but there is room for {count} events of {record.itemsize} bytes")
    return _Events(source, first, record, masks, (count, channels))


def _mask(channel: int, values: int) -> int:
    """Return the bits of an integer channel that count; the standard ignores bits beyond its range $PnR.

    >>> [_mask(1, values) for values in (1024, 1000, 2**64)]
    [1023, 1023, 4294967295]
    """
    if values < 1:
        raise ValueError(f"$P{channel}R, the number of values, is {values}")
    return (1 << min((values - 1).bit_length(), 32)) - 1


def _compensation(source: str, detectors: list[str], keywords: dict[str, str]) -> tuple[list[int], np.ndarray]:
    """Return the columns of the spillover matrix, and the inverse of the matrix.

    The keyword has the form ``SPILLOVER = n, n detectors, n x n shares by rows``.
    """
    text = next((keywords[key] for key in SPILL if keywords.get(key, "").strip()), None)
    if text is None:
        raise FormatError(f"{source}: has no spillover matrix ($SPILLOVER); import it without compensation")
    try:
        count, *fields = (field.strip() for field in text.split(","))
        size = int(count)
        among, parts = fields[:size], np.array(fields[size:], np.float64)
        if size < 1 or parts.size != size * size or not np.isfinite(parts).all():
            raise ValueError(f"{parts.size} finite parts for {size} detectors")
        places = [detectors.index(name) for name in among]
        if len(set(places)) < size:
            raise ValueError("a detector is named twice")
        return places, np.linalg.inv(parts.reshape(size, size))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise FormatError(
            f"{source}: its spillover matrix cannot be used ({error}); import it without compensation"
        ) from error


def _check_channels(keywords: dict[str, str], channels: int) -> None:
    """Raise ValueError if a channel has no name or its bits do not match its type, which flowio does not check."""
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
    """Return the label of each channel, or its short name if it has no label or shares its label."""
    taken = [label or short for label, short in zip(labels, short_names, strict=True)]
    return [short if taken.count(name) > 1 else name for name, short in zip(taken, short_names, strict=True)]
