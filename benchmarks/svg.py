"""Shapes and text as SVG, for drawings that are made of a few hundred of them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

INK, FAINT, PAPER = "#2d3748", "#a0aec0", "#edf2f7"
RED, BLUE, GREEN = "#e53e3e", "#2b6cb0", "#2f855a"


class Drawing:
    """An SVG of `width` x `height` pixels on white. Shapes are drawn in the order of the calls."""

    def __init__(self, width: int, height: int):
        self._lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="12">',
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
            f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]

    def box(
        self, x: float, y: float, w: float, h: float, fill: str = "none", stroke: str = INK, line: float = 1
    ) -> None:
        self._lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="{line:g}"/>'
        )

    def text(self, x: float, y: float, text: object, size: float = 12, anchor: str = "middle", fill: str = INK) -> None:
        self._lines.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}">'
            f"{escape(str(text))}</text>"
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, width: float = 1, arrow: bool = False
    ) -> None:
        head = ' marker-end="url(#head)"' if arrow else ""
        self._lines.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" stroke-width="{width:g}"{head}/>'
        )

    def circle(self, x: float, y: float, radius: float, fill: str = PAPER) -> None:
        self._lines.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{INK}"/>')

    def row(self, x: float, y: float, values: Sequence[object], fills: Sequence[str] = (), cell: float = 26) -> None:
        """Draw values in cells side by side."""
        for place, value in enumerate(values):
            self.box(x + place * cell, y, cell, cell, fills[place] if fills else "white")
            self.text(x + (place + 0.5) * cell, y + cell / 2 + 4, value)

    def svg(self) -> str:
        return "\n".join([*self._lines, "</svg>"]) + "\n"
