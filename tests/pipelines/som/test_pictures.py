"""Pictures of maps: numbers against formulas written out, and pixels where they belong."""

import html
import io
import re
import shutil
import sys
from dataclasses import replace
from itertools import product

import matplotlib
import numpy as np
import pytest
import zarr
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from minisom import MiniSom

from gpuops.som.grid import Grid
from pipelines.som.cells import (
    EMPTY,
    MOST_LABELS,
    cell_corners,
    cluster_colours,
    colours_of,
    draw_cells,
    outlines,
    rgba,
    way_line,
)
from pipelines.som.classes import vote_of_mapping
from pipelines.som.heights import u_matrix
from pipelines.som.pictures import KINDS, picture_map
from pipelines.stores.codebook import create_codebook, open_codebook
from pipelines.stores.errors import StoreError
from pipelines.stores.mapping import create_mapping, open_mapping
from pipelines.stores.samples import write_samples
from pipelines.stores.scaling import Scaling

GRIDS = {
    "squares": Grid(5, 7),
    "torus": Grid(4, 6, toroidal=True),
    "hexagons": Grid(5, 6, hexagonal=True),
    "hexagonal torus": Grid(6, 5, hexagonal=True, toroidal=True),
    "strip": Grid(1, 30),
    "pole": Grid(30, 1, hexagonal=True),
    "one": Grid(1, 1),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Few pixels, for speed."""
    monkeypatch.setitem(matplotlib.rcParams, "savefig.dpi", 70)


@pytest.fixture
def made(tmp_path):
    """``made(grid, ...)``: a codebook with these units and hits, its samples, and where they are placed."""

    def make(grid, units=None, hits=None, placed=None, labels=None, **facts):
        rng = np.random.default_rng(3)
        placed = rng.integers(0, grid.units, 40) if placed is None else np.asarray(placed)
        labels = [f"kind {i % 3}" for i in range(len(placed))] if labels is None else labels
        values = rng.normal(size=(len(placed), 3))
        samples = write_samples(tmp_path / "s", values, labels=labels, overwrite=True, **facts)
        options = {"metric": "euclidean", "sigmas": [2.0, 1.0], "options": {}}
        run = create_codebook(tmp_path / "map", samples, grid, overwrite=True, **options)
        for epoch in range(3):
            run.write(epoch, (rng.normal(size=(grid.units, 3)) if units is None else units)[None])
        run.finish(2, [3.0, 2.0, 1.5], None, rng.integers(0, 3, grid.units) if hits is None else hits)
        codebook = open_codebook(tmp_path / "map")
        mapping = create_mapping(tmp_path / "p", samples, codebook, overwrite=True)
        mapping.write(0, np.stack([placed] * min(2, grid.units), axis=1), np.ones((len(placed), min(2, grid.units))))
        mapping.record(np.ones(len(placed), bool))
        return codebook, samples, open_mapping(tmp_path / "p")

    return make


def draw(path, codebook, kind, **options):
    """The pixels of a picture, (height, width, 3) from 0 to 1."""
    picture_map(codebook, path, kind, overwrite=True, **options)
    return imread(path)[..., :3]


def where(image, colour):
    """Mean place of the pixels of a colour, down and across from 0 to 1, and how many there are."""
    there = np.argwhere((abs(image - to_rgb(colour)) < 0.02).all(axis=2))
    return (*there.mean(axis=0) / image.shape[:2], len(there))


# Numbers


@pytest.mark.parametrize("name", GRIDS)
def test_cells_fill_the_plane(name):
    grid = GRIDS[name]
    corners = cell_corners(grid)
    x, y = corners[..., 0], corners[..., 1]
    areas = (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1) / 2
    np.testing.assert_allclose(areas, grid.row_height)  # that of the plane for a unit
    np.testing.assert_allclose(corners.mean(axis=1), grid.positions(), atol=1e-12)
    planar = Grid(grid.rows, grid.columns, grid.hexagonal)
    sides = [{tuple(np.rint(corner * 1e6)) for corner in cell} for cell in corners]
    for a, b in product(range(grid.units), repeat=2):
        if a != b:
            beside = planar.distances(a, b) < 1.01
            assert (len(sides[a] & sides[b]) == 2) == beside  # neighbours share a side


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("metric", ["euclidean", "taxicab", "cosine"])
def test_the_u_matrix_is_the_mean_distance_to_the_neighbours(name, metric):
    grid = GRIDS[name]
    units = np.random.default_rng(0).normal(size=(grid.units, 4))
    distance = {
        "euclidean": lambda a, b: np.sqrt(((a - b) ** 2).sum()),
        "taxicab": lambda a, b: abs(a - b).sum(),
        "cosine": lambda a, b: 1 - a @ b / np.sqrt((a @ a) * (b @ b)),
    }[metric]
    want = np.zeros(grid.units)
    for a in range(grid.units):
        near = [b for b in range(grid.units) if b != a and grid.adjacent(a, b)]
        want[a] = np.mean([distance(units[a], units[b]) for b in near]) if near else 0
    np.testing.assert_allclose(u_matrix(units, grid, metric), want, rtol=1e-12, atol=1e-14)


def test_the_u_matrix_is_that_of_minisom():
    units = np.random.default_rng(0).normal(size=(5, 7, 4))
    other = MiniSom(5, 7, 4)
    other._weights = units
    found = u_matrix(units.reshape(35, 4), Grid(5, 7))
    np.testing.assert_allclose((found / found.max()).reshape(5, 7), other.distance_map(scaling="mean"), rtol=1e-12)


def test_cosine_of_a_unit_at_the_origin():
    assert u_matrix(np.array([[0.0, 0.0], [1.0, 0.0]]), Grid(1, 2), "cosine").tolist() == [1, 1]


def test_the_label_of_a_unit_is_that_of_most_of_its_samples(made, monkeypatch):
    monkeypatch.setattr("pipelines.stores.mapping.CHUNK_BYTES", 64)
    rng = np.random.default_rng(1)
    grid, placed = Grid(4, 5), rng.integers(0, 18, 300)
    labels = [None if i % 5 == 0 else f"kind {rng.integers(0, 4)}" for i in range(300)]
    _, samples, mapping = made(grid, placed=placed, labels=labels)
    assert len(list(mapping.ranges())) > 50
    vote, names = vote_of_mapping(mapping, samples)
    winners = vote.winners
    for unit in range(20):
        mine = [names.index(label) for label, at in zip(labels, placed, strict=True) if at == unit and label]
        counts = np.bincount(mine, minlength=4)
        assert winners[unit] == (counts.argmax() if mine else -1)  # the first of equals
    assert (winners[18:] == -1).all()


# Pixels


@pytest.mark.parametrize("name", ["squares", "hexagonal torus", pytest.param("strip", marks=pytest.mark.slow)])
def test_every_kind_is_drawn_on_every_grid(tmp_path, made, name):
    codebook, samples, mapping = made(GRIDS[name])
    for kind in KINDS:
        options = {"mapping": mapping, "samples": samples} if kind in ("hits", "labels", "pies", "tree") else {}
        options |= {"clusters": np.arange(codebook.grid.units) % 4} if kind in ("clusters", "tree") else {}
        image = draw(tmp_path / "x.png", codebook, kind, **options)
        assert image.std() > 0.01
        assert (image[[0, -1]] == 1).all()  # nothing is cut off at the margins
        assert (image[:, [0, -1]] == 1).all()


def test_a_map_of_one_unit_is_drawn(tmp_path, made):
    assert draw(tmp_path / "x.png", made(GRIDS["one"])[0], "umatrix").std() > 0.01


@pytest.mark.parametrize("hexagonal", [False, True])
def test_row_0_is_on_top_and_units_without_samples_are_grey(tmp_path, made, hexagonal):
    """One unit with samples wanders over the map."""
    grid, colour = Grid(4, 6, hexagonal), matplotlib.colormaps["viridis"](0.0)[:3]
    places = []
    for unit in (0, 15):
        codebook, _, _ = made(grid, hits=np.where(np.arange(24) == unit, 1, 0))
        image = draw(tmp_path / "x.png", codebook, "hits")
        map_only = image[:, : int(image.shape[1] * 0.88)]  # without the colour bar
        down, across, count = where(map_only, colour)
        places.append((down, across))
        assert where(map_only, (float(EMPTY),) * 3)[2] / count == pytest.approx(23, rel=0.2)
    assert places[0][0] < 0.35 < 0.5 < places[1][0] < 0.75  # the second is in row 2 of 4, column 3 of 6
    assert places[0][1] < 0.2 < 0.5 < places[1][1] < 0.75


@pytest.mark.parametrize("hexagonal", [False, True])
def test_no_gap_between_cells(tmp_path, made, monkeypatch, hexagonal):
    monkeypatch.setitem(matplotlib.rcParams, "savefig.dpi", 150)
    codebook, _, _ = made(Grid(12, 12, hexagonal), units=np.ones((144, 3)))
    image = draw(tmp_path / "x.png", codebook, "planes", columns=["0"])
    height, width, _ = image.shape
    middle = image[int(height * 0.3) : int(height * 0.7), int(width * 0.2) : int(width * 0.6)]
    assert np.ptp(middle, axis=(0, 1)).max() < 0.02


def test_planes_are_in_units_of_the_source(tmp_path, made, monkeypatch):
    shown = []

    def note(axes, grid, values, *rest, **options):
        shown.append(values)
        return draw_cells(axes, grid, values, *rest, **options)

    monkeypatch.setattr("pipelines.som.cells.draw_cells", note)
    codebook, _, _ = made(Grid(2, 3), scaling="zscore")
    picture_map(codebook, tmp_path / "x.png", "planes", columns=["2", "0"])
    units = codebook.units() * codebook.scaling.factors + codebook.scaling.offsets
    np.testing.assert_allclose(shown, units.T[[2, 0]])
    scaled = words_of(tmp_path, codebook, "planes", columns=["2", "0"], scaled=True)
    np.testing.assert_allclose(shown[2:], codebook.units().T[[2, 0]])
    assert scaled.count("z-score") == 2


def test_scales_have_names():
    scales = Scaling("zscore", (0.0, 1.0), (1.0, 2.0), ("", "arcsinh:150"))
    assert [scales.words(column) for column in (0, 1)] == ["z-score", "arcsinh:150, z-score"]
    assert Scaling("arcsinh", (0.0,), (5.0,)).words(0) == "arcsinh(x / 5)"
    assert Scaling("minmax", (0.0,), (5.0,)).words(0) == "from 0 to 1"
    assert Scaling("none", (0.0,), (1.0,)).words(0) == ""


def test_no_colour_is_a_label_and_a_cluster():
    labels, clusters = ({*map(tuple, palette)} for palette in (colours_of(MOST_LABELS), cluster_colours(100)))
    assert len(clusters) == 26
    assert not labels & clusters
    assert rgba(EMPTY) not in labels | clusters


def test_size_resolution_and_colours_are_options(made):
    codebook, _, mapping = made(Grid(4, 4), hits=np.ones(16, np.int64))
    wide = picture_map(codebook, None, "hits", size=(3, 8), dpi=50, cmap="cividis", title="mine")
    assert wide.get_size_inches().tolist() == [3, 3]
    assert wide.dpi == 50
    axes = wide.get_axes()[0]
    assert (axes.collections[0].get_cmap().name, axes.get_title()) == ("cividis", "mine")
    for kind in ("tree", "curve"):
        drawn = picture_map(codebook, None, kind, size=(3, 8), mapping=mapping)
        assert drawn.get_size_inches().tolist() == [3, 8]
    planes = picture_map(codebook, None, "planes", size=(1.5, 2), cmap="magma")
    assert {axes.collections[0].get_cmap().name for axes in planes.get_axes()[:3]} == {"magma"}


def test_a_picture_is_a_file_and_a_figure_that_a_notebook_shows(tmp_path, made):
    codebook, _, _ = made(Grid(3, 3))
    figure = picture_map(codebook, tmp_path / "x.png", dpi=60)
    assert imread(tmp_path / "x.png").shape == imread(io.BytesIO(figure._repr_png_())).shape
    small = picture_map(codebook, tmp_path / "x.png", dpi=30, overwrite=True)
    assert abs(len(imread(tmp_path / "x.png")) * 2 - len(imread(io.BytesIO(figure._repr_png_())))) < 4
    assert small.dpi == 30


def test_labels_beyond_the_colours_are_one(tmp_path, made):
    grid = Grid(8, 9)
    codebook, samples, mapping = made(grid, placed=np.arange(72), labels=[f"kind {i}" for i in range(72)])
    image = draw(tmp_path / "x.png", codebook, "labels", mapping=mapping, samples=samples)
    assert where(image, "0.5")[2] > 10 * where(image, colours_of(60)[0])[2]
    assert MOST_LABELS == 60
    codebook, samples, mapping = made(grid, labels=[None] * 40)
    draw(tmp_path / "x.png", codebook, "labels", mapping=mapping, samples=samples)


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"seed": 1}},
        {"epochs": 1},
        {"samples": {"path": "", "relative": "", "digest": "of others"}},
        {"scaling": {"kind": "minmax", "offsets": [0.0, 1.0, 0.0], "factors": [1.0, 1.0, 1.0]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_mapping_to_another_map_of_the_same_grid_is_refused(tmp_path, made, change):
    """Another seed, fewer epochs, other samples, another scale: a picture of its hits would be of nothing."""
    codebook, samples, mapping = made(Grid(3, 4))
    placed = {"mapping": mapping, "samples": samples}
    other = tmp_path / "other"
    shutil.copytree(codebook.path, other)
    group = zarr.open_group(other)
    if "epochs" in change:
        group["codebooks"].resize((2, 12, 3))
        change = {"committed": 1, "errors": [3.0, 2.0]}
    group.update_attributes(change)
    for kind in "hits", "labels":
        draw(tmp_path / "x.png", codebook, kind, **placed)
        with pytest.raises(StoreError, match=f"{mapping.path} maps to another map than {other}; name the map"):
            draw(tmp_path / "y.png", open_codebook(other), kind, **placed)
    assert not (tmp_path / "y.png").exists()


def words_of(tmp_path, codebook, kind, **options):
    """What is written on a picture, in its order."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        picture_map(codebook, tmp_path / "words.svg", kind, overwrite=True, **options)
    text = (tmp_path / "words.svg").read_text()
    return [html.unescape(word) for word in re.findall(r"<text[^>]*>([^<]*)</text>", text)]


def test_dollar_signs_in_names_are_written_as_they_are(tmp_path, made):
    """Between two of them matplotlib would set mathematics, and refuse what is none."""
    codebook, samples, mapping = made(Grid(2, 3), labels=["$a_{$", "b$", "$c$"] * 13 + [None])
    words = words_of(tmp_path, codebook, "labels", mapping=mapping, samples=samples, text=True)
    assert {"$a_{$", "b$", "$c$"} <= {*words}
    shutil.copytree(codebook.path, tmp_path / "$x_$")
    group = zarr.open_group(tmp_path / "$x_$")
    group.attrs["columns"] = ["$p$", "$q_{$", "r"]
    words = words_of(tmp_path, open_codebook(tmp_path / "$x_$"), "planes")
    assert {"$p$", "$q_{$", "r", "$x_$: component planes, 2 x 3 units"} <= {*words}


def test_a_legend_has_labels_in_natural_order(tmp_path, made):
    labels = [f"kind {i}" for i in range(36)]
    codebook, samples, mapping = made(Grid(6, 6), placed=np.arange(36)[::-1], labels=labels)
    words = words_of(tmp_path, codebook, "labels", mapping=mapping, samples=samples)
    assert [word for word in words if word.startswith("kind")] == labels
    assert len({*map(tuple, colours_of(60))}) == 60  # more than 20 labels have colours of their own
    assert not [word for word in words if "others" in word]


def test_a_title_says_what_is_shown(tmp_path, made):
    codebook, samples, mapping = made(Grid(3, 4))
    titles = set()
    for kind in KINDS:
        words = words_of(
            tmp_path, codebook, kind, mapping=mapping, samples=samples, clusters=np.arange(12, dtype=np.int32) % 3
        )
        titles |= {word for word in words if word.startswith("map: ")}
    assert len(titles) == len(KINDS)
    assert "map: U-matrix, 3 x 4 units" in titles


@pytest.mark.parametrize("hexagonal", [False, True])
def test_the_lowest_cells_of_a_u_matrix_are_not_white_and_have_a_frame(tmp_path, made, monkeypatch, hexagonal):
    monkeypatch.setitem(matplotlib.rcParams, "savefig.dpi", 150)
    units = np.zeros((64, 3))
    units[0] = 9  # one wall, in a corner; all else is as low as can be
    image = draw(tmp_path / "x.png", made(Grid(8, 8, hexagonal), units=units)[0], "umatrix")
    cells = image[:, : int(image.shape[1] * 0.8)]
    middle = cells[int(len(cells) * 0.6) : int(len(cells) * 0.8), int(cells.shape[1] * 0.4) : int(cells.shape[1] * 0.6)]
    assert (middle < 0.99).any(axis=2).all()
    assert (abs(cells[len(cells) // 2 :] - 0.35) < 0.2).all(axis=2).sum() > 100  # the frame, below


@pytest.mark.parametrize("name", GRIDS)
def test_outlines_run_between_clusters_and_around_the_grid(name):
    grid = GRIDS[name]
    clusters = np.random.default_rng(2).integers(0, 3, grid.units)
    between, frame = outlines(grid, clusters)
    planar = Grid(grid.rows, grid.columns, grid.hexagonal)
    pairs = [(a, b) for a, b in product(range(grid.units), repeat=2) if a < b and planar.distances(a, b) < 1.01]
    assert len(between) == sum(clusters[a] != clusters[b] for a, b in pairs)
    assert len(frame) == (6 if grid.hexagonal else 4) * grid.units - 2 * len(pairs)
    middles = {tuple(np.rint(side.mean(axis=0) * 1e6)) for side in between}
    positions = grid.positions()
    for a, b in pairs:
        assert (tuple(np.rint((positions[a] + positions[b]) / 2 * 1e6)) in middles) == (clusters[a] != clusters[b])


def test_ways_of_samples_and_text_are_drawn(tmp_path, made):
    codebook, _, mapping = made(Grid(4, 6, toroidal=True))
    plain = draw(tmp_path / "x.png", codebook, "umatrix", mapping=mapping)
    way = draw(tmp_path / "x.png", codebook, "umatrix", mapping=mapping, ways=[(0, 5), (7, 8)])
    assert where(way, matplotlib.colormaps["Dark2"](0)[:3])[2] > 50
    assert way.shape == plain.shape
    words = words_of(tmp_path, codebook, "umatrix", clusters=np.arange(24, dtype=np.int32), text=True)
    assert {str(i) for i in range(24)} <= {*words}


@pytest.mark.parametrize("grid", [Grid(4, 6, toroidal=True), Grid(4, 6, hexagonal=True, toroidal=True), Grid(4, 6)])
def test_a_way_over_the_edge_of_a_torus_goes_on_at_the_other(grid):
    units = np.array([0, 23, 12, 8, 5, 3, 18])
    line = way_line(grid, units)
    stops = {tuple(point) for point in line[~np.isnan(line).any(axis=1)].tolist()}
    assert {tuple(point) for point in grid.positions()[units].tolist()} <= stops
    lengths = np.hypot(*np.diff(line, axis=0).T)
    direct = grid.distances(units[1:], units[:-1])
    # Each step is drawn whole at one end, and once more at the other where it leaves the map.
    over = np.isnan(line).any(axis=1).sum()
    planar = Grid(grid.rows, grid.columns, grid.hexagonal)
    assert over == (planar.distances(units[1:], units[:-1]) > direct + 1e-9).sum()
    assert (over > 0) == grid.toroidal
    drawn = sorted(lengths[~np.isnan(lengths)].round(6).tolist())
    assert set(drawn) == set(direct.round(6).tolist())
    assert len(drawn) == len(direct) + over


def test_long_words_are_told_apart_by_their_ends(tmp_path, made):
    codebook, samples, mapping = made(Grid(3, 3), placed=np.arange(9), labels=[f"a population {i}" for i in range(9)])
    words = words_of(tmp_path, codebook, "labels", mapping=mapping, samples=samples, text=True)
    assert {f"a pop…tion {i}" for i in range(9)} <= {*words}


def test_where_cells_are_small_each_patch_of_a_cluster_has_its_number_once(tmp_path, made):
    codebook, _, _ = made(Grid(20, 30))
    columns = np.arange(600) % 30
    clusters = np.where((columns < 12) | (columns > 16), 700, 800).astype(np.int32)
    clusters[310] = 900  # in a patch smaller than its number
    words = words_of(tmp_path, codebook, "umatrix", clusters=clusters, text=True, size=(4, 3))
    assert sorted(set(words) & {"700", "800", "900"}) == ["700", "800"]
    assert (words.count("700"), words.count("800")) == (2, 1)


def test_pale_discs_of_clusters_have_edges_in_a_tree(tmp_path, made):
    codebook, _, mapping = made(Grid(3, 4), labels=["a", "b"] * 20)
    clusters = np.arange(12, dtype=np.int32) % 3
    clusters[5] = -1  # in no cluster
    figure = picture_map(codebook, tmp_path / "x.svg", "tree", mapping=mapping, clusters=clusters)
    assert "stroke: #4c4c4c" in (tmp_path / "x.svg").read_text()
    entries = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert entries == ["cluster 0", "cluster 1", "cluster 2", "a", "b"]  # of the samples of the mapping


def test_walls_are_named_by_their_metric(tmp_path, made):
    codebook, _, _ = made(Grid(3, 3))
    assert "mean Euclidean distance to the neighbours" in words_of(tmp_path, codebook, "umatrix")


@pytest.mark.parametrize("suffix", ["pdf", "svg"])
def test_other_formats(tmp_path, made, suffix):
    codebook, _, _ = made(Grid(3, 3))
    picture_map(codebook, tmp_path / f"x.{suffix}")
    assert (tmp_path / f"x.{suffix}").read_bytes()[:5] in (b"%PDF-", b"<?xml")


def test_faults_are_named(tmp_path, made, monkeypatch):
    codebook, samples, mapping = made(Grid(3, 4))

    def refused(match, kind="umatrix", error=ValueError, path="x.png", **options):
        with pytest.raises(error, match=match):
            picture_map(codebook, tmp_path / path, kind, **options)
        assert not list(tmp_path.glob("x*"))

    refused("no picture 'heat'; choose umatrix, pmatrix, ustar, hits", "heat")
    refused(r"columns \(--column\) are for planes, not for hits", "hits", columns=["0"])
    refused(r"scaled \(--scaled\) is for planes, not for hits", "hits", scaled=True)
    refused(r"a colour map \(cmap, --cmap\) is for pictures of numbers, not for tree", "tree", cmap="magma")
    refused("no colour map 'rainbows'; choose viridis", cmap="rainbows")
    refused(r"size \(--size\) is 0 x 4; give 0.5 to 100 inches", size=(0, 4))
    refused(r"dpi \(--dpi\) is 5; give 10 to 1,200 pixels", dpi=5)
    refused("no column 'weight'; it has 0, 1, 2", "planes", columns=["weight"])
    refused("--mapping", "labels")
    refused("tilepath som cluster", "clusters")
    refused("tilepath som cluster", text=True)
    refused("an integer for each of the units", clusters=np.zeros(3, int))
    refused("and tree has no cells", "tree", text=True, clusters=np.zeros(12, int))
    refused("name it .mapping, --mapping", ways=[(0, 3)])
    refused("has rows 0 to 39; a trajectory cannot lead from row 30 to row 40", mapping=mapping, ways=[(30, 41)])
    refused("--mapping", "labels", samples=samples)
    refused("pictures end in .*\\.png", path="x")
    refused("pictures end in .*\\.svg", path="x.doc")
    others = write_samples(tmp_path / "others", np.ones((40, 3)), labels=["a"] * 40)
    refused("does not map .*others", "labels", StoreError, mapping=mapping, samples=others)
    wide = replace(codebook, columns=tuple(map(str, range(65))))
    with pytest.raises(ValueError, match=r"has 65 columns; name up to 64 of them \(columns, --column\)"):
        picture_map(wide, tmp_path / "x.png", "planes")
    codebook, _, _ = made(Grid(4, 4))
    refused("maps to another map", "hits", StoreError, mapping=mapping)
    refused("maps to another map", "labels", StoreError, mapping=mapping, samples=samples)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused(r"pip install -e .*\[plot\]", error=ImportError)
