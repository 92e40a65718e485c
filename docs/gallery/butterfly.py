"""Draws butterfly.svg: how 8 elements exchange what they have, so that after three steps each has the sum of all.

python docs/gallery/butterfly.py             the picture: the steps follow each other, in viewers that show animations
python docs/gallery/butterfly.py --tables    prints the partners of every step, in binary and in decimal
"""

import sys
from pathlib import Path

N = 8
STEPS = (4, 2, 1)
LEFT, TOP, COLUMN, ROW, RADIUS = 70, 60, 200, 54, 15
COLOURS = {4: "#2b6cb0", 2: "#c05621", 1: "#2f855a"}
CYCLE, FIRST, LASTS = 10, 1, 2  # seconds: of all steps with a pause at the end, until the first step, of a step


def draw() -> str:
    width, height = LEFT + len(STEPS) * COLUMN + 70, TOP + (N - 1) * ROW + 70
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f"<style>{animation()}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for column, b in enumerate(STEPS):
        lines += [f'<g class="exchange{b}">', *exchange(LEFT + column * COLUMN, b), "</g>"]
    sums = [{i} for i in range(N)]
    lines += elements(LEFT, sums)
    for column, b in enumerate(STEPS, 1):
        sums = [sums[i] | sums[i ^ b] for i in range(N)]
        lines += [f'<g class="result{b}">', *elements(LEFT + column * COLUMN, sums), "</g>"]
    for column, b in enumerate(STEPS):
        lines += travellers(LEFT + column * COLUMN, b)
    for i in range(N):
        lines.append(f'<text x="20" y="{TOP + i * ROW + 5}" fill="#4a5568">{i:03b}</text>')
    lines.append(
        f'<text x="{LEFT - RADIUS}" y="{height - 16}" fill="#4a5568" font-size="12">'
        "Under a circle: whose elements it has combined. Grey: its own; coloured: its partner's.</text>"
    )
    return "\n".join([*lines, "</svg>"]) + "\n"


def animation() -> str:
    """Return the CSS that shows step after step. Without animations, the whole picture is shown."""
    rules, frames = [], []
    for number, b in enumerate(STEPS):
        begin, end = FIRST + number * LASTS, FIRST + (number + 1) * LASTS
        for name, shown in (("exchange", begin), ("result", end - 0.4)):
            rules.append(f".{name}{b}{{animation:{name}{b} {CYCLE}s infinite}}")
            frames.append(
                f"@keyframes {name}{b}{{0%,{percent(shown)}{{opacity:0.06}}{percent(shown + 0.4)}{{opacity:1}}}}"
            )
        for direction, way in (("up", -b), ("down", b)):
            rules.append(f".{direction}{b}{{animation:{direction}{b} {CYCLE}s infinite}}")
            moved = f"translate({COLUMN - 2 * RADIUS}px,{way * ROW}px)"
            frames.append(
                f"@keyframes {direction}{b}{{0%,{percent(begin)}{{opacity:0}}"
                f"{percent(begin + 0.4)}{{opacity:1;transform:none}}{percent(end - 0.4)}{{opacity:1;transform:{moved}}}"
                f"{percent(end)},100%{{opacity:0;transform:{moved}}}}}"
            )
    return "".join(["@media (prefers-reduced-motion:no-preference){", *rules, "}", *frames])


def percent(seconds: float) -> str:
    return f"{100 * seconds / CYCLE:g}%"


def exchange(x: int, b: int) -> list[str]:
    """Return the title of a step and the lines from column `x` to the next column."""
    title = f"b = {b:03b}: i and i xor {b}"
    lines = [f'<text x="{x + COLUMN / 2}" y="24" text-anchor="middle" fill="{COLOURS[b]}">{title}</text>']
    for i in range(N):
        for partner, colour, stroke in ((i, "#a0aec0", 1.2), (i ^ b, COLOURS[b], 1.8)):
            lines.append(
                f'<line x1="{x + RADIUS}" y1="{TOP + partner * ROW}" x2="{x + COLUMN - RADIUS}" '
                f'y2="{TOP + i * ROW}" stroke="{colour}" stroke-width="{stroke}"/>'
            )
    return lines


def elements(x: int, sums: list[set[int]]) -> list[str]:
    """Return the circles of column `x`, with the elements that each has combined."""
    lines = []
    for i in range(N):
        y, done = TOP + i * ROW, len(sums[i]) == N
        fill = "#c6f6d5" if done else "#edf2f7"
        lines.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="#4a5568"/>')
        lines.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">{i}</text>')
        if len(sums[i]) > 1:
            text = "all" if done else "".join(map(str, sorted(sums[i])))
            lines.append(f'<text x="{x}" y="{y + 29}" text-anchor="middle" font-size="10" fill="#4a5568">{text}</text>')
    return lines


def travellers(x: int, b: int) -> list[str]:
    """Return the dots that go from every element to its partner in a step; only the animation shows them."""
    return [
        f'<circle class="{"up" if i & b else "down"}{b}" cx="{x + RADIUS}" cy="{TOP + i * ROW}" r="6" '
        f'fill="{COLOURS[b]}" opacity="0"/>'
        for i in range(N)
    ]


def tables() -> str:
    """Return the partners of every step, in binary and in decimal."""
    lines = []
    for b in STEPS:
        lines += [f"b is {b:04b}", *(f"{i:04b}^{b:04b}:{i ^ b:04b}" for i in range(N))]
        lines += [f"t[{i}] = [{i}] + [{i ^ b}]" for i in range(N)]
    return "\n".join(lines)


if __name__ == "__main__":
    if "--tables" in sys.argv[1:]:
        print(tables())
    else:
        Path(__file__).with_suffix(".svg").write_text(draw())
