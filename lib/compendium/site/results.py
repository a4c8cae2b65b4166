"""What came out, as the site tells it: findings, figures, and which policy for which problem; from published files."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from costbandits.analysis import ledger

from ..project import DEEP, chapters, heading
from ..typography import plain, typeset

STANDINGS = (ledger.REPRODUCED, ledger.ONLY, ledger.CONTRADICTED, ledger.UNDECIDED, ledger.UNTESTABLE)
PROBLEMS = {"A": ("Costs are random and unknown; there is a total budget.", "`cb.Budget`"),
            "B": ("Costs are known; the budget must never be exceeded.", "`cb.HardBudget`"),
            "C": ("After every round the average cost so far must stay below a rate.", "`cb.AnytimeBudget`"),
            "D": ("Costs are known; you want the cheapest arm that is good enough.", "`cb.Horizon`")}


def story(root, name):
    """The findings of a chapter, of the deep scale where there are any, and what its figures say."""
    paths = [Path(root) / "figures" / folder / "story.json" for folder in (name, f"{DEEP}/{name}")]
    told = [json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"figures": {}, "findings": []}
            for path in paths]
    return told[0]["figures"], told[1]["findings"] or told[0]["findings"]


def findings(book, number=10):
    """The first findings of the papers' chapters, in turn, each in a sentence or two with a link."""
    told = {name: story(book.root, name)[1] for name in book.names}
    turns = [(name, told[name][k]) for k in range(number) for name in told if k < len(told[name])]
    chosen = sorted(turns[:number], key=lambda turn: book.names.index(turn[0]))
    return "\n".join(f"1. {_short(text)} [{plain(book.title(name))}](notebooks/{name}.ipynb)" for name, text in chosen)


def _short(text, least=120):
    """The first sentences of a finding, as many as make a hundred letters; the first in bold."""
    text = typeset(" ".join(text.split())).replace("**", "")
    sentences = re.split(r"(?<=[.?!])(?<!Fig\.)(?<!Eq\.)(?<! al\.)\s+(?=[A-ZΑ-Ωω\"\d])", text)
    kept = [f"**{sentences[0]}**"]
    while len(sentences) > len(kept) and len(" ".join(kept)) < least:
        kept.append(sentences[len(kept)])
    return " ".join(kept)


def totals(book):
    """How many claims of each paper came out how."""
    lines = [f"| paper | claims | {' | '.join(STANDINGS)} |", "|---|" + "--:|" * (len(STANDINGS) + 1)]
    counts = []
    for name in book.names:
        ids = [id for id in book.rows.id[book.rows.notebook == name].unique() if not book.claims[id].ours]
        standings = book.standings[ids]
        counts.append([len(ids), *((standings == each).sum() for each in STANDINGS)])
        lines.append(_line(f"[{plain(book.title(name))}](claims/{name}.md)", counts[-1]))
    return "\n".join([*lines, _line("all", np.sum(counts, axis=0))])


def _line(label, numbers):
    return f"| {label} | {' | '.join(map(str, numbers))} |"


def choices(root, most=3):
    """Which policy for which problem: those with the smallest geometric mean of regret over that of the best."""
    path = Path(root) / "figures/tournament/standings.csv"
    table = pd.read_csv(path)
    lines = ["| your problem | smallest mean regret | best in the typical run | stop rule |", "|---|---|---|---|"]
    for letter, part in table.groupby("problem"):
        words, rule = PROBLEMS[letter]
        by = [_best(part, column, most) for column in ("mean", "median")]
        lines.append(f"| {words} | {by[0]} | {by[1]} | {rule} |")
    families = table.groupby("problem").family.nunique()
    counted = ", ".join(f"{number} in {letter}" for letter, number in families.items())
    return "\n".join(lines) + (
        "\n\nA factor says how many times the regret of each family's best policy this one has: the geometric mean "
        f"over the families of the tournament ({counted}). Regret counts from 1 up. "
        "[The tournament](notebooks/tournament.ipynb) has the families, the worst runs and the intervals.")


def _best(part, column, most):
    """The policies with the smallest factors, in words."""
    regret = part.pivot(index="policy", columns="family", values=column).dropna().clip(lower=1)
    factors = np.exp(np.log(regret / regret.min()).mean(axis=1)).sort_values(kind="stable")
    return ", ".join(f"{plain(policy)} ({factor:.2g})" for policy, factor in factors.head(most).items())


def glance(book, build):
    """Each chapter on one line: what is asked, how much was played, how long it takes, what came out."""
    lines = ["| chapter | scope | largest study | time | outcome |", "|---|---|--:|--:|---|"]
    for name in chapters(book.root):
        part = book.rows[book.rows.notebook == name]
        figures, found = story(book.root, name)
        ids = [id for id in part.id.unique() if not book.claims[id].ours]
        scope = (f"{len(ids)} claims, {len(part)} rows" if len(part) else
                 f"{len(figures)} figures, {len(found)} findings")
        counts = book.standings[ids].value_counts() if ids else {}
        outcome = ", ".join(f"{counts[each]} {each}" for each in STANDINGS if each in counts) or "see the chapter"
        runs = f"{part.replications.max():,} runs" if len(part) else "–"
        lines.append(f"| [{plain(_title(book.root, name))}](notebooks/{name}.ipynb) | {scope} | {runs} | "
                     f"{_took(build, name)} | {outcome} |")
    return "\n".join(lines)


def _title(root, name):
    return heading(root, name).partition(":")[0]


def _took(build, name):
    """How long the last full run took on the machine that builds the site."""
    path = Path(build) / f"{name}.ipynb"
    made = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("papermill", {}) if path.exists() else {}
    return f"{made['duration'] / 60:.1f} min" if made.get("duration") else "–"


def gallery(root):
    """All figures that say something, by chapter, with the findings before them."""
    parts = []
    for name in chapters(root):
        figures, found = story(root, name)
        parts.append(f'<a id="results-{name}"></a>\n\n### {_title(root, name)}\n\n'
                     f"[Read the chapter](notebooks/{name}.ipynb).\n")
        parts += [f"- {typeset(' '.join(text.split()))}" for text in found]
        for figure, says in figures.items():
            data = f" · [data (CSV)](figures/{name}/{figure}.csv)" * _there(root, name, figure)
            parts.append(f"\n![{plain(says)}](figures/{name}/{figure}.svg)\n\n"
                         f":::{{container}} figure-links\n{plain(says)} "
                         f"[in its chapter](notebooks/{name}.ipynb#figure-{figure}){data}\n:::\n")
    return "\n".join(parts)


def _there(root, name, figure):
    return (Path(root) / "figures" / name / f"{figure}.csv").exists()


def benchmarks(root):
    """The table of `make bench` as it was printed."""
    return f"```text\n{(Path(root) / 'benchmarks/BENCHMARKS.txt').read_text(encoding='utf-8').rstrip()}\n```"
