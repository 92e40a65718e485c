"""The commands `tilepath som ...` that read finished maps: measures, predictions, clusters, tables and pictures."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command()
@click.argument("mapping", type=click.Path())
@click.option("--map", "codebook", type=click.Path(exists=True), help="Store of the map, if it was moved.")
@click.option("--samples", type=click.Path(exists=True), help="Store of the samples, if it was moved.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def quality(mapping: str, codebook: str | None, samples: str | None, as_json: bool) -> None:
    """Print how well a map shows the samples of the mapping store MAPPING.

    Errors are better the lower they are; the other measures are 1 at best. docs/maps.md says what they measure.
    """
    from pipelines import mapping_quality

    found = mapping_quality(mapping, codebook=codebook, samples=samples)
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name.replace('_', ' '):26} {value:.6g}")


@click.command()
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
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def predict(mapping: str, out: str, voters: str | None, **options: Any) -> None:
    """Write the label predicted for each sample of the mapping store MAPPING to OUT (.csv, .tsv, .parquet).

    It is the label of most of the samples of its unit, of equally many the first; a unit without any has that of the
    nearest one. Where samples have labels themselves, the share of those predicted is printed.
    """
    from pipelines import predict_labels

    found = predict_labels(mapping, mapping if voters is None else voters, out, **options)
    click.echo(f"{out}: {found.describe()}")


@click.command()
@click.argument("store", type=click.Path())
@click.argument("file", type=click.Path())
@click.option(
    "--what",
    type=click.Choice(["codebook", "hits", "u-matrix", "units"]),
    help="By default the codebook of a map, the units of a mapping.",
)
@click.option("--scaled", is_flag=True, help="The codebook as it was trained; by default in units of the source.")
@click.option("--samples", type=click.Path(exists=True), help="Samples store of a mapping, if it was moved.")
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def export(store: str, file: str, **options: Any) -> None:
    """Write what the map or the mapping STORE says to FILE (.csv, .tsv, .parquet; arrays of the grid also as .npy)."""
    from pipelines import export_map

    export_map(store, file, **options)
    click.echo(file)


@click.command()
@click.argument("codebook", type=click.Path())
@click.argument("image", type=click.Path())
@click.option(
    "--kind",
    type=click.Choice(["umatrix", "pmatrix", "ustar", "hits", "planes", "clusters", "labels", "pies", "tree", "curve"]),
    default="umatrix",
    show_default=True,
    help="Walls between clusters, density, walls where it is not dense, samples of units, values, clusters, labels, "
    "shares of labels, the minimum spanning tree, or the training.",
)
@click.option("--column", "columns", multiple=True, help="Show this column; repeatable (planes).")
@click.option("--mapping", type=click.Path(), help="Mapping store, for labels, ways, or the hits of other samples.")
@click.option("--samples", type=click.Path(), help="Its samples store, if it was moved.")
@click.option(
    "--clusters", type=click.Path(exists=True), help="Table of `tilepath som cluster`: outlines in every picture."
)
@click.option("--text", is_flag=True, help="Write labels, or else numbers of clusters, into the cells.")
@click.option(
    "--way",
    "ways",
    multiple=True,
    metavar="FIRST:LAST",
    help="Draw the way of these rows of the mapping from unit to unit, the last one excluded; repeatable.",
)
def plot(
    codebook: str,
    image: str,
    mapping: str | None,
    samples: str | None,
    clusters: str | None,
    ways: tuple[str, ...],
    **options: Any,
) -> None:
    """Draw the map CODEBOOK to IMAGE (.png, .pdf or .svg)."""
    from pipelines import open_codebook, open_mapping, open_samples, picture_map, read_clusters

    opened = open_codebook(codebook)
    units = None if mapping is None else open_mapping(mapping)
    where = samples or (units and units.samples_path)
    wanted = options["kind"] in ("labels", "pies", "tree", "pmatrix", "ustar")
    picture_map(
        opened,
        image,
        mapping=units,
        samples=open_samples(where) if where and wanted else None,
        clusters=None if clusters is None else read_clusters(clusters, opened),
        ways=[_rows(way) for way in ways],
        **options,
    )
    click.echo(image)


@click.command()
@click.argument("codebook", metavar="MAP", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--method",
    type=click.Choice(["agglomerative", "kmeans", "watershed", "immersion"]),
    default="agglomerative",
    show_default=True,
    help="Merge units, divide them around means, or take basins of the U-matrix or of the U*-matrix (U*C).",
)
@click.option("--clusters", type=click.IntRange(min=1), help="How many; watershed and immersion find a number.")
@click.option(
    "--linkage",
    type=click.Choice(["ward", "average"]),
    help="What is merged next (agglomerative): ward for clusters alike in size, average where some are rare; by "
    "default ward on Euclidean maps, else average.",
)
@click.option("--adjacent", is_flag=True, help="Merge only what touches on the grid (agglomerative).")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the first means (kmeans).")
@click.option("--samples", type=click.Path(exists=True), help="Those the map was trained with, if they were moved.")
@click.option("--mapping", type=click.Path(exists=True), help="Mapping store: write the clusters of its samples.")
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def cluster(codebook: str, out: str, samples: str | None, mapping: str | None, overwrite: bool, **options: Any) -> None:
    """Find clusters of the units of MAP and write them, a unit a line, to OUT (comma-separated values)."""
    from pipelines import cluster_map, open_codebook, open_mapping, open_samples, write_clusters

    opened = open_codebook(codebook)
    found = cluster_map(opened, samples=open_samples(samples) if samples else None, **options)
    write_clusters(out, found, opened, mapping=open_mapping(mapping) if mapping else None, overwrite=overwrite)
    click.echo(f"{out}: {found.max() + 1} clusters of {len(found):,} units")


def _rows(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        raise click.UsageError(f"--way is {text!r}; give the first row and the one after the last, such as 0:100")
    return int(first), int(last)
