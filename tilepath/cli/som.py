"""The commands `tilepath som ...`: self-organizing maps, from a file to a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def som_commands(cluster_options: tuple[Callable[[Any], Any], ...], client: Callable[[dict[str, Any]], Any]) -> Any:
    """The group of commands.

    Parameters
    ----------
    cluster_options : options of commands that compute
    client : gives a client (a context manager) of the cluster that their values ask for
    """

    @click.group("som")
    def som() -> None:
        """Self-organizing maps: samples in, a map, pictures and best matching units out."""

    for command in (import_file, generate, plot):
        som.add_command(command)
    for command in (train, place):
        known = [parameter.name for parameter in command.params]
        for option in reversed(cluster_options):
            option(command)
        names = [parameter.name for parameter in command.params if parameter.name not in known]
        command.callback = _with_client(command.callback, names, client)
        som.add_command(command)
    return som


def _with_client(call: Any, names: list[Any], client: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """`call` with a function that opens a client, so that the stores are examined first."""

    def complete(**options: Any) -> Any:
        cluster = {name: options.pop(name) for name in names}
        return call(open_client=lambda: client(cluster), **options)

    return complete


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("store", type=click.Path())
@click.option("--format", type=click.Choice(["csv", "parquet", "npy", "npz", "fcs"]))
@click.option("--columns", metavar="NAME,...", help="Columns to keep, by name or number from 0; by default all others.")
@click.option("--label", metavar="COLUMN", help="Column of labels; in .npz an array.")
@click.option("--weight", metavar="COLUMN", help="Column that says how much a sample counts; in .npz an array.")
@click.option("--delimiter", help="Between the fields of a line; by default a comma, in .tsv a tab.")
@click.option(
    "--header/--no-header", default=None, help="Whether the text begins with names; by default if no value is a number."
)
@click.option("--missing", is_flag=True, help="Empty fields and NaN are missing values; without this they are errors.")
@click.option(
    "--scaling",
    type=click.Choice(["none", "zscore", "minmax", "arcsinh"]),
    show_default="none",
    help="Bring columns to one scale; pictures undo it.",
)
@click.option("--cofactor", type=float, default=5.0, show_default=True, help="Divisor of values before arcsinh.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), show_default="float32")
@click.option(
    "--like",
    type=click.Path(exists=True),
    metavar="STORE",
    help="Take columns, scaling and dtype from a store of samples or of a map, for new samples of that map.",
)
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def import_file(file: str, store: str, columns: str | None, **options: Any) -> None:
    """Read samples from FILE into the samples store STORE.

    CSV (optionally gzip'd), Parquet and NumPy's .npy and .npz are read in pieces: the file may be larger than memory.
    FCS files of cytometers are read whole.
    """
    from pipelines.formats.samples import import_samples
    from tilepath.cli.describe import describe_samples

    chosen = None if columns is None else columns.split(",")
    click.echo(describe_samples(import_samples(file, store, columns=chosen, **options)))


@click.command()
@click.argument("kind", metavar="KIND")
@click.argument("store", type=click.Path())
@click.option("-n", "--samples", "n", type=int, default=1000, show_default=True)
@click.option("--dimensions", "d", type=int, default=2, show_default=True, help="Of blobs and uniform points.")
@click.option("--clusters", type=int, default=5, show_default=True, help="Number of blobs.")
@click.option("--spread", type=float, default=0.5, show_default=True, help="Standard deviation of the blobs.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same samples everywhere.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def generate(kind: str, store: str, dtype: str, overwrite: bool, **options: Any) -> None:
    """Generate samples of a KIND and write them to the samples store STORE.

    KIND is blobs, uniform, or a shape: chainlink, hepta, tetra, target, two-diamonds, wing-nut, atom, engy-time,
    golf-ball.
    """
    from pipelines.generators.point_clouds import PointCloud, write_cloud
    from tilepath.cli.describe import describe_samples

    cloud = PointCloud(kind=kind, **options)
    click.echo(describe_samples(write_cloud(cloud, store, dtype=dtype, overwrite=overwrite)))


@click.command()
@click.argument("samples", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--rows", type=click.IntRange(min=1), required=True, help="Rows of the map.")
@click.option("--columns", type=click.IntRange(min=1), required=True, help="Columns of the map.")
@click.option("--hexagonal", is_flag=True, help="Cells are hexagons; by default squares.")
@click.option("--toroidal", is_flag=True, help="The edges of the map are joined.")
@click.option("--metric", type=click.Choice(["euclidean", "taxicab", "cosine"]), default="euclidean")
@click.option(
    "--kernel",
    type=click.Choice(["gaussian", "bubble", "mexican_hat", "linear"]),
    default="gaussian",
    help="The neighbourhood.",
)
@click.option(
    "--epochs", type=click.IntRange(min=1), default=20, show_default=True, help="Epochs over which sigma falls."
)
@click.option("--sigma", type=float, help="Initial reach of the neighbourhood; by default half of the longer side.")
@click.option("--sigma-end", type=float, default=1.0, show_default=True, help="Its reach in the last epoch.")
@click.option("--schedule", type=click.Choice(["linear", "exponential"]), default="linear", help="How sigma falls.")
@click.option("--initial", type=click.Choice(["pca", "random"]), default="pca", help="The initial map.")
@click.option("--from", "given", type=click.Path(exists=True), help="Codebook store to start from instead.")
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
    help="Continue with --sigma-end until the error falls by less than this fraction of itself, for at most as many "
    "epochs again.",
)
@click.option("--online", is_flag=True, help="Learn from one sample after another, on the first worker's CPU.")
@click.option("--rate", type=float, default=0.5, show_default=True, help="Initial rate of online learning.")
@click.option("--rate-end", type=float, default=0.01, show_default=True, help="Final rate of online learning.")
@click.option(
    "--resident/--streamed",
    default=None,
    help="Keep samples in memory, or read them in each epoch; by default by size.",
)
@click.option("--piece-rows", type=click.IntRange(min=1), help="Number of samples read and searched at a time.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT; begin it if there is none.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def train(samples: str, out: str, open_client: Callable[[], Any], given: str | None, **options: Any) -> None:
    """Train a map with the samples store SAMPLES and write it to the codebook store OUT."""
    from pipelines.som.train import train_som
    from pipelines.stores.codebook import open_codebook
    from pipelines.stores.samples import open_samples
    from tilepath.cli.describe import describe_codebook

    opened = open_samples(samples)
    if given is not None:
        options["initial"] = open_codebook(given)
    with open_client() as client:
        codebook = train_som(client, opened, out, progress=True, **options)
    click.echo(describe_codebook(codebook))


@click.command("map")
@click.argument("codebook", type=click.Path())
@click.argument("samples", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT; begin it if there is none.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def place(codebook: str, samples: str, out: str, open_client: Callable[[], Any], **options: Any) -> None:
    """Find the best and second best unit of each of SAMPLES on the map CODEBOOK, and write them to the store OUT.

    Samples that are scaled differently from those of the map, or not at all, are scaled as the map recorded.
    """
    from pipelines.som.place import map_samples
    from pipelines.stores.codebook import open_codebook
    from pipelines.stores.samples import open_samples
    from tilepath.cli.describe import describe_mapping

    opened = open_codebook(codebook), open_samples(samples)
    with open_client() as client:
        mapping = map_samples(client, *opened, out, progress=True, **options)
    click.echo(describe_mapping(mapping))


@click.command()
@click.argument("codebook", type=click.Path())
@click.argument("image", type=click.Path())
@click.option(
    "--kind",
    type=click.Choice(["umatrix", "hits", "planes", "labels", "curve"]),
    default="umatrix",
    show_default=True,
    help="Walls between clusters, samples of units, values, labels, or the training.",
)
@click.option("--column", "columns", multiple=True, help="Show this column; repeatable (planes).")
@click.option("--mapping", type=click.Path(), help="Mapping store, for the labels or hits of other samples.")
@click.option("--samples", type=click.Path(), help="Its samples store, if it was moved.")
def plot(codebook: str, image: str, mapping: str | None, samples: str | None, **options: Any) -> None:
    """Draw the map CODEBOOK to IMAGE (.png, .pdf or .svg)."""
    from pipelines.som.pictures import picture_map
    from pipelines.stores.codebook import open_codebook
    from pipelines.stores.mapping import open_mapping
    from pipelines.stores.samples import open_samples

    placed = None if mapping is None else open_mapping(mapping)
    where = samples or (placed and placed.samples_path)
    of = open_samples(where) if where and options["kind"] == "labels" else None
    picture_map(open_codebook(codebook), image, mapping=placed, samples=of, **options)
    click.echo(image)
