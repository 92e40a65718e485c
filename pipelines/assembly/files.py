"""Contigs as files: FASTA, and GFA 1 with the links between them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pipelines.assembly.contigs import Contigs
from pipelines.formats.output_file import check_free, whole_file

LINE = 80  # letters
OURS = (">contig_", "H\tVN:Z:1")  # how files begin that may be replaced


def refuse_files(outputs: Sequence[str | os.PathLike[str]], inputs: Iterable[Any], overwrite: bool) -> None:
    """Refuse outputs that exist, or that are an input or each other.

    Raises
    ------
    FileExistsError, FileNotFoundError
        An output exists, and `overwrite` is not set; or there is no folder for it.
    ValueError
        An output is an input, or two outputs are one file, or what is to be replaced is another kind of file, such as
        reads.
    """
    taken = {os.path.realpath(path) for path in inputs}
    for out in outputs:
        if os.path.realpath(out) in taken:
            raise ValueError(f"{out} is read or written already; choose another file")
        taken.add(os.path.realpath(out))
        check_free(out, overwrite)
        if os.path.lexists(out) and not any(_text(out, 8).startswith(begin) for begin in OURS):
            raise ValueError(
                f"{out} was not written by this command, and is not replaced; choose another name for the result"
            )


def write_fasta(contigs: Contigs, path: str | os.PathLike[str]) -> None:
    """Write contigs as FASTA, whole or not at all; their headers have the fields length, coverage and circular."""
    write_pieces(path, _fasta(contigs))


def write_gfa(contigs: Contigs, path: str | os.PathLike[str]) -> None:
    """Write contigs and their links as GFA 1, whole or not at all; KC is the number of their k-mers in the reads."""
    write_pieces(path, _gfa(contigs))


def _fasta(contigs: Contigs) -> Iterator[str]:
    for i, (length, coverage, circular) in enumerate(
        zip(contigs.lengths.tolist(), contigs.coverage.tolist(), contigs.circular.tolist(), strict=True)
    ):
        letters = contigs.sequence(i)
        yield f">contig_{i + 1} length={length} coverage={coverage:.2f}{' circular=true' if circular else ''}\n"
        yield from (f"{letters[at : at + LINE]}\n" for at in range(0, length, LINE))


def _gfa(contigs: Contigs) -> Iterator[str]:
    yield "H\tVN:Z:1.0\n"
    for i, (length, counts) in enumerate(zip(contigs.lengths.tolist(), contigs.kmer_counts.tolist(), strict=True)):
        yield f"S\tcontig_{i + 1}\t{contigs.sequence(i)}\tLN:i:{length}\tKC:i:{counts}\n"
    for a, a_strand, b, b_strand in contigs.links().tolist():
        yield f"L\tcontig_{a + 1}\t{'+-'[a_strand]}\tcontig_{b + 1}\t{'+-'[b_strand]}\t{contigs.graph.k - 1}M\n"


def _text(path: str | os.PathLike[str], letters: int) -> str:
    """The beginning of a file of text, which may be gzip'd; nothing of one that is not text."""
    try:
        with (gzip.open if _zipped(path) else open)(path, "rt") as file:
            return file.read(letters)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return ""


def _zipped(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).endswith(".gz")


def write_pieces(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Write a file of text, gzip'd if its name ends in .gz, whole or not at all."""
    with whole_file(path) as partial, open(partial, "wb") as raw:
        if not _zipped(path):
            raw.writelines(piece.encode() for piece in pieces)
            return
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            file.writelines(piece.encode() for piece in pieces)
