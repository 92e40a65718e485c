"""Reads of a genome with a planted repeat, its contigs, and which follow each other."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipelines import assemble

rng = np.random.default_rng(1)


def random_letters(count: int) -> str:
    return "".join(rng.choice(list("ACGT"), count))


def reverse_complement(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


repeat = random_letters(200)
genome = random_letters(20_000) + repeat + random_letters(15_000) + repeat + random_letters(14_600)
last = len(genome) - 150
starts = [*rng.integers(0, last + 1, 8_000), *range(0, last, 50), last]
reads = [genome[start : start + 150] for start in starts]
reads = [read if rng.random() < 0.5 else reverse_complement(read) for read in reads]

with TemporaryDirectory() as folder:
    file = Path(folder) / "reads.fa"
    file.write_text("".join(f">read_{i}\n{read}\n" for i, read in enumerate(reads)))
    found = assemble(file)

contigs = found.contigs
print(
    f"a genome of {len(genome):,} bases, {found.reads:,} reads, {found.kmers:,} different 31-mers; N50 {contigs.n50:,}"
)
for i, (length, coverage) in enumerate(zip(contigs.lengths, contigs.coverage, strict=True)):
    place = next(
        (
            f"{strand} strand, at {text.index(contigs.sequence(i)):,}"
            + (", twice" if text.count(contigs.sequence(i)) > 1 else "")
        )
        for strand, text in (("this", genome), ("other", reverse_complement(genome)))
        if contigs.sequence(i) in text
    )
    print(f"contig {i + 1}: {length:6,} bases, each k-mer in {coverage:4.1f} reads; {place}")
for a, a_strand, b, b_strand in contigs.links():
    print(f"contig {a + 1}{'+-'[a_strand]} is followed by contig {b + 1}{'+-'[b_strand]}")
