"""Contigs against a plain search in text, and against what is expected of genomes with planted repeats."""

import gzip
import re

import numpy as np
import pytest
from campaigns import campaign, play
from commands import invoke, run_command
from hypothesis import given
from hypothesis import strategies as st

from pipelines import assemble, open_graph
from pipelines.assembly.contigs import de_bruijn_graph, find_contigs
from pipelines.assembly.kmers import count_kmers, reverse_complements, text_of
from pipelines.formats.reads import LETTER_CODES, Batch, read_batches
from pipelines.stores.errors import StoreError

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def complement(text):
    return text[::-1].translate(COMPLEMENT)


def canonical(text):
    return min(text, complement(text))


def random_genome(rng, letters):
    return "".join(rng.choice(list("ACGT"), letters))


def shred(genome, rng, length=150, coverage=20):
    """Reads without errors, of either strand, that cover the genome to its ends."""
    last = len(genome) - length
    starts = [*rng.integers(0, last + 1, len(genome) * coverage // length), *range(0, last, length // 3), last]
    reads = [genome[start : start + length] for start in starts]
    return [read if rng.random() < 0.5 else complement(read) for read in reads]


def write_reads(path, reads):
    path.write_text("".join(f">read_{i}\n{read}\n" for i, read in enumerate(reads)))
    return path


def contigs_of(reads, k, **options):
    """Contigs of reads in memory."""
    codes = np.concatenate([LETTER_CODES[np.frombuffer(f"{read}\n".encode(), np.uint8)] for read in reads])
    return find_contigs(de_bruijn_graph(count_kmers([Batch(codes, len(reads))], k, **options)))


def texts(contigs):
    return [contigs.sequence(i) for i in range(len(contigs))]


def plain_contigs(reads, k):
    """Find the same by words: linear contigs by the smaller strand, circles by their sets of k-mers."""
    words = {read[i : i + k] for read in reads for i in range(len(read) - k + 1)}
    words |= {complement(word) for word in words}
    after = {word: [word[1:] + letter for letter in "ACGT" if word[1:] + letter in words] for word in words}
    before = {word: [letter + word[:-1] for letter in "ACGT" if letter + word[:-1] in words] for word in words}

    def goes_on(word):
        joint = word[1:]
        return len(after[word]) == 1 and len(before[after[word][0]]) == 1 and joint != complement(joint)

    begins = [w for w in words if not (len(before[w]) == 1 and goes_on(before[w][0]))]
    linear, seen = set(), set()
    for word in begins:
        text = word
        seen.add(word)
        while goes_on(word):
            word = after[word][0]
            seen.add(word)
            text += word[-1]
        linear.add(canonical(text))
    circles = set()
    for word in words - seen:
        circle = [word]
        while after[circle[-1]][0] != word:
            circle.append(after[circle[-1]][0])
        circles.add(frozenset(canonical(w) for w in circle))
    return linear, circles


def check(reads, k):
    compare(contigs_of(reads, k), reads, k)


def compare(contigs, reads, k):
    linear, circles = plain_contigs(reads, k)
    found = texts(contigs)
    assert sorted(canonical(t) for t, round_ in zip(found, contigs.circular, strict=True) if not round_) == sorted(
        linear
    )
    around = [t + t[:1] * 0 + (t * k)[: k - 1] for t, round_ in zip(found, contigs.circular, strict=True) if round_]
    assert {frozenset(canonical(t[i : i + k]) for i in range(len(t) - k + 1)) for t in around} == circles
    assert len(around) == len(circles)
    np.testing.assert_array_equal(contigs.lengths, [len(text) for text in found])


def hostile_reads(rng):
    """Reads, of either strand and with errors, of a genome with repeats, inverted repeats and palindromes."""
    pieces = [random_genome(rng, int(rng.integers(1, 60))) for _ in range(3)]
    pieces += [complement(pieces[0]), pieces[1], pieces[2] + complement(pieces[2]), "AT" * int(rng.integers(20))]
    genome = "".join(pieces[i] for i in rng.integers(0, len(pieces), int(rng.integers(1, 9))))
    genome += genome[:40] * bool(rng.integers(2))  # a circle
    reads = []
    for _ in range(int(rng.integers(1, 12))):
        first, last = sorted(rng.integers(0, len(genome) + 1, 2))
        read = [*(complement(genome[first:last]) if rng.random() < 0.5 else genome[first:last])]
        for place in np.flatnonzero(rng.random(len(read)) < 0.01):
            read[place] = rng.choice([*"ACGTNRY"])
        reads.append("".join(read))
    return [genome, *reads] if rng.random() < 0.5 else reads


def write_hostile(path, reads, rng):
    """As FASTA or FASTQ, lines wrapped, U for T, lower case, line ends of Windows, gzip'd; the path."""
    fastq, end = rng.random() < 0.3, rng.choice(["\n", "\r\n"])
    width = 10**6 if fastq else int(rng.choice([7, 60, 10**6]))
    text = ""
    for number, read in enumerate(reads):
        read = read.replace("T", "U") if rng.random() < 0.1 else read
        read = read.lower() if rng.random() < 0.2 else read
        lines = [read[at : at + width] for at in range(0, len(read), width)] or [""]
        text += end.join([f"{'@' if fastq else '>'}r{number} x", *lines, *["+", "I" * len(read)] * fastq, ""])
    path = path.with_name("r.fq" if fastq else "r.fa")
    path.write_bytes(text.encode())
    if rng.random() < 0.2:
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress(text.encode()))
    return path


@campaign(few=30, many=5_000)
def test_hostile_files_of_reads_give_the_contigs_of_a_plain_search(tmp_path, seeds):
    """``pytest -m slow -s`` and this file: refused are reads without a k-mer."""

    def trial(rng):
        reads, k = hostile_reads(rng), int(rng.choice([3, 5, 9, 15, 31]))
        path = write_hostile(tmp_path / "r", reads, rng)
        words = [word for read in reads for word in re.split("[^ACGT]", read)]
        try:
            found = assemble(path, k=k).contigs
        except ValueError:
            if max(map(len, words)) >= k:
                raise
            return "refused"
        compare(found, words, k)
        return None

    play(seeds, trial)


@given(st.lists(st.text("ACGT", min_size=1, max_size=60), min_size=1, max_size=4), st.sampled_from([3, 5, 7]))
def test_any_reads_give_the_contigs_of_a_plain_search(reads, k):
    check(reads, k)


@given(st.lists(st.text("AT", min_size=8, max_size=60), min_size=1, max_size=4), st.sampled_from([3, 5]))
def test_words_that_are_their_own_reverse_complements(reads, k):
    check(reads, k)


@given(st.text("ACGT", min_size=3, max_size=60), st.sampled_from([3, 5, 7]))
def test_links_are_the_overlaps_of_contigs(read, k):
    contigs = contigs_of([read + read[: len(read) // 2], complement(read)], k)
    strands = [(text, complement(text)) for text in texts(contigs)]
    linear = [i for i in range(len(contigs)) if not contigs.circular[i]]
    expected = set()
    for a in linear:
        for b in linear:
            for link in ((a, s, b, t) for s in (0, 1) for t in (0, 1)):
                if strands[a][link[1]][-(k - 1) :] == strands[b][link[3]][: k - 1]:
                    expected.add(min(link, (b, 1 - link[3], a, 1 - link[1])))
    found = [tuple(link) for link in contigs.links().tolist() if not contigs.circular[link[0]]]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("k", [21, 31])
def test_a_genome_without_repeats_is_one_contig(tmp_path, k):
    rng = np.random.default_rng(k)
    genome = random_genome(rng, 50_000)
    found = assemble(write_reads(tmp_path / "r.fa", shred(genome, rng)), tmp_path / "c.fa", k=k).contigs
    assert [canonical(text) for text in texts(found)] == [canonical(genome)]
    assert found.n50 == 50_000
    header, *lines = (tmp_path / "c.fa").read_text().splitlines()
    assert header.startswith(">contig_1 length=50000 coverage=")
    assert canonical("".join(lines)) == canonical(genome)


def test_planted_repeats_cut_the_contigs_where_they_are_expected(tmp_path):
    rng = np.random.default_rng(5)
    k = 31
    r, s = random_genome(rng, 300), random_genome(rng, 90)
    a, b, c, d, e = (
        first + random_genome(rng, letters - 2) + last  # beside its copies a repeat has different letters, or is longer
        for letters, first, last in (
            (12_000, "A", "A"),
            (9_000, "A", "C"),
            (11_000, "C", "A"),
            (8_000, "A", "G"),
            (9_220, "G", "A"),
        )
    )
    genome = a + r + b + s + c + complement(r) + d + s + e
    assert len(genome) == 50_000
    o = k - 1
    expected = [
        a + r[:o], r, r[-o:] + b + s[:o], s, s[-o:] + c + complement(r)[:o],
        complement(r)[-o:] + d + s[:o], s[-o:] + e,
    ]  # fmt: skip
    reads = write_reads(tmp_path / "r.fa", shred(genome, rng))
    found = assemble(reads, k=k, gfa=tmp_path / "c.gfa").contigs
    assert sorted(map(canonical, texts(found))) == sorted(map(canonical, expected))
    assert found.n50 == len(expected[-1])  # of 49,850 letters, 23,090 are in longer contigs
    kinds = [line.split("\t")[0] for line in (tmp_path / "c.gfa").read_text().splitlines()]
    assert kinds == ["H"] + ["S"] * 7 + ["L"] * 8  # two ways in and two out at each repeat
    frequent = found.coverage[[len(text) in (300, 90) for text in texts(found)]]
    assert frequent.min() > 1.5 * np.median(found.coverage)


def test_a_circular_genome_is_one_circle(tmp_path):
    rng = np.random.default_rng(6)
    genome = random_genome(rng, 5_000)
    found = assemble(write_reads(tmp_path / "r.fa", shred(genome + genome[:149], rng)), tmp_path / "c.fa").contigs
    assert found.circular.tolist() == [True]
    (text,) = texts(found)
    assert len(text) == 5_000
    assert text in genome * 2 or complement(text) in genome * 2
    assert found.links().tolist() == [[0, 0, 0, 0]]
    assert "circular=true" in (tmp_path / "c.fa").read_text()


def test_errors_of_reads_leave_with_rare_kmers_or_with_tips(tmp_path):
    rng = np.random.default_rng(7)
    genome = random_genome(rng, 5_000)
    reads = shred(genome, rng) * 2  # the ends more than once
    middle = complement(genome[2_000:2_075] + ("A" if genome[2_075] != "A" else "C"))  # wrong at the end of a read
    reads.append(middle)
    path = write_reads(tmp_path / "r.fa", reads)
    assert len(assemble(path).contigs) == 3
    for options, left_out in ({"tip_letters": 62}, (0, 1)), ({"min_coverage": 2}, (1, 0)):
        found = assemble(path, **options)
        assert [canonical(text) for text in texts(found.contigs)] == [canonical(genome)]
        assert (found.rare, found.clipped) == left_out
    assert len(assemble(path, tip_letters=31).contigs) == 3  # the tip has 31 letters


@pytest.mark.parametrize("k", [3, 15, 31])
def test_reverse_complements(k):
    rng = np.random.default_rng(k)
    codes = rng.integers(0, 1 << 2 * k, 200, dtype=np.uint64)
    assert text_of(reverse_complements(codes, k), k) == [complement(text) for text in text_of(codes, k)]


def test_counts_do_not_depend_on_batches(tmp_path):
    rng = np.random.default_rng(8)
    path = write_reads(tmp_path / "r.fa", [*shred(random_genome(rng, 3_000), rng), "ACGTNNACGATTTACGT", "acgu", ""])
    whole = count_kmers(read_batches([path]), 5)
    pieces = count_kmers(read_batches([path], batch_bytes=300), 5)
    for one, other in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(one, other)
    words = [
        r[i : i + 5] for r in path.read_text().upper().replace("U", "T").split("\n")[1::2] for i in range(len(r) - 4)
    ]
    words = [canonical(word) for word in words if "N" not in word]
    assert dict(zip(text_of(whole.codes, 5), whole.counts.tolist(), strict=True)) == {
        w: words.count(w) for w in {*words}
    }


def test_fastq_and_gzip_are_read_alike(tmp_path):
    read = "ACGGTACCATGGTACATTG"
    (tmp_path / "r.fa").write_text(f">a\n{read[:7]}\n{read[7:]}\n")
    (tmp_path / "r.fastq.gz").write_bytes(gzip.compress(f"@a\n{read}\n+\n{'I' * len(read)}\n".encode()))
    found = [texts(assemble(tmp_path / name, k=9).contigs) for name in ("r.fa", "r.fastq.gz")]
    assert found[0] == found[1]


def test_the_graph_is_stored(tmp_path):
    found = assemble(write_reads(tmp_path / "r.fa", ["ACGGTACCATGG"]), k=5, graph=tmp_path / "g.zarr")
    graph = open_graph(tmp_path / "g.zarr")
    graph.verify()
    assert (graph.n, graph.m) == (len(found.contigs.graph.vertices), len(found.contigs.graph.codes))
    assert graph.label(0) == text_of(found.contigs.graph.vertices[:1], 4)[0]
    with pytest.raises(StoreError, match="exists"):
        assemble(tmp_path / "r.fa", k=5, graph=tmp_path / "g.zarr")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (">a\nACG-T\n", {}, r"r.fa: record 'a' has '-' at position 4, which is not a nucleotide; take the gaps out"),
        (">a\nACGT\n>b\nAC1\n", {}, "record 'b' has '1' at position 3, which is not a nucleotide; correct the file"),
        ("hello\n", {}, "r.txt: neither FASTA nor FASTQ; records begin with > or @"),
        ("@a\nACGT\n+\nIII\n", {}, "r.fq: .*line 4.*; correct the file"),
        ("@a\nACGT\n", {}, "r.fq: .*; correct the file"),
        ("", {}, "r.txt: no reads; give FASTA or FASTQ files"),
        (">a\nACNGT\n", {}, "the 5 bases that were read have no 3 nucleotides in a row; give a smaller k"),
        (">a\nACGT\n", {"k": 4}, "k is 4; give an odd number: a word of even length"),
        (">a\nACGT\n", {"k": 33}, "k is 33; give an odd number from 3 to 31"),
        (">a\nACGT\n", {"min_coverage": 0}, "min_coverage is 0; give a whole number from 1"),
        (">a\nACGA\n", {"min_coverage": 3}, "no 3-mer occurs 3 times in the reads; give a smaller min_coverage"),
        (">a\nACGT\n", {"tip_letters": -1}, "tip_letters is -1"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, text, options, message):
    reads = tmp_path / ("r.fq" if text.startswith("@") else "r.fa" if text.startswith(">") else "r.txt")
    reads.write_text(text)
    with pytest.raises(ValueError, match=message):
        assemble(reads, tmp_path / "c.fa", **({"k": 3} | options))
    assert list(tmp_path.iterdir()) == [reads]


def test_damaged_gzip_is_named(tmp_path):
    whole = gzip.compress(b">a\n" + b"ACGT" * 10_000)
    (tmp_path / "r.fa.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"r.fa.gz: .*"):
        assemble(tmp_path / "r.fa.gz")


def test_the_command(tmp_path):
    rng = np.random.default_rng(9)
    reads = str(write_reads(tmp_path / "r.fa", shred(random_genome(rng, 2_000), rng)))
    out = str(tmp_path / "c.fa")
    said = run_command("assemble", reads, reads, out, "--k", "21")
    assert said.output.splitlines()[-1] == f"{out}: 1 contig, 2,000 bases, the longest 2,000, N50 2,000"
    assert isinstance(invoke("assemble", reads, out).exception, FileExistsError)
    same = invoke("assemble", reads, reads, "--overwrite")
    assert "is also an input or another output" in str(same.exception)


def test_what_overwrite_replaces_are_contigs_and_not_reads(tmp_path):
    rng = np.random.default_rng(10)
    genome = random_genome(rng, 400)
    reads, more = (write_reads(tmp_path / name, shred(genome, rng)) for name in ("a.fa", "b.fa"))
    before = more.read_bytes()
    with pytest.raises(ValueError, match=r"b.fa was not written by this command, so it is not replaced"):
        assemble(reads, more, overwrite=True)
    assert more.read_bytes() == before
    for overwrite in (False, True):
        for name in ("c.fa", "c.fa.gz"):
            assemble(reads, tmp_path / name, gfa=tmp_path / f"{name}.gfa", overwrite=overwrite)
    again = assemble(tmp_path / "c.fa.gz", k=31).contigs
    assert [canonical(text) for text in texts(again)] == [canonical(genome)]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        assemble(reads, tmp_path / "d.fa", gfa=tmp_path / "nowhere" / "c.gfa")
    assert not (tmp_path / "d.fa").exists()
