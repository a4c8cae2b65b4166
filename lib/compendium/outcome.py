"""What came out, as README and site tell it: findings, figures, totals, and which policy for which problem."""

import itertools
import json
import re
from pathlib import Path

import pandas as pd

from costbandits.analysis.statistics import Interval
from costbandits.checks import require

from . import ledger, publication
from .project import heading, paper_of, prose
from .typography import plain, raised, typeset

STANDINGS = (ledger.REPRODUCED, ledger.ONLY, ledger.CONTRADICTED, ledger.UNDECIDED, ledger.UNTESTABLE)
SHOWN = re.compile(r" \(section ([\d.]+)\)$")     # how Gallery.finding names the section that shows it
CHOICE = "figures/tournament/choice.csv"     # a question in each row, a kind of problem in each further column


def own(folder, name):
    """The path of this file of a notebook, or of what a run without the data of ads leaves instead; None if neither."""
    standin = Path(name).stem + publication.STANDIN + Path(name).suffix
    return next((path for each in (name, standin) if (path := folder / each).exists()), None)


def story(root, name):
    """What the figures of a notebook say, and its findings; each may be empty."""
    path = own(Path(root) / "figures" / name, "story.json")
    told = json.loads(path.read_text(encoding="utf-8")) if path else {"figures": {}, "findings": []}
    for figure in told["figures"]:
        require((path.parent / f"{figure}.png").exists(), f"story of {name}, figure", figure, "must be a PNG")
    return told["figures"], told["findings"]


def findings(root, names, number=10):
    """Findings of these chapters, in turn, each in a sentence or two, with its section named and a link to it."""
    told = {}
    for name in names:
        found = story(root, name)[1]
        half = (len(found) + 1) // 2      # a chapter begins with what holds: one of each half in turn
        told[name] = list(filter(None, itertools.chain(*itertools.zip_longest(found[:half], found[half:]))))
    turns = [(name, told[name][k]) for k in range(number) for name in told if k < len(told[name])]
    lines = []
    for name, text in sorted(turns[:number], key=lambda turn: names.index(turn[0])):
        words, place = [f"{before}{found[1]}" if (found := SHOWN.search(text)) else ""
                        for before in (", section ", "#section-")]
        lines.append(f"1. {in_short(text)} [{plain(title(root, name))}{words}](notebooks/{name}.ipynb{place})")
    return "\n".join(lines)


def looked_at(rows, claims):
    """For how many claims of the papers something was changed or added after results were seen."""
    return sum(bool(claims[id].history) and not claims[id].ours for id in rows.id.unique())


def in_full(text):
    """A finding as Markdown: numbers as they are read, and powers raised."""
    return raised(typeset(" ".join(text.split())))


def in_short(text, least=120):
    """The first sentences of a finding, `least` letters or a little more; its bold beginning, or the first, in bold."""
    text = SHOWN.sub("", in_full(text))
    lead = re.match(r"\*\*(.+?)\*\*", text)
    text = text.replace("**", "")
    sentences = re.split(r"(?<=[.?!])(?<!Fig\.)(?<!Eq\.)(?<! al\.)\s+(?=[A-ZΑ-Ωω\"\d])", text)
    kept = sentences[:1]
    while len(sentences) > len(kept) and len(" ".join(kept)) < least:
        kept.append(sentences[len(kept)])
    bold, told = lead[1] if lead else sentences[0], " ".join(kept)
    return f"**{bold}**{told.removeprefix(bold)}" if told.startswith(bold) else told


def place(name):
    """The place of a notebook's figures on the page of results."""
    return f"results-{name.replace('/', '-')}"


def title(root, name):
    """The first heading of a notebook, up to its colon."""
    return heading(root, name).partition(":")[0]


def totals(rows, claims, root, link):
    """How many claims of each paper came out how; the first column leads to `link` of the notebook."""
    rows = rows[[not claims[id].ours for id in rows.id]]
    lines, counts = [_line("chapter", ["claims", *STANDINGS]), "|---|" + "--:|" * (len(STANDINGS) + 1)], []
    for name, part in rows.groupby(rows.notebook.map(paper_of), sort=False):
        standings = ledger.summary(part, claims).standing
        counts.append([len(standings), *(int((standings == each).sum()) for each in STANDINGS)])
        lines.append(_line(f"[{plain(title(root, name))}]({link(name)})", counts[-1]))
    return "\n".join([*lines, _line("all", [sum(column) for column in zip(*counts, strict=True)])])


def choices(root):
    """Which policy for which problem, as the tournament has it; "" before it has been played."""
    table = choice(root)
    if table.empty:
        return ""
    lines = [prose("choices"), _line("", table.columns), "|---|" + "---|" * table.shape[1],
             *(_line(f"**{plain(question)}**", map("`{}`".format if question == "in code" else plain, row))
               for question, row in zip(table.index, table.to_numpy(), strict=True))]
    return "\n".join(lines)


def choice(root):
    """The same as a table, empty before it has been played."""
    path = Path(root) / CHOICE
    return pd.read_csv(path, keep_default_na=False).set_index("question") if path.exists() else pd.DataFrame()


def cover(root, name):
    """A notebook's first figure from the paper, else its first of all: (name, what it says), or None."""
    figures = story(root, name)[0].items()
    return next((pair for pair in figures if pair[0].startswith(("figure", "prices"))), next(iter(figures), None))


def value(row):
    """A row's estimate with its interval, as it is read; "" if it has none."""
    if pd.isna(row.estimate):
        return ""
    exact = row.low == row.estimate == row.high
    return typeset(f"{row.estimate:.3g}" if exact else str(Interval(row.estimate, row.low, row.high)))


def region(low, high):
    """The values for which a claim holds."""
    begin = f"[{low:g}" if low > -float("inf") else "(-∞"
    return f"{begin}, {high:g}]" if high < float("inf") else f"{begin}, ∞)"


def _line(label, cells):
    return f"| {label} | {' | '.join(map(str, cells))} |"
