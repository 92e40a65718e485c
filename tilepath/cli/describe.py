"""What a store is, for people: one line about its contents, whatever its schema, and how far an unfinished one is.

All that this needs to know about a kind of store is one entry of `KINDS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pipelines.stores import Distances, Graph, Paths, StoreError, open_distances, open_graph, open_paths
from pipelines.stores.circuits import Circuits, open_circuits
from pipelines.stores.codebook import Codebook, open_codebook, progress_of_codebook, verify_part_of_codebook
from pipelines.stores.contents import Verified
from pipelines.stores.distances import progress, verify_part
from pipelines.stores.mapping import Mapping, open_mapping, progress_of_mapping, verify_part_of_mapping
from pipelines.stores.paths import progress_of_paths, verify_part_of_paths
from pipelines.stores.place import growing_beside
from pipelines.stores.samples import Samples, open_samples
from pipelines.stores.schema import open_store, store_bytes, store_schema
from pipelines.workers.progress import size


def store_info(path: str | os.PathLike[str], verify: bool = False) -> Iterator[str]:
    """Lines about the store at `path`; with `verify` everything is reread, and StoreError names what is wrong."""
    kind = kind_of(path)
    done, total = kind.progress(path)
    opened = kind.open(path) if done == total else None
    if opened is not None:
        yield kind.describe(opened)
    else:
        yield f"{path}: unfinished {kind.name}, {max(done, 0):,} of {total:,} {kind.unit} are done; go on with --resume"
    yield f"{size(store_bytes(path))} on disk, schema {store_schema(path)}"
    beside = growing_beside(path)
    if beside is not None:
        yield f"{beside} will replace it once that is complete; `tilepath info {beside}` shows how far it is"
    if verify:
        found = _verify(kind, path, opened)
        yield f"verified: {'; '.join(found.checked)}"
        if found.unchecked:
            yield f"not verified, as the version that made the store did not record it: {'; '.join(found.unchecked)}"


def store_facts(path: str | os.PathLike[str], verify: bool = False) -> dict[str, Any]:
    """The same for programs, as JSON: what the store is, its progress, and its attributes as they are recorded."""
    kind = kind_of(path)
    done, total = kind.progress(path)
    opened = kind.open(path) if done == total else None
    facts = {
        "path": os.path.abspath(path),
        "schema": store_schema(path),
        "kind": kind.name,
        "complete": opened is not None,
        "done": max(done, 0),
        "total": total,
        "unit": kind.unit or None,
        "bytes": store_bytes(path),
        "replaced_by": growing_beside(path),
        "attributes": open_store(path).attrs.asdict(),
    }
    return facts | ({"verified": _verify(kind, path, opened)._asdict()} if verify else {})


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """What is known about the kind of store at `path`; StoreError if this version does not know it."""
    schema = store_schema(path)
    if schema not in KINDS:
        raise StoreError(f"{path}: a store of schema {schema}, which this version of tilepath does not know")
    return KINDS[schema]


def _verify(kind: Kind, path: str | os.PathLike[str], opened: Any) -> Verified:
    return kind.verify_part(path) if opened is None else opened.verify()


def describe_graph(graph: Graph) -> str:
    kind = "directed" if graph.directed else "undirected"
    unit = f" {graph.weight_unit}" if graph.weight_unit else ""
    closed = int((~graph.through()).sum())
    parts = [
        f"{graph.path}: {kind} graph, {graph.n:,} vertices, {graph.m:,} arcs",
        f"weights {graph.weight_dtype} from {number(graph.weight_min)} to {number(graph.weight_max)}{unit}",
    ]
    if closed:
        parts.append(f"{closed:,} vertices closed to through traffic")
    if not graph.sorted_rows:
        parts.append("rows as given")
    extras = sorted(graph.optional - {"through"})
    if extras:
        parts.append(f"with {' and '.join(extras)}")
    if graph.source:
        parts.append(f"from {graph.source}")
    return "; ".join(parts)


def describe_distances(distances: Distances) -> str:
    rows, columns = distances.shape
    return f"{distances.path}: {rows:,} x {columns:,} {distances.dtype} distances of {distances.graph_path}"


def describe_paths(paths: Paths) -> str:
    rows, columns = paths.shape
    kept = " distances and predecessors" if paths.has_predecessors else " distances"
    parts = [f"{paths.path}: {rows:,} x {columns:,} {paths.dtype}{kept} of {paths.graph_path}"]
    if paths.together:
        parts.append(f"from the nearest of {len(paths.sources):,} sources")
    if paths.cutoff is not None:
        parts.append(f"up to a distance of {number(paths.cutoff)}")
    if paths.targets is not None:
        parts.append(f"as far as {len(paths.targets):,} target{'s' if len(paths.targets) > 1 else ''}")
    return ", ".join(parts)


def describe_samples(samples: Samples) -> str:
    parts = [f"{samples.path}: {samples.n:,} x {samples.d} {samples.dtype} samples"]
    if samples.scaling.kind != "none":
        parts.append(f"scaled by {samples.scaling.kind}")
    if samples.missing:
        parts.append("values may be missing")
    if samples.scaling.transforms:
        parts.append(f"{sum(map(bool, samples.scaling.transforms)):,} columns transformed")
    if samples.compensated:
        parts.append("compensated")
    there = {"labels": samples.labelled, "weights": samples.largest_weight, "ids": samples.identified}
    extras = [name for name, given in there.items() if given]
    if extras:
        parts.append(f"with {' and '.join(extras)}")
    if len(samples.origins) > 1:
        parts.append(f"from {len(samples.origins):,} files")
    elif samples.source:
        parts.append(f"from {samples.source}")
    return "; ".join(parts)


def describe_codebook(codebook: Codebook) -> str:
    grid = codebook.grid
    kind = f"{'toroidal ' if grid.toroidal else ''}{'hexagonal' if grid.hexagonal else 'rectangular'}"
    parts = [
        f"{codebook.path}: {grid.rows:,} x {grid.columns:,} {kind} map of {codebook.d} columns",
        f"{codebook.epochs} epochs",
        f"quantization error {codebook.quantization_errors[-1]:.6g}",
    ]
    if codebook.topographic_error is not None:
        parts.append(f"topographic error {codebook.topographic_error:.4g}")
    return ", ".join(parts)


def describe_mapping(mapping: Mapping) -> str:
    parts = [
        f"{mapping.path}: units of {mapping.n:,} samples",
        f"quantization error {mapping.quantization_error():.6g}",
    ]
    if mapping.top > 1:
        parts.append(f"topographic error {mapping.topographic_error():.4g}")
    return ", ".join(parts)


def describe_circuits(circuits: Circuits) -> str:
    closed = circuits.count - (circuits.path_from is not None)
    walks = [f"{closed:,} Euler circuit{'' if closed == 1 else 's'}"] if closed or not circuits.count else []
    if circuits.path_from is not None:
        walks.append("an Euler path")
    along = "arc" if circuits.directed else "edge"
    by = "" if circuits.method == "stages" else ", by Hierholzer's algorithm"
    return (
        f"{circuits.path}: {' and '.join(walks)} along {circuits.length:,} {along}{'' if circuits.length == 1 else 's'}"
        f" of {circuits.graph_path}{by}"
    )


def number(value: float) -> str:
    """The number with grouped digits: all of a whole number, else six."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


class Kind(NamedTuple):
    """`progress` gives how many of how many `unit` are done; `verify_part` rereads an unfinished store."""

    name: str
    open: Callable[[Any], Any]
    describe: Callable[[Any], str]
    progress: Callable[[Any], tuple[int, int]] = lambda path: (1, 1)
    unit: str = ""
    verify_part: Callable[[Any], Verified] = lambda path: Verified((), ())


KINDS = {
    "graph/1": Kind("graph", open_graph, describe_graph),
    "distances/1": Kind("distances", open_distances, describe_distances, progress, "stages", verify_part),
    "paths/1": Kind("paths", open_paths, describe_paths, progress_of_paths, "rows", verify_part_of_paths),
    "samples/1": Kind("samples", open_samples, describe_samples),
    "codebook/1": Kind(
        "map", open_codebook, describe_codebook, progress_of_codebook, "epochs", verify_part_of_codebook
    ),
    "mapping/1": Kind(
        "mapping", open_mapping, describe_mapping, progress_of_mapping, "samples", verify_part_of_mapping
    ),
    "circuits/1": Kind("circuits", open_circuits, describe_circuits),
}
