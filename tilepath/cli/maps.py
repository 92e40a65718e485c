"""The commands `tilepath som ...` that read finished maps: measures, predictions, clusters, tables and pictures."""

from __future__ import annotations

import json
from typing import Any

import click

from tilepath.cli.help_pages import page
from tilepath.cli.shared_options import JSON, OVERWRITE, TITLE


@page(example="tilepath som quality units.zarr")
@click.argument("mapping", type=click.Path())
@click.option("--map", "codebook", type=click.Path(exists=True), help="Store of the map, if it was moved.")
@click.option("--samples", type=click.Path(exists=True), help="Store of the samples, if it was moved.")
@JSON
def quality(mapping: str, codebook: str | None, samples: str | None, as_json: bool) -> None:
    """Print how well a map shows the samples of the mapping store MAPPING.

    Lower errors are better; the other measures are at most 1, the best value. docs/maps.md explains the measures and
    says when a measure is left out.
    """
    from pipelines.som.mapping_quality import measured_quality

    found, left_out = measured_quality(mapping, codebook=codebook, samples=samples)
    if as_json:
        click.echo(json.dumps(found))
        return
    lines = {name: f"{value:.6g}" for name, value in found.items()}
    for name, line in (lines | {name: f"left out: {why}" for name, why in left_out.items()}).items():
        click.echo(f"{name.replace('_', ' '):26} {line}")


@page(example="tilepath som predict units.zarr labels.csv")
@click.argument("mapping", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--voters",
    type=click.Path(exists=True),
    metavar="MAPPING",
    help="Mapping store, to the same map, of the samples whose labels vote; by default MAPPING itself.",
)
@click.option("--map", "codebook", type=click.Path(exists=True), help="Store of the map, if it was moved.")
@click.option("--samples", type=click.Path(exists=True), help="Store of the samples, if it was moved.")
@OVERWRITE
def predict(mapping: str, out: str, voters: str | None, **options: Any) -> None:
    """Write the label predicted for each sample of the mapping store MAPPING to OUT (.csv, .tsv, .parquet).

    The predicted label is the commonest label among the samples of the same unit; of equally common labels, the first
    wins. A unit without labelled samples takes the label of the nearest unit with labelled samples. If the samples of
    MAPPING have labels, the share of correct predictions is printed.
    """
    from pipelines import predict_labels

    found = predict_labels(mapping, mapping if voters is None else voters, out, **options)
    click.echo(f"{out}: {found.describe()}")


@page(example="tilepath som export map.zarr codebook.npy")
@click.argument("store", type=click.Path())
@click.argument("file", type=click.Path())
@click.option(
    "--what",
    type=click.Choice(["codebook", "hits", "u-matrix", "units"]),
    help="What to write; by default the codebook of a map, or the units of a mapping.",
)
@click.option(
    "--scaled", is_flag=True, help="Write scaled values, as trained; by default values in units of the source."
)
@click.option("--samples", type=click.Path(exists=True), help="Samples store of a mapping, if it was moved.")
@OVERWRITE
def export(store: str, file: str, **options: Any) -> None:
    """Write the map or mapping STORE to the table FILE (.csv, .tsv, .parquet; arrays of the grid also as .npy)."""
    from pipelines import export_map

    export_map(store, file, **options)
    click.echo(file)


@page(example="tilepath som plot map.zarr walls.png")
@click.argument("codebook", metavar="MAP", type=click.Path())
@click.argument("image", type=click.Path())
@click.option(
    "--kind",
    type=click.Choice(["umatrix", "pmatrix", "ustar", "hits", "planes", "clusters", "labels", "pies", "tree", "curve"]),
    default="umatrix",
    show_default=True,
    help="umatrix = distances between neighbouring units; pmatrix = density of samples; ustar = umatrix, lowered where "
    "samples are dense; hits = number of samples of each unit; planes = values of each column; clusters = the clusters "
    "of --clusters; labels = commonest label; pies = shares of labels; tree = minimum spanning tree of the units; "
    "curve = error after each epoch.",
)
@click.option("--column", "columns", multiple=True, help="Draw this column only; repeatable (planes).")
@click.option(
    "--mapping", type=click.Path(), help="Mapping store, for labels, trajectories, or the hits of other samples."
)
@click.option("--samples", type=click.Path(), help="Samples store of --mapping, if it was moved.")
@click.option(
    "--clusters",
    type=click.Path(exists=True),
    help="Table of `tilepath som cluster`; clusters are outlined in every picture.",
)
@click.option(
    "--text",
    is_flag=True,
    help="Write labels into the cells, or numbers of clusters if there are no labels; on large maps, once into each "
    "patch of equal cells.",
)
@click.option(
    "--way",
    "ways",
    multiple=True,
    metavar="FIRST:LAST",
    help="Draw the trajectory of samples FIRST to LAST - 1 from unit to unit; repeatable.",
)
@click.option("--scaled", is_flag=True, help="Show values on the scale that was trained on (planes).")
@TITLE
@click.option(
    "--size",
    metavar="WIDTHxHEIGHT",
    help="Inches that the map, each plane, or the picture without cells has to fit in, such as 4x3.",
)
@click.option("--dpi", type=int, show_default="150", help="Pixels per inch.")
@click.option("--cmap", metavar="NAME", help="Colour map of matplotlib for pictures of numbers, such as cividis.")
@OVERWRITE
def plot(
    codebook: str,
    image: str,
    clusters: str | None,
    ways: tuple[str, ...],
    size: str | None,
    **options: Any,
) -> None:
    """Draw MAP to IMAGE (.png, .pdf or .svg)."""
    from pipelines import picture_map, read_clusters

    picture_map(
        codebook,
        image,
        clusters=None if clusters is None else read_clusters(clusters, codebook),
        ways=[_rows(way) for way in ways],
        size=None if size is None else _size(size),
        **options,
    )
    click.echo(image)


@page(example="tilepath som cluster map.zarr parts.csv --clusters 3")
@click.argument("codebook", metavar="MAP", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--method",
    type=click.Choice(["agglomerative", "kmeans", "watershed", "immersion"]),
    default="agglomerative",
    show_default=True,
    help="agglomerative merges units; kmeans divides them around means; watershed takes the basins of the U-matrix, "
    "immersion the basins of the U*-matrix (U*C).",
)
@click.option(
    "--clusters",
    type=click.IntRange(min=1),
    help="Number of clusters; required by agglomerative and kmeans, found by watershed and immersion by default.",
)
@click.option(
    "--linkage",
    type=click.Choice(["ward", "average"]),
    help="How to choose the clusters to merge (agglomerative): ward for clusters of similar size, average if some are "
    "rare; by default ward on Euclidean maps, else average.",
)
@click.option("--adjacent", is_flag=True, help="Merge only clusters that touch on the grid (agglomerative).")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random first means (kmeans).")
@click.option(
    "--samples",
    type=click.Path(exists=True),
    help="Store of the samples of --mapping, or of the training samples (immersion), if it was moved.",
)
@click.option(
    "--mapping",
    type=click.Path(exists=True),
    help="Write the name, label, unit and cluster of each sample of this mapping store instead of each unit.",
)
@OVERWRITE
def cluster(codebook: str, out: str, samples: str | None, mapping: str | None, overwrite: bool, **options: Any) -> None:
    """Find clusters of the units of MAP and write them to OUT (.csv, .tsv or .parquet), one row for each unit."""
    from pipelines import cluster_map, open_codebook, open_mapping, open_samples, write_clusters
    from pipelines.stores.schema import counted

    opened = open_codebook(codebook)
    of_samples, units = open_samples(samples) if samples else None, open_mapping(mapping) if mapping else None
    immersion = options["method"] == "immersion"
    found = cluster_map(opened, samples=of_samples if immersion else None, **options)
    if of_samples and units and immersion and of_samples.digest != units.samples_digest:
        of_samples = None  # samples of the training, but not of the mapping
    write_clusters(out, found, opened, mapping=units, samples=of_samples, overwrite=overwrite)
    click.echo(f"{out}: {counted(found.max() + 1, 'cluster')} of {counted(len(found), 'unit')}")


def _size(text: str) -> tuple[float, float]:
    width, _, height = text.partition("x")
    try:
        return float(width), float(height)
    except ValueError:
        raise click.UsageError(f"--size is {text!r}; give the width and the height in inches, such as 4x3") from None


def _rows(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        raise click.UsageError(f"--way is {text!r}; give the first row and the row after the last row, such as 0:100")
    return int(first), int(last)
