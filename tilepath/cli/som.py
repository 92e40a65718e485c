"""The commands `tilepath som ...`: self-organizing maps, from a file to a picture."""

from __future__ import annotations

from typing import Any

import click

from pipelines.som import defaults
from tilepath.cli.cluster import COORDINATION, OpenClient, on_cluster, with_dry_run
from tilepath.cli.help_pages import Pages
from tilepath.cli.maps import cluster, export, plot, predict, quality
from tilepath.cli.quantities import NUMBER
from tilepath.cli.shared_options import OVERWRITE, RESUME


@click.group("som", cls=Pages)
def som() -> None:
    """Self-organizing maps: import samples, train a map, draw it, and find best matching units."""


@som.command("import", example="tilepath som import flowers.csv samples.zarr --label species --scaling zscore")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
@click.argument("store", type=click.Path())
@click.option(
    "--format",
    type=click.Choice(["csv", "parquet", "arrow", "npy", "npz", "zarr", "h5ad", "fcs"]),
    help="Format of FILES; by default chosen by the suffix of each file.",
)
@click.option(
    "--columns", metavar="NAME,...", help="Columns of values by name or number from 0; by default all others."
)
@click.option("--exclude", metavar="NAME,...", help="Columns to leave out.")
@click.option("--label", metavar="COLUMN", help="Column of labels; in .npz, an array.")
@click.option("--weight", metavar="COLUMN", help="Column of sample weights; in .npz, an array.")
@click.option("--id", "ids", metavar="COLUMN", help="Column of sample names; in .npz, an array.")
@click.option(
    "--delimiter",
    help="Delimiter of the fields in a line; by default a comma, in .tsv a tab, with decimal commas a semicolon. "
    "`whitespace` means any number of blanks.",
)
@click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark in text files; by default a point.")
@click.option(
    "--header/--no-header",
    default=None,
    help="The first line holds column names; by default, it does if no value in it is a number.",
)
@click.option("--missing", is_flag=True, help="Accept empty fields and NaN as missing values; else they are errors.")
@click.option(
    "--compensate",
    is_flag=True,
    default=None,
    help="Undo the spillover between detectors with the matrix in the FCS file.",
)
@click.option("--layer", metavar="NAME", help="Matrix of an .h5ad file to read instead of X.")
@click.option(
    "--transform",
    "transforms",
    metavar="COLUMN=TRANSFORM",
    multiple=True,
    help="Transform a column, or all columns of a pattern such as FL*, before the scaling: arcsinh:150, log, logicle; "
    "repeatable.",
)
@click.option(
    "--scaling",
    type=click.Choice(["none", "zscore", "minmax", "arcsinh"]),
    show_default="none",
    help="Bring all columns to one scale; pictures show the original scale. A constant column has the factor 1.",
)
@click.option("--cofactor", type=NUMBER, help="Divisor of the values before the scaling arcsinh; by default 5.")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), show_default="float32", help="Dtype of the stored values."
)
@click.option(
    "--like",
    type=click.Path(exists=True),
    metavar="STORE",
    help="Apply the columns, the compensation, the transform and the scaling of this store of samples or of a map, so "
    "that the samples can be placed on that map. The dtype and --missing are taken from it, too.",
)
@OVERWRITE
def import_file(
    files: tuple[str, ...],
    store: str,
    columns: str | None,
    exclude: str | None,
    transforms: tuple[str, ...],
    **options: Any,
) -> None:
    """Read samples from FILES into the samples store STORE.

    FILES are CSV (optionally gzip'd), Parquet, Arrow, Zarr, .h5ad, NumPy's .npy and .npz, or FCS files of cytometers.
    They are read in pieces, so a file may be larger than memory. With several files, the store records the file of
    each sample.
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


@som.command(example="tilepath som generate chainlink samples.zarr")
@click.argument("kind", metavar="KIND")
@click.argument("store", type=click.Path())
@click.option("-n", "--samples", "n", type=int, default=1000, show_default=True, help="Number of samples.")
@click.option("--dimensions", "d", type=int, default=2, show_default=True, help="Dimensions of blobs and uniform.")
@click.option("--clusters", type=int, default=5, show_default=True, help="Number of blobs.")
@click.option("--spread", type=NUMBER, default=0.5, show_default=True, help="Standard deviation of a blob.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed; the same seed makes the same samples anywhere."
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    show_default=True,
    help="Dtype of the stored values.",
)
@OVERWRITE
def generate(kind: str, store: str, dtype: str, overwrite: bool, **options: Any) -> None:
    """Generate samples of KIND and write them to the samples store STORE.

    KIND is blobs, uniform, or a shape: chainlink, hepta, tetra, target, two-diamonds, wing-nut, atom, engy-time,
    golf-ball.
    """
    from pipelines import PointCloud, write_cloud

    cloud = PointCloud(kind=kind, **options)
    click.echo(write_cloud(cloud, store, dtype=dtype, overwrite=overwrite).describe())


@som.command(example="tilepath som train samples.zarr map.zarr --rows 20 --columns 30 --hexagonal")
@click.argument("samples", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help="Rows of the map; by default as in --from, else chosen with --columns for about 5 sqrt(samples) units in the "
    "ratio 3:4.",
)
@click.option("--columns", type=click.IntRange(min=1), help="Columns of the map; by default chosen like --rows.")
@click.option(
    "--hexagonal/--rectangular",
    default=None,
    help="Shape of the cells: hexagons or squares; by default as in --from, else squares.",
)
@click.option(
    "--toroidal/--planar",
    default=None,
    help="Join opposite edges of the map, or not; by default as in --from, else planar.",
)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "taxicab", "cosine"]),
    help=f"Metric that finds best matching units; by default as in --from, else {defaults.METRIC}.",
)
@click.option(
    "--kernel",
    type=click.Choice(["gaussian", "bubble", "mexican_hat", "linear"]),
    default=defaults.KERNEL,
    show_default=True,
    help="Neighbourhood function.",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=defaults.EPOCHS,
    show_default=True,
    help="Number of epochs in which sigma falls.",
)
@click.option(
    "--sigma", type=NUMBER, help="Radius of the neighbourhood in the first epoch; by default half of the longer side."
)
@click.option(
    "--sigma-end",
    type=NUMBER,
    default=defaults.SIGMA_END,
    show_default=True,
    help="Radius of the neighbourhood in the last of --epochs.",
)
@click.option(
    "--schedule",
    type=click.Choice(["linear", "exponential"]),
    default=defaults.SCHEDULE,
    show_default=True,
    help="How sigma falls from epoch to epoch.",
)
@click.option(
    "--initial",
    type=click.Choice(["pca", "random"]),
    show_default=defaults.INITIAL,
    help="First codebook: the plane of the two principal components, or randomly chosen samples.",
)
@click.option(
    "--from",
    "given",
    type=click.Path(exists=True),
    help="Begin with the codebook of this map instead, by default with its grid and metric.",
)
@click.option(
    "--seed",
    type=int,
    default=defaults.SEED,
    show_default=True,
    help="Seed of the samples drawn for --initial random and of the order of --online.",
)
@click.option(
    "--tolerance",
    type=NUMBER,
    help="After --epochs, train on with --sigma-end until an epoch lowers the error by less than this share, for "
    "at most --epochs more epochs.",
)
@click.option("--online", is_flag=True, help="Learn from one sample after another, on the first worker's CPU.")
@click.option("--rate", type=NUMBER, default=defaults.RATE, show_default=True, help="First learning rate of --online.")
@click.option(
    "--rate-end", type=NUMBER, default=defaults.RATE_END, show_default=True, help="Last learning rate of --online."
)
@click.option(
    "--keep-codebooks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep only the codebooks of the last N epochs; by default all.",
)
@click.option(
    "--resident/--streamed",
    default=None,
    help="Keep samples in memory, or read them again in each epoch; by default chosen by size.",
)
@click.option("--piece-rows", type=click.IntRange(min=1), help="Samples that a worker reads and searches at a time.")
@click.option("--coordination", type=click.Choice(["scheduler", "signals"]), help=COORDINATION)
@RESUME
@OVERWRITE
@with_dry_run
@on_cluster
def train(samples: str, out: str, open_client: OpenClient, given: str | None, **options: Any) -> None:
    """Train a map on the samples store SAMPLES and write it to the map store OUT."""
    from pipelines import open_codebook, open_samples, train_som

    opened, initial = open_samples(samples), options.pop("initial")
    if given is not None and initial is not None:
        raise click.UsageError("--initial and --from both choose the first codebook; give one of them")
    options["initial"] = (initial or defaults.INITIAL) if given is None else open_codebook(given)
    with open_client() as client:
        codebook = train_som(client, opened, out, progress=True, **options)
    click.echo(codebook.describe())


@som.command("map", example="tilepath som map map.zarr samples.zarr units.zarr --out units.csv")
@click.argument("codebook", metavar="MAP", type=click.Path())
@click.argument("samples", type=click.Path())
@click.argument("out", type=click.Path())
@RESUME
@OVERWRITE
@click.option(
    "--out",
    "table",
    type=click.Path(),
    help="Also write the units to this table (.csv, .tsv, .parquet), one row for each sample.",
)
@with_dry_run
@on_cluster
def place(
    codebook: str, samples: str, out: str, open_client: OpenClient, table: str | None, overwrite: bool, **options: Any
) -> None:
    """Find the best and second best unit of each of SAMPLES on MAP, and write them to the mapping store OUT.

    Samples with another scale, or none, are brought to the scale recorded in the map.
    """
    from pipelines import map_samples, open_codebook, open_samples
    from pipelines.som.mapping_quality import describe_mapping
    from pipelines.stores.schema import counted

    codebook_store, samples_store = open_codebook(codebook), open_samples(samples)
    if table is not None:
        from pipelines.som.tables import check_export, write_units
        from pipelines.stores.place import growing_beside

        # A run that replaces a store and its table was begun with --overwrite, and is resumed without.
        replaces = overwrite or (options["resume"] and growing_beside(out) is not None)
        check_export(table, replaces, array=False)
    with open_client() as client:
        mapping = map_samples(client, codebook_store, samples_store, out, progress=True, overwrite=overwrite, **options)
    click.echo(describe_mapping(mapping))
    if table is not None:
        write_units(mapping, table, samples=samples_store, overwrite=replaces)
        click.echo(f"{table}: units of {counted(mapping.n, 'sample')}")


for command in (export, plot, cluster, quality, predict):
    som.add_command(command)
