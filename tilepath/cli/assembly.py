"""The commands that apply Euler circuits: `tilepath assemble` and `tilepath sequence de-bruijn`."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.help_pages import page
from tilepath.cli.shared_options import OVERWRITE


@page("de-bruijn", example="tilepath sequence de-bruijn 0123456789 4 --out pins.txt")
@click.argument("alphabet")
@click.argument("order", type=click.IntRange(min=1))
@click.option("--cyclic", is_flag=True, help="Leave out the last ORDER - 1 letters, which repeat the first ones.")
@click.option("--out", type=click.Path(), help="Write the sequence to this file instead of the terminal.")
@OVERWRITE
def de_bruijn(alphabet: str, order: int, cyclic: bool, out: str | None, overwrite: bool) -> None:
    """Print the shortest text that contains every word of ORDER letters of ALPHABET exactly once.

    The example makes the shortest key sequence that opens any lock that checks the last four digits typed.
    """
    from pipelines import de_bruijn_sequence
    from pipelines.assembly.assemble import write_pieces
    from pipelines.files.output_file import check_free
    from pipelines.stores.schema import counted

    if out is not None:
        check_free(out, overwrite)
    sequence = de_bruijn_sequence(alphabet, order, cyclic=cyclic)
    if out is None:
        click.echo(sequence)
        return
    write_pieces(out, [sequence, "\n"])
    letters, words = counted(len(sequence), "letter"), counted(len(alphabet) ** order, "word")
    click.echo(f"{out}: {letters}; {words}, each once")


@page(example="tilepath assemble reads.fastq.gz contigs.fa")
@click.argument("reads", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.argument("out", type=click.Path())
@click.option("--k", type=int, default=31, show_default=True, help="Letters in a k-mer: an odd number from 3 to 31.")
@click.option(
    "--min-coverage",
    type=int,
    default=1,
    show_default=True,
    help="Leave out k-mers that are read fewer times than this.",
)
@click.option(
    "--tips",
    "tip_letters",
    type=int,
    default=0,
    show_default=True,
    help="Leave out dead ends of fewer letters than this that branch off a more frequent contig.",
)
@click.option("--gfa", type=click.Path(), help="Write contigs and their links to this file, in GFA 1.")
@click.option("--graph", type=click.Path(), help="Write the de Bruijn graph of both strands to this graph store.")
@OVERWRITE
def assemble(reads: tuple[str, ...], out: str, **options: Any) -> None:
    """Find the contigs of a genome in READS, FASTA or FASTQ files, and write them to the FASTA file OUT.

    Contigs are the unbranched paths of the de Bruijn graph of both strands. The command shows a use of Euler circuits;
    it is not an assembler to rely on: it does not correct errors, resolve repeats longer than k, or use qualities or
    pairs.
    """
    from pipelines import assemble as find
    from pipelines.stores.schema import counted

    found = find(reads, out, **options)
    contigs, k = found.contigs, options["k"]
    click.echo(f"reads     {found.reads:,} with {counted(found.bases, 'base')}")
    click.echo(f"{k}-mers{' ' * (4 - len(str(k)))}{found.kmers:,} different k-mers, both strands together")
    if options["min_coverage"] > 1 or options["tip_letters"]:
        click.echo(
            f"left out  {found.rare:,} read fewer than {options['min_coverage']} times, {found.clipped:,} in dead ends"
        )
    circles = int(contigs.circular.sum())
    click.echo(
        f"{out}: {counted(len(contigs), 'contig')}, {int(contigs.lengths.sum()):,} bases, the longest"
        f" {int(contigs.lengths.max()):,}, N50 {contigs.n50:,}" + (f", {circles:,} circular" if circles else "")
    )
