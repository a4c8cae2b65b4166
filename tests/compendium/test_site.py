"""The reading site: it builds without a warning, every link leads somewhere, and a browser shows it as it is meant."""

import dataclasses
import json
import math
import re
import shutil
import subprocess
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import MagicMock

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pygments.token import Generic, Keyword, Name
from reference import proving

import costbandits
from compendium import check, outcome, report
from compendium.project import chapters, claims, paper_of
from compendium.site import __main__ as command
from compendium.site import architecture, extension, ledger, results, sources
from compendium.site import chapters as pages_of_chapters
from compendium.site.links import Links
from costbandits.analysis import figures

ROOT = Path(__file__).resolve().parents[2]
NAMES = chapters(ROOT)
# Of these the planted errors are tried on a few.
MOVING = (("notebooks/suak", "reserve"), ("notebooks/own", "own"), ("notebooks/omega_ucb", "trap"),
          ("notebooks/omega_ucb", "luck"), ("notebooks/budget_ucb", "rays"), ("notebooks/cost_subsidy", "cliff"))
READ = proving(NAMES, *{*NAMES} - {"kube", "tournament"})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once for all tests that need it: warnings are errors."""
    build = tmp_path_factory.mktemp("build")
    done = subprocess.run([sys.executable, "-m", "compendium.site", "--build", str(build)], cwd=ROOT,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return build / "site"


@pytest.fixture(scope="module")
def book():
    return ledger.Book(ROOT, report.collect(ROOT)[0], claims(ROOT))


class Outline(HTMLParser):
    """Levels of a page's headings, and pictures without an alternative text."""

    def __init__(self, text):
        super().__init__()
        self.levels, self.blind, self.inside = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside += tag == "article"
        if self.inside and re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if self.inside and tag == "img" and not dict(attributes).get("alt"):
            self.blind.append(dict(attributes).get("src"))

    def handle_endtag(self, tag):
        self.inside -= tag == "article"


@pytest.mark.pages
def test_every_link_leads_somewhere_and_nothing_comes_from_a_network(site):
    assert check.faults(site) == []
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {"index.html", "ledger.html", "contradicted.html", "results.html", "glossary.html", "bibliography.html",
            *(f"notebooks/{name}.html" for name in NAMES)} <= pages


@pytest.mark.pages
def test_the_index_of_words_is_loaded_by_the_page_of_a_search_alone(site):
    pages = [path for path in site.rglob("*.html") if "searchindex.js" in path.read_text(encoding="utf-8")]
    assert pages == [site / "search.html"]


@pytest.mark.pages
def test_no_page_loads_a_script_larger_than_100_kb(site):
    for path in {*site.rglob("*.html")} - {*(site / "_static").rglob("*")}:
        for script in re.findall(r'<script [^>]*src="([^"?]+)', path.read_text(encoding="utf-8")):
            assert (path.parent / script).stat().st_size < 100_000 or script == "searchindex.js", (path, script)


@pytest.mark.pages
def test_a_screen_reader_finds_its_way(site):
    for path in sorted(site.rglob("*.html")):
        if path.is_relative_to(site / "_static") or path.name in ("search.html", "genindex.html"):
            continue
        outline = Outline(path.read_text(encoding="utf-8"))
        assert outline.blind == [], path
        assert outline.levels[:1] == [1], path
        assert all(deeper <= level + 1 for level, deeper in zip(outline.levels, outline.levels[1:], strict=False)), path


@pytest.mark.pages
def test_every_public_name_is_documented(site):
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    for name in costbandits.__all__:
        thing = getattr(costbandits, name)
        assert f'id="costbandits.{name}"' in text or f'href="#cb-{name.replace("_", "-")}"' in text or \
            f'id="{thing.__module__}.{name}"' in text, name


@pytest.mark.pages
def test_terms_lead_to_the_glossary_and_formulas_are_mathml(site):
    text = (site / "notebooks/kube.html").read_text(encoding="utf-8")
    assert '<a class="term reference internal" href="../glossary.html#term-budget" title=' in text
    assert text.count("<math") > 300 and "\\(" not in text and "class=\"math notranslate" not in text
    assert re.search(r'<span class="kept"><math>((?!</math>).)*</math>\.</span> ', text)      # a full stop stays
    for path in (site / "notebooks").glob("*.html"):      # a formula that has swallowed prose
        assert not re.search(r"(<mi>[a-z]</mi>){12}", path.read_text(encoding="utf-8")), path
    assert text.count("figures/kube/figure_1") + text.count("_images/figure_1") == 1      # each figure once


@pytest.mark.pages
def test_pictures_have_their_caption_and_are_loaded_when_a_reader_comes_near(site):
    for name in NAMES:
        text = (site / f"notebooks/{name}.html").read_text(encoding="utf-8")
        figures = re.findall(r'<figure class="captioned">(.*?)</figure>', text, re.DOTALL)
        captions = [re.findall(r"<strong>Figure (\d)", figure.partition("<figcaption>")[2]) for figure in figures]
        assert captions == [[number] for number in re.findall(r"<strong>Figure (\d)", text)], name
        assert all("<img" in figure.partition("<figcaption>")[0] for figure in figures), name
        images = re.findall(r"<img [^>]*_images/[^>]*>", text)
        assert images and all(re.search('loading="lazy" width="[1-9]', image) for image in images if ".svg" in image)


@pytest.mark.parametrize(("body", "fault"), [
    ('<a href="b.html">', None), ('<a href="b.html#here">', None), ('<a href="c.html">', "c.html leads nowhere"),
    ('<a href="b.html#there">', "b.html#there leads nowhere"), ('<a href="#top">', "#top leads nowhere"),
    ('<a href="c">', None), ('<a href="d">', "d leads nowhere"), ('<img src="no.png">', "no.png leads nowhere"),
    ('<a href="https://example.org">', None), ('<a href="../out.html">', "../out.html leads nowhere"),
    ('<script src="https://example.org/x.js">', "loads https://example.org/x.js from a network"),
    ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css from a network")])
def test_a_planted_dead_link_is_found(tmp_path, body, fault):
    (tmp_path / "out.html").touch()
    site = tmp_path / "site"
    for folder in (site, site / "c", site / "d"):
        folder.mkdir()
    (site / "a.html").write_text(body)
    (site / "b.html").write_text('<p id="here">')
    (site / "c/index.html").write_text("")
    assert check.faults(site) == ([] if fault is None else [f"a.html: {fault}"])


def test_a_build_that_fails_says_why(tmp_path, monkeypatch, capsys):
    site, doctrees = ["--build", str(tmp_path)], tmp_path / "site-doctrees"
    monkeypatch.chdir(tmp_path)
    assert command.main(site) == 2 and "No such file" in capsys.readouterr().err
    monkeypatch.setattr(sources, "lay_out", lambda root, build: build)
    monkeypatch.setattr("sphinx.cmd.build.build_main", lambda arguments: doctrees.mkdir() or 1)
    assert command.main(site) == 1 and not doctrees.exists()
    monkeypatch.setattr("sphinx.cmd.build.build_main", lambda arguments: 0)
    monkeypatch.setattr(check, "faults", lambda site: ["a.html: b.html leads nowhere"])
    assert command.main(site) == 1 and capsys.readouterr().err == "costbandits: a.html: b.html leads nowhere\n"


def test_pages_are_made_anew_with_other_code_for_pages(tmp_path, monkeypatch):
    def version():
        return extension.setup(MagicMock())["env_version"]

    before = version()
    shutil.copytree(Path(extension.__file__).parents[1], tmp_path / "copy")
    monkeypatch.setattr(extension.live, "__file__", str(tmp_path / "copy/live.py"))
    assert version() == before
    with open(tmp_path / "copy/site/chapters.py", "a") as file:
        file.write("# more\n")
    assert version() != before


def test_files_of_an_older_build_go(tmp_path):
    for file in ("source/old.md", "site/old.html", "site/new.html"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("old")
    sources._write(tmp_path / "source", {"new.md": b"new"})
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["new.html", "new.md"]


def test_an_unknown_mark_of_a_page_is_refused_by_name(book):
    with pytest.raises(ValueError, match=r"marks of book/ = \['todo'\]: must be of findings"):
        sources._filled("<!-- todo -->", book)


def test_a_column_of_numbers_is_sorted_by_their_values(book):
    lines = re.findall("<tr data.*</tr>", ledger.page(book))
    for line, row in zip(lines, book.rows.itertuples(), strict=True):
        numbers = json.dumps(row.estimate), json.dumps(book.claims[row.id].region[0]), json.dumps(row.replications)
        assert tuple(re.findall(r'<td class="number" data-number="(.*?)">', line)) == numbers, row.id


@pytest.mark.parametrize(("here", "text", "expected"), [
    ("CONTRIBUTING.md", "[a](ARCHITECTURE.md#x)", "[a](ARCHITECTURE.md#x)"),
    ("notebooks/kube.ipynb", "[a](../REPRODUCTION.md#K1a)", "[a](../claims/kube.md#K1a)"),
    ("notebooks/kube.ipynb", "[a](../README.md)", "[a](../index.md)"),
    ("notebooks/kube.ipynb", "[a](suak.ipynb#cell-id=1)", "[a](suak.ipynb#cell-id=1)"),
    ("book/index.md", "[a](../notebooks/kube.ipynb)", "[a](notebooks/kube.ipynb)"),
    ("book/index.md", "[a](glossary.md)", "[a](glossary.md)"),
    ("book/questions/kube.md", "[a](../../notebooks/kube.ipynb#section-3)", "[a](../notebooks/kube.ipynb#section-3)"),
    ("ARCHITECTURE.md", "[a](figures/kube)", "[a](results.md#results-kube)"),
    ("ARCHITECTURE.md", "[a](lib/costbandits)", "a"), ("ARCHITECTURE.md", "[a](lib/costbandits/checks.py)", "a"),
    ("ARCHITECTURE.md", "[a](claims/kube.yaml)", "[a](claims/kube.yaml)"),
    ("ARCHITECTURE.md", "`[a](lib)`", "`[a](lib)`"), ("ARCHITECTURE.md", "[a](https://b.org)", "[a](https://b.org)"),
    ("ARCHITECTURE.md", "```{figure} x\n[a](README.md)\n```", "```{figure} x\n[a](index.md)\n```"),
    ("ARCHITECTURE.md", "```python\nx[a](b)\n```", "```python\nx[a](b)\n```")])
def test_where_a_link_of_the_repository_leads(here, text, expected):
    links = Links(ROOT, ["ARCHITECTURE.md", "glossary.md", "notebooks/kube.ipynb", "notebooks/suak.ipynb"],
                  {"K1a": "claims/kube.md"})
    assert links.rewritten(text, here) == expected


def test_what_is_no_page_leads_to_the_repository_where_there_is_one():
    links = Links(ROOT, [], {}, "https://example.org/me/it")
    assert links.rewritten("[a](lib/costbandits)", "x.md") == "[a](https://example.org/me/it/blob/HEAD/lib/costbandits)"


def test_the_repository_is_that_of_the_workflow(monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "me/it")
    assert sources.repository(ROOT).endswith("/me/it")
    badge = sources._binder("https://github.com/me/it")
    assert "https://mybinder.org/v2/gh/me/it/HEAD?urlpath=lab/tree/notebooks" in badge
    assert sources._binder("") == ""


def test_the_picture_leaves_out_what_follows_and_keeps_the_rest():
    text = "flowchart BT\n    subgraph all\n        a --> b\n        b --> c\n        a --> c\n    end\n    d --> all\n"
    svg = architecture.picture(text)
    assert svg.count('class="arrow"') == 4      # d to the package, the package to its highest room, a to b, b to c
    assert "a imports b, c" in svg and svg.count("<rect") == 5
    assert "```{raw} html\n<svg" in architecture.with_picture(f"# x\n```mermaid\n{text}```\n")


def notebook(path, code, output, **parameters):
    cells = [{"cell_type": "code", "id": "one", "metadata": {}, "source": [code], "outputs": [output]}]
    path.write_text(json.dumps({"cells": cells, "metadata": {"papermill": {"parameters": parameters}}}))
    return path


def test_outputs_of_the_full_run_count_only_for_the_same_code_and_the_real_ads(tmp_path):
    committed, made = notebook(tmp_path / "a.ipynb", "x = 1", {}), tmp_path / "b.ipynb"
    assert pages_of_chapters.executed(committed, made) is None
    assert pages_of_chapters.executed(committed, notebook(made, "x = 1", {"full": 1})) == {"one": [{"full": 1}]}
    assert pages_of_chapters.executed(committed, notebook(made, "x = 2", {"full": 1})) is None
    assert pages_of_chapters.executed(committed, notebook(made, "x = 1", {}, ads_file="a.csv")) == {"one": [{}]}
    assert pages_of_chapters.executed(committed, notebook(made, "x = 1", {}, ads_file="")) is None


def test_printed_code_is_in_colours_and_the_sentences_beside_it_are_not():
    text = ("@index\ndef half(n):\n    \"\"\"Half of n.\"\"\"\n    if n > 0:\n        return n / 2\n    else:\n"
            "        return 0\n\npulls of the good and the bad arm: 9 and 1\nelse:\n    x = (1 if n\n     else 2)\n")
    tokens = list(extension.Printed().get_tokens_unprocessed(text))
    assert "".join(value for *_, value in tokens) == text
    assert all(text[at:at + len(value)] == value for at, _, value in tokens)
    assert [value for _, kind, value in tokens if kind is Generic.Output] == [
        "pulls of the good and the bad arm: 9 and 1\n"]
    assert (text.index("def"), Keyword, "def") in tokens and (text.index("half"), Name.Function, "half") in tokens


@pytest.mark.parametrize(("said", "lexer"), [
    ("def twice(n):\n    return 2 * (n + n)\n", "printed"), ("regret of both: 3 and 4\n", None),
    ("a   b\n    1  2\n", None)])
def test_only_cells_that_print_code_are_marked(tmp_path, said, lexer):
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": "x", "outputs": [{"text": said}]}
    found, = pages_of_chapters._code(tmp_path, "kube", cell)
    assert found["metadata"]["mystnb"].get("text_lexer") == lexer


def test_tables_have_commas_and_dashes():
    table = "<tr><th>10000</th><td>156222</td><td>NaN</td><td>100</td><td>0.12345</td><td>in 2015 NaN</td></tr>"
    assert pages_of_chapters._readable(table) == (
        "<tr><th>10,000</th><td>156,222</td><td>–</td><td>100</td><td>0.12345</td><td>in 2015 NaN</td></tr>")


@pytest.mark.parametrize("name", NAMES)
def test_each_figure_of_a_chapter_stands_once_and_code_is_folded(name, tmp_path):
    cells = json.loads(pages_of_chapters.chapter(ROOT, name, tmp_path, Links(ROOT, [], {})))["cells"]
    prose = "".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    figures = re.findall(r"\]\((?:\.\./)+figures/([^)]*)\.svg\)", prose)
    assert figures and len(figures) == len(set(figures))
    assert all({"hide-input", "hide-cell"} & {*cell["metadata"]["tags"]} for cell in cells
               if cell["cell_type"] == "code")
    assert len({cell["id"] for cell in cells}) == len(cells)
    plumbing = [cell for cell in cells if "plumbing" in cell["metadata"].get("tags", [])]
    assert plumbing and not any(cell["outputs"] for cell in plumbing)


def test_the_ledger_shows_every_row_with_its_claim_and_its_cell(book):
    lines = re.findall("<tr data.*</tr>", ledger.page(book))
    assert len(lines) == len(book.rows)
    for line, row in zip(lines, book.rows.itertuples(), strict=True):
        assert f'data-verdict="{row.verdict}"' in line and f"claims/{paper_of(row.notebook)}.html#{row.id}" in line
        assert f"notebooks/{row.notebook}.html#cell-id=" in line, row.id


@pytest.mark.slow
def test_a_second_check_is_shown_where_there_is_one(book):
    def shown(check):
        claims = {id: dataclasses.replace(claim, second_check=check) for id, claim in book.claims.items()}
        return ledger.contradicted(ledger.Book(ROOT, book.rows, claims))

    assert f"| {ledger.NONE_YET} |" in shown(None)
    two = shown(("counterexample", "tests/x.py::test_a, y.py::test_b"))
    assert "| counterexample: `test_a` in x.py, `test_b` in y.py |" in two
    assert f"| {ledger.NONE_YET}: a sum by hand |" in shown(("none", "a sum by hand"))
    ours = {id: dataclasses.replace(claim, ours=True) for id, claim in book.claims.items()}
    assert ledger.contradicted(ledger.Book(ROOT, book.rows, ours)).count("no claims") == len(book.names)


def test_totals_count_each_claim_once(book):
    line = outcome.totals(book.rows, book.claims, ROOT, str).splitlines()[-1]
    _, claimed, *outcomes = [int(cell) if cell.strip().isdigit() else cell for cell in line.strip("|").split("|")]
    papers = [id for id in book.rows.id.unique() if not book.claims[id].ours]
    assert claimed == len(papers) == sum(outcomes)


def test_each_claim_of_a_paper_is_a_square_that_leads_to_it(book):
    found = re.findall(r'<a class="square s-(\d)" href="claims/(\w+).html#(\w+)"', results.squares(book))
    papers = [id for id in book.rows.id.unique() if not book.claims[id].ours]
    assert sorted(id for *_, id in found) == sorted(papers)
    assert all(book.page_of()[id] == f"claims/{name}.md" for _, name, id in found)
    assert all(outcome.STANDINGS[int(k)] == book.standings[id] for k, _, id in found)
    by_paper = [(name, int(k)) for k, name, _ in found]
    assert by_paper == sorted(by_paper, key=lambda pair: (book.names.index(pair[0]), pair[1]))


def test_a_figure_with_data_moves_on_its_page_and_stands_still_elsewhere(tmp_path):
    folder = tmp_path / "figures/kube"
    folder.mkdir(parents=True)
    for name in ("a", "b", "heat"):
        (folder / f"{name}.svg").write_text('<g id="QuadMesh_1"/>' if name == "heat" else "<svg/>")
    (folder / "b.live.json").write_text('{"picture":"trap","data":{"x":1}}')
    still, moves, heat = (pages_of_chapters._figure(tmp_path, "kube", name, "words", "cell")
                          for name in ("a", "b", "heat"))
    image = "![words](../figures/kube/{}.svg)"
    assert image.format("a") in still and "data-live" not in still
    assert f'<div class="live" data-live="trap">\n\n{image.format("b")}\n\n<script' in moves
    assert f":::{{container}} heat\n{image.format('heat')}\n:::" in heat and "heat" not in still + moves


def test_a_picture_is_cut_between_its_panels_and_nowhere_else(tmp_path):
    def found(draw, *grid, **options):
        with plt.rc_context(figures.STYLE):
            fig, axes = plt.subplots(*grid, figsize=(9, 3), squeeze=False, **options)
            draw(fig, axes.flat)
            for kind in ("png", "svg"):
                fig.savefig(tmp_path / f"a.{kind}")
            plt.close(fig)
        return pages_of_chapters.panels((tmp_path / "a.svg").read_text(), tmp_path / "a.png"), [
            [round(each, 3) for each in ax.get_position().intervalx] for ax in axes.flat]

    ink = np.ones((1, 500), bool)
    ink[:, 250] = ink[:, 260:270] = ink[:, 280:300] = False      # a hair in a word, a gap, and a wider one after words
    assert pages_of_chapters._cut(ink, 0.4, 0.7) == 0.53 and pages_of_chapters._cut(ink, 0.4, 0.51) == 0.501
    assert pages_of_chapters._cut(ink, 0.7, 0.9) is None
    assert found(lambda fig, axes: None, 1, 1)[0] == found(lambda fig, axes: None, 2, 1)[0] == []
    shades, _ = found(lambda fig, axes: fig.colorbar(axes[0].imshow([[0, 1]], aspect="auto"), ax=axes[0]), 1, 1)
    assert shades == []
    (left, right), boxes = found(lambda fig, axes: axes[1].set_ylabel("words"), 2, 2)
    assert left == [0, 1, 0, left[3]] and right == [0, 1, left[3], 1]
    assert boxes[0][1] < left[3] < boxes[1][0] - 0.03      # before the words and numbers of the right one
    assert found(lambda fig, axes: fig.text(0.4, 0.5, "words over both " * 3), 1, 2)[0] == []
    parts, boxes = found(lambda fig, axes: (fig.suptitle("A title of both " * 3), fig.supxlabel("words")), 1, 2,
                         sharey=True)
    (_, top, *title), left, right, (bottom, _, *label) = parts
    assert 0 < top < 0.2 and 0.8 < bottom < 1 and left[:2] == right[:2] == [top, bottom]
    assert title[0] < 0.4 and 0.6 < title[1] and 0.4 < label[0] < label[1] < 0.6      # no wider than the letters
    assert right[2:4] == pytest.approx([0, boxes[0][0]], abs=0.002)      # the numbers of the left one
    assert left[2:] == [0, right[4]] and boxes[0][1] < right[4] < boxes[1][0] and right[5] == 1


@pytest.mark.pages
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize(("name", "picture"), proving([
    ("index", "luck"), ("notebooks/kube", "fillings"), *MOVING], *MOVING))
def test_a_picture_moves_on_its_page_and_is_an_image_without_javascript(visit, name, picture, width):
    page, quiet = visit(f"{name}.html", width), visit(f"{name}.html", width, java_script_enabled=False)
    place = f"[data-live={picture}]"
    page.evaluate("document.documentElement.classList.add('whole')")      # as for a link to a place
    page.locator(place).scroll_into_view_if_needed()
    page.wait_for_selector(f"{place}.on svg")
    assert page.locator(f"{place} output").inner_text().endswith(".")
    assert not page.locator(f"{place} img").first.is_visible()
    assert quiet.locator(f"{place} img").is_visible() and quiet.locator("svg[role=img]").count() == 0


def test_which_policy_for_which_problem_is_the_tournament_s_table(tmp_path):
    assert outcome.choices(tmp_path) == ""
    path = tmp_path / outcome.CHOICE
    path.parent.mkdir(parents=True)
    path.write_text("question,random costs,known costs\ntake,a|b,c\nin code,cb.A(b_c=1),cb.D()\n")
    terms, _, table = outcome.choices(tmp_path).rpartition("\n\n")
    assert table.splitlines() == ["|  | random costs | known costs |", "|---|---|---|", r"| **take** | a\|b | c |",
                                  "| **in code** | `cb.A(b_c=1)` | `cb.D()` |"]
    stops = ["cb.Budget", "cb.HardBudget", "cb.AnytimeBudget", "cb.Horizon"]
    assert re.findall(r"`(.*?)`", terms) == stops


def test_ten_findings_of_all_papers(book):
    lines = outcome.findings(ROOT, list(book.rows.notebook.unique())).splitlines()
    where = r"\[[^,]+, section ([\d.]+)\]\(notebooks/[\w/]+\.ipynb#section-\1\)"
    assert len(lines) == 10 and all(re.search(rf"^1\. \*\*.+\*\*.* {where}$", line) for line in lines)
    assert {paper_of(re.search(r"notebooks/([\w/]+)", line)[1]) for line in lines} == set(book.names)


def with_findings(root, *told):
    """A tree of one chapter that tells these findings."""
    (root / "figures/kube").mkdir(parents=True)
    (root / "notebooks").mkdir()
    (root / "notebooks/chapters.txt").write_text("kube\n")
    (root / "notebooks/kube.ipynb").write_text(json.dumps({"cells": [{"source": ["# KUBE: a title"]}]}))
    (root / "figures/kube/story.json").write_text(json.dumps({"figures": {}, "findings": told}))
    return root


def test_findings_alternate_between_the_halves_of_a_chapter(tmp_path):
    told = [f"**Finding {number}.** (section 4.{number})" for number in (1, 2, 3, 4, 5)]
    lines = outcome.findings(with_findings(tmp_path, *told), ["kube"], number=4).splitlines()
    assert [re.search(r"Finding (\d)", line)[1] for line in lines] == ["1", "4", "2", "5"]
    assert lines[1] == "1. **Finding 4.** [KUBE, section 4.4](notebooks/kube.ipynb#section-4.4)"


def test_a_finding_leads_to_its_section_and_its_powers_are_raised(tmp_path):
    told = "It is B^0.82 in 10^10 rounds, and 4% in Lemma 2 (section 3) of A^b.\n(section 3.9)", "No section."
    *_, first, second = results.gallery(with_findings(tmp_path, *told)).splitlines()
    assert first == ("- It is B<sup>0.82</sup> in 10<sup>10</sup> rounds, and 4 % in Lemma 2 (section 3) of A^b. "
                     "([section 3.9](notebooks/kube.ipynb#section-3.9))")
    assert second == "- No section."


def test_regions_and_values_as_they_are_read():
    inf = float("inf")
    regions = {(0.0, 1.25): "[0, 1.25]", (1.25, inf): "[1.25, ∞)", (-inf, 0.0): "(-∞, 0]"}
    assert {ends: outcome.region(*ends) for ends in regions} == regions
    read = {(2.0, 2.0, 2.0): "2", (0.0, 0.0, 0.1): "0 [0, 0.1]", (0.1, 0.0, 0.1): "0.1 [0, 0.1]", (math.nan,) * 3: ""}
    for numbers, text in read.items():
        row = types.SimpleNamespace(**dict(zip(("estimate", "low", "high"), numbers, strict=True)))
        assert outcome.value(row) == text


def test_a_row_leads_to_the_figure_that_its_place_names(book):
    rows = {row.place: book.figure(row) for row in book.rows.itertuples() if row.notebook == "audit/omega_ucb"}
    assert rows["section 6.1, Fig. 3a"] == "figure_3" and rows["section 4.2, Theorem 4"] is None


@pytest.fixture(scope="module")
def browser():
    """A Chromium of the system, driven by Playwright; apt-get install chromium, for one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is installed")
    with playwright.sync_playwright() as driver, \
            driver.chromium.launch(executable_path=path, args=["--no-sandbox"]) as found:
        yield found


@pytest.fixture
def visit(browser, site):
    """A function that opens a page of the site; what the browser complains of or asks a network for is a failure."""
    complaints, contexts = [], []

    def opened(name, width=1400, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
        page.on("console", lambda message: message.text.startswith("[PST]: ")      # of the theme, about itself
                or complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((site / name.partition("#")[0]).as_uri() + name[len(name.partition("#")[0]):])
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.pages
def test_every_page_fits_on_a_phone_and_says_nothing(visit, site):
    page = visit("index.html", width=390)
    for path in sorted(site.rglob("*.html")):
        if not path.is_relative_to(site / "_static"):
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.pages
@pytest.mark.parametrize(("side", "width"), [("primary", 390), ("secondary", 390), ("secondary", 1100)])
def test_the_menus_open_where_there_is_no_room_for_them(visit, side, width):
    page = visit("notebooks/kube.html", width=width)
    page.click(f".{side}-toggle:visible")
    assert page.locator("dialog[open] a:visible").count() > 5


@pytest.mark.pages
def test_on_a_phone_a_formula_begins_at_its_beginning(visit):
    page = visit("notebooks/kube.html", width=390)
    cut = """each => each.map(box => box.querySelector("math").getBoundingClientRect().left
                                     - box.getBoundingClientRect().left).filter(left => left < -1)"""
    assert page.locator("div.math:has(math):visible").count() > 5
    assert page.locator("div.math:has(math):visible").evaluate_all(cut) == []


@pytest.mark.pages
@pytest.mark.parametrize("scripts", [True, False])
def test_solutions_are_folded_on_the_screen_and_open_in_print(visit, scripts):
    page, shown = visit("notebooks/suak.html", java_script_enabled=scripts), """all => all.map(
        each => [...each.children].slice(1).every(part => part.checkVisibility({contentVisibilityAuto: true})))"""
    solutions = page.locator("details:has(> summary:text-is('Solution'))")
    assert solutions.count() >= 8 and not any(solutions.evaluate_all(shown))
    page.emulate_media(media="print")
    assert all(solutions.evaluate_all(shown))


@pytest.mark.pages
def test_the_cell_that_judged_a_row_is_open_where_the_row_leads(visit):
    page = visit("ledger.html")
    where = page.locator("table.ledger a[href*='kube.html#cell']").first.get_attribute("href")
    page = visit(where)
    assert page.locator(f"[id='{where.partition('#')[2]}'] details").first.get_attribute("open") is not None


@pytest.mark.pages
@pytest.mark.parametrize("name", READ)
def test_no_text_of_a_chapter_is_left_in_the_form_it_is_written_in(visit, name):
    page = visit(f"notebooks/{name}.html")
    text = page.evaluate("""() => { const all = document.querySelector("article").cloneNode(true);
        all.querySelectorAll("pre, code, math, script, .cell_output").forEach(each => each.remove());
        return all.textContent; }""")
    assert re.findall(r"\$[^$]{1,60}\$|\]\([^)]{1,60}\)", text) == []


@pytest.mark.pages
@pytest.mark.parametrize("name", READ)
def test_what_a_cell_says_is_not_cut_on_a_laptop(visit, name):
    """Sentences, tables and formulas; printed code may scroll."""
    page = visit(f"notebooks/{name}.html", width=1280)
    cut = page.evaluate("""() => [...document.querySelectorAll(".cell_output .output, .cell_output pre, div.math")]
        .filter(each => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1
                        && !each.closest(".highlight-printed"))
        .map(each => each.textContent.trim().slice(0, 80))""")
    assert cut == []


@pytest.mark.pages
@pytest.mark.parametrize("width", [390, 1400])
def test_a_short_name_in_a_table_stays_in_one_piece(visit, width):
    names = visit("library.html", width=width).locator("td code")
    assert set(names.evaluate_all("each => each.map(name => name.getClientRects().length)")) == {1}


@pytest.mark.pages
def test_words_of_a_table_begin_at_the_left_and_numbers_end_at_the_right(visit):
    cells = visit("notebooks/audit/kube.html").locator(".cell_output table td")
    told = cells.evaluate_all("each => each.map(cell => [cell.textContent, getComputedStyle(cell).textAlign])")
    assert {side for text, side in told if re.fullmatch(r"[\d.,]+", text)} == {"right"}
    assert {side for text, side in told if text == "reproduced"} == {"left"}


@pytest.mark.pages
def test_the_ledger_filters_and_sorts_and_keeps_it_in_the_address(visit, book):
    page = visit("ledger.html")

    def shown(page):
        return page.locator("table.ledger tbody tr:visible")
    assert shown(page).count() == len(book.rows)
    page.select_option("select[name=verdict]", "contradicted")
    assert shown(page).count() == (book.rows.verdict == "contradicted").sum()
    page.fill("input[name=words]", "theorem")
    page.click("th button:text-is('runs')")
    again = visit("ledger.html#" + page.url.partition("#")[2])
    assert 0 < shown(again).count() == shown(page).count() < (book.rows.verdict == "contradicted").sum()
    runs = [int(text.replace(",", "")) for text in shown(again).locator("td:nth-child(9)").all_text_contents()]
    assert runs == sorted(runs) and len(set(runs)) > 1
    again.evaluate("location.hash = 'main-content'")        # a link to a place of the page leaves the view as it is
    again.wait_for_timeout(200)
    assert shown(again).count() == len(runs) and again.url.endswith("#main-content")
    named = []
    for symbol in ("rho", "ρ"):
        page.fill("input[name=words]", symbol)
        named.append(shown(page).all_text_contents())
    assert named[0] == named[1] and named[0]


@pytest.mark.pages
def test_on_a_phone_panels_stand_below_each_other(visit):
    """A panel without numbers of its own stands beside those of the first one."""
    image = "[data-panels] img[src*=rectangle]"
    page, wide = visit("notebooks/budget_ucb.html", width=390), visit("notebooks/budget_ucb.html")
    boxes = page.locator(image).evaluate_all("each => each.map(box => box.getBoundingClientRect().toJSON())")
    assert len(boxes) == 3 and wide.locator(image).count() == 1
    assert boxes[1]["top"] == boxes[2]["top"] >= boxes[0]["bottom"] and all(box["right"] <= 390 for box in boxes)
    assert boxes[1]["right"] == pytest.approx(boxes[2]["left"], abs=1) and boxes[1]["width"] < 50 < boxes[2]["width"]


@pytest.mark.pages
@pytest.mark.parametrize("name", READ)
def test_on_a_phone_only_a_panel_that_is_too_wide_to_be_read_scrolls(visit, name):
    """A point is at least two thirds of a pixel there: letters of 9 points have 6."""
    images = visit(f"notebooks/{name}.html", width=390).locator(".bd-article p > a img[width]:visible")
    told = images.evaluate_all("""each => each.map(image => [image.src, image.closest(".panel") !== null,
        image.getAttribute("width") * .75, image.getBoundingClientRect().width, image.closest("p").scrollWidth])""")
    for source, panel, points, width, room in told:
        assert room <= 390 if panel or points <= 540 else 390 < room < 700, source
        assert panel or width > 0.65 * points, source


@pytest.mark.pages
def test_code_that_shows_nothing_opens_with_what_it_leads_to(visit):
    page = visit("notebooks/audit/kube.html")
    merged = page.locator(".cell.merged:has(+ .cell:not(.merged))").first
    assert not merged.is_visible()
    page.locator(".cell.merged + .cell:not(.merged) summary").first.click()
    assert merged.locator("pre").is_visible()


@pytest.mark.pages
@pytest.mark.parametrize("name", READ)
def test_search_finds_a_word_of_each_chapter(visit, name):
    first = json.loads((ROOT / f"notebooks/{name}.ipynb").read_text())["cells"][0]["source"]
    word = max(re.findall(r"[A-Za-z]+", first[0]), key=len)
    page = visit("search.html")
    page.goto(f"{page.url}?q={word}")
    page.wait_for_selector(f'#search-results a[href*="notebooks/{name}.html"]')


@pytest.mark.pages
def test_code_is_folded_and_the_switch_is_remembered(visit):
    page = visit("notebooks/audit/suak.html")
    open_ones = "document.querySelectorAll('details.above-input[open]').length"
    assert page.evaluate(open_ones) == 0
    page.click(".code-switch")
    every = page.evaluate("document.querySelectorAll('details.above-input').length")
    assert page.evaluate(open_ones) == every > 50
    page.reload()
    assert page.evaluate(open_ones) == every


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.pages
def test_what_is_folded_is_a_solution_an_answer_or_code(site, name):
    """Before a page is printed, all that is folded is opened but for code; `site.js` tells them apart as here."""
    page = (site / f"notebooks/{name}.html").read_text(encoding="utf-8")
    found = r'<div class="cell ([^"]*)"[^>]*>\s*<details[^>]*>\s*<summary[^>]*>(?:\s*<[^>]*>)*\s*([^<]+)<'
    cells = re.findall(found, page)
    assert len(cells) > 20 and all((words.strip() == "solution") == ("tag_solution" in tags.split())
                                   for tags, words in cells)
    told = "details:not([open], .cell:not(.tag_solution) > *)"
    assert told in (site / "_static/site.js").read_text(encoding="utf-8")
    assert told.replace("[open], ", "") + "::details-content" in (site / "_static/site.css").read_text(encoding="utf-8")


@pytest.mark.pages
@pytest.mark.parametrize("name", ["notebooks/suak.html", "questions/exact.html", "questions/kube.html"])
def test_answers_are_printed_and_folded_again(visit, name):
    page = visit(name)
    folded = "[...document.querySelectorAll('details:not(.cell:not(.tag_solution) > *)')].map(each => each.open)"
    before = page.evaluate(folded)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(before) >= 4 and not any(before) and all(page.evaluate(folded))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(folded) == before


@pytest.mark.pages
def test_paper_has_no_word_for_code_that_stays_folded(visit):
    page = visit("notebooks/suak.html")
    page.emulate_media(media="print")
    words = page.locator("article details > summary:visible").all_text_contents()
    assert len(words) > 4 and not [each for each in words if each.split()[:1] in (["code"], ["parameters"])]


@pytest.mark.pages
@pytest.mark.parametrize("width", [390, 1400])
def test_sections_out_of_sight_cost_no_time_and_a_link_reaches_its_place(visit, width):
    page, hash = visit("notebooks/kube.html", width), "#the-bonus-should-have-the-size-of-the-noise"
    seen = "() => [...document.querySelectorAll('section section math')].map(each => " \
           "each.checkVisibility({contentVisibilityAuto: true})).filter(Boolean).length"
    few = page.evaluate(seen)
    page.evaluate(f"location.hash = '{hash}'")
    for linked in (page, visit(f"notebooks/kube.html{hash}", width)):
        linked.wait_for_timeout(500)
        assert 0 <= linked.locator(f"{hash} > h2").evaluate("each => each.getBoundingClientRect().top") < 200
    assert few < page.evaluate(seen) / 3


@pytest.mark.pages
@pytest.mark.parametrize("width", [390, 1400])
def test_what_scrolls_is_reached_by_keyboard_when_it_is_near_and_is_not_measured_before(visit, width):
    page = visit("notebooks/kube.html", width)
    found = page.locator("pre, .cell_output > .output, .jp-RenderedHTMLCommon")
    assert page.evaluate("() => document.querySelectorAll('[tabindex]').length") < found.count() / 2
    page.locator(".code-switch").click()      # folded code is met when it opens
    stops = []
    for each in found.all():
        each.scroll_into_view_if_needed()
        each.evaluate("each => new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))")
        scrolls = "each => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight"
        stops.append(each.evaluate("each => each.tabIndex") == 0)
        assert stops[-1] == each.evaluate(scrolls)
    assert any(stops) and not all(stops)


@pytest.mark.pages
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_formulas_have_the_right_height_and_colour(visit, scheme):
    page = visit("notebooks/kube.html", color_scheme=scheme)
    measure = "each => [each.getBoundingClientRect().height, getComputedStyle(each).fontFamily]"
    small, font = page.locator("p math").first.evaluate(measure)
    large, _ = page.locator("div.math math:has(mfrac)").first.evaluate(measure)
    assert "Compendium Math" in font and page.evaluate("document.fonts.check('16px \"Compendium Math\"')")
    assert 10 < small < 30 and 35 < large < 120
    gap = """each => each.map(root => root.parentElement.lastElementChild === root ? 0 : root.nextElementSibling
        .getBoundingClientRect().left - root.lastElementChild.getBoundingClientRect().right)"""
    page.evaluate("location.hash = 'what-learning-costs-a-logarithm'")      # roots out of sight wait
    page.wait_for_selector("msqrt[style]", state="attached")
    assert max(page.locator("msqrt:visible").evaluate_all(gap)) < 6      # an operator may keep its distance
    text, back = (page.evaluate(f"getComputedStyle(document.querySelector('{what}')).{key}")
                  for what, key in (("p math", "color"), ("body", "backgroundColor")))
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 765 for colour in (text, back)]
    assert abs(light[0] - light[1]) > 0.5


def test_a_row_leads_to_the_figure_of_its_place(book):
    row = book.rows[book.rows.notebook == "audit/budget_ucb"].iloc[0]
    places = {"Fig. 1(a)": "figure_1a", "Figure 1b, left": "figure_1b", "Figure 12": None, "section 5": None}
    assert {place: book.figure(row.replace(row.place, place)) for place in places} == places
    assert (book.rows.apply(book.figure, axis=1).notna()).sum() > 200


def test_what_a_row_tells_stays_on_one_line(book):
    row = next(book.rows.assign(case="one\n```\ntwo", note="a\nb").itertuples())
    assert "\n" not in ledger._line(book, row)
