"""Tables of pages are those of their records."""

import json

import pytest

from benchmarks import document_tables as tables


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_pages_are_filled_from_their_records(page):
    text = page.read_text()
    assert tables.PLACE.search(text)
    assert text.count("<!-- end of") == len(tables.PLACE.findall(text))
    assert tables.filled(text) == text, "run python -m benchmarks.document_tables"


def test_every_table_stands_in_a_page():
    text = "".join(page.read_text() for page in tables.PAGES)
    assert {name for _, name, *_ in tables.PLACE.findall(text)} == tables.TABLES.keys()


def test_a_place_is_filled(tmp_path, monkeypatch):
    record = {"case": "minimum by cupy, 2^10 float32", "seconds": {"median": 2e-5}, "sizes": {"n": 1024}}
    (tmp_path / "x.json").write_text(json.dumps({"records": [record]}))
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    found = tables.filled("a\n\n<!-- reductions of x.json -->\nold\n<!-- end of reductions -->\nb\n")
    assert found.splitlines()[-3:] == ["| 2^10 | 20 |", "<!-- end of reductions -->", "b"]


def test_ratios_of_the_papers_own_table():
    records = [
        {"generation": generation.name, "sizes": {"n": n}, "seconds": {"median": seconds / 10}}
        for generation in tables.GENERATIONS
        for n, seconds in (generation.published or {16384: 40.0}).items()
    ]
    rows = dict(line.strip("| ").split(" | ", 1) for line in tables.fw_ratios(records).splitlines()[2:])
    assert rows["staged load over optimized"] == "2.3 to 2.5 | 1.63 to 2.39 | 1.63 to 2.39"
    assert rows["staged load over one core"] == "over 150 | 131 to 155 | 131 to 155"
    assert rows["staged load: seconds / n^3, n = 16,384"] == "1.2e-11 | 1.21e-11 | 1.21e-12"
