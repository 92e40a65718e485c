"""The layout functions against the text of the kernel, and what the paper says of them."""

import re

import pytest

from benchmarks.harness import KERNELS
from benchmarks.kernels import tile_layout as layout

KERNEL = (KERNELS / "staged_load.cu").read_text()
CONSTANTS = {"TILE": 32, "SMALL": 4, "SLICE": 128}


def expression(pattern):
    """The C expression of integers that the pattern finds, as a function of names in it."""
    (found,) = re.findall(pattern, KERNEL)[-1:]
    return lambda **names: eval(found.replace("/", "//"), {}, CONSTANTS | names)


@pytest.mark.parametrize("name", ["row_of", "column_of"])
def test_places_of_words_are_those_of_the_kernel(name):
    theirs = expression(rf"{name}\(int e\) {{\s*return (.*?);")
    assert [getattr(layout, name)(e) for e in range(1024)] == [theirs(e=e) for e in range(1024)]


def test_words_of_threads_are_those_of_the_kernel():
    tile, row, column = (expression(rf"\b{name} = (threadIdx.x [^,;]*)[,;]") for name in ("tile", "i", "j"))
    k_of = expression(r"const int k = (.*?);")
    columns, rows = expression(r"columns\[(r .*?)\] \+"), expression(r"rows\[(\(s \* 4 \+ tile\) \* 16 \+ k.*?)\]")
    for t in range(64):
        at = {"threadIdx": type("Index", (), {"x": t})}
        i, j, of = row(**at), column(**at), tile(**at)
        for skew in 0, 1:
            for step in range(4):
                k = k_of(i=i, j=j, step=step, SKEW=skew)
                for r in range(8):
                    assert layout.word_of_columns(t, step, skew, r) == columns(r=r, i=i, k=k)
                for s in range(2):
                    assert layout.word_of_rows(t, step, skew, s) == rows(s=s, tile=of, k=k, j=j)


def test_the_doubly_tiled_order_has_an_inverse():
    assert [layout.place_in_tiles(layout.row_of(e), layout.column_of(e)) for e in range(1024)] == list(range(1024))


def test_slices_are_contiguous_as_in_the_paper():
    """Four columns: pieces of 4 words in row-major order, of 16 in tiles. Four rows: pieces of 32, and one of 128."""
    columns, rows = (
        [(i, j) for i in range(32) for j in range(8, 12)],
        [(i, j) for i in range(8, 12) for j in range(32)],
    )
    for words, place, expected in (
        (columns, layout.place_in_rows, [4] * 32),
        (columns, layout.place_in_tiles, [16] * 8),
        (rows, layout.place_in_rows, [32] * 4),
        (rows, layout.place_in_tiles, [128]),
    ):
        assert layout.pieces(place(i, j) for i, j in words) == expected


def test_the_skew_frees_half_warps_of_conflicts():
    for first in range(0, 64, 16):
        for step in range(4):
            threads = range(first, first + 16)
            for word in layout.word_of_columns, layout.word_of_rows:
                assert layout.cycles_of_half_warp(word(t, step, 1) for t in threads) == 1
                assert layout.cycles_of_half_warp(word(t, step, 0) for t in threads) == 4


def test_todays_warps_have_no_conflicts_without_the_skew():
    for first in 0, 32:
        for step in range(4):
            for word in layout.word_of_columns, layout.word_of_rows:
                assert layout.cycles_of_warp(word(t, step, 0) for t in range(first, first + 32)) == 1
    with_skew = [
        layout.cycles_of_warp(layout.word_of_rows(t, 0, 1) for t in range(32)),
        layout.cycles_of_warp(layout.word_of_columns(t, 0, 1) for t in range(32)),
    ]
    assert with_skew == [1, 1]
