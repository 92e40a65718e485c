"""Draws butterfly.svg: how 8 elements exchange what they have, so that after three steps each has the sum of all."""

from pathlib import Path

N = 8
LEFT, TOP, COLUMN, ROW, RADIUS = 70, 60, 200, 54, 15
COLOURS = {4: "#2b6cb0", 2: "#c05621", 1: "#2f855a"}


def draw() -> str:
    steps = [4, 2, 1]
    width, height = LEFT + len(steps) * COLUMN + 70, TOP + (N - 1) * ROW + 70
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    sums = [{i} for i in range(N)]
    for column, b in enumerate(steps):
        x = LEFT + column * COLUMN
        title = f"b = {b:03b}: i and i xor {b}"
        lines.append(f'<text x="{x + COLUMN / 2}" y="24" text-anchor="middle" fill="{COLOURS[b]}">{title}</text>')
        for i in range(N):
            for partner, colour, stroke in ((i, "#a0aec0", 1.2), (i ^ b, COLOURS[b], 1.8)):
                lines.append(
                    f'<line x1="{x + RADIUS}" y1="{TOP + partner * ROW}" x2="{x + COLUMN - RADIUS}" '
                    f'y2="{TOP + i * ROW}" stroke="{colour}" stroke-width="{stroke}"/>'
                )
    for column in range(len(steps) + 1):
        if column:
            sums = [sums[i] | sums[i ^ steps[column - 1]] for i in range(N)]
        for i in range(N):
            x, y = LEFT + column * COLUMN, TOP + i * ROW
            done = len(sums[i]) == N
            lines.append(
                f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{"#c6f6d5" if done else "#edf2f7"}" stroke="#4a5568"/>'
            )
            lines.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">{i}</text>')
            if column:
                text = "all" if done else "".join(map(str, sorted(sums[i])))
                lines.append(
                    f'<text x="{x}" y="{y + 29}" text-anchor="middle" font-size="10" fill="#4a5568">{text}</text>'
                )
    for i in range(N):
        lines.append(f'<text x="20" y="{TOP + i * ROW + 5}" fill="#4a5568">{i:03b}</text>')
    lines.append(
        f'<text x="{LEFT - RADIUS}" y="{height - 16}" fill="#4a5568" font-size="12">'
        "Under a circle: whose elements it has combined. Grey: its own; coloured: its partner's.</text>"
    )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw())
