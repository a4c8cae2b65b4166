"""The ledger as pages: every row in one table, each paper's claims, and what was contradicted."""

import json
import re
from html import escape
from pathlib import Path

from .. import cells, ledger
from ..outcome import place, region, title, value
from ..project import chapters, claims_file, paper_of, prose
from ..typography import plain, raised, typeset

NONE_YET, OURS = "none yet", "*ours:* "


class Book:
    """All rows with what pages need to know of them: claims, verdicts, titles, cells and figures."""

    def __init__(self, root, rows, claims):
        self.root, self.rows, self.claims = Path(root), rows, claims
        self.papers = rows.notebook.map(paper_of)
        self.names = [name for name in chapters(root) if name in set(self.papers)]
        summary = ledger.summary(rows, claims).set_index("id")
        self.verdicts, self.standings = summary.verdict, summary.standing
        self.titles = {name: title(root, name) for name in self.names}
        self._cells = {name: {cells.digest(cell["source"]): cell["id"] for cell in
                              cells.cells(self.root / f"notebooks/{name}.ipynb")} for name in rows.notebook.unique()}

    def page_of(self):
        """Claim or chapter -> the page of its claims."""
        return {name: f"claims/{name}.md" for name in self.names} | {
            id: f"claims/{name}.md" for id, name in zip(self.rows.id, self.papers, strict=True)}

    def cell(self, row):
        """The part of a page's address that leads to the cell that judged a row; "" if it is there no more."""
        id = self._cells[row.notebook].get(row.cell)
        return f"#cell-id={id}" if id else ""

    def figure(self, row):
        """The name of the published figure that a row's place names; None if there is none."""
        found = re.search(r"Fig(?:ure|\.) ?(\d+)(?:\(?([a-z])\b)?", row.place)
        names = (f"figure_{found[1]}{found[2] or ''}", f"figure_{found[1]}") if found else ()
        folder = self.root / "figures" / row.notebook
        return next((name for name in names if (folder / f"{name}.svg").exists()), None)


def second_check(claim):
    """What else than the judging cell says so, with the tests by name; or what would have to be written."""
    if claim.second_check is None:
        return NONE_YET
    kind, where = claim.second_check
    named = (test.partition("::") for test in where.split(", "))
    names = ", ".join("`{}` in {}".format(name.replace("|", r"\|"), plain(Path(file).name)) if name else plain(file)
                      for file, _, name in named)
    return f"{NONE_YET if kind == 'none' else kind}: {names}"


def page(book):
    """The page of all rows: a table that is whole without a script, which `ledger.js` filters and sorts."""
    rows = "\n".join(_line(book, row) for row in book.rows.itertuples())
    return raised(prose("ledger").replace("<!-- rows -->", rows))


def _line(book, row):
    """One row of the ledger in HTML; filters read the attributes."""
    claim, figure, paper = book.claims[row.id], book.figure(row), book.titles[paper_of(row.notebook)]
    links = f'<a href="notebooks/{row.notebook}.html{book.cell(row)}">cell</a>'
    links += f' <a href="notebooks/{row.notebook}.html#figure-{figure}">figure</a>' * bool(figure)
    # On one line: a line of its own could end the HTML that it stands in.
    told = [escape(typeset(" ".join(text.split())))
            for text in (f"{row.claim} ({row.place})", row.case, row.reading, row.note)]
    whose = "ours" if claim.ours else "the paper's"
    numbers = ((escape(value(row)), row.estimate), (region(*claim.region), claim.region[0]),
               (f"{row.replications:,}", row.replications))
    texts = [f'<td role="rowheader"><a href="claims/{paper_of(row.notebook)}.html#{row.id}">{row.id}</a></td>',
             f'<td class="v-{row.verdict.split()[0]}">{row.verdict}</td>', *(f"<td>{text}</td>" for text in told[:3]),
             *(f'<td class="number" data-number="{json.dumps(number)}">{text}</td>' for text, number in numbers),
             *(f"<td>{text}</td>" for text in (escape(row.deep), links, told[3]))]
    return (f'<tr data-paper="{escape(paper)}" data-verdict="{row.verdict}" '
            f'data-reading="{"primary" if row.reading == "primary" else "other"}" '
            f'data-claim="{whose}"><td>{escape(paper)}</td>{"".join(texts)}</tr>')


def claims_page(book, name):
    """All claims of a paper: what is asked, how it is judged, what came out."""
    part = book.rows[book.papers == name]
    parts = [f'<a id="{name}"></a>\n\n# Claims: {book.titles[name]}\n',
             *(f"[The {'chapter' if each == name else 'audit'}](../notebooks/{each}.ipynb) · "
               f"[figures and data](../results.md#{place(each)}) · [the file](../{claims_file(book.root, each)})\n"
               for each in part.notebook.unique()),
             "| claim | what it says | verdict |\n|---|---|---|",
             *(f"| [{id}](#{id}) | {OURS * book.claims[id].ours}{plain(book.claims[id].claim)} | "
               f"{plain(book.verdicts[id])} |" for id in part.id.unique()), ""]
    return raised("\n".join([*parts, *(_claim(book, id, rows) for id, rows in part.groupby("id", sort=False))]))


def _claim(book, id, rows):
    claim = book.claims[id]
    readings, ours = {"primary": claim.primary, **claim.others}, " (ours)" * claim.ours
    return "\n".join([
        f'<a id="{id}"></a>\n\n## {id}{ours}: {plain(book.standings[id])}\n',
        f"**{OURS * claim.ours}{plain(claim.claim)}** ({plain(claim.place)}).\n",
        f"Judged by: {plain(claim.statistic)}. The claim holds in {region(*claim.region)}.\n",
        *(f"- {'Repair' if name in claim.repairs else 'Reading'} *{plain(name)}*: {plain(text)}"
          for name, text in readings.items()),
        *(f"- Changed: {plain(text)}" for text in claim.history),
        *([f"- Second check: {second_check(claim)}"] * (claim.second_check is not None)),
        "\n| case | reading | value [interval] | runs | verdict | more runs | note | shown in |",
        "|---|---|---|--:|---|---|---|---|",
        *(_row(book, row) for row in rows.itertuples()), ""])


def _row(book, row):
    told = row.case, row.reading, value(row), f"{row.replications:,}", row.verdict, row.deep, row.note
    links, figure = f"[cell](../notebooks/{row.notebook}.ipynb{book.cell(row)})", book.figure(row)
    links += f" [figure](../notebooks/{row.notebook}.ipynb#figure-{figure})" * bool(figure)
    return f"| {' | '.join(map(plain, told))} | {links} |"


def contradicted(book):
    """The page of the papers' claims that were contradicted, each with its second check."""
    parts = [prose("contradicted")]
    for name in book.names:
        rows = book.rows[book.papers == name]
        ids = [id for id in rows.id.unique()
               if book.standings[id] == ledger.CONTRADICTED and not book.claims[id].ours]
        parts.append(f"## {book.titles[name]}: {len(ids) or 'no'} claim{'s' * (len(ids) != 1)}\n")
        parts += ["| claim | what the paper says | where it fails | second check |\n|---|---|---|---|"] * bool(ids)
        parts += [*(_failure(book, id, rows[rows.id == id]) for id in ids), ""]
    return raised("\n".join(parts))


def _failure(book, id, rows):
    claim, failing = book.claims[id], rows[(rows.verdict == ledger.CONTRADICTED) & (rows.reading == "primary")]
    cases = "; ".join(f"{plain(row.case)}: {plain(value(row))} [↗](notebooks/{row.notebook}.ipynb{book.cell(row)})"
                      for row in failing.itertuples())
    return (f"| [{id}]({book.page_of()[id]}#{id}) | {plain(claim.claim)} ({plain(claim.place)}) | "
            f"{plain(claim.statistic)}: not in {region(*claim.region)}; {cases} | {second_check(claim)} |")
