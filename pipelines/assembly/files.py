"""Contigs as files: FASTA, and GFA 1 with the links between them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipelines.assembly.contigs import Contigs

LINE = 80  # letters


def refuse_files(outputs: Sequence[str | os.PathLike[str]], inputs: Iterable[Any], overwrite: bool) -> None:
    """Refuse outputs that exist, or that are an input or each other.

    Raises
    ------
    FileExistsError
        An output exists, and `overwrite` is not set.
    ValueError
        An output is an input, or two outputs are one file.
    """
    taken = {os.path.realpath(path) for path in inputs}
    for out in outputs:
        if os.path.realpath(out) in taken:
            raise ValueError(f"{out} is read or written already; choose another file")
        taken.add(os.path.realpath(out))
        if os.path.lexists(out) and not overwrite:
            raise FileExistsError(f"{out} exists already; choose another name or pass overwrite (--overwrite)")


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


def write_pieces(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Write a file of text, whole or not at all."""
    place = Path(path)
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        with open(partial, "w") as file:
            file.writelines(pieces)
        os.replace(partial, place)
    finally:
        partial.unlink(missing_ok=True)
