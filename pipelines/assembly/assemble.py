"""The call `assemble`, from reads to contigs, and the files of contigs: FASTA, and GFA 1 with links between contigs.

The call shows a use of the operations on Euler circuits. It is not an assembler to rely on. It leaves out rare k-mers,
but corrects no errors; it does not resolve repeats longer than k; and it uses neither qualities nor pairs of reads.
SPAdes, MEGAHIT and hifiasm do all of this.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuops.options import whole
from pipelines.assembly.contigs import Contigs, DeBruijnGraph, de_bruijn_graph, find_contigs, tips
from pipelines.assembly.kmers import Kmers, check_k, count_kmers, reverse_complements, text_of
from pipelines.files.output_file import check_free, whole_file
from pipelines.formats.reads import read_batches
from pipelines.stores.graph import SCHEMA
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.place import refuse_existing

LINE = 80  # letters in a line of FASTA
OURS = (">contig_", "H\tVN:Z:1")  # the beginnings of files that `overwrite` may replace


class Assembly(NamedTuple):
    """The contigs, and counts of what was read and left out.

    Attributes
    ----------
    contigs : Contigs
    reads, bases : int
    kmers : int
        Number of different k-mers; a k-mer and its reverse complement count as one.
    rare : int
        Number of k-mers that were left out because they occur fewer than `min_coverage` times.
    clipped : int
        Number of k-mers that were left out with tips.
    """

    contigs: Contigs
    reads: int
    bases: int
    kmers: int
    rare: int
    clipped: int


def assemble(
    reads: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    *,
    k: int = 31,
    min_coverage: int = 1,
    tip_letters: int = 0,
    gfa: str | os.PathLike[str] | None = None,
    graph: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Assembly:
    """Find the contigs of a genome: the unbranched paths of the de Bruijn graph of its reads.

    Parameters
    ----------
    reads : one or more files, FASTA or FASTQ, which may be gzip'd; reads may be of either strand
    out : FASTA file for the contigs
    k : number of letters in a k-mer, odd, 3 to 31. A repeat of k letters or more ends contigs, and each error of a read
        makes about k wrong k-mers
    min_coverage : leave out k-mers that occur fewer times than this in the reads, on both strands together
    tip_letters : leave out tips of fewer letters than this; 0 keeps all
    gfa : file for the contigs and the links between them, in GFA 1
    graph : graph store for the de Bruijn graph of both strands; weights are counts, labels are words of k - 1 letters
    overwrite : replace existing files and an existing store

    Raises
    ------
    FormatError
        A file cannot be read as reads.
    ValueError
        An argument is out of range, or no k-mer is left.
    FileExistsError, StoreError
        An output exists.

    Examples
    --------
    >>> with open("reads.fa", "w") as file:
    ...     print(">read", file=file)
    ...     print("GATTACAGATTTC", file=file)
    >>> found = tilepath.assemble("reads.fa", k=5)
    >>> found.kmers, len(found.contigs)
    (9, 2)
    """
    check_k(k)
    whole("min_coverage", min_coverage, 1)
    whole("tip_letters", tip_letters, 0)
    paths = [reads] if isinstance(reads, str | os.PathLike) else list(reads)
    refuse_files([path for path in (out, gfa) if path is not None], paths, overwrite)
    if graph is not None:
        refuse_existing(graph, SCHEMA, overwrite)

    kmers = count_kmers(read_batches(paths), k)
    if not kmers.bases:
        raise ValueError(f"{', '.join(map(str, paths))}: no reads; give FASTA or FASTQ files with reads")
    if not len(kmers.codes):
        raise ValueError(
            f"the {kmers.bases:,} bases that were read have no {k} nucleotides in a row; give a smaller k (--k)"
        )
    frequent = _only(kmers, kmers.counts >= min_coverage)
    if not len(frequent.codes):
        raise ValueError(f"no {k}-mer occurs {min_coverage:,} times in the reads; give a smaller min_coverage")
    contigs, clipped = _clipped(frequent, tip_letters)

    if out is not None:
        write_pieces(out, _fasta(contigs))
    if gfa is not None:
        write_pieces(gfa, _gfa(contigs))
    if graph is not None:
        _write_store(contigs.graph, graph, overwrite)
    rare = len(kmers.codes) - len(frequent.codes)
    return Assembly(contigs, kmers.reads, kmers.bases, len(kmers.codes), rare, clipped)


def _clipped(kmers: Kmers, tip_letters: int) -> tuple[Contigs, int]:
    """Return the contigs without tips, and the number of k-mers in tips.

    Tips are left out until there are none, as a contig may become a tip when another tip is gone.
    """
    all_of_them = len(kmers.codes)
    while True:
        contigs = find_contigs(de_bruijn_graph(kmers))
        blind = tips(contigs, tip_letters)
        if not len(blind):
            return contigs, all_of_them - len(kmers.codes)
        lost = np.concatenate([contigs.codes(i) for i in blind])
        kmers = _only(kmers, ~np.isin(kmers.codes, np.concatenate([lost, reverse_complements(lost, kmers.k)])))


def _only(kmers: Kmers, kept: np.ndarray) -> Kmers:
    return kmers._replace(codes=kmers.codes[kept], counts=kmers.counts[kept])


def _write_store(graph: DeBruijnGraph, path: str | os.PathLike[str], overwrite: bool) -> None:
    labels = np.array(text_of(graph.vertices, graph.k - 1))
    write_graph(
        path, graph.indptr, graph.indices, graph.counts, labels=labels, overwrite=overwrite, weight_unit="reads"
    )


def refuse_files(outputs: Sequence[str | os.PathLike[str]], inputs: Iterable[Any], overwrite: bool) -> None:
    """Refuse outputs that cannot be written, or that are the same file as an input or another output.

    Raises
    ------
    FileExistsError, FileNotFoundError
        An output exists, and `overwrite` is not set; or there is no folder for it.
    ValueError
        An output is an input, two outputs are one file, or an output would replace a file of another kind, such as
        reads.
    """
    taken = {os.path.realpath(path) for path in inputs}
    for out in outputs:
        if os.path.realpath(out) in taken:
            raise ValueError(f"{out} is also an input or another output; choose another file")
        taken.add(os.path.realpath(out))
        check_free(out, overwrite)
        if os.path.lexists(out) and not any(_text(out, 8).startswith(begin) for begin in OURS):
            raise ValueError(
                f"{out} was not written by this command, so it is not replaced; choose another name for the result"
            )


def _fasta(contigs: Contigs) -> Iterator[str]:
    """Yield contigs as FASTA; headers have the fields length, coverage and circular."""
    for i, (length, coverage, circular) in enumerate(
        zip(contigs.lengths.tolist(), contigs.coverage.tolist(), contigs.circular.tolist(), strict=True)
    ):
        letters = contigs.sequence(i)
        yield f">contig_{i + 1} length={length} coverage={coverage:.2f}{' circular=true' if circular else ''}\n"
        yield from (f"{letters[at : at + LINE]}\n" for at in range(0, length, LINE))


def _gfa(contigs: Contigs) -> Iterator[str]:
    """Yield contigs and their links as GFA 1; KC is the number of k-mers of a contig in the reads."""
    yield "H\tVN:Z:1.0\n"
    for i, (length, counts) in enumerate(zip(contigs.lengths.tolist(), contigs.kmer_counts.tolist(), strict=True)):
        yield f"S\tcontig_{i + 1}\t{contigs.sequence(i)}\tLN:i:{length}\tKC:i:{counts}\n"
    for a, a_strand, b, b_strand in contigs.links().tolist():
        yield f"L\tcontig_{a + 1}\t{'+-'[a_strand]}\tcontig_{b + 1}\t{'+-'[b_strand]}\t{contigs.graph.k - 1}M\n"


def _text(path: str | os.PathLike[str], letters: int) -> str:
    """Return the first letters of a text file, which may be gzip'd; an empty text for any other file."""
    try:
        with (gzip.open if _zipped(path) else open)(path, "rt") as file:
            return file.read(letters)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return ""


def _zipped(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).endswith(".gz")


def write_pieces(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Write a text file, whole or not at all; it is gzip'd if its name ends in .gz."""
    with whole_file(path) as partial, open(partial, "wb") as raw:
        if not _zipped(path):
            raw.writelines(piece.encode() for piece in pieces)
            return
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            file.writelines(piece.encode() for piece in pieces)
