"""Drawings are those in the gallery, and the butterfly's tables are the article's."""

import runpy
import sys
import xml.dom.minidom

import pytest

from benchmarks import drawings
from benchmarks.chart_style import GALLERY


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_the_gallery_has_the_drawing(name):
    text = drawings.DRAWINGS[name]()
    xml.dom.minidom.parseString(text)
    assert (GALLERY / f"{name}.svg").read_text() == text, "run python -m benchmarks.drawings"


def test_bytes_of_shared_memory_are_those_of_the_kernels():
    text = drawings.fw_shared_memory()
    assert "8,192 bytes" in text
    assert "1,024 bytes" in text


def test_the_butterfly(monkeypatch, capsys):
    script = GALLERY / "butterfly.py"
    assert (GALLERY / "butterfly.svg").read_text() == runpy.run_path(str(script))["draw"]()
    monkeypatch.setattr(sys, "argv", ["butterfly.py", "--tables"])
    runpy.run_path(str(script), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * 17
    assert [line for line in lines if line.startswith("b is")] == ["b is 0100", "b is 0010", "b is 0001"]
    assert [lines[i] for i in (1, 9, 16, 26, 50)] == [
        *("0000^0100:0100", "t[0] = [0] + [4]", "t[7] = [7] + [3]", "t[0] = [0] + [2]", "t[7] = [7] + [6]")
    ]
