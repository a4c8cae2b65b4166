"""Pages of a small book with all that may become of a claim: several cases, other readings, repairs, every verdict.

What a page says of one case under one reading says nothing of what it does with two.
"""

import base64
import json
import re
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from compendium import ledger, outcome, paper, project
from compendium import report as made_book
from compendium.cells import digest
from compendium.site import chapters as pages_of_chapters
from compendium.site import ledger as site_ledger
from compendium.site import results
from compendium.site.links import Links
from costbandits.analysis.statistics import Interval

inf = float("inf")
TESTS = "tests/it.py::test_k, tests/a.py::test_l"


def asked(claim, place, region=(0.0, 1.0), **more):
    return {"claim": claim, "place": place, "statistic": "ratio of means", "region": list(region),
            "primary": "means", **more}


OTHERS = {"others": {"medians": "medians instead", "early": "at half of the budget"}}
MENDED = {"others": {"medians": "medians instead", "halved": "half of the bound"}, "repairs": ["halved"]}
# Of two papers; the verdicts of their rows are told below.
CLAIMS = {
    "alpha": {"A1": asked("a beats b", "Fig. 1", **OTHERS), "A2": asked("c beats d", "section 2", **OTHERS),
              "A3": asked("e beats f", "Theorem 3", history=["region: was [0, 2]", "the case many"],
                          second_check={"kind": "counterexample", "where": TESTS}, **MENDED),
              "A4": asked("g beats h", "Figure 2", (-inf, 1.0),
                          second_check={"kind": "counterexample", "where": "tests/b.py::test_m"}),
              "A5": asked("i beats j", "Table 1"),
              "A6": asked("k beats l", "nowhere", ours=True, history=["added later"])},
    "beta": {"B1": asked("m wins", "section 5", (1.25, inf)),
             "B2": asked("n wins", "section 6", second_check={"kind": "none", "where": "a sum by hand"}),
             "B3": asked("o wins", "ours", ours=True)}}
# id, case, reading, interval (None: cannot be tested), runs; and the same of more runs.
ROWS = {
    "alpha": [("A1", "few", "primary", (0.5, 0.4, 0.6), 1000), ("A1", "many", "primary", (0.8, 0.7, 1.0), 2000),
              ("A1", "many", "medians", (1.25, 1.125, 1.5), 2000), ("A1", "few", "early", (0.9, 0.75, 1.25), 1000),
              ("A2", "few", "primary", (1.5, 1.25, 2.0), 1000), ("A2", "many", "primary", (0.5, 0.25, 0.75), 1000),
              ("A2", "few", "medians", (0.875, 0.75, 0.9), 1000), ("A2", "few", "early", (0.9, 0.75, 1.25), 1000),
              ("A3", "few", "primary", (2.0, 2.0, 2.0), 1), ("A3", "many", "primary", (0.9, 0.5, 1.5), 1000),
              ("A3", "few", "halved", (0.5, 0.5, 0.5), 1), ("A3", "many", "halved", (0.45, 0.25, 0.75), 1000),
              ("A3", "few", "medians", (1.75, 1.5, 2.0), 1000),
              ("A4", "few", "primary", (0.9, 0.5, 1.45), 1000), ("A4", "many", "primary", (-3.0, -4.0, 0.5), 1000),
              ("A5", "few", "primary", None, 0), ("A5", "many", "primary", (0.5, 0.25, 0.75), 1000),
              ("A6", "few", "primary", (1.5, 1.25, 1.75), 1000)],
    "beta": [("B1", "one", "primary", (3.4e6, 1.2e6, 5e6), 1000), ("B2", "one", "primary", (1.5, 1.25, 1.75), 20_000),
             ("B2", "two", "primary", (1.25, 1.125, 1.5), 20_000), ("B3", "one", "primary", (0.9, 0.5, 1.5), 1000)]}
MORE = {"alpha": [("A1", "few", "primary", (0.5, 0.45, 0.55), 10_000), ("A1", "many", "primary", None, 0),
                  ("A1", "many", "medians", (0.9, 0.8, 0.95), 9000), ("A1", "few", "early", (1.1, 1.05, 1.25), 9000),
                  ("A2", "few", "primary", (0.9, 0.75, 1.25), 9000), ("A3", "few", "primary", (2.0, 2.0, 2.0), 1),
                  ("A3", "many", "primary", (1.25, 1.125, 1.5), 9000), ("A4", "few", "primary", (0.9, 0.7, 1.15), 9000),
                  ("A5", "few", "primary", (0.5, 0.25, 0.75), 9000)]}
CELL = 'book.judge("A1", "few", ratio, 1000)'


def filed(name, rows, scale, folder):
    """File a ledger's rows, judged by one cell; claims without a row are left out of it."""
    claims = project.claims(".", name)
    book = ledger.Ledger({id: claims[id] for id in dict.fromkeys(row[0] for row in rows)}, scale)
    for id, case, reading, ends, runs in rows:
        if ends is None:
            book.untestable(id, case, "more runs that lock" if scale == "deep" else "the data", reading)
        else:
            book.judge(id, case, Interval(*ends), runs, reading)
    Path(folder).mkdir(parents=True)
    book.frame().assign(cell=digest(CELL)).to_csv(f"{folder}/ledger.csv", index=False, lineterminator="\n")


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("claims", "notebooks"):
        Path(folder).mkdir()
    Path(project.CHAPTERS).write_text("alpha\nbeta\nmore\n")
    for name, heading in (("alpha", "# Alphas: a title"), ("beta", "# Betas"), ("more", "# More | of it")):
        cells = [new_markdown_cell(heading), new_code_cell(CELL, id=f"cell-of-{name}")]
        nbformat.write(new_notebook(cells=cells), f"notebooks/{name}.ipynb")
    for name, claims in CLAIMS.items():
        Path(f"claims/{name}.yaml").write_text(yaml.safe_dump(claims, sort_keys=False))
        filed(name, ROWS[name], "paper", f"figures/{name}")
    filed("alpha", MORE["alpha"], "deep", "figures/deep/alpha")
    Path("figures/alpha/figure_1.svg").touch()
    Path("figures/more").mkdir()
    told = {"figures": {"map": "A *map*.", "curves": "2. Two curves."}, "findings": ["**One.** (section 2.1)", "Two."]}
    Path("figures/more/story.json").write_text(json.dumps(told))
    for name in told["figures"]:
        Image.new("L", (1, 1)).save(f"figures/more/{name}.png")
    Path("figures/more/map.csv").touch()
    rows, left_out = made_book.collect(".")
    assert left_out == []
    return site_ledger.Book(".", rows, project.claims("."))


def table_of(text, begin):
    """Lines of a text from the one that begins so to the next empty one, without its marks of columns."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(begin))
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[start:end]
            if not set(line) <= set("|-:")]


def test_the_rows_of_an_audit_are_its_paper_s(book):
    """They stand with those of the paper's chapter, and each leads to the notebook that has judged it."""
    Path(project.CHAPTERS).write_text("alpha\nbeta\nmore\naudit/alpha\n")
    for folder in ("notebooks", "claims"):
        Path(folder, "audit").mkdir()
    cells = [new_markdown_cell("# The audit: a title"), new_code_cell(CELL, id="cell-of-audit")]
    nbformat.write(new_notebook(cells=cells), "notebooks/audit/alpha.ipynb")
    Path("claims/audit/alpha.yaml").write_text(yaml.safe_dump({"A7": asked("p beats q", "Fig. 2")}))
    filed("audit/alpha", [("A7", "few", "primary", (0.5, 0.4, 0.6), 1000)], "paper", "figures/audit/alpha")
    rows, claims = made_book.collect(".")[0], project.claims(".")
    assert rows.notebook.tolist()[-1] == "audit/alpha" and rows.id.tolist()[-1] == "A7"
    told = table_of(outcome.totals(rows, claims, ".", lambda name: f"#{name}"), "| chapter")[1:]
    assert told == [["[Alphas](#alpha)", *"621111"], ["[Betas](#beta)", *"210100"], ["all", *"831211"]]
    report = made_book.report(rows, claims, ".")
    assert report.count('<a id="alpha"></a>') == 1 and "[The audit](notebooks/audit/alpha.ipynb)" in report
    found = site_ledger.Book(".", rows, claims)
    assert found.names == ["alpha", "beta"] and found.page_of()["A7"] == "claims/alpha.md"
    assert "| [cell](../notebooks/audit/alpha.ipynb#cell-id=cell-of-audit) |" in site_ledger.claims_page(found, "alpha")
    (line,) = [line for line in site_ledger.page(found).splitlines() if "p beats q" in line]
    assert re.findall('href="(.*?)"', line) == ["claims/alpha.html#A7",
                                                "notebooks/audit/alpha.html#cell-id=cell-of-audit"]
    shown = json.loads(pages_of_chapters.chapter(".", "audit/alpha", "build", Links(".", [], found.page_of())))
    assert "<../../downloads/audit/alpha.ipynb>" in "".join(cell["source"] for cell in shown["cells"])


def test_totals_tell_all_that_may_become_of_a_claim(book):
    told = table_of(outcome.totals(book.rows, book.claims, ".", lambda name: f"#{name}"), "| chapter")
    assert told == [["chapter", "claims", "reproduced", "reproduced only under a reading", "contradicted", "undecided",
                     "cannot be tested"], ["[Alphas](#alpha)", *"511111"], ["[Betas](#beta)", *"210100"],
                    ["all", *"721211"]]
    assert paper.judged(book.rows, book.claims) == {
        "claims": "7", "changed": "1", "questions": "2", "rows": "22", "reproduced": "2", "contradicted": "2",
        "counterexamples": "1"}


def test_a_chapter_at_a_glance(book):
    assert table_of(results.glance(book), "| chapter")[1:] == [
        ["[Alphas](notebooks/alpha.ipynb)", "5 claims, 18 rows", "1,000",
         "1 reproduced, 1 reproduced only under a reading, 1 contradicted, 1 undecided, 1 cannot be tested"],
        ["[Betas](notebooks/beta.ipynb)", "2 claims, 4 rows", "1,000", "1 reproduced, 1 contradicted"],
        [r"[More \| of it](notebooks/more.ipynb)", "2 figures, 2 findings", "–", "see the chapter"]]


def test_all_that_more_runs_may_do_to_a_verdict_is_counted(book):
    """Of eight rows they confirm two, one of them undecided as before; each other one is counted once."""
    assert list(book.rows.deep) == [
        "reproduced", "cannot be tested", "reproduced", "contradicted", "undecided", "", "", "", "", "contradicted", "",
        "", "", "undecided", "", "reproduced", "", "", "", "", "", ""]
    told = made_book.results(book.rows, book.claims, ".")
    assert told.startswith(
        "7 claims of the papers and 2 questions of our own are judged, case by case and reading by reading. For 1 of "
        "the claims something was changed or added after a first look; the `history` of each says what, and why. A "
        "*row* of the ledger is one claim in one setting under one reading. More runs (`make deep`) confirm 2 of the 8 "
        "rows that they cover, and reverse 1. They take back 2 verdicts, 1 of them since a few runs decide the mean. "
        "Before, 2 of the others were undecided, and 1 could not be tested. [REPRODUCTION.md](REPRODUCTION.md) has")


READINGS = "contradicted under reading medians, undecided under reading early"
ONLY = "reproduced only under reading medians (contradicted otherwise, undecided under reading early)"


def test_the_report_tells_each_case_of_what_does_not_hold(book):
    text = made_book.report(book.rows, book.claims, ".")
    asked = r"ratio of means should be in \[0, 1\]; "
    alpha, beta = text[text.index("## Alphas"):].split("## Betas")
    assert table_of(alpha, "| | what")[1:] == [
        ['<a id="A1"></a>A1', "a beats b", "Fig. 1", f"reproduced ({READINGS})",
         "few: reproduced; many: reproduced", ""],
        ['<a id="A2"></a>A2', "c beats d", "section 2", ONLY,
         asked + r"few: contradicted 1.5 \[1.25, 2\]; many: reproduced", ""],
        ['<a id="A3"></a>A3', "e beats f", "Theorem 3", "contradicted (reproduced when repaired: halved)",
         asked + r"few: contradicted 2; many: undecided 0.9 \[0.5, 1.5\]",
         r"counterexample: [test\_k](tests/it.py), [test\_l](tests/a.py)"],
        ['<a id="A4"></a>A4', "g beats h", "Figure 2", "undecided",
         r"ratio of means should be in (-∞, 1\]; few: undecided 0.9 \[0.5, 1.45\]; many: reproduced",
         r"counterexample: [test\_m](tests/b.py)"],
        ['<a id="A5"></a>A5', "i beats j", "Table 1", "cannot be tested",
         "few: cannot be tested; many: reproduced", ""]]
    assert table_of(alpha, "| | a question of ours")[1:] == [
        ['<a id="A6"></a>A6', "k beats l", "nowhere", "contradicted",
         asked + r"few: contradicted 1.5 \[1.25, 1.75\]", ""]]
    assert [line[0][-2:] for line in table_of(beta, "| | what")[1:]] == ["B1", "B2"]
    assert table_of(beta, "| | what")[2][3:] == [
        "contradicted", asked + r"one: contradicted 1.5 \[1.25, 1.75\]; two: contradicted 1.25 \[1.12, 1.5\]",
        "none: a sum by hand"]
    assert [line[0][-2:] for line in table_of(beta, "| | a question of ours")[1:]] == ["B3"]


def test_what_was_contradicted_stands_with_the_cases_that_fail_as_the_paper_words_it(book):
    """Not those that are open, nor other readings, nor repairs, nor what holds under another reading, nor ours."""
    here = "[↗](notebooks/{0}.ipynb#cell-id=cell-of-{0})".format
    alpha, beta = site_ledger.contradicted(book).split("## Alphas: 1 claim\n")[1].split("## Betas: 1 claim\n")
    assert table_of(alpha, "| claim")[1:] == [
        ["[A3](claims/alpha.md#A3)", "e beats f (Theorem 3)", f"ratio of means: not in [0, 1]; few: 2 {here('alpha')}",
         "counterexample: `test_k` in it.py, `test_l` in a.py"]]
    assert table_of(beta, "| claim")[1:] == [
        ["[B2](claims/beta.md#B2)", "n wins (section 6)", "ratio of means: not in [0, 1]; "
         rf"one: 1.5 \[1.25, 1.75\] {here('beta')}; two: 1.25 \[1.12, 1.5\] {here('beta')}",
         "none yet: a sum by hand"]]


def test_the_page_of_a_paper_s_claims_has_each_row_of_each(book):
    text = site_ledger.claims_page(book, "alpha")
    assert table_of(text, "| claim |")[1:] == [
        ["[A1](#A1)", "a beats b", f"reproduced ({READINGS})"], ["[A2](#A2)", "c beats d", ONLY],
        ["[A3](#A3)", "e beats f", "contradicted (reproduced when repaired: halved)"],
        ["[A4](#A4)", "g beats h", "undecided"], ["[A5](#A5)", "i beats j", "cannot be tested"],
        ["[A6](#A6)", "*ours:* k beats l", "contradicted"]]
    headings = re.findall("^## (.*)$", text, re.MULTILINE)
    assert headings == ["A1: reproduced", "A2: reproduced only under a reading", "A3: contradicted", "A4: undecided",
                        "A5: cannot be tested", "A6 (ours): contradicted"]
    part = text[text.index("## A3"):text.index('<a id="A4">')]
    assert [line for line in part.splitlines() if line.startswith("- ")] == [
        "- Reading *primary*: means", "- Reading *medians*: medians instead", "- Repair *halved*: half of the bound",
        r"- Changed: region: was \[0, 2\]", "- Changed: the case many",
        "- Second check: counterexample: `test_k` in it.py, `test_l` in a.py"]
    cell, figure = (f"[{word}](../notebooks/alpha.ipynb#{place})" for word, place in (
        ("cell", "cell-id=cell-of-alpha"), ("figure", "figure-figure_1")))
    assert table_of(part, "| case")[1:] == [
        ["few", "primary", "2", "1", "contradicted", "", "", cell],
        ["many", "primary", r"0.9 \[0.5, 1.5\]", "1,000", "undecided", "contradicted",
         "about 37,000 replications would decide", cell],
        ["few", "halved", "0.5", "1", "reproduced", "", "", cell],
        ["many", "halved", r"0.45 \[0.25, 0.75\]", "1,000", "reproduced", "", "", cell],
        ["few", "medians", r"1.75 \[1.5, 2\]", "1,000", "contradicted", "", "", cell]]
    part = text[text.index("## A1"):text.index('<a id="A2">')]
    assert [line[-1] for line in table_of(part, "| case")[1:]] == [f"{cell} {figure}"] * 4
    # The second figure is not published, and what has no value has none.
    part = text[text.index("## A4"):text.index('<a id="A6">')]
    assert [line[-1] for line in table_of(part, "| case")[1:]] == [cell] * 2
    assert table_of(part[part.index("## A5"):], "| case")[1] == [
        "few", "primary", "", "0", "cannot be tested", "reproduced", "missing: the data", cell]
    assert "The claim holds in (-∞, 1]." in part and "Changed: added later" in text
    assert "The claim holds in [1.25, ∞)." in site_ledger.claims_page(book, "beta")


def test_each_row_of_the_ledger_s_page_says_what_it_is_filtered_and_sorted_by(book):
    lines = re.findall("<tr data.*</tr>", site_ledger.page(book))
    names = [re.findall(r'data-(?:paper|verdict|reading|claim)="(.*?)"', line) for line in lines]
    assert names == [["Alphas" if row.notebook == "alpha" else "Betas", row.verdict,
                      "primary" if row.reading == "primary" else "other",
                      "ours" if row.id in ("A6", "B3") else "the paper's"] for row in book.rows.itertuples()]
    numbers = [re.findall(r'data-number="(.*?)"', line) for line in lines]
    assert [numbers[at] for at in (0, 13, 15, 18, 19)] == [
        ["0.5", "0.0", "1000"], ["0.9", "-Infinity", "1000"], ["NaN", "0.0", "0"], ["3400000.0", "1.25", "1000"],
        ["1.5", "0.0", "20000"]]
    told = [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td.*?</td>", lines[3])]
    assert told == ["Alphas", "A1", "undecided", "a beats b (Fig. 1)", "few", "early", "0.9 [0.75, 1.25]", "[0, 1]",
                    "1,000", "contradicted", "cell figure", "about 13,000 replications would decide"]
    assert [re.search('class="v-(.*?)"', lines[at])[1] for at in (0, 2, 3, 15)] == [
        "reproduced", "contradicted", "undecided", "cannot"]
    links = re.findall('href="(.*?)"', lines[3])
    assert links == ["claims/alpha.html#A1", "notebooks/alpha.html#cell-id=cell-of-alpha",
                     "notebooks/alpha.html#figure-figure_1"]
    assert re.findall('href="(.*?)"', lines[19]) == ["claims/beta.html#B2", "notebooks/beta.html#cell-id=cell-of-beta"]


def test_records_have_each_row_under_its_claim(book):
    found = {record["id"]: record for record in ledger.records(book.rows, book.claims)}
    assert [[row["case"], row["reading"], row["verdict"], row["deep"]] for row in found["A3"]["rows"]] == [
        ["few", "primary", "contradicted", ""], ["many", "primary", "undecided", "contradicted"],
        ["few", "halved", "reproduced", ""], ["many", "halved", "reproduced", ""],
        ["few", "medians", "contradicted", ""]]
    assert found["A3"]["rows"][1] == {
        "case": "many", "reading": "primary", "estimate": 0.9, "low": 0.5, "high": 1.5, "replications": 1000,
        "verdict": "undecided", "deep": "contradicted", "note": "about 37,000 replications would decide"}
    kept = {name: value for name, value in found["A3"].items() if name != "rows"}
    assert kept == {
        "id": "A3", "notebook": "alpha", "ours": False, "claim": "e beats f", "place": "Theorem 3",
        "statistic": "ratio of means", "region": [0.0, 1.0],
        "readings": {"primary": "means", "medians": "medians instead", "halved": "half of the bound"},
        "repairs": ["halved"], "history": ["region: was [0, 2]", "the case many"], "standing": "contradicted",
        "words": "contradicted (reproduced when repaired: halved)",
        "second_check": {"kind": "counterexample", "where": TESTS}}
    assert [found[id]["region"] for id in ("A4", "B1")] == [["-inf", 1.0], [1.25, "inf"]]
    assert found["A5"]["rows"][0]["estimate"] is None and [id for id in found if found[id]["ours"]] == ["A6", "B3"]
    assert [found[id]["standing"] for id in found] == [
        "reproduced", "reproduced only under a reading", "contradicted", "undecided", "cannot be tested",
        "contradicted", "reproduced", "contradicted", "undecided"]


def test_the_gallery_shows_each_figure_with_its_data_if_there_is_any(book):
    told = results.gallery(".")
    assert told[told.index('<a id="results-more">'):] == r"""<a id="results-more"></a>

### More | of it

[Read the chapter](notebooks/more.ipynb).

- **One.** ([section 2.1](notebooks/more.ipynb#section-2.1))
- Two.

![A \*map\*.](figures/more/map.svg)

:::{container} figure-links
[In its chapter](notebooks/more.ipynb#figure-map) · [data (CSV)](figures/more/map.csv): A \*map\*.
:::


![2. Two curves.](figures/more/curves.svg)

:::{container} figure-links
[In its chapter](notebooks/more.ipynb#figure-curves): 2. Two curves.
:::
"""
    assert told.index("results-alpha") < told.index("results-beta") < told.index("results-more")


def story(name, *told):
    Path(f"figures/{name}/story.json").write_text(json.dumps({"figures": {}, "findings": told}))


def test_findings_of_several_chapters_come_in_turn_and_stand_by_chapter(book):
    """In turn: each chapter's first, then the first of its second half, and so on, until there are enough."""
    story("alpha", "One.", "Two (section 2.5)", "Three.", "Four.", "Six.")
    story("beta", "Five. (section 1.1)")

    def shown(number, *names):
        lines = outcome.findings(".", names, number).splitlines()
        return [re.search(r"(\w+)[.)]?\*\*", line)[1] for line in lines]

    assert [shown(number, "alpha", "beta") for number in (1, 2, 3, 4, 10)] == [
        ["One"], ["One", "Five"], ["One", "Four", "Five"], ["One", "Four", "Two", "Five"],
        ["One", "Four", "Two", "Six", "Three", "Five"]]
    assert shown(3, "beta", "alpha") == ["Five", "One", "Four"]
    assert outcome.findings(".", ["alpha", "beta"], 4).splitlines()[2:] == [
        "1. **Two** [Alphas, section 2.5](notebooks/alpha.ipynb#section-2.5)",
        "1. **Five.** [Betas, section 1.1](notebooks/beta.ipynb#section-1.1)"]


@pytest.mark.parametrize(("text", "short"), [
    ("**Bold.** Second one. Third one.", "**Bold.** Second one. Third one."),
    ("First one. " + "A second that is long" * 6 + ". Third.", "**First one.** " + "A second that is long" * 6 + "."),
    ("**Half of a** sentence, no more.\nIt has 5% of 3e+06 runs. (section 3)",
     "**Half of a** sentence, no more. It has 5 % of 3·10⁶ runs."),
    ("See Fig. 3 of Xia et al. Then Eq. 5 holds. More.", "**See Fig. 3 of Xia et al. Then Eq. 5 holds.** More.")])
def test_a_finding_in_short(text, short):
    """Its beginning in bold, and whole sentences up to 120 letters or a little more."""
    assert outcome.in_short(text) == short


# ---- a chapter's page ----------------------------------------------------------------------------------

# One pixel.
DRAWN = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgBwAACQAIICPDjAAAAABJRU5ErkJggg==")
PNG, TABLE = {"data": {"image/png": DRAWN}}, {"data": {"text/html": ["<td>12345</td>", "<td>NaN</td>"]}}


def shown(source, *outputs, tags=(), alt="A line"):
    """The cells that a cell of code becomes on a chapter's page: (sources, the first one's outputs and metadata)."""
    cell = {"cell_type": "code", "id": "it", "source": source, "outputs": list(outputs),
            "metadata": {"tags": list(tags), "alt": alt}}
    cells = pages_of_chapters._code(".", "more", cell)
    return [each["source"] for each in cells], cells[0]["outputs"], cells[0]["metadata"]


def test_a_caption_goes_to_the_picture_right_above_it(book):
    Path("figures/more/map.svg").touch()
    told = ["**Figure 1.** *Above.*", "**Figure 2.** *Nowhere.*"]
    drawn = new_code_cell('gallery.add("map", fig)', outputs=[new_output("display_data", PNG["data"])])
    nbformat.write(new_notebook(cells=[drawn, *map(new_markdown_cell, told)]), "notebooks/more.ipynb")
    cells = json.loads(pages_of_chapters.chapter(".", "more", "build", Links(".", [], {})))["cells"]
    framed = "".join(cell["source"] for cell in cells if "figcaption" in cell["source"])
    assert told[0] in framed and told[1] not in framed and cells[-1]["source"] == told[1]


def test_a_cell_that_files_two_figures_and_a_table_shows_each_once(book):
    for name in ("map", "curves"):
        Path(f"figures/more/{name}.svg").touch()
    source = 'gallery.add("map", fig)\ngallery.add(f"curves", other)\ngallery.add("none", table)'
    (code, figures), outputs, metadata = shown(source, PNG, TABLE, PNG)
    assert code == source and outputs == [{"data": {"text/html": "<td>12,345</td><td>–</td>"}}]
    assert figures == """<a id="figure-map"></a>

![A line](../figures/more/map.svg)

:::{container} figure-links
[its data (CSV)](../figures/more/map.csv) · [its cell](#cell-id=it)
:::


<a id="figure-curves"></a>

![A line](../figures/more/curves.svg)

:::{container} figure-links
[its cell](#cell-id=it)
:::
"""
    assert metadata["tags"] == ["hide-input"] and metadata["cell-id"] == "it"
    # What is not published, and what files a table only, stays as it was.
    assert shown('gallery.add("other", fig)', PNG)[:2] == (['gallery.add("other", fig)'], [PNG])
    assert shown('gallery.add("map", table)', TABLE)[0] == ['gallery.add("map", table)']
    assert shown("x = 1", PNG)[:2] == (["x = 1"], [PNG])


def test_a_figure_that_a_function_has_filed_is_known_by_its_pixels(book):
    Path("figures/more/map.svg").touch()
    for name, shade in (("curves", 40), ("map", 200)):
        Image.new("L", (3, 2), shade).save(f"figures/more/{name}.png")
    output = {"data": {"image/png": base64.b64encode(Path("figures/more/map.png").read_bytes()).decode() + "\n"}}
    (code, figure), outputs, _ = shown("show(A)", output, TABLE)
    assert code == "show(A)" and outputs == [TABLE] and figure.startswith('<a id="figure-map">')
    link = {"data": {"text/html": '<img src="../../figures/audit/more/map.png" alt="figures/audit/more/map.png">'}}
    assert shown("show(A)", link, TABLE)[:2] == ([code, figure], [TABLE])
    other = {"data": {"image/png": base64.b64encode(Path("figures/more/curves.png").read_bytes()).decode()}}
    Path("figures/more/curves.png").unlink()
    assert shown("show(B)", other)[:2] == (["show(B)"], [other])


@pytest.mark.parametrize(("tags", "outputs", "found", "prompt"), [
    ((), (), ["hide-input"], "code"), (("hide-input",), (), ["hide-input", "plumbing"], "code"),
    (("hide-input",), (PNG,), ["hide-input"], "code"), (("solution",), (PNG,), ["hide-cell", "solution"], "solution"),
    (("parameters",), (), ["hide-input"], "parameters"),
    (("skip-execution", "nbval-skip"), (), ["hide-input", "nbval-skip", "skip-execution"], "a slider, in JupyterLab")])
def test_how_a_cell_is_folded(book, tags, outputs, found, prompt):
    _, _, metadata = shown("x = 1", *outputs, tags=tags)
    assert (metadata["tags"], metadata["mystnb"]["code_prompt_show"]) == (found, prompt)


def test_which_runs_stand_behind_a_page(book):
    runs = {"a": {"profile": "quick", "parameters": {}, "versions": {}},
            "b": {"profile": "paper",
                  "parameters": {"seed": 3, "budget": 1.5e6, "sizes": [1], "runs": 10_000, "name": ""},
                  "versions": {"python": "3.99", "numba": "1", "numpy": "2", "pandas": "3"}}}
    files = {name: {"sha256": "", "run": name} for name in runs}
    Path("figures/more/manifest.json").write_text(json.dumps({"files": files, "runs": runs}))
    told = ("Figures, tables and verdicts are those of the full run (seed = 3, budget = 1.5e+06, runs = 10,000; python "
            "3.99, numba 1, numpy 2).")
    rest = ("To play with it, run `make lab` and open `notebooks/more.ipynb`, or take {download}`the notebook "
            "<../downloads/more.ipynb>`.\n:::")
    assert pages_of_chapters._about(".", "more", True) == (
        f":::{{container}} about-page\n{told} So are, on this page, the outputs of checks; those of the committed "
        f"notebook are from few runs. {rest}")
    assert pages_of_chapters._about(".", "beta", False) == (
        ":::{container} about-page\nChecks of the mathematics were executed with few runs. "
        + rest.replace("more", "beta"))
