"""The picture of the rooms: the arrows of ARCHITECTURE.md, which a test compares with the imports, as SVG."""

import re
from graphlib import TopologicalSorter
from html import escape

DRAWN = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
WIDTH, HEIGHT, ACROSS, UP = 132, 34, 168, 64


def with_picture(text):
    """A page whose mermaid diagrams are drawn, so that it needs no script."""
    return DRAWN.sub(lambda found: f"```{{raw}} html\n{picture(found[1])}\n```", text)


def picture(mermaid):
    """A diagram of arrows `a --> b`, b below a, and of a subgraph; arrows that follow from others are left out."""
    arrows = re.findall(r"^ *(\w+) --> (\w+)$", mermaid, re.MULTILINE)
    package, rooms = re.findall(r"subgraph (\w+)\n(.*?)\n *end", mermaid, re.DOTALL)[0]
    inside = set(re.findall(r"\w+", rooms))
    below = {name: [] for arrow in arrows for name in arrow}
    for upper, lower in arrows:
        below[upper].append(lower)
    if package in below:      # it stands on all of its rooms
        below[package] += [name for name in below if name in inside]
    levels, reached = {}, {}
    for name in TopologicalSorter(below).static_order():
        levels[name] = max((levels[lower] + 1 for lower in below[name]), default=0)
        reached[name] = {*below[name]}.union(*(reached[lower] for lower in below[name]))
    places = _places(levels)
    lines = []
    for upper, on in below.items():
        for lower in on:
            if not any(lower in reached[other] for other in on):
                (x, y), (u, v) = places[upper], places[lower]
                curve = f"M{x:.0f} {y + HEIGHT}C{x:.0f} {y + HEIGHT + 24} {u:.0f} {v - 28} {u:.0f} {v - 2}"
                lines.append(f'<path class="arrow" d="{curve}" marker-end="url(#tip)"/>')
    for name, (x, y) in places.items():
        lines.append(f'<g class="{"room" if name in inside else "package"}"><rect x="{x - WIDTH / 2:.0f}" y="{y}" '
                     f'width="{WIDTH}" height="{HEIGHT}" rx="5"/>'
                     f'<text x="{x:.0f}" y="{y + 22}">{escape(name)}</text></g>')
    width, height = max(x for x, _ in places.values()) + WIDTH // 2 + 8, max(levels.values()) * UP + HEIGHT + 24
    told = escape("; ".join(f"{name} imports {', '.join(sorted(on))}" for name, on in below.items() if on))
    return (f'<svg class="rooms" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{told}"><defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>{"".join(lines)}</svg>')


def _places(levels):
    """Where each box stands, (middle, top): a level is how many boxes stand below it, one upon the other."""
    rows = {}
    for name, level in levels.items():
        rows.setdefault(level, []).append(name)
    widest, top = max(map(len, rows.values())), max(rows)
    return {name: ((widest - len(row)) * ACROSS / 2 + k * ACROSS + WIDTH / 2 + 8, (top - level) * UP + 12)
            for level, row in rows.items() for k, name in enumerate(row)}
