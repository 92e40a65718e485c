"""Mutated files of all formats of samples end in the rows that a naive reader gives, or in one clear error.

Text is read by Python's csv module, arrays by `numpy.load`, Parquet in one go, FCS by the keywords of its TEXT segment.
Point C4 of the hostile trials.
"""

from __future__ import annotations

import csv
import gzip
import io
import re

import flowio
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


def naive_csv(content, columns):
    """Values, and labels in the last column where there is one called kind; the header as the store has it."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    text = content.decode().removeprefix("\ufeff")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if columns != tuple(map(str, range(len(rows[0])))):
        names = [name.strip() for name in rows.pop(0)]
        assert names == [*columns]
        assert not any(re.fullmatch(r"[+-]?[\d.]+", name) for name in names)
    assert all(len(row) == len(columns) for row in rows)
    return np.array([[value(word.strip()) for word in row] for row in rows])


def value(word):
    if word in ABSENT:
        return np.nan
    assert re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word, re.ASCII), word
    return float(word)


def naive_npz(content):
    with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
        return loaded["values"] if "values" in loaded.files else loaded[loaded.files[0]]


def naive_fcs(content):
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


def naive_parquet(content):
    table = pq.read_table(io.BytesIO(content))
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


def make_parquet(rng):
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
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(list(columns.values()), names=names), sink, row_group_size=3)
    return sink.getvalue().to_pybytes()


KINDS = {
    "csv": (make_csv, naive_csv),
    "npy": (make_npy, lambda content, _: np.load(io.BytesIO(content), allow_pickle=False)),
    "npz": (make_npz, lambda content, _: naive_npz(content)),
    "fcs": (make_fcs, lambda content, _: naive_fcs(content)),
    "parquet": (make_parquet, lambda content, _: naive_parquet(content)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_samples_give_the_rows_of_a_naive_reader_or_one_error(kind, campaign, mutations, tmp_path):
    make, naive = KINDS[kind]
    file, read = tmp_path / f"x.{kind}", 0
    for case, content in mutations(campaign, make, 1.0 if kind == "csv" else 0.5):
        file.write_bytes(content)
        try:
            samples = import_samples(file, tmp_path / "s", dtype="float64", missing=True, overwrite=True)
        except ValueError as error:
            message = str(error)
            clear = str(file) in message and "\n" not in message and len(message) < 1000
            assert clear, (case, message)
            assert not re.search(r"Traceback|Error\(|codec can't|site-packages", message), (case, message)
            continue
        read += 1
        try:
            expected = naive(content, samples.columns)
            if expected is not None:
                np.testing.assert_array_equal(samples.values(), expected.astype(float))
        except Exception as error:
            raise AssertionError(f"case {case}: {content!r} gave wrong samples {samples.values()}") from error
    assert read >= campaign[1] / 20  # else nothing was compared
