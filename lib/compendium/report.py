"""One ledger of all papers, and what the README says of results: nothing in either is typed by hand.

    python -m compendium.report            from the project's folder
    python -m compendium.report --check    exit status 1, and what is out of date; nothing is written

The rows that the notebooks have published (figures/<notebook>/ledger.csv) are collected in figures/ledger.csv. A row
judged at deep scale (figures/deep/<notebook>/ledger.csv) takes the place of the one that answers the same question.
REPRODUCTION.md shows them all; the README, between two marks, their summary, the notebooks' findings, of the deep scale
where it was reached, and the figures that say something (figures/<notebook>/story.json).
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from costbandits.analysis import ledger
from costbandits.analysis.cell import digest
from costbandits.analysis.statistics import Interval
from costbandits.checks import require

from . import cells, publication
from .project import DEEP, chapters
from .project import claims as claims_of
from .project import heading as _title
from .typography import escaped as _text
from .typography import plain as _plain
from .typography import typeset as _typeset

CLAIMS, LEDGER, REPORT, README = "claims", "figures/ledger.csv", "REPRODUCTION.md", "README.md"
RECORDS, SCHEMA = "figures/claims.json", "figures/claims.schema.json"
BEGIN, END = "<!-- results: written by `make all`, not by hand -->", "<!-- end of results -->"
STANDINGS = (ledger.REPRODUCED, ledger.ONLY, ledger.CONTRADICTED, ledger.UNDECIDED, ledger.UNTESTABLE)
QUESTION = ["id", "case", "reading", "claim", "place", "statistic", "region_low", "region_high"]

INTRODUCTION = f"""# What holds: every claim, its numbers and its verdict

A claim is judged by the interval of a statistic (95 %, corrected where several are compared) and by a region of values
for which it holds. Regions and readings stand in [{CLAIMS}]({CLAIMS}), one file for each paper, written down before
the runs that judge them. Three exceptions: those of cost subsidy came with its first results at paper scale; quick
runs had been seen when those of Budget-UCB and KUBE were written; and what was added or changed after a first look is
listed with its claim, for good, as *changed*. The random streams were changed once, on 23 November 2026, and with them
verdicts that hang on chance. An interval inside the region reproduces the claim, one outside contradicts it, one
across its border leaves it undecided. What no paper claims, but a reader would ask, is marked *ours*, judged in the
same way and not counted among the claims. Where a paper's words allow several readings the primary one decides, and
the others have rows of their own; a claim made for several cases holds if it holds in all of them. A *repair* puts
something else in the place of what the paper says: a slip mended, a special case, a bandit fitted to its tables. It is
judged like a reading, and does not change the verdict on the claim. *Scale* is the profile whose runs were judged:
`paper` (`make all`), or `deep`, more replications of the same (`make deep`), which wins. The last column leads to the
cell that judged the row, on GitHub to its notebook, where the cell has that number. The same rows as a table:
[{LEDGER}]({LEDGER}); each claim with all that is known of it: [{RECORDS}]({RECORDS}), after [its schema]({SCHEMA}).
What else speaks for each contradiction: [checked twice](#checked-twice).
"""

TWICE = """<a id="checked-twice"></a>

## Checked twice

What else than the numbers above speaks for each claim that does not hold as its paper words it. A *counterexample* is
an instance that is worked out without playing, in rational numbers where that is possible. An *implementation* is a
second one, which shares no code with what gave the number: for experiments, the policies were compared with it pull
for pull, while the statistic itself is computed once. *None* says what would have to be written.

| claim | verdict | second check | where |
|---|---|---|---|"""


def collect(root):
    """All rows of the ledger, notebooks and claims in their order, deep rows in the place of those at paper scale.

    Parameters
    ----------
    root : path
        The project.

    Returns
    -------
    rows : DataFrame
        Those of the notebooks with a column `notebook` before them.
    left_out : list of str
        Deep rows that answer no question of the paper scale, as when a region has changed since.

    Raises
    ------
    ValueError
        If a verdict does not follow from its numbers and its claim, or a claim has none.
    """
    parts, left_out = [], []
    for name in chapters(root):
        place, judged = _own(Path(root) / "figures" / name, "ledger.csv"), claims_of(root, name)
        if judged and place:
            rows, old = _deepest(ledger.read(place), Path(root) / "figures" / DEEP / name)
            left_out += [f"{name}: {', '.join(question)}" for question in old]
            found = list(faults(rows, judged))
            require(not found, f"ledger of {name}", found[:3],
                    f"must agree with {CLAIMS}/{name}.yaml: run the notebook again")
            parts.append(rows.assign(notebook=name))
    require(parts, "ledgers", [], "there must be one or more (`make all`)")
    rows = pd.concat(parts, ignore_index=True)
    checks = {id: claim.second_check[0] for id, claim in claims_of(root).items() if claim.second_check}
    rows["second_check"] = [checks.get(id, "") for id in rows.id]
    return rows[["notebook", *rows.columns.drop("notebook")]], left_out


def _own(folder, name):
    """The path of this file of a notebook, or of what a run without the data of ads leaves instead; None if neither."""
    standin = Path(name).stem + publication.STANDIN + Path(name).suffix
    return next((path for each in (name, standin) if (path := folder / each).exists()), None)


def unjudged(root):
    """Notebooks with claims that have left no ledger."""
    figures = Path(root) / "figures"
    return [name for name in chapters(root) if claims_of(root, name) and not _own(figures / name, "ledger.csv")]


def _deepest(paper, folder):
    """Each row at paper scale, or the deep one that answers the same question; and the deep ones that answer none."""
    found = _own(folder, "ledger.csv")     # without the data of ads it cannot test what needs them
    deep = ledger.read(found) if found else paper[:0]
    deep = deep[deep.verdict != ledger.UNTESTABLE]
    asked, answered = (pd.MultiIndex.from_frame(rows[QUESTION]) for rows in (paper, deep))
    rows = pd.concat([deep, paper]).drop_duplicates(QUESTION).set_index(QUESTION).loc[asked].reset_index()
    return rows[paper.columns], deep.loc[~answered.isin(asked), QUESTION[:3]].to_numpy().tolist()


def faults(rows, claims):
    """What is wrong with the rows of a ledger: each verdict is worked out again from its numbers and its claim.

    `claims`, a dict id -> Claim, are all that must be judged.
    """
    judged = set(rows.id[rows.reading == "primary"])
    yield from (f"{id}: no row under the primary reading" for id in claims if id not in judged)
    for row in rows[rows.duplicated(["id", "case", "reading"])].itertuples():
        yield f"{_name(row)}: two rows"
    for row in rows.itertuples():
        yield from (f"{_name(row)}: {fault}" for fault in _faults(row, claims.get(row.id)))


def _name(row):
    return f"{row.id}, {row.case}, {row.reading}"


def _faults(row, claim):
    if claim is None:
        yield "no such claim"
        return
    if row.reading not in ("primary", *claim.others):
        yield "no such reading"
    if not np.allclose((row.region_low, row.region_high), claim.region, rtol=1e-5, atol=0):
        yield f"judged with the region [{row.region_low:g}, {row.region_high:g}], not {list(claim.region)}"
    numbers = np.array([row.estimate, row.low, row.high], dtype=float)
    if row.verdict == ledger.UNTESTABLE:
        if "missing" not in row.note or not np.isnan(numbers).all():
            yield "cannot be tested, but has numbers or does not say what is missing"
    elif np.isnan(numbers).any():
        yield f"{row.verdict} without numbers"
    elif not row.low <= row.estimate <= row.high:
        yield "the estimate is not within its interval"
    elif row.verdict != (found := claim.verdict(Interval(*numbers))):
        yield f"{row.verdict}, but its numbers say {found}"


def report(rows, claims, root):
    """The text of REPRODUCTION.md."""
    parts = [INTRODUCTION, _total(rows, claims, root, "")]
    for name, part in rows.groupby("notebook", sort=False):
        verdicts, cells = ledger.summary(part, claims).set_index("id").verdict, _cells(root, name)
        groups = [(claims[id], verdicts[id], rows) for id, rows in part.groupby("id", sort=False)]
        parts += [f'<a id="{name}"></a>\n\n## {_title(root, name)}\n\n'
                  f'[The notebook](notebooks/{name}.ipynb) · [its claims]({CLAIMS}/{name}.yaml)\n',
                  "| | claim | place | verdict | cases |\n|---|---|---|---|---|",
                  *(_brief(*group) for group in groups), "", *(_details(*group, cells) for group in groups)]
    return "\n".join([*parts, TWICE, *_checked_twice(rows, claims), ""])


def _checked_twice(rows, claims):
    """Lines of the table: the papers' claims that do not hold as worded, and others that were checked twice."""
    for line in ledger.summary(rows, claims).itertuples():
        claim = claims[line.id]
        if claim.second_check or (line.standing in (ledger.ONLY, ledger.CONTRADICTED) and not claim.ours):
            kind, where = claim.second_check or ("", "")
            tests = [where] if kind == "none" else where.split(", ")
            told = (_plain(line.verdict), kind, "<br>".join(map(_test, tests)))
            yield f"| [{claim.id}](#{claim.id}) {_plain(claim.claim)} | {' | '.join(told)} |"


def _test(where):
    """A test as a link to its file, or a sentence as it is."""
    path, _, name = where.partition("::")
    return f"[{_plain(name)}]({path})" if name else _plain(where)


def _brief(claim, verdict, rows):
    """One claim as a line of the table at the head of its paper."""
    counts = rows.verdict[rows.reading == "primary"].value_counts(sort=False)
    cases = ", ".join(f"{number} {each}" for each, number in counts.items())
    told = map(_plain, (claim.claim, claim.place, verdict, cases))
    return f"| [{claim.id}](#{claim.id}) | {'*ours:* ' * claim.ours}{' | '.join(told)} |"


def _details(claim, verdict, rows, cells):
    """One claim: how it is judged under which reading, and its rows, folded."""
    low, high = claim.region
    region = f"[{low:g}, ∞)" if high == float("inf") else f"[{low:g}, {high:g}]"
    number = f"{len(rows)} rows" if len(rows) > 1 else "1 row"
    readings = {"primary": claim.primary, **claim.others}
    return "\n".join([
        f'<a id="{claim.id}"></a>',
        "<details>",
        f"<summary><b>{claim.id}</b> {_text(claim.claim)}: <b>{_text(verdict)}</b> ({number})</summary>\n",
        f"Judged by: {_plain(claim.statistic)}. The claim holds in {region}.\n",
        *(f"- {'repair' if name in claim.repairs else 'reading'} *{_plain(name)}*: {_plain(text)}"
          for name, text in readings.items()),
        *(f"- changed: {_plain(text)}" for text in claim.history),
        "\n| case | reading | value [interval] | runs | scale | verdict | note | cell |",
        "|---|---|---|--:|---|---|---|--:|",
        *(_row(row, cells.get(row.cell, cells[None])) for row in rows.itertuples()),
        "\n</details>\n"])


def _row(row, link):
    told = map(_plain, (row.case, row.reading, _value(row), f"{row.replications:,}", row.scale, row.verdict, row.note))
    return f"| {' | '.join(told)} | {link} |"


def _cells(root, name):
    """Digest of a cell -> link to it; None -> link to the notebook, for rows that know no cell of it."""
    target = f"notebooks/{name}.ipynb"
    # JupyterLab and the pages in build/ go to this fragment; GitHub has none for cells, and shows their numbers.
    return {None: f"[notebook]({target})"} | {
        digest(cell["source"]): f"[{cell['execution_count']}]({target}#cell-id={cell['id']})"
        for cell in cells.cells(Path(root) / target)}


def _value(row):
    if pd.isna(row.estimate):
        return ""
    exact = row.low == row.estimate == row.high
    return f"{row.estimate:.3g}" if exact else str(Interval(row.estimate, row.low, row.high))


def results(rows, claims, root):
    """What the README says of results: totals, and what the notebooks have found and drawn."""
    ours = sum(claims[id].ours for id in rows.id.unique())
    asked = f" and {ours} question{'s' * (ours != 1)} of our own" * bool(ours)
    parts = [f"{rows.id.nunique() - ours} claims of the papers{asked}, judged case by case and reading by reading in "
             f"{len(rows)} rows. {_deep(rows, root)}Each with its numbers, runs and the cell that judged it: "
             f"[{REPORT}]({REPORT}).\n",
             _total(rows, claims, root, REPORT)]
    for name in chapters(root):
        folder = f"figures/{name}"
        figures, findings = _story(Path(root), name)
        if figures or findings:
            links = [f"[notebook](notebooks/{name}.ipynb)", f"[figures and tables]({folder})"]
            links += [f"[claims]({REPORT}#{name})"] * (name in set(rows.notebook))
            parts += [f"### {_title(root, name)}\n\n{' · '.join(links)}\n",
                      "\n".join([*(f"- {_headed(text)}" for text in findings), ""]), _gallery(folder, figures)]
    return "\n".join(parts)


def _deep(rows, root):
    """Whose verdicts and findings are at deep scale, where figures never are."""
    deep, every = (list(part.notebook.unique()) for part in (rows[rows.scale == DEEP], rows))
    if not deep:
        return ""
    titles = [_title(root, name).partition(":")[0] for name in deep] if deep != every else ["all papers"]
    told = " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1])))
    return (f"Verdicts and findings of {told} are at deep scale, from more runs than `make all` plays; figures and "
            "what stands below them show the runs of `make all`. Their numbers differ, by much where a few runs decide "
            "a mean. ")


def _story(root, name):
    """What the figures of a notebook say, and its findings, at deep scale where there are any; each may be empty."""
    nothing = {"figures": {}, "findings": []}
    paths = (_own(root / "figures" / folder, "story.json") for folder in (name, f"{DEEP}/{name}"))
    paper, deep = (json.loads(path.read_text(encoding="utf-8")) if path else nothing for path in paths)
    for figure in paper["figures"]:
        require((root / f"figures/{name}/{figure}.png").exists(), f"story of {name}, figure", figure, "must be a PNG")
    return paper["figures"], deep["findings"] or paper["findings"]


def _gallery(folder, figures):
    """The first of a notebook's figures (of those from the paper, where there are any), and the others folded."""
    shown = [f"![{_plain(says)}]({folder}/{name}.png)\n*{_plain(says)}*\n" for name, says in figures.items()]
    cover = next((i for i, name in enumerate(figures) if name.startswith(("figure", "map"))), 0)
    rest = shown[:cover] + shown[cover + 1:]
    more = f"<details><summary>{len(rest)} more</summary>\n\n" + "\n".join([*rest, "</details>\n"])
    return "\n".join(shown[cover:cover + 1] + [more] * bool(rest))


def _headed(finding):
    """A finding on one line, what it says first in bold if nothing is yet."""
    text = _typeset(" ".join(finding.split()))
    return text if "**" in text else re.sub(r"^.{10,120}?[.:](?=\s)", r"**\g<0>**", text)


def _total(rows, claims, root, target):
    """How many claims of each paper came out how, as a table whose first column leads to `target`."""
    rows = rows[[not claims[id].ours for id in rows.id]]
    lines = [f"| paper | claims | {' | '.join(STANDINGS)} |", "|---|" + "--:|" * (len(STANDINGS) + 1)]
    counts = []
    for name, part in rows.groupby("notebook", sort=False):
        standings = ledger.summary(part, claims).standing
        counts.append([len(standings), *(int((standings == each).sum()) for each in STANDINGS)])
        lines.append(_line(f"[{_title(root, name).partition(':')[0]}]({target}#{name})", counts[-1]))
    return "\n".join([*lines, _line("all", [sum(column) for column in zip(*counts, strict=True)]), ""])


def _line(label, numbers):
    return f"| {label} | {' | '.join(map(str, numbers))} |"


def made(root):
    """What everything should be, path -> text; and the deep rows that are left out."""
    (rows, left_out), claims = collect(root), claims_of(root)
    table = rows.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    readme = (Path(root) / README).read_text(encoding="utf-8")
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    require(begin and end, README, "", f"must have the marks {BEGIN!r} and {END!r}, in this order")
    known = json.dumps({"version": 1, "claims": ledger.records(rows, claims)}, ensure_ascii=False, indent=1)
    return {LEDGER: table, RECORDS: known + "\n", REPORT: report(rows, claims, root),
            README: f"{before}{BEGIN}\n\n{results(rows, claims, root)}\n{END}{after}"}, left_out


def stale(root, texts):
    """Which of these files are not what they should be."""
    return [name for name, text in texts.items()
            if not (path := Path(root) / name).exists() or path.read_text(encoding="utf-8") != text]


def main(arguments=None):
    """The command; its exit status: 0, 1 if a check finds something out of date, 2 if the inputs are wrong."""
    parser = argparse.ArgumentParser(prog="python -m compendium.report", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and say what is out of date")
    check = parser.parse_args(arguments).check
    try:
        for journal in [] if check else list(Path("figures").glob(f"**/{publication.JOURNAL}")):
            publication.complete(journal.parent)       # a publication was interrupted there
        texts, left_out = made(".")
        old = stale(".", texts)
        for name in old if not check else ():
            publication.replace(name, texts[name])
    except (ValueError, OSError) as error:
        print(f"costbandits: {error}", file=sys.stderr)
        return 2
    for name in unjudged("."):
        print(f"left out, for it has no ledger (make all): {name}", file=sys.stderr)
    for row in left_out:
        print(f"left out, for it answers no question of the paper scale (make deep): {row}", file=sys.stderr)
    for name in old:
        print(f"{name}: out of date, `make all` mends it" if check else f"{name}: written")
    return int(check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
