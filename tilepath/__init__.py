"""Shortest paths and self-organizing maps over Zarr, on a laptop or on many GPUs.

All that `pipelines` offers, and the clusters it runs on, under the name that is installed::

    from tilepath import all_pairs_shortest_paths, import_graph, start

The outermost layer, and a thin one: the command line (`tilepath.cli`), other libraries' conventions
(`tilepath.sklearn`), and these names, which are imported when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

import pipelines

if TYPE_CHECKING:
    from clusters import ClusterError as ClusterError
    from clusters import join as join
    from clusters import start as start
    from pipelines import *  # noqa: F403

_OF_CLUSTERS = ("ClusterError", "join", "start")
_NAMES = sorted([*pipelines.__all__, *_OF_CLUSTERS])

if not TYPE_CHECKING:  # a checker sees the imports above; it could not read this
    __all__ = _NAMES


def __getattr__(name: str) -> Any:
    if name in _OF_CLUSTERS:
        import clusters

        return getattr(clusters, name)
    if name in pipelines.__all__:
        return getattr(pipelines, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
