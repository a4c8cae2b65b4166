"""One ledger of all papers, and what the README says of results: nothing in either is typed by hand.

    python -m compendium.report            from the project's folder

The rows that the notebooks have published are collected in figures/ledger.csv. REPRODUCTION.md has a line for each
claim; the README, between two marks, totals, ten findings of the chapters, figures (figures/<notebook>/story.json), and
which policy for which problem; paper/paper.md, the report for a journal, numbers.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from costbandits.analysis.statistics import Interval
from costbandits.checks import require
from costbandits.studies.keys import RESULTS

from . import cells, ledger, paper, publication, settings
from .outcome import STANDINGS, choices, cover, findings, looked_at, own, region, title, totals, value
from .project import DEEP, chapters, claims_file, heading, paper_of, prose
from .project import claims as claims_of
from .typography import plain

CLAIMS, LEDGER, REPORT, README = "claims", "figures/ledger.csv", "REPRODUCTION.md", "README.md"
RECORDS, SCHEMA = "figures/claims.json", "figures/claims.schema.json"
BEGIN, END = "<!-- results: written by `make all`, not by hand -->", "<!-- end of results -->"
QUESTION = ["id", "case", "reading", "claim", "place", "statistic", "region_low", "region_high"]


def collect(root):
    """All rows of the ledger, notebooks and claims in their order; and the deep rows that are left out.

    The rows have a column `notebook` before them, and behind them `deep`, the verdict of more runs on the same question
    by the same cell ("" without), and `second_check`. Left out are deep rows that answer no question, as when a region
    has changed since. ValueError says if a verdict does not follow from its numbers and its claim, or a claim has none.
    """
    parts, left_out = [], []
    for name in chapters(root):
        place, judged = own(Path(root) / "figures" / name, "ledger.csv"), claims_of(root, name)
        if judged and place:
            rows, old = _compared(ledger.read(place), Path(root) / "figures" / DEEP / name)
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


def unjudged(root):
    """Notebooks with claims that have left no ledger."""
    figures = Path(root) / "figures"
    return [name for name in chapters(root) if claims_of(root, name) and not own(figures / name, "ledger.csv")]


def _compared(paper, folder):
    """The rows at paper scale with the verdicts of more runs beside them; and the deep rows that answer no question.

    What is exact, or was played as often as at paper scale, is no verdict of more runs. That a claim cannot be tested
    is one, where more runs have shown that a few of them decide the mean.
    """
    found = own(folder, "ledger.csv")     # without the data of ads it cannot test what needs them
    deep = ledger.read(found) if found else paper[:0]
    deep = deep[(deep.verdict != ledger.UNTESTABLE) | deep.note.str.startswith("missing: more runs")]
    # A cell that has changed since may ask something else in the same words.
    asked, answered = (pd.MultiIndex.from_frame(rows[[*QUESTION, "cell"]]) for rows in (paper, deep))
    answers, verdicts, notes = dict(zip(answered, deep.itertuples(), strict=True)), [], []
    for question, row in zip(asked, paper.itertuples(), strict=True):
        later = answers.get(question)
        # Fewer runs than the row's own say nothing more, unless they take it back.
        withdrawn = later and later.verdict == ledger.UNTESTABLE and row.verdict != ledger.UNTESTABLE
        verdicts.append(later.verdict if later and (withdrawn or later.replications > row.replications) else "")
        decisive = later and ledger.DECISIVE.search(later.note)     # more runs know better how many would decide
        notes.append(ledger.DECISIVE.sub(decisive[0], row.note) if decisive else row.note)
    return paper.assign(deep=verdicts, note=notes), deep.loc[~answered.isin(asked), QUESTION[:3]].to_numpy().tolist()


def faults(rows, claims):
    """What is wrong with the rows of a ledger, which must judge all claims: each verdict is worked out again."""
    judged = set(rows.id[rows.reading == "primary"])
    yield from (f"{id}: no row under the primary reading" for id in claims if id not in judged)
    for row, again in zip(rows.itertuples(), rows.duplicated(["id", "case", "reading"]), strict=True):
        found = [*["two rows"] * again, *_faults(row, claims.get(row.id))]
        yield from (f"{row.id}, {row.case}, {row.reading}: {fault}" for fault in found)


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
    """The text of REPRODUCTION.md: a line for each claim and each question of ours, what holds first."""
    parts = [prose("reproduction"), *filter(None, [_since(rows, root)]),
             totals(rows, claims, root, lambda name: f"#{name}"), ""]
    for name, part in rows.groupby(rows.notebook.map(paper_of), sort=False):
        lines = sorted(ledger.summary(part, claims).itertuples(), key=lambda line: STANDINGS.index(line.standing))
        parts += [f'<a id="{name}"></a>\n\n## {heading(root, name)}\n',
                  *(f"[The {'chapter' if each == name else 'audit'}](notebooks/{each}.ipynb) · "
                    f"[the claims in full]({claims_file(root, each)}) · [all rows](figures/{each}/ledger.csv)\n"
                    for each in part.notebook.unique())]
        for told, ours in (("what the paper says", False), ("a question of ours", True)):
            if asked := [line for line in lines if claims[line.id].ours == ours]:
                parts += [f"| | {told} | place | verdict | cases | second check |\n|---|---|---|---|---|---|",
                          *(_told(line, claims[line.id], part[part.id == line.id]) for line in asked), ""]
    return "\n".join(parts)


def _told(line, claim, rows):
    """A claim as a line of its paper's table, with the numbers of the cases that are not reproduced."""
    rows, asked = rows[rows.reading == "primary"], ""
    if rows.verdict.isin([ledger.CONTRADICTED, ledger.UNDECIDED]).any():
        asked = f"{claim.statistic} should be in {region(*claim.region)}; "
    cases = asked + "; ".join(f"{row.case}: {row.verdict} {value(row) * (row.verdict != ledger.REPRODUCED)}".strip()
                              for row in rows.itertuples())
    kind, where = claim.second_check or ("", "")
    tests = [test.partition("::") for test in where.split(", ")]
    links = ", ".join(f"[{plain(name or path)}]({path})" for path, _, name in tests)
    checked = plain(where) if kind == "none" else links
    told = [*map(plain, (claim.claim, claim.place, line.verdict, cases)), f"{kind}: {checked}" * bool(kind)]
    return f'| <a id="{claim.id}"></a>{claim.id} | {" | ".join(told)} |'


def results(rows, claims, root):
    """What the README says of results: totals, findings, three figures, and which policy for which problem."""
    names, ours = list(rows.notebook.unique()), sum(claims[id].ours for id in rows.id.unique())
    asked = f" and {ours} question{'s' * (ours != 1)} of our own" * bool(ours)
    changed = looked_at(rows, claims)
    later = (f"For {changed} of the claims something was changed or added after a first look; the `history` of each "
             "says what, and why. ") * bool(changed)
    parts = [f"{rows.id.nunique() - ours} claims of the papers{asked} are judged, case by case and reading by reading. "
             f"{later}{_agreement(rows)}"
             f"[{REPORT}]({REPORT}) has each claim with its verdict, and what speaks for it.\n",
             totals(rows, claims, root, lambda name: f"{REPORT}#{name}"), "\n### Ten findings\n", findings(root, names)]
    papers = {*names, *map(paper_of, names)}
    for name in [names[0], *(name for name in chapters(root) if name not in papers)][:3]:
        if found := cover(root, name):
            parts.append(f"\n![{plain(found[1])}](figures/{name}/{found[0]}.png)\n*{plain(found[1])}* "
                         f"[{plain(title(root, name))}](notebooks/{name}.ipynb)")
    if table := choices(root):
        parts += ["\n### Which policy for which problem\n", table]
    return "\n".join([*parts, ""])


def _agreement(rows):
    """How many verdicts more runs confirm, and what becomes of the others; "" without any."""
    deep = rows[rows.deep != ""]
    other = deep[deep.deep != deep.verdict]
    reversed_ = int(other[["verdict", "deep"]].isin([ledger.REPRODUCED, ledger.CONTRADICTED]).all(axis=1).sum())
    told = (f"A *row* of the ledger is one claim in one setting under one reading. More runs (`make deep`) confirm "
            f"{len(deep) - len(other)} of the {len(deep)} row{'s' * (len(deep) != 1)} that they cover, "
            f"and reverse {reversed_ or 'none'}. ")
    before = [int((other.verdict == each).sum()) for each in (ledger.UNDECIDED, ledger.UNTESTABLE)]
    if taken := len(other) - sum(before) - reversed_:
        few = int(((other.deep == ledger.UNTESTABLE) & (other.verdict != ledger.UNDECIDED)).sum())
        told += f"They take back {taken} verdict{'s' * (taken != 1)}, {few} of them since a few runs decide the mean. "
    if sum(before):
        told += f"Before, {before[0]} of the others were undecided, and {before[1]} could not be tested. "
    return told * bool(len(deep))


def _since(rows, root):
    """What has changed since more runs were played: nothing that judges the rows that they cover, but perhaps more."""
    played, changed, told = [], [], ""
    for name in rows.notebook[rows.deep != ""].unique():
        runs = publication.manifest(Path(root) / "figures" / DEEP / name)["runs"].values()
        own = cells.notebook(Path(root) / f"notebooks/{name}.ipynb")
        changed += [title(root, name)] * any(run["code"]["notebook"] != own for run in runs)
        played += runs
    if changed:
        told = ("Since more runs were played, cells that judge none of their rows have changed (chapters: "
                f"{'; '.join(changed)}).\n")
    if any(run["results"] != RESULTS for run in played):
        told += ("Some of these runs are of an older version of the library, whose results differ "
                 "([CHANGELOG.md](CHANGELOG.md)).\n")
    return told


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
            README: f"{before}{BEGIN}\n\n{results(rows, claims, root)}\n{END}{after}",
            **paper.made(root, rows, claims)}, left_out


def main(arguments=None):
    """The command; its exit status: 0, 2 if the inputs are wrong."""
    def work(_):
        for journal in list(Path("figures").glob(f"**/{publication.JOURNAL}")):
            publication.complete(journal.parent)       # a publication was interrupted there
        texts, left_out = made(".")
        publication.write_stale(texts)
        for name in unjudged("."):
            print(f"left out, for it has no ledger (make all): {name}", file=sys.stderr)
        for row in left_out:
            print(f"left out, for it answers no question of the paper scale (make deep): {row}", file=sys.stderr)
        return 0

    return settings.command("compendium.report", __doc__, work, arguments)


if __name__ == "__main__":
    sys.exit(main())
