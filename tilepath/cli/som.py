"""The commands `tilepath som ...`: self-organizing maps, from a file to a picture."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster
from tilepath.cli.maps import cluster, export, plot, predict, quality


@click.group("som")
def som() -> None:
    """Self-organizing maps: samples in, a map, pictures and best matching units out."""


@som.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
@click.argument("store", type=click.Path())
@click.option("--format", type=click.Choice(["csv", "parquet", "arrow", "npy", "npz", "zarr", "h5ad", "fcs"]))
@click.option("--columns", metavar="NAME,...", help="Columns to keep, by name or number from 0; by default all others.")
@click.option("--exclude", metavar="NAME,...", help="Columns to leave out.")
@click.option("--label", metavar="COLUMN", help="Column of labels; in .npz an array.")
@click.option("--weight", metavar="COLUMN", help="Column of weights of the samples; in .npz an array.")
@click.option("--id", "ids", metavar="COLUMN", help="Column of what the samples are called; in .npz an array.")
@click.option(
    "--delimiter",
    help="Between the fields of a line; by default a comma, in .tsv a tab, with decimal commas a semicolon. "
    "`whitespace` stands for any number of blanks.",
)
@click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark of text; by default a point.")
@click.option(
    "--header/--no-header",
    default=None,
    help="The first line holds names; by default, if none of its values is a number.",
)
@click.option("--missing", is_flag=True, help="Empty fields and NaN are missing values; without this they are errors.")
@click.option(
    "--compensate", is_flag=True, default=None, help="Undo the spill between detectors by the matrix of the FCS file."
)
@click.option("--layer", metavar="NAME", help="Matrix of an .h5ad file to read instead of X.")
@click.option(
    "--transform",
    "transforms",
    metavar="COLUMN=TRANSFORM",
    multiple=True,
    help="Transform a column, or those of a pattern such as FL*, before the scaling: arcsinh:150, log, logicle; "
    "repeatable.",
)
@click.option(
    "--scaling",
    type=click.Choice(["none", "zscore", "minmax", "arcsinh"]),
    show_default="none",
    help="Bring columns to one scale; pictures undo it. A constant column gets the factor 1.",
)
@click.option("--cofactor", type=float, default=5.0, show_default=True, help="Divisor of the values before arcsinh.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), show_default="float32")
@click.option(
    "--like",
    type=click.Path(exists=True),
    metavar="STORE",
    help="Take columns, scaling, compensation and dtype from a store of samples or of a map, for samples of that map.",
)
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def import_file(
    files: tuple[str, ...],
    store: str,
    columns: str | None,
    exclude: str | None,
    transforms: tuple[str, ...],
    **options: Any,
) -> None:
    """Read samples from FILES into the samples store STORE.

    CSV (optionally gzip'd), Parquet, Arrow, Zarr, .h5ad, NumPy's .npy and .npz, and FCS files of cytometers are read
    in pieces: a file may be larger than memory. Of several files, the store keeps which one a sample is from.
    """
    from pipelines import import_samples

    of_columns = {}
    for text in transforms:
        column, equals, transform = text.rpartition("=")
        if not equals:
            raise click.UsageError(f"--transform is {text!r}; give COLUMN=TRANSFORM, such as 'FL*=arcsinh:150'")
        of_columns[column] = transform
    samples = import_samples(
        files,
        store,
        columns=None if columns is None else columns.split(","),
        exclude=() if exclude is None else exclude.split(","),
        transforms=of_columns or None,
        **options,
    )
    click.echo(samples.describe())


@som.command()
@click.argument("kind", metavar="KIND")
@click.argument("store", type=click.Path())
@click.option("-n", "--samples", "n", type=int, default=1000, show_default=True)
@click.option("--dimensions", "d", type=int, default=2, show_default=True, help="Of blobs and uniform points.")
@click.option("--clusters", type=int, default=5, show_default=True, help="Number of blobs.")
@click.option("--spread", type=float, default=0.5, show_default=True, help="Their standard deviation.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same samples anywhere.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def generate(kind: str, store: str, dtype: str, overwrite: bool, **options: Any) -> None:
    """Generate samples of KIND and write them to the samples store STORE.

    KIND is blobs, uniform, or a shape: chainlink, hepta, tetra, target, two-diamonds, wing-nut, atom, engy-time,
    golf-ball.
    """
    from pipelines import PointCloud, write_cloud

    cloud = PointCloud(kind=kind, **options)
    click.echo(write_cloud(cloud, store, dtype=dtype, overwrite=overwrite).describe())


@som.command()
@click.argument("samples", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--rows", type=click.IntRange(min=1), help="Rows of the map; with --from, those of that map by default.")
@click.option("--columns", type=click.IntRange(min=1), help="Columns of the map; the same default.")
@click.option(
    "--hexagonal/--rectangular",
    default=None,
    help="Cells are hexagons or squares; by default as in --from, else squares.",
)
@click.option(
    "--toroidal/--planar",
    default=None,
    help="The edges of the map are joined or not; by default as in --from, else not.",
)
@click.option(
    "--metric", type=click.Choice(["euclidean", "taxicab", "cosine"]), help="By default that of --from, else euclidean."
)
@click.option(
    "--kernel",
    type=click.Choice(["gaussian", "bubble", "mexican_hat", "linear"]),
    default="gaussian",
    help="The neighbourhood.",
)
@click.option(
    "--epochs", type=click.IntRange(min=1), default=20, show_default=True, help="Epochs over which sigma falls."
)
@click.option("--sigma", type=float, help="Reach of the neighbourhood at first; by default half of the longer side.")
@click.option("--sigma-end", type=float, default=1.0, show_default=True, help="Reach in the last of these epochs.")
@click.option("--schedule", type=click.Choice(["linear", "exponential"]), default="linear", help="How sigma falls.")
@click.option("--initial", type=click.Choice(["pca", "random"]), default="pca", help="First codebook.")
@click.option(
    "--from",
    "given",
    type=click.Path(exists=True),
    help="Map to begin with instead; the grid and metric are its by default.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Draws the samples of --initial random, and the order of --online.",
)
@click.option(
    "--tolerance",
    type=float,
    help="Go on with --sigma-end until the error falls by less than this share of itself, for at most as many epochs "
    "again.",
)
@click.option("--online", is_flag=True, help="Learn from one sample after another, on the first worker's CPU.")
@click.option("--rate", type=float, default=0.5, show_default=True, help="Rate of online learning at first.")
@click.option("--rate-end", type=float, default=0.01, show_default=True, help="Rate of online learning at the end.")
@click.option(
    "--keep-codebooks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the codebooks of the last N epochs, not all.",
)
@click.option(
    "--resident/--streamed", default=None, help="Keep samples in memory, or read them in each epoch; chosen by size."
)
@click.option("--piece-rows", type=click.IntRange(min=1), help="Samples that are read and searched at a time.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT, or begin it.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@on_cluster
def train(samples: str, out: str, open_client: OpenClient, given: str | None, **options: Any) -> None:
    """Train a map with the samples store SAMPLES and write it to the codebook store OUT."""
    from pipelines import open_codebook, open_samples, train_som

    opened = open_samples(samples)
    if given is not None:
        options["initial"] = open_codebook(given)
    with open_client() as client:
        codebook = train_som(client, opened, out, progress=True, **options)
    click.echo(codebook.describe())


@som.command("map")
@click.argument("codebook", type=click.Path())
@click.argument("samples", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT, or begin it.")
@click.option("--overwrite", is_flag=True, help="Replace a store, and a table, that exists.")
@click.option(
    "--out",
    "table",
    type=click.Path(),
    help="Write the units to this table too (.csv, .tsv, .parquet): a row a sample.",
)
@on_cluster
def place(
    codebook: str, samples: str, out: str, open_client: OpenClient, table: str | None, overwrite: bool, **options: Any
) -> None:
    """Find the best and second best unit of each of SAMPLES on the map CODEBOOK, and write them to the store OUT.

    Samples on another scale than the map's, or on none, are brought to the scale that the map has recorded.
    """
    from pipelines import map_samples, open_codebook, open_samples

    codebook_store, samples_store = open_codebook(codebook), open_samples(samples)
    if table is not None:
        from pipelines.som.tables import check_export, write_units

        check_export(table, overwrite, array=False)
    with open_client() as client:
        mapping = map_samples(client, codebook_store, samples_store, out, progress=True, overwrite=overwrite, **options)
    click.echo(mapping.describe())
    if table is not None:
        write_units(mapping, table, samples=samples_store, overwrite=overwrite)
        click.echo(f"{table}: units of {mapping.n:,} samples")


for command in (export, plot, cluster, quality, predict):
    som.add_command(command)
