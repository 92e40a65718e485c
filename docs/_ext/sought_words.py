"""Words that readers type into the search, and the section that answers: the search shows this section first.

Sphinx ranks pages by whether a word is in a title or in the text, so that a word without a title of its own is found on
a dozen pages in the order of their titles. A word of this list is an entry of the index at its section.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

WORDS = {
    "graphs": {"Import a table of arcs": ["CSV", "edge list", "import CSV", "load CSV", "data frame"]},
    "choose": {"Choose a method and a device": ["GPU memory", "how much memory", "memory"]},
    "flows": {"Flows and equilibria": ["traffic assignment", "user equilibrium"]},
    "graph-measures": {"Betweenness": ["betweenness centrality", "centrality"]},
    "doors": {"Stores as files": ["DuckDB"]},
    "clusters": {
        "Five ways to a cluster": [
            *("MPI", "mpirun", "NCCL", "Kubernetes", "SSHCluster", "LocalCUDACluster", "existing Dask client"),
        ],
    },
    "closures": {
        "Closed roads": ["road closures", "what if"],
        "What closes a road": ["close a road"],
    },
    "coming-from/minisom-flowsom": {"Measured": ["MiniSom speed", "FlowSOM speed"]},
    "coming-from/scipy": {"Measured": ["csgraph speed", "scipy.sparse.csgraph speed"]},
    "coming-from/networkx": {"Measured": ["NetworkX speed", "igraph speed"]},
    "coming-from/osmnx-pandana": {
        "Measured": ["OSMnx speed", "pandana speed"],
        "The network": ["load OSMnx", "load OSMnx graph"],
    },
    "euler-circuits": {
        "Euler circuits": ["Eulerian", "Euler path", "Hierholzer", "postman"],
        "From a file to a circuit": ["Euler circuit input", "input format of Euler circuits"],
    },
    "gpus": {
        "Several GPUs of one machine": [
            *("multiple GPUs", "several GPUs", "multi-GPU", "multi GPU", "2 GPUs", "4 GPUs", "8 GPUs", "all GPUs"),
            *("CUDA_VISIBLE_DEVICES", "choose a GPU", "choose GPU", "which GPU", "second GPU", "MIG"),
        ],
    },
    "how-fast": {
        "tilepath alone: maps and circuits": ["10 million cells", "million cells", "millions of cells"],
        "How fast": [
            *("performance", "benchmark", "speed", "hardware"),
            *("comparison", "comparison with other libraries", "compare", "SciPy speed"),
        ],
    },
    "index": {"What you can rely on": ["precision", "accuracy", "exact"]},
    "install": {
        "Cite": ["BibTeX", "citation"],
        "GPUs and CUDA": ["driver", "compute capability"],
        "Install": ["conda", "pip", "PyPI", "Windows", "macOS"],
        "The first use": ["first use", "compile", "compilation"],
        "Report a bug": ["bug report", "bug", "issue", "contact"],
        "Versions and compatibility": [
            *("stability", "API stability", "compatibility", "backward compatibility", "backwards compatibility"),
            *("semantic versioning", "semver", "deprecation", "deprecated", "breaking changes"),
            *("dependencies", "requirements", "Python version", "NumPy version"),
        ],
    },
    "limits": {
        "Limits and troubleshooting": ["troubleshooting", "problem", "FAQ", "frequently asked questions"],
        "Nothing is printed": ["hangs", "slow start", "heartbeat"],
        "Special cases": [
            "double precision",
            "float64",
            "rounding",
            *(
                "integer overflow",
                "overflow",
                "int32",
                "semiring",
                "widest path",
                "bottleneck path",
                "negative weights",
            ),
            *("billion edges", "larger than memory graph"),
        ],
        "What tilepath does not have": [
            "AMD GPU",
            "Apple GPU",
            "C++",
            "CMake",
            *("GTFS", "transit", "public transport", "timetable", "street names", "minimum spanning tree", "PageRank"),
            *("eigenvector centrality", "one-hot", "categorical", "column weights", "AMD", "ROCm"),
            *("contraction hierarchies", "UMAP", "TSP", "several stops", "waypoints", "map matching"),
        ],
    },
    "map-clustering": {"Which method for clusters": ["number of clusters", "how many clusters"]},
    "map-python": {
        "Choose parameters by cross-validation": ["GridSearchCV"],
        "Maps in Python": ["sklearn"],
        "Save and load a map": ["save model", "load model", "pickle", "save a map"],
    },
    "maps": {
        "Choosing a size": ["map size", "number of units"],
        "How many epochs": ["epochs"],
        "Import: scaling, missing values, FCS files, AnnData": [
            "arcsinh cofactor",
            "cofactor",
            "logicle",
            "normalization",
            "missing values",
            "NaN",
            "arcsinh",
            "compensation",
        ],
        "Train a map of a table": ["U-matrix", "outlier", "anomaly"],
        "Shape of the map: hexagonal, toroidal": ["hexagonal", "toroidal"],
        "The same map again": ["random seed", "seed", "random_state"],
        "Time, memory and devices": ["out of core training", "larger than memory samples"],
        "Measures: is the map good?": ["topographic error", "quantization error", "map quality"],
    },
    "networkx": {"Functions": ["closeness", "closeness centrality"]},
    "out-of-core": {"Disk": ["disk space", "disk space estimate"]},
    "reference/stores": {
        "R and Julia": ["use from R", "R package", "R", "Julia", "read in R", "read zarr in R", "read results in R"]
    },
    "reliability": {
        "How to check a result": [
            *("trust", "trust results", "trust the results", "correctness", "validate", "validation"),
            *("verify result", "verify results", "verify result correctness", "proof", "prove", "verify", "checksum"),
        ],
        "Stop and resume": ["checkpoint restart", "checkpoint", "restart", "crash", "resume", "continue", "killed"],
        "The same bits": [
            "reproducible",
            "reproducibility",
            "deterministic",
            "bitwise",
            "bitwise reproducible",
            "same bits GPU",
            "reproducibility CPU GPU",
        ],
    },
    "roads": {
        "Default weights": ["default weight", "choose a weight"],
        "Layers: GeoPackage, GeoJSON and others": ["GeoDataFrame", "Shapefile"],
        "Results in QGIS": ["QGIS", "export QGIS"],
        "OpenStreetMap": [
            "walking cycling",
            "bike",
            "bicycle",
            "pedestrian",
            "on foot",
            *("walking", "cycling", "driving", "truck", "lorry", "one-way", "one way", "oneway"),
            *("maxspeed", "default speeds", "motorway"),
        ],
        "Turns": ["turn restrictions", "turn penalty", "turn penalties", "turn costs"],
    },
    "routes": {
        "Routes": [
            "route between two points",
            "route from A to B",
            "path between two points",
            "LineString",
            "route geometry",
        ],
        "Isochrones": ["minutes", "service area", "catchment area"],
        "Toll and length along the fastest path": ["toll", "tolls", "toll length"],
    },
    "slurm": {
        "dask-jobqueue": ["PBS", "SGE"],
        "Containers": ["Docker", "Apptainer", "Singularity"],
        "Job arrays": ["job arrays", "job array"],
        "Resume a job": ["slurm resume", "walltime", "wall time", "time limit", "preempted", "preemption"],
        "Run a command on several nodes": [
            *("job script", "multi-node", "several nodes", "multiple nodes", "slurm multiple nodes", "sbatch"),
        ],
        "What 16 GPUs bring": ["16 GPUs"],
    },
    "weights": {
        "Change speeds and weights": ["speeds", "traffic", "congestion", "change weights", "update weights"],
        "A table for each hour": ["time of day", "rush hour", "departure time"],
    },
    "tables": {
        "Places: origins, destinations, pairs": ["snap", "snapping", "island", "zones", "centroids"],
        "Columns, units and limits": ["units"],
        "From origins to destinations": [
            *("travel times", "travel time matrix", "travel time table", "table of travel times"),
            *("OD matrix", "nearest facility", "closest facility", "nearest facilities", "k nearest"),
        ],
        "A matrix of zones": ["skim", "OMX", "distance matrix", "zone matrix"],
    },
    "tutorials/start": {
        "Ten minutes in Python": ["quickstart", "getting started", "first steps", "concepts"],
        "Which function takes what": ["client", "main guard", "Jupyter", "notebook"],
    },
}


def index(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put the words of each section before its heading."""
    for heading, words in WORDS.get(page, {}).items():
        entries = "".join(f"   ! {word}\n" for word in words)
        line = re.compile(rf"^#+ {re.escape(heading)}$", re.MULTILINE)
        source[0], found = line.subn(f"```{{eval-rst}}\n.. index::\n{entries}```\n\n\\g<0>", source[0])
        if found != 1:
            raise ExtensionError(f"docs/{page}.md has {found} sections {heading!r}; change docs/_ext/sought_words.py")


def lead_to_sections(_app: Sphinx, document: nodes.document) -> None:
    """Let the words lead to the ids of sections, by which the search finds the headings (docs/_static/scorer.js)."""
    sections = {each: section["ids"][0] for section in document.findall(nodes.section) for each in section["ids"]}
    for node in document.findall(addnodes.index):
        node["entries"] = [(kind, word, sections.get(at, at), *rest) for kind, word, at, *rest in node["entries"]]


def setup(app: Sphinx) -> None:
    app.connect("source-read", index)
    app.connect("doctree-read", lead_to_sections)
