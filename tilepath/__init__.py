"""Shortest paths and self-organizing maps over Zarr, on a laptop or on many GPUs.

Import everything from this package: the names of `pipelines`, the clusters to run on, and the scikit-learn estimators::

    from tilepath import SelfOrganizingMap, all_pairs_shortest_paths, import_graph, start

This package is the thin outermost layer. It holds the command line (`tilepath.cli`), the conventions of other libraries
(`tilepath.sklearn`), and the names above; a name is imported when it is first used. The estimators need
scikit-learn, so ``from tilepath import *`` leaves them out.
"""

from typing import TYPE_CHECKING, Any

import pipelines
from gpuops.lazy_imports import imported, offered_names

if TYPE_CHECKING:
    from clusters import ClusterError as ClusterError
    from clusters import join as join
    from clusters import start as start
    from pipelines import *  # noqa: F403
    from tilepath.sklearn import SelfOrganizingMap as SelfOrganizingMap
    from tilepath.sklearn import SelfOrganizingMapClassifier as SelfOrganizingMapClassifier

_MODULES = dict.fromkeys(pipelines.__all__, "pipelines") | offered_names(__file__)

if not TYPE_CHECKING:  # type checkers read the imports above; they cannot evaluate this expression
    __all__ = sorted(name for name, module in _MODULES.items() if module != "tilepath.sklearn")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(imported(_MODULES[name]), name)
    if name == "__version__":
        from importlib.metadata import version  # which takes longer to import than all of this

        return version("tilepath")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "__version__"})
