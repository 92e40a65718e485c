"""Operations on NumPy or CuPy arrays of one device, with results in the same library. Uses neither Dask nor Zarr.

Arrays of other libraries that offer DLPack or ``__cuda_array_interface__``, such as tensors of PyTorch, are accepted
and returned without a copy: `gpuops.arrays.of_any_library` converts the arguments and results of every operation here.

Each name is imported at its first use: importing Numba and all operations takes most of a second.
"""

from inspect import isfunction
from typing import TYPE_CHECKING, Any

from gpuops.compiled_code import use_writable_folder
from gpuops.lazy_imports import imported, offered_names

if TYPE_CHECKING:
    from gpuops.centrality import Betweenness as Betweenness
    from gpuops.centrality import betweenness as betweenness
    from gpuops.centrality import betweenness_factors as betweenness_factors
    from gpuops.centrality import verify_betweenness as verify_betweenness
    from gpuops.centrality.flows import LinkFlows as LinkFlows
    from gpuops.centrality.flows import link_flows as link_flows
    from gpuops.centrality.flows import verify_flows as verify_flows
    from gpuops.compaction import Distinct as Distinct
    from gpuops.compaction import compact as compact
    from gpuops.compaction import distinct as distinct
    from gpuops.compaction import exclusive_scan as exclusive_scan
    from gpuops.compaction import inclusive_scan as inclusive_scan
    from gpuops.errors import NegativeCycleError as NegativeCycleError
    from gpuops.errors import NotEulerianError as NotEulerianError
    from gpuops.errors import VerificationError as VerificationError
    from gpuops.euler import CircuitGraph as CircuitGraph
    from gpuops.euler import EulerCircuit as EulerCircuit
    from gpuops.euler import LinkForest as LinkForest
    from gpuops.euler import circuit_graph as circuit_graph
    from gpuops.euler import cycle_labels as cycle_labels
    from gpuops.euler import euler_circuit as euler_circuit
    from gpuops.euler import join_circuits as join_circuits
    from gpuops.euler import mates_of as mates_of
    from gpuops.euler import pair_arcs as pair_arcs
    from gpuops.euler import spanning_links as spanning_links
    from gpuops.euler import verify_circuit as verify_circuit
    from gpuops.euler import walk_circuits as walk_circuits
    from gpuops.graphs import Degrees as Degrees
    from gpuops.graphs import ReverseGraph as ReverseGraph
    from gpuops.graphs import SpanningForest as SpanningForest
    from gpuops.graphs import degrees as degrees
    from gpuops.graphs import edge_expansion as edge_expansion
    from gpuops.graphs import reverse as reverse
    from gpuops.graphs import spanning_forest as spanning_forest
    from gpuops.graphs import weak_components as weak_components
    from gpuops.hierarchy import Hierarchy as Hierarchy
    from gpuops.hierarchy import HierarchyStructure as HierarchyStructure
    from gpuops.hierarchy import close_hierarchy as close_hierarchy
    from gpuops.hierarchy import distance_block as distance_block
    from gpuops.hierarchy import distance_rows as distance_rows
    from gpuops.hierarchy import hierarchy_order as hierarchy_order
    from gpuops.hierarchy import hierarchy_structure as hierarchy_structure
    from gpuops.hierarchy import one_to_all as one_to_all
    from gpuops.hops import hop_distances as hop_distances
    from gpuops.hops.encodings import PathEncodings as PathEncodings
    from gpuops.hops.encodings import path_encodings as path_encodings
    from gpuops.label_setting import dijkstra as dijkstra
    from gpuops.label_setting import dijkstra_rows as dijkstra_rows
    from gpuops.label_setting.k_paths import k_shortest_paths as k_shortest_paths
    from gpuops.label_setting.near import distances_within as distances_within
    from gpuops.label_setting.near import k_nearest as k_nearest
    from gpuops.minplus import minplus_product as minplus_product
    from gpuops.minplus import minplus_update as minplus_update
    from gpuops.minplus.floyd_warshall import floyd_warshall as floyd_warshall
    from gpuops.minplus.graph_batches import batch_closures as batch_closures
    from gpuops.reduction import butterfly_reduction as butterfly_reduction
    from gpuops.sequences.look_and_say import look_and_say as look_and_say
    from gpuops.sequences.look_and_say import look_and_say_lengths as look_and_say_lengths
    from gpuops.sequences.permutations import next_permutation as next_permutation
    from gpuops.sequences.permutations import permutation_chunks as permutation_chunks
    from gpuops.sequences.permutations import permutation_count as permutation_count
    from gpuops.sequences.permutations import permutation_rank as permutation_rank
    from gpuops.sequences.permutations import permutations as permutations
    from gpuops.sequences.spectrum import cyclic_spectrum as cyclic_spectrum
    from gpuops.sequences.spectrum import cyclic_spectrum_counts as cyclic_spectrum_counts
    from gpuops.sequences.spectrum import peptide_masses as peptide_masses
    from gpuops.sequences.spectrum import spectrum_score as spectrum_score
    from gpuops.som import best_matching_units as best_matching_units
    from gpuops.som import quantization_error as quantization_error
    from gpuops.som import topographic_error as topographic_error
    from gpuops.som.grid import Grid as Grid
    from gpuops.som.update import fixed_point as fixed_point
    from gpuops.som.update import from_fixed_point as from_fixed_point
    from gpuops.som.update import smooth as smooth
    from gpuops.som.update import train_online as train_online
    from gpuops.som.update import unit_sums as unit_sums
    from gpuops.sssp import batched_shortest_distances as batched_shortest_distances
    from gpuops.sssp import improve_distances as improve_distances
    from gpuops.sssp import shortest_distances as shortest_distances
    from gpuops.sssp import shortest_path_tree as shortest_path_tree
    from gpuops.sssp.graph_layout import SearchGraph as SearchGraph
    from gpuops.sssp.graph_layout import search_graph as search_graph

use_writable_folder()
_MODULES = offered_names(__file__)
_PARTS = {module.split(".")[1] for module in _MODULES.values()}

if not TYPE_CHECKING:  # type checkers read the imports above; they cannot evaluate this expression
    __all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return imported(f"gpuops.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(imported(_MODULES[name]), name)
    if isfunction(value):
        from gpuops.arrays import of_any_library

        value = of_any_library(value)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
