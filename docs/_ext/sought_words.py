"""Words that readers type into the search, and the section that answers: the search shows this section first.

Sphinx ranks pages by whether a word is in a title or in the text, so that a word without a title of its own is found on
a dozen pages in the order of their titles. A word of this list is an entry of the index at its section. An entry of
several words is found by a query that has all of them, in any order and form (docs/_static/scorer.js).
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SECTIONS = {
    "assembly": {
        "Every word once": "de Bruijn",
        "Contigs from reads": "contigs, genome assembly, FASTQ, k-mers",
    },
    "benchmarks": {
        "Benchmarks": "reproduce published numbers, published numbers",
    },
    "choose": {
        "What you want to know": (
            "which command, which function, shortest path, distance between two, transitive closure"
        ),
        "All distances: which method": "GPU memory, how much memory, memory, APSP, all pairs",
        "Which device": "without GPU, no GPU, CPU only, use GPU, force CPU, which device",
    },
    "closures": {
        "Closed roads": "road closures, what if",
        "What closes a road": "close a road",
    },
    "clusters": {
        "Five ways to a cluster": (
            "MPI, mpirun, NCCL, Kubernetes, SSH, SSH cluster, SSHCluster, LocalCUDACluster, existing Dask client"
        ),
        "A cluster by hand": "NVLink, InfiniBand, UCX, dashboard",
        "Security: who can connect, TLS": "security, firewall, encryption",
    },
    "coming-from/cugraph": {
        "Coming from cuGraph": "cuGraph, cuDF, RAPIDS, nx-cugraph",
    },
    "coming-from/minisom-flowsom": {
        "Coming from MiniSom and FlowSOM": "kohonen, MiniSom, FlowSOM",
        "Measured": "MiniSom speed, FlowSOM speed",
    },
    "coming-from/networkx": {
        "Coming from NetworkX and igraph": "igraph, graph-tool, NetworKit, rustworkx",
        "Measured": "NetworkX speed, igraph speed",
    },
    "coming-from/osmnx-pandana": {
        "Coming from OSMnx and pandana": "OSMnx, pandana",
        "Measured": "OSMnx speed, pandana speed",
        "The network": "load OSMnx, load OSMnx graph",
    },
    "coming-from/r5py-osrm": {
        "Coming from r5py and OSRM": (
            "r5py, OSRM, Valhalla, GraphHopper, pgRouting, routing engine, REST API, web service"
        ),
    },
    "coming-from/scipy": {
        "Coming from SciPy": "SciPy",
        "Measured": "csgraph speed, scipy.sparse.csgraph speed",
    },
    "doors": {
        "Arrays of CuPy, PyTorch, JAX and others": (
            "CuPy, cupyx, GPU result, GPU distances, GPU array, PyTorch, JAX, tensor, DLPack"
        ),
        "scipy.sparse.csgraph": "Bellman Ford, Johnson, csgraph",
        "Stores as files": "DuckDB, export, write CSV, export CSV, export Parquet",
        "Results in NumPy, pandas, xarray and Dask": (
            "to pandas, to NumPy, to_numpy, xarray, Dask array, Dask DataFrame"
        ),
    },
    "engines": {
        "Engines for shortest paths": "which algorithm, Dijkstra, delta stepping, algorithm",
    },
    "euler-circuits": {
        "Euler circuits": "Eulerian, Euler path, Hierholzer, postman",
        "From a file to a circuit": "Euler circuit input, input format of Euler circuits",
    },
    "flows": {
        "Flows and equilibria": "traffic assignment, user equilibrium, traffic volume",
    },
    "gpus": {
        "Several GPUs of one machine": (
            "multiple GPUs, several GPUs, multi-GPU, multi GPU, 2 GPUs, 4 GPUs, 8 GPUs, all GPUs, "
            "CUDA_VISIBLE_DEVICES, choose a GPU, choose GPU, which GPU, second GPU, MIG"
        ),
    },
    "graph-measures": {
        "Betweenness": "betweenness, betweenness centrality, centrality",
        "Batches of small graphs": "molecules, many small graphs, graph transformer",
        "Routes": "predecessors, predecessor matrix",
    },
    "graph-pictures": {
        "Pictures of graphs": "draw graph, plot graph, visualize graph",
    },
    "graphs": {
        "Import a table of arcs": "CSV, edge list, undirected, import CSV, load CSV, data frame",
        "Import and inspect": "file formats, adjacency list, GraphML, Matrix Market, connected components",
        "Names of vertices": "node id, vertex id, node names, vertex names, labels",
    },
    "how-fast": {
        "tilepath alone: maps and circuits": "10 million cells, million cells",
        "How fast": (
            "performance, benchmark, repeat benchmark, reproduce benchmark, speed, hardware, comparison, compare with "
            "other libraries, compare, SciPy speed"
        ),
    },
    "hierarchy": {
        "How large, how long": "laptop, large city, big city, whole country",
    },
    "index": {
        "What you can rely on": "precision, accuracy, exact",
    },
    "install": {
        "Cite": "BibTeX, citation, papers, references papers, literature",
        "License": "license, licence",
        "GPUs and CUDA": "driver, compute capability, CUDA version, CUDA toolkit, supported GPUs, H100, A100",
        "Install": "conda, pip, PyPI, Windows, macOS, wheel, offline",
        "Extras": "optional dependencies, ImportError, ModuleNotFoundError",
        "The first use": "first use, compile, slow first call, warm up, Numba, cache",
        "Report a bug": "bug report, bug, issue, contact",
        "Versions and compatibility": (
            "stability, compatibility, backwards compatibility, semantic versioning, semver, deprecated, breaking "
            "changes, dependencies, requirements, Python version, NumPy version, Python 3.12, Python 3.13"
        ),
    },
    "limits": {
        "Limits and troubleshooting": "troubleshooting, problem, FAQ, frequently asked questions, error message",
        "Nothing is printed": "hangs, slow start, heartbeat, progress bar, progress, log file, logging, verbose, quiet",
        "Imports, units and places": "inf, infinity, unreachable, 2147483647, no path",
        "Memory, disk and stores": (
            "out of memory, CUDA out of memory, OutOfMemoryError, memory error, MemoryError, OOM, overwrite"
        ),
        "GPUs, workers and clusters": "no CUDA device, GPU not found",
        "Special cases": (
            "double precision, half precision, mixed precision, float16, float64, rounding, dtype, integer overflow, "
            "overflow, int32, int64, 64 bit, semiring, widest path, bottleneck path, negative weights, negative "
            "cycle, billion edges, larger than memory graph"
        ),
        "What tilepath does not have": (
            "AMD, AMD GPU, ROCm, Apple GPU, C++, C API, C library, CMake, GTFS, transit, public transport, timetable, "
            "street names, turn-by-turn, map matching, GPX, elevation, slope, hills, TSP, travelling salesman, "
            "location allocation, location-allocation, where to place, best location, best sites, p-median, "
            "several stops, waypoints, A*, contraction hierarchies, minimum spanning tree, max flow, maximum flow, "
            "PageRank, community detection, Louvain, eigenvector centrality, one-hot, categorical, column weights, "
            "UMAP, t-SNE, batch effect, batch correction, S3, cloud, AWS"
        ),
    },
    "map-clustering": {
        "What marks a cluster": (
            "explain clusters, describe clusters, interpret clusters, cluster means, cluster medians, mean of clusters"
        ),
        "Draw clusters and labels": "plot clusters, draw clusters, U-matrix clusters",
        "Which method for clusters": (
            "number of clusters, how many clusters, metaclusters, silhouette, k-means, kmeans, cluster stability"
        ),
        "Predict labels": "label cells, classify, predict, annotate cells",
    },
    "map-python": {
        "AnnData": "scanpy, h5ad, single cell, single cell RNA, X_pca, PCA, sparse AnnData",
        "Choose parameters by cross-validation": "GridSearchCV, cross-validation",
        "Maps in Python": "sklearn",
        "Save and load a map": "save model, load model, pickle, save a map",
    },
    "maps": {
        "Choosing a size": "map size, number of units, how many units",
        "How many epochs": "epochs",
        "Import: scaling, missing values, FCS files, AnnData": (
            "arcsinh, arcsinh cofactor, cofactor, logicle, compensation, FlowJo, normalization, normalize, "
            "standardize, missing values, NaN, import samples, import cells, CSV of cells"
        ),
        "Options of pictures": "plot map, draw map, visualize map, heatmap, component planes",
        "Train a map of a table": "train a map, train SOM, million rows, U-matrix, outlier, anomaly",
        "Shape of the map: hexagonal, toroidal": "hexagonal, toroidal",
        "Sigma, in this and in other packages": "Somoclu, SuSi, XPySom, learning rate, radius of the map",
        "The same map again": "random seed, seed, random_state",
        "Time, memory and devices": "out of core training, larger than memory samples",
        "Measures: is the map good?": "topographic error, quantization error, map quality",
    },
    "networkx": {
        "NetworkX: tilepath as its backend": "NetworkX, backend",
        "Functions": "closeness, closeness centrality",
    },
    "out-of-core": {
        "How long it takes": "200000 vertices",
        "Disk": "disk space, disk space estimate, NVMe",
    },
    "reference/stores": {
        "SciPy": "strongly connected, strong components",
        "R and Julia": (
            "use from R, call from R, R system, reticulate, R package, R, Julia, read in R, read zarr in R, read "
            "results in R"
        ),
    },
    "reliability": {
        "How to check a result": (
            "trust, trust results, correctness, validate, verify result, verify result correctness, proof, prove, "
            "verify, checksum"
        ),
        "Stop and resume": (
            "checkpoint restart, checkpoint, restart, crash, resume, continue, killed, cancel, abort, interrupt, stop "
            "a run, Ctrl-C"
        ),
        "The same bits": (
            "reproducible, reproducibility, deterministic, bitwise, bitwise reproducible, same bits GPU, "
            "reproducibility CPU GPU"
        ),
    },
    "roads": {
        "Default weights": "default weight, choose a weight",
        "Layers: GeoPackage, GeoJSON and others": (
            "GeoDataFrame, GeoPandas, Shapefile, projection, coordinate system, CRS, EPSG"
        ),
        "Results in QGIS": "QGIS, QGIS join, join table, export QGIS, export isochrones, export GeoJSON",
        "OpenStreetMap": (
            "OSM, pbf, Geofabrik, walking, cycling, walking cycling, driving, bike, bicycle, pedestrian, on foot, "
            "truck, lorry, one-way, one way, oneway, maxspeed, speed limit, default speeds, vehicle profile, motorway"
        ),
        "Turns": "turn restrictions, turn penalty, turn costs, left turn, U-turn",
    },
    "routes": {
        "Routes": (
            "route between two points, route from A to B, path between two points, fastest route, shortest route, "
            "LineString, route geometry"
        ),
        "Isochrones": "isochrones, minutes, minute city, service area, catchment area, drive time area, reachable area",
        "Street maps": "web map, folium, save figure, matplotlib",
        "Toll and length along the fastest path": "toll, toll length",
    },
    "slurm": {
        "dask-jobqueue": "PBS, SGE, LSF",
        "Containers": "Docker, Apptainer, Singularity",
        "Job arrays": "job arrays, job array",
        "Resume a job": "slurm resume, walltime, wall time, time limit, preempted, preemption",
        "Run a command on several nodes": (
            "job script, multi-node, several nodes, multiple nodes, slurm multiple nodes, slurm multi GPU, sbatch"
        ),
        "What 16 GPUs bring": "16 GPUs",
    },
    "tables": {
        "Accessibility": (
            "population within, population farther, population access, residents, people, clinic, jobs within, "
            "cumulative opportunities, gravity model, accessibility score"
        ),
        "Places: origins, destinations, pairs": (
            "nearest node, coordinates to nearest node, nearest vertex, csv addresses, address coordinates, street "
            "address, geocode, snap, snapping, island, zones, centroids, polygon zones"
        ),
        "Columns, units and limits": "units, seconds minutes, NaN in table, unreachable pairs",
        "From origins to destinations": (
            "travel time, travel time matrix, travel time table, table of travel times, drive time, commute, OD "
            "matrix, nearest facility, closest facility, k nearest, nearest hospital"
        ),
        "A matrix of zones": "skim, OMX, distance matrix, zone matrix",
    },
    "tutorials/cells": {
        "Populations of cells": "flow cytometry, cytometry, mass cytometry, CyTOF, FCS",
        "Populations": "gating, rare populations, cell types, compare samples",
    },
    "tutorials/matrix": {
        "Read the result": "one row, one path, row of distance matrix",
    },
    "tutorials/start": {
        "Ten minutes in Python": "quickstart, getting started, first steps, concepts",
        "Which function takes what": "client, main guard, Jupyter, notebook",
    },
    "usage": {
        "Graphs": "generate graph, random graph, synthetic graph, R-MAT",
    },
    "weights": {
        "Change speeds and weights": "traffic, congestion, change speed, average speed, change weights, update weights",
        "A table for each hour": "time of day, time dependent, rush hour, departure time, peak hour",
    },
}
WORDS = {page: {at: words.split(", ") for at, words in found.items()} for page, found in SECTIONS.items()}


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
