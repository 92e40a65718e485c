"""Words that readers type into the search, and the section that answers: the search shows this section first.

Sphinx ranks pages by whether a word is in a title or in the text, so that a word without a title of its own is found on
a dozen pages in the order of their titles. A word of this list is an entry of the index at its section.
"""

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

WORDS = {
    "clusters": {"Slurm": ["job script", "sbatch"]},
    "hierarchy": {
        "Columns, units and limits": ["units"],
        "Tables from origins to destinations": ["travel times", "OD matrix"],
        "What if a road were closed": ["closed roads", "road closures"],
    },
    "install": {"GPUs and CUDA": ["driver", "compute capability"]},
    "maps": {
        "From a table to clusters": ["U-matrix"],
        "How many epochs": ["epochs"],
        "Scaling, missing values, FCS files, AnnData": ["missing values", "NaN"],
        "Shape of the map: `--hexagonal`, `--toroidal`": ["hexagonal", "toroidal"],
    },
    "roads": {
        "Isochrones": ["minutes", "service area", "catchment area"],
        "Layers: GeoPackage, GeoJSON and others": ["GeoDataFrame", "Shapefile"],
        "OpenStreetMap": ["walking", "cycling", "driving"],
        "Turns": ["turn restrictions"],
    },
    "usage": {"All distances": ["verify", "checksum"]},
}


def index(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put the words of each section before its heading."""
    for heading, words in WORDS.get(page, {}).items():
        before, level, after = source[0].partition(f"## {heading}\n")
        if not level:
            raise ExtensionError(f"docs/{page}.md has no section {heading!r}; change docs/_ext/sought_words.py")
        hashes = "#" if before.endswith("#") else ""
        entries = "".join(f".. index:: ! {word}\n" for word in words)
        source[0] = f"{before.removesuffix('#')}```{{eval-rst}}\n{entries}```\n\n{hashes}{level}{after}"


def setup(app: Sphinx) -> None:
    app.connect("source-read", index)
