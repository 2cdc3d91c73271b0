"""Writes docs/world.svg, the population of a world over 500 rounds: `python docs/make_world_plot.py`."""

from __future__ import annotations

from pathlib import Path

from council.world.kernel import new_world, settle

TARGET = Path(__file__).parent / "world.svg"
ROUNDS, SEEDS, MOST = 500, (1, 7, 42), 160
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 260, 44, 34


def plot() -> str:
    """The whole picture."""
    across, up = WIDTH - LEFT - 10, HEIGHT - BOTTOM - 10
    lines = []
    for seed, colour in zip(SEEDS, ("#1b6ca8", "#c05621", "#2f855a"), strict=True):
        world = new_world("plot", 50, (20, 20), seed)
        points = []
        for number in range(ROUNDS):
            world = settle(world, [], seed).world
            x, y = LEFT + across * number / ROUNDS, 10 + up * (1 - len(world.members) / MOST)
            points.append(f"{x:.1f},{y:.1f}")
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.3" points="{" ".join(points)}"/>')
    for count in range(0, MOST + 1, 40):
        y = 10 + up * (1 - count / MOST)
        lines.append(f'<path d="M{LEFT} {y:.1f}h{across}" stroke="#ccc"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{count}</text>')
    for number in range(0, ROUNDS + 1, 100):
        x = LEFT + across * number / ROUNDS
        lines.append(f'<text x="{x:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{number}</text>')
    lines.append(f'<text x="{LEFT + across / 2}" y="{HEIGHT - 2}" text-anchor="middle">round</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(lines) + "\n</svg>\n"
    )


if __name__ == "__main__":
    TARGET.write_text(plot(), encoding="utf-8")
