"""The table of the backend's functions; NetworkX's documentation, `can_run` and the dispatch are made from it.

Every ``import networkx`` calls `get_info`, so this module has no imports.
"""

NAME = "tilepath"

# The functions of each module of this package, each with the least number of nodes that makes a call faster than
# NetworkX, conversion included. None: the conversion takes longer than NetworkX's own search, so a call is faster only
# if the graph was converted before. benchmarks/suites/networkx.py measures the numbers.
FUNCTIONS: dict[str, dict[str, int | None]] = {
    "dense": {"floyd_warshall": 20, "floyd_warshall_numpy": 50, "floyd_warshall_predecessor_and_distance": 20},
    "dijkstra": {
        "all_pairs_dijkstra": 100,
        "all_pairs_dijkstra_path": 100,
        "all_pairs_dijkstra_path_length": 100,
        "all_pairs_shortest_path_length": 100,
        "dijkstra_path": None,
        "dijkstra_path_length": None,
        "dijkstra_predecessor_and_distance": None,
        "multi_source_dijkstra": None,
        "multi_source_dijkstra_path": None,
        "multi_source_dijkstra_path_length": None,
        "single_source_dijkstra": None,
        "single_source_dijkstra_path": None,
        "single_source_dijkstra_path_length": None,
    },
    "bellman_ford": {
        "all_pairs_bellman_ford_path": 100,
        "all_pairs_bellman_ford_path_length": 100,
        "bellman_ford_path": None,
        "bellman_ford_path_length": None,
        "bellman_ford_predecessor_and_distance": None,
        "find_negative_cycle": None,
        "johnson": 100,
        "negative_edge_cycle": None,
        "single_source_bellman_ford": None,
        "single_source_bellman_ford_path": None,
        "single_source_bellman_ford_path_length": None,
    },
    "betweenness": {"betweenness_centrality": 20, "edge_betweenness_centrality": 20},
    "measures": {
        "barycenter": 150,
        "center": 150,
        "closeness_centrality": 150,
        "diameter": 150,
        "eccentricity": 150,
        "harmonic_centrality": 150,
        "periphery": 150,
        "radius": 150,
    },
    "connectivity": {
        "connected_components": None,
        "has_eulerian_path": None,
        "is_connected": None,
        "is_eulerian": None,
        "is_semieulerian": None,
        "is_weakly_connected": None,
        "number_connected_components": None,
        "number_weakly_connected_components": None,
        "weakly_connected_components": None,
    },
}

# Arguments with a single value that tilepath accepts, and the reason it gives for refusing other values.
ONLY: dict[str, tuple[object, str]] = {
    "attr": (None, "attributes are written to the graph"),
    "e": (None, "eccentricities are given"),
    "sp": (None, "paths are given"),
    "usebounds": (False, "bounds are asked for"),
}

_DOCS = {
    "dense": "Blocked Floyd-Warshall in float64. A graph with a negative cycle is left to NetworkX.",
    "dijkstra": "Equal distances are in the order of the nodes; of paths of equal length, any may be returned.",
    "bellman_ford": "Results are in the order of distances; of paths of equal length, any may be returned.",
    "measures": "Searches on all cores; without weights, 64 share each step. Diameters and radii need few searches.",
    "betweenness": "On all cores of a CPU, or on a GPU; the last bits may differ. Weights of 0 are left to NetworkX.",
    "connectivity": "Faster than NetworkX on a graph that has been converted before.",
}


def get_info() -> dict[str, object]:
    """Return the names and the documentation that NetworkX asks of a backend at import."""
    return {
        "backend_name": NAME,
        "project": NAME,
        "package": NAME,
        "short_summary": "Shortest paths, distance measures and components on all cores, exact for integers.",
        "default_config": {"device": "auto"},
        "functions": {
            name: {"additional_docs": _DOCS[module]} for module, names in FUNCTIONS.items() for name in names
        },
    }
