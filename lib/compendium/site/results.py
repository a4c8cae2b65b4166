"""Pages of results: each chapter at a glance, all figures with the findings, the benchmarks."""

from collections import Counter
from html import escape
from pathlib import Path

from .. import live
from ..outcome import SHOWN, STANDINGS, choice, in_full, place, story, title
from ..project import chapters
from ..typography import plain, typeset
from .chapters import still


def squares(book):
    """Each claim of a paper as a square that leads to it, by paper and by how it came out."""
    came_out = book.standings.map(STANDINGS.index)
    key = "".join(f'<li><span class="square s-{k}"></span> {each}</li>' for k, each in enumerate(STANDINGS))
    parts = [f'<div class="squares"><ul>{key}</ul>']
    for name in book.names:
        ids = [id for id in book.rows.id[book.papers == name].unique() if not book.claims[id].ours]
        links = "".join(f'<a class="square s-{came_out[id]}" href="claims/{name}.html#{id}" '
                        f'title="{id}: {escape(typeset(book.claims[id].claim))}" '
                        f'aria-label="{id}, {book.standings[id]}"></a>' for id in sorted(ids, key=came_out.get))
        parts.append(f'<p><a href="claims/{name}.html">{escape(book.titles[name])}</a> <span>{links}</span></p>')
    return "```{raw} html\n" + "\n".join(parts) + "</div>\n```"


def short(root):
    """Which policy for which problem, in a line each; "" before the tournament has been played."""
    lines = [f"| {problem} | {plain(told['use'])} | {plain(told['how sure'])} |"
             for problem, told in choice(root).items()]
    return "\n".join(["| problem | use | how sure |\n|---|---|---|", *lines]) if lines else ""


def luck(root):
    """The front page's picture that moves."""
    told = (Path(root) / "book/live/luck.live.json").read_text(encoding="utf-8")
    return live.wrapped(told, "\n![Mean and median of the final regrets of three policies against the number of runs "
                              "seen.](live/luck.svg)\n")


def glance(book):
    """Each chapter on one line: what is asked, how much was played, what came out."""
    lines = ["| chapter | scope | usual sample | outcome |", "|---|---|--:|---|"]
    for name in chapters(book.root):
        part = book.rows[book.rows.notebook == name]
        figures, found = story(book.root, name)
        ids = [id for id in part.id.unique() if not book.claims[id].ours]
        scope = (f"{len(ids)} claims, {len(part)} rows" if len(part) else
                 f"{len(figures)} figure{'s' * (len(figures) != 1)}, {len(found)} finding{'s' * (len(found) != 1)}")
        counts = Counter(book.standings[id] for id in ids)
        outcome = ", ".join(f"{counts[each]} {each}" for each in STANDINGS if each in counts) or "see the chapter"
        usual = f"{part.replications.mode()[0]:,}" if len(part) else "–"
        lines.append(f"| [{plain(title(book.root, name))}](notebooks/{name}.ipynb) | {scope} | {usual} | {outcome} |")
    return "\n".join(lines)


def gallery(root):
    """All figures that say something, by chapter, with the findings before them."""
    parts = []
    for name in chapters(root):
        figures, found = story(root, name)
        parts.append(f'<a id="{place(name)}"></a>\n\n### {title(root, name)}\n\n'
                     f"[Read the chapter](notebooks/{name}.ipynb).\n")
        section = rf" ([section \1](notebooks/{name}.ipynb#section-\1))"
        parts += [f"- {SHOWN.sub(section, in_full(text))}" for text in found]
        for figure, says in figures.items():
            file = f"figures/{name}/{figure}"
            data = f" · [data (CSV)]({file}.csv)" * (Path(root) / f"{file}.csv").exists()
            parts.append(f"\n{still(root, name, figure, says, file)}\n\n"
                         f":::{{container}} figure-links\n[In its chapter](notebooks/{name}.ipynb#figure-{figure})"
                         f"{data}: {plain(says)}\n:::\n")     # a caption's beginning could begin a list, or a heading
    return "\n".join(parts)
