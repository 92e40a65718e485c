from hypothesis import given
from hypothesis import strategies as st

from pipelines.apsp.layout import make_layout


@given(st.integers(0, 600), st.integers(1, 9), st.sampled_from([2, 4, 8]), st.none() | st.integers(3, 700))
def test_every_row_has_one_owner_and_blocks_lie_within_bands(n, workers, itemsize, block):
    layout = make_layout(n, workers, itemsize, block)
    held = [row for w in range(workers) for band in layout.bands(w) for row in range(*band)]
    assert sorted(held) == list(range(n))
    for start, stop in layout.blocks():
        owner = layout.owner(start)
        assert start // layout.band == (stop - 1) // layout.band  # the whole block in one band
        mine = [row for band in layout.bands(owner) for row in range(*band)]
        assert mine[layout.local(start, stop)] == list(range(start, stop))


@given(st.integers(1, 200_000), st.integers(1, 8), st.integers(1, 8))
def test_the_block_and_so_the_bits_do_not_depend_on_the_workers(n, one, other):
    assert make_layout(n, one, 4).block == make_layout(n, other, 4).block
