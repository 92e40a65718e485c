"""Mutated files of all formats of samples end in the rows that a plain reader gives, or in one clear error.

Text is read by Python's csv module and by pandas, arrays by NumPy, Parquet and Arrow by pyarrow in one go, FCS by the
keywords of its TEXT segment and by flowio, .h5ad by anndata, reads letter by letter.
"""

from __future__ import annotations

import csv
import io
import re
import warnings

import anndata
import flowio
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from campaigns import campaign, play
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import BYTES, drawn, refused, unzipped

from pipelines.formats.errors import FormatError
from pipelines.formats.reads import LETTER_CODES, read_batches
from pipelines.formats.samples import import_samples

# What counts as absent, as documented for pyarrow.csv.ConvertOptions.null_values
ABSENT = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "N/A",
    "NA",
    "NULL",
]
ABSENT += ["NaN", "n/a", "nan", "null"]


def plain_csv(content, columns):
    """Values, and labels in the last column where there is one called kind; the header as the store has it."""
    text = unzipped(content).decode().removeprefix("\ufeff")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if columns != tuple(map(str, range(len(rows[0])))):
        names = [name.strip() for name in rows.pop(0)]
        assert names == [*columns]
        assert not any(re.fullmatch(r"[+-]?[\d.]+", name) for name in names)
    assert all(len(row) == len(columns) for row in rows)
    values = np.array([[value(word.strip()) for word in row] for row in rows])
    if not re.search(r'"[^",]*[ \n\r]|[ \n\r][^",]*"', text):  # blanks in quotation marks belong to the field in pandas
        table = pd.read_csv(io.StringIO(text, newline=""), header=None, dtype=str)
        table = table.iloc[len(table) - len(rows) :].apply(lambda column: column.str.strip())
        np.testing.assert_array_equal(table.replace(ABSENT, np.nan).astype(float), values)
    return values


def value(word):
    if word in ABSENT or re.fullmatch("[+-]?nan", word, re.IGNORECASE):
        return np.nan
    assert re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word, re.ASCII), word
    return float(word)


def plain_npz(content):
    with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
        return loaded["values"] if "values" in loaded.files else loaded[loaded.files[0]]


def plain_fcs(content):
    """The events of a file of linear 32-bit floats, at the offsets that it states; None where they are not linear."""
    begin, end = int(content[10:18]), int(content[18:26])
    text = content[begin : end + 1].decode("latin-1")
    words = text[1:-1].split(text[0])
    facts = {key.upper(): word.strip() for key, word in zip(words[::2], words[1::2], strict=False)}
    start = int(facts.get("$BEGINDATA", "0")) or int(content[26:34])
    size, total = int(facts["$PAR"]), int(facts["$TOT"])
    dtype = np.dtype("f4").newbyteorder("<" if facts["$BYTEORD"] == "1,2,3,4" else ">")
    assert facts["$DATATYPE"].upper() == "F"
    if any(facts.get(f"$P{i}E", "0,0") != "0,0" for i in range(1, size + 1)):
        return None
    assert all(facts[f"$P{i}B"] == "32" for i in range(1, size + 1))
    values = np.frombuffer(content, dtype, size * total, start).reshape(total, size).astype(float)
    return values / [float(facts.get(f"$P{i}G", "1") or 1) for i in range(1, size + 1)]


def by_flowio(content, columns):
    """The events as flowio reads them, and as their keywords say where these are linear."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = flowio.FlowData(io.BytesIO(content)).as_array()
        except Exception:  # of many types
            theirs = None
    ours = plain_fcs(content)
    if theirs is not None and ours is not None:
        np.testing.assert_array_equal(theirs, ours)
    return theirs if ours is None else ours


def plain_arrow(content):
    try:
        return plain_table(pa.ipc.open_file(content).read_all())
    except pa.ArrowInvalid:
        return plain_table(pa.ipc.open_stream(content).read_all())


def plain_h5ad(content, folder):
    """What anndata reads; None if it refuses the file, of which it reads more than the import does."""
    (folder / "whole.h5ad").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = anndata.read_h5ad(folder / "whole.h5ad")
        except Exception:  # of many types
            return None
    return found.X.toarray() if scipy.sparse.issparse(found.X) else np.asarray(found.X)


def plain_parquet(content):
    return plain_table(pq.read_table(io.BytesIO(content)))


def plain_table(table):
    cells = [[np.nan if cell is None else float(cell) for cell in column.to_pylist()] for column in table.columns]
    return np.array(cells).T


def some_rows(rng):
    width = rng.randint(1, 4)
    return [
        [rng.choice([rng.randint(0, 9), rng.random(), -1e3]) for _ in range(width)] for _ in range(rng.randint(1, 8))
    ]


def make_csv(rng):
    rows = some_rows(rng)
    quote = '"' if rng.random() < 0.2 else ""
    header = [f"x{i}" for i in range(len(rows[0]))]
    lines = [header] * (rng.random() < 0.6) + rows
    return "".join(",".join(f"{quote}{word}{quote}" for word in line) + "\n" for line in lines).encode()


def make_array(rng):
    dtype = rng.choice(["<f8", ">f8", "f4", "f2", "i4", "u1", "?", "U3", "c16", "M8[s]", "O"])
    array = np.array(some_rows(rng)).astype("i8" if dtype == "M8[s]" else "f8").astype(dtype)
    return np.asarray(rng.choice([array, array, array, array.T, array[0], array[None]]), order=rng.choice("CF"))


def make_npy(rng):
    file = io.BytesIO()
    np.save(file, make_array(rng))
    return file.getvalue()


def make_npz(rng):
    file, save = io.BytesIO(), rng.choice([np.savez, np.savez_compressed])
    save(file, **{rng.choice(["values", "X", "a"]): make_array(rng)})
    return file.getvalue()


def make_fcs(rng):
    rows = some_rows(rng)
    file = io.BytesIO()
    flowio.create_fcs(file, np.array(rows).ravel().tolist(), [f"FL{i}" for i in range(len(rows[0]))])
    return file.getvalue()


def make_table(rng):
    columns = {}
    for i, column in enumerate(zip(*some_rows(rng), strict=True)):
        columns[f"x{i}"] = rng.choice(
            [
                *[lambda c=column: pa.array(c, pa.float64())] * 20,
                lambda c=column: pa.array(c, pa.float32()),
                lambda c=column: pa.array(np.array(c, np.float16)),
                lambda c=column: pa.array([int(x) for x in c], pa.int16()),
                lambda c=column: pa.array([None, *c[1:]], pa.float64()),
                lambda c=column: pa.array([x > 0 for x in c]),
                lambda c=column: pa.array([str(x) for x in c]).dictionary_encode(),
                lambda c=column: pa.array([{"a": x} for x in c]),
                lambda c=column: pa.array([1 for _ in c], pa.time32("s")),
                lambda c=column: pa.nulls(len(c)),
            ]
        )()
    names = list(columns)
    names[-1] = rng.choice([names[-1], names[-1], names[-1], names[0], "a.b", ""])
    return pa.table(list(columns.values()), names=names)


def make_parquet(rng):
    sink = pa.BufferOutputStream()
    pq.write_table(make_table(rng), sink, row_group_size=3)
    return sink.getvalue().to_pybytes()


def make_arrow(rng):
    table, sink = make_table(rng), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))
    new = rng.choice([pa.ipc.new_file, pa.ipc.new_stream])
    with new(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=3)
    return sink.getvalue().to_pybytes()


def make_h5ad(rng, folder):
    matrix = np.array(some_rows(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.AnnData(rng.choice([matrix, scipy.sparse.csr_matrix(matrix)])).write_h5ad(folder / "made.h5ad")
    return (folder / "made.h5ad").read_bytes()


KINDS = {
    "csv": (make_csv, plain_csv),
    "npy": (make_npy, lambda content, _: np.load(io.BytesIO(content), allow_pickle=False)),
    "npz": (make_npz, lambda content, _: plain_npz(content)),
    "fcs": (make_fcs, by_flowio),
    "parquet": (make_parquet, lambda content, _: plain_parquet(content)),
    "arrow": (make_arrow, lambda content, _: plain_arrow(content)),
}


def judge(kind, content, folder, plain):
    """The outcome of a trial: whether the import refuses the content, or reads what the plain reader reads."""
    file = folder / f"x.{kind}"
    file.write_bytes(content)
    try:
        samples = import_samples(file, folder / "s", dtype="float64", missing=True, overwrite=True)
    except ValueError as error:
        return refused(error, file)
    try:
        expected = plain(content, samples.columns)
        if expected is None:
            return "read, and nothing to compare with"
        np.testing.assert_array_equal(samples.values(), expected.astype(float))
    except Exception as error:
        raise AssertionError(f"{content!r:.600} gave {samples.values()}; {error!r:.300}") from error
    return None


@campaign(few=30, many=1000)
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_samples_give_the_rows_of_a_plain_reader_or_one_error(kind, seeds, tmp_path):
    make, plain = KINDS[kind]

    def trial(rng):
        return judge(kind, drawn(rng, make, 1.0 if kind == "csv" else 0.5), tmp_path, plain)

    counts = play(seeds, trial)
    assert len(seeds) < 20 or counts["refused"] < 0.95 * len(seeds)  # else nothing was compared


@campaign(few=8, many=300)
def test_mutated_h5ad_gives_what_anndata_reads_or_one_error(seeds, tmp_path):
    def trial(rng):
        content = drawn(rng, lambda rng: make_h5ad(rng, tmp_path), 0.7)
        return judge("h5ad", content, tmp_path, lambda content, _: plain_h5ad(content, tmp_path))

    counts = play(seeds, trial)
    assert len(seeds) < 8 or counts["equal"] > len(seeds) / 10


@pytest.mark.parametrize("examples", [20, pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_without_form(kind, examples, tmp_path):
    """Any bytes; Hypothesis finds the shortest that are read wrongly. Half of them begin as a file does."""
    first = {"npy": b"\x93NUMPY\x01\x00", "npz": b"PK\x03\x04", "fcs": b"FCS3.0    ", "arrow": b"ARROW1\0\0"}.get(
        kind, b""
    )

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.one_of(st.binary(max_size=6), st.sampled_from(BYTES)), max_size=20), st.booleans())
    def any_bytes(bits, begun):
        judge(kind, first * begun + b"".join(bits), tmp_path, KINDS[kind][1])

    any_bytes()


# Reads of DNA -------------------------------------------------------------------------------------------------------


def make_reads(rng):
    lines = []
    fastq = rng.random() < 0.5
    for i in range(rng.randint(0, 5)):
        letters = "".join(
            rng.choices("ACGTacgtuNRY-*", [9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 0.1, 0.1], k=rng.randint(0, 9))
        )
        lines += (
            [f"@r{i} x", letters, "+", "I" * len(letters)]
            if fastq
            else [f">r{i}", letters, *["ACGT"] * rng.randint(0, 2)]
        )
    return "\n".join([*lines, ""]).encode()


def plain_reads(content):
    """The letters of the records, each ended by a line break."""
    lines = unzipped(content).replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")
    if lines[0][:1] == b"@":
        assert len(lines) % 4 == 0
        for name, letters, plus, qualities in zip(*(lines[i::4] for i in range(4)), strict=True):
            assert name[:1] == b"@"
            assert plus[:1] == b"+"
            assert len(letters) == len(qualities)
        return b"".join(letters + b"\n" for letters in lines[1::4])
    found = []
    for line in b"\n".join(lines).replace(b"\r", b"\n").decode().split("\n"):  # dnaio strips white space of Unicode
        if line[:1] == ">":
            found.append(b"")
        elif line.strip() and line.strip()[0] != "#":
            found[-1] += line.strip().encode()
    return b"".join(letters + b"\n" for letters in found)


@campaign(few=100, many=20_000)
def test_mutated_reads_are_letters_or_one_error(seeds, tmp_path):
    file = tmp_path / "reads"

    def trial(rng):
        content = drawn(rng, make_reads)
        file.write_bytes(content)
        try:
            codes = np.concatenate(
                [np.zeros(0, np.uint8), *(batch.codes for batch in read_batches([file], batch_bytes=8))]
            )
        except FormatError as error:
            return refused(error, file)
        expected = LETTER_CODES[np.frombuffer(plain_reads(content), np.uint8)]
        assert codes.tolist() == expected.tolist(), content
        return None

    counts = play(seeds, trial)
    assert len(seeds) < 20 or counts["equal"] > len(seeds) / 10
