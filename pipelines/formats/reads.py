"""Read FASTA and FASTQ files of sequencing reads, gzip'd or not, with the package `dnaio` (the `reads` extra)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpuops.extras import install
from pipelines.formats.errors import FormatError

BATCH_BYTES = 32 << 20

BREAK, INVALID = 4, 5  # codes of letters other than A, C, G and T, which have the codes 0 to 3


def _letter_codes() -> np.ndarray:
    codes = np.full(256, INVALID, np.uint8)
    for code, letters in (0, "Aa"), (1, "Cc"), (2, "Gg"), (3, "TtUu"), (BREAK, "RrYySsWwKkMmBbDdHhVvNn\n"):
        codes[[ord(letter) for letter in letters]] = code
    return codes


LETTER_CODES = _letter_codes()
"""(256,) uint8: the code of each byte. A, C, G, T are 0 to 3, U is T; IUPAC letters for several bases, and the
separator, are `BREAK`; all other bytes are `INVALID`."""


class Batch(NamedTuple):
    """A batch of reads.

    Attributes
    ----------
    codes : (b,) uint8
        The letters of the reads by `LETTER_CODES`, with one `BREAK` after each read.
    reads : int
        Number of reads.
    """

    codes: np.ndarray
    reads: int


def read_batches(paths: Iterable[str | os.PathLike[str]], *, batch_bytes: int = BATCH_BYTES) -> Iterator[Batch]:
    """Yield the reads of files in batches.

    Parameters
    ----------
    paths : FASTA or FASTQ files, which may be gzip'd
    batch_bytes : approximate number of letters in a batch

    Raises
    ------
    FormatError
        A file is neither FASTA nor FASTQ, is damaged, or has letters that are not nucleotides; the message names the
        record.
    ImportError
        `dnaio` is not installed.
    """
    try:
        import dnaio
    except ImportError as error:
        raise ImportError(f"FASTA and FASTQ files need dnaio: {install('reads')}") from error
    for path in paths:
        try:
            with dnaio.open(os.fspath(path), mode="r", open_threads=0) as records:
                yield from _batches(path, records, batch_bytes)
        except dnaio.UnknownFileFormat as error:
            raise FormatError(f"{path}: neither FASTA nor FASTQ; records begin with > or @") from error
        except dnaio.FileFormatError as error:
            raise FormatError(f"{path}: {error}; correct the file") from error
        except FileNotFoundError as error:
            raise FormatError(f"{path}: cannot be read (no such file); check the name") from error
        except FormatError:
            raise
        except UnicodeError as error:
            raise FormatError(f"{path}: is not ASCII; get a new copy, or convert it") from error
        except Exception as error:  # of many types: several libraries read gzip for dnaio
            raise FormatError(f"{path}: cannot be read ({error}); get a new copy") from error


def _batches(path: str | os.PathLike[str], records: Iterable[Any], batch_bytes: int) -> Iterator[Batch]:
    names: list[str] = []
    parts: list[bytes] = []
    held = 0
    for record in records:
        names.append(record.name)
        parts.append(_ascii(path, record))
        held += len(parts[-1]) + 1
        if held >= batch_bytes:
            yield _batch(path, names, parts)
            names, parts, held = [], [], 0
    if parts:
        yield _batch(path, names, parts)


def _ascii(path: str | os.PathLike[str], record: Any) -> bytes:
    try:
        return record.sequence.encode("ascii")
    except UnicodeEncodeError as error:
        raise FormatError(f"{path}: record {record.name!r} has letters outside ASCII; correct the file") from error


def _batch(path: str | os.PathLike[str], names: list[str], parts: list[bytes]) -> Batch:
    text = np.frombuffer(b"\n".join([*parts, b""]), np.uint8)
    codes = LETTER_CODES[text]
    wrong = codes == INVALID
    if wrong.any():
        _refuse(path, names, parts, int(wrong.argmax()))
    return Batch(codes, len(parts))


def _refuse(path: str | os.PathLike[str], names: list[str], parts: list[bytes], place: int) -> None:
    for name, part in zip(names, parts, strict=True):
        if place < len(part):
            letter = chr(part[place])
            cure = "take the gaps out of the alignment" if letter in "-.~" else "correct the file"
            raise FormatError(
                f"{path}: record {name!r} has {letter!r} at position {place + 1}, which is not a nucleotide; {cure}"
            )
        place -= len(part) + 1
