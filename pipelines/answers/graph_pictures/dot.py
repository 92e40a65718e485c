"""Write a `Drawing` as text for Graphviz. Graphviz lays it out, unless the drawing has coordinates."""

from __future__ import annotations

import os

from pipelines.answers.graph_pictures.drawing import Drawing
from pipelines.formats.output_file import check_free, whole_file

NARROWEST = 540.0  # longer side of a map, in points


def write_dot(drawing: Drawing, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write the text. Nodes are called v0, v1, ... in it, and have their names as labels."""
    arrow = "->" if drawing.directed else "--"
    check_free(path, overwrite)
    lines = [f"{'digraph' if drawing.directed else 'graph'} {_quoted(drawing.title or 'graph')} {{"]
    lines.append(f"  label={_quoted(drawing.title)}; labelloc=t; fontsize=10;")
    lines.append("  node [style=filled, fillcolor=white, fontsize=10];")
    lines.append("  edge [fontsize=8, arrowsize=0.6];")
    places = _places(drawing)
    for v, name in enumerate(drawing.names):
        ring = ", peripheries=2" if v in drawing.marks else ""
        lines.append(f'  v{v} [label={_quoted(name)}, fillcolor="{drawing.fills[v]}"{ring}{places[v]}];')
    for number, (name, group) in enumerate(drawing.frames):
        members = " ".join(f"v{v};" for v in group.tolist())
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(name)}; {members} }}")
    for arc, (u, v) in enumerate(zip(drawing.tails.tolist(), drawing.heads.tolist(), strict=True)):
        colour = drawing.colours[arc]
        text = f', label={_quoted(drawing.texts[arc])}, fontcolor="{colour}"' if drawing.texts is not None else ""
        lines.append(f'  v{u} {arrow} v{v} [color="{colour}", penwidth={drawing.widths[arc]:g}{text}];')
    with whole_file(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join([*lines, "}"]) + "\n")


def _places(drawing: Drawing) -> list[str]:
    """Return the positions of nodes for `neato -n`, in points, or empty texts if the drawing has no coordinates."""
    if drawing.coordinates is None or not drawing.n:
        return [""] * drawing.n
    low, high = drawing.coordinates.min(axis=0), drawing.coordinates.max(axis=0)
    scale = NARROWEST / max(float((high - low).max()), 1e-300)
    return [f', pos="{x:.2f},{y:.2f}!"' for x, y in ((drawing.coordinates - low) * scale).tolist()]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
