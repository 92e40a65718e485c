"""Distributed algorithms on Zarr stores: each takes a Dask client and input stores, and writes an output store.

All public functions and classes can be imported from this package. Each is loaded from its module on first access:
importing Dask and Numba takes a second, and reading a store needs neither.
"""

from typing import TYPE_CHECKING, Any

from gpuops.lazy_imports import imported, offered_names
from pipelines.stores.displays import PICTURES
from pipelines.stores.graph_names import OPENERS

if TYPE_CHECKING:
    from gpuops.certificates import Certificate as Certificate
    from gpuops.certificates import verify_paths as verify_paths
    from gpuops.errors import NegativeCycleError as NegativeCycleError
    from gpuops.errors import NotEulerianError as NotEulerianError
    from gpuops.errors import VerificationError as VerificationError
    from gpuops.errors import WeightRangeError as WeightRangeError
    from pipelines.analysis.derived_graphs import write_forest as write_forest
    from pipelines.analysis.derived_graphs import write_reverse as write_reverse
    from pipelines.analysis.eccentricity import Eccentricities as Eccentricities
    from pipelines.analysis.eccentricity import eccentricities as eccentricities
    from pipelines.analysis.measures import Measures as Measures
    from pipelines.analysis.measures import measures as measures
    from pipelines.analysis.structure import Structure as Structure
    from pipelines.analysis.structure import graph_structure as graph_structure
    from pipelines.apsp.solve import all_pairs_shortest_paths as all_pairs_shortest_paths
    from pipelines.assembly.assemble import Assembly as Assembly
    from pipelines.assembly.assemble import assemble as assemble
    from pipelines.centrality.flows import link_flows as link_flows
    from pipelines.centrality.solve import betweenness as betweenness
    from pipelines.euler.circuits import euler_circuits as euler_circuits
    from pipelines.euler.de_bruijn import de_bruijn_sequence as de_bruijn_sequence
    from pipelines.euler.walks import write_walks as write_walks
    from pipelines.exports import export_store as export_store
    from pipelines.exports.layers import graph_to_gdfs as graph_to_gdfs
    from pipelines.formats.errors import FormatError as FormatError
    from pipelines.formats.graphs import import_graph as import_graph
    from pipelines.formats.graphs.adjacency import write_adjacency_text as write_adjacency_text
    from pipelines.formats.graphs.by_rows import graph_by_rows as graph_by_rows
    from pipelines.formats.graphs.generated import generate as generate
    from pipelines.formats.samples import import_samples as import_samples
    from pipelines.generators import synthetic_graph as synthetic_graph
    from pipelines.generators.point_clouds import PointCloud as PointCloud
    from pipelines.generators.point_clouds import write_cloud as write_cloud
    from pipelines.hierarchy.solve import build_hierarchy as build_hierarchy
    from pipelines.od_tables.frames import od as od
    from pipelines.od_tables.histogram import distance_histogram as distance_histogram
    from pipelines.od_tables.what_if import changes as changes
    from pipelines.od_tables.what_if import criticality as criticality
    from pipelines.pictures.distances import picture_distances as picture_distances
    from pipelines.pictures.euler_stages import picture_euler_stages as picture_euler_stages
    from pipelines.pictures.euler_stages import picture_partitions as picture_partitions
    from pipelines.pictures.graphs import picture_bricks as picture_bricks
    from pipelines.pictures.graphs import picture_graph as picture_graph
    from pipelines.places.at import Placed as Placed
    from pipelines.places.at import vertices_at as vertices_at
    from pipelines.reach.solve import isochrones as isochrones
    from pipelines.routes.distances import distances_between as distances_between
    from pipelines.routes.k_paths import k_shortest_paths as k_shortest_paths
    from pipelines.routes.paths import NoPathError as NoPathError
    from pipelines.routes.paths import Path as Path
    from pipelines.routes.paths import PathFinder as PathFinder
    from pipelines.routes.paths import paths_of_pairs as paths_of_pairs
    from pipelines.routes.paths import predecessors as predecessors
    from pipelines.routes.paths import shortest_path as shortest_path
    from pipelines.routes.tree_paths import tree_path as tree_path
    from pipelines.routes.tree_paths import tree_paths_of_pairs as tree_paths_of_pairs
    from pipelines.som.cluster_tables import cluster_map as cluster_map
    from pipelines.som.cluster_tables import read_clusters as read_clusters
    from pipelines.som.cluster_tables import write_clusters as write_clusters
    from pipelines.som.map_samples import map_samples as map_samples
    from pipelines.som.mapping_quality import mapping_quality as mapping_quality
    from pipelines.som.pictures import picture_map as picture_map
    from pipelines.som.predictions import Prediction as Prediction
    from pipelines.som.predictions import predict_labels as predict_labels
    from pipelines.som.tables import export_map as export_map
    from pipelines.som.train import train_som as train_som
    from pipelines.sssp.solve import single_source_shortest_paths as single_source_shortest_paths
    from pipelines.stores.circuits import Circuits as Circuits
    from pipelines.stores.circuits import open_circuits as open_circuits
    from pipelines.stores.codebook import Codebook as Codebook
    from pipelines.stores.codebook import open_codebook as open_codebook
    from pipelines.stores.distances import Distances as Distances
    from pipelines.stores.distances import open_distances as open_distances
    from pipelines.stores.errors import StoreError as StoreError
    from pipelines.stores.graph import Graph as Graph
    from pipelines.stores.graph import open_graph as open_graph
    from pipelines.stores.graph_writer import write_graph as write_graph
    from pipelines.stores.hierarchy import HierarchyStore as HierarchyStore
    from pipelines.stores.hierarchy import open_hierarchy as open_hierarchy
    from pipelines.stores.mapping import Mapping as Mapping
    from pipelines.stores.mapping import open_mapping as open_mapping
    from pipelines.stores.paths import Paths as Paths
    from pipelines.stores.paths import open_paths as open_paths
    from pipelines.stores.samples import Samples as Samples
    from pipelines.stores.samples import open_samples as open_samples
    from pipelines.stores.samples import write_samples as write_samples
    from pipelines.stores.vertex_names import positions as positions
    from pipelines.turns.write import write_turns as write_turns
    from pipelines.validation.distances import verify_distances as verify_distances
    from pipelines.workers.capacity import DoesNotFitError as DoesNotFitError
    from pipelines.workers.interruption import Interrupted as Interrupted
    from pipelines.workers.plans import Plan as Plan
    from pipelines.workers.plans import planned as planned

_MODULES = offered_names(__file__)


def _open_rmat(name: str) -> Any:
    from pipelines.generators.generated_graph import generated_graph  # imports Numba, which stores do not need

    return generated_graph(name)


def _draw(graph: Any) -> str | None:
    from pipelines.pictures.inline import svg_of  # imports what draws, which stores do not need

    return svg_of(graph)


OPENERS["rmat"] = _open_rmat
PICTURES["svg"] = _draw

if not TYPE_CHECKING:  # type checkers use the imports above and cannot evaluate this line
    __all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(imported(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
