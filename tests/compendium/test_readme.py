"""What the README and REPRODUCTION.md lead to and show is there, and nothing of results is typed by hand."""

import json
import re
from pathlib import Path

import pytest
import yaml

from compendium import project, report, sections

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {name: (ROOT / name).read_text() for name in ("README.md", "REPRODUCTION.md")}
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def dead_links(text, own, texts):
    """Links of a page to files that are not there, and to places that a page or a notebook does not have."""
    for target, place in LINK.findall(text):
        if "://" in target:
            continue
        if target and not (ROOT / target).exists():
            yield target
        elif place.startswith("cell-id="):
            cell = place.removeprefix("cell-id=")
            if f'"id": "{cell}"' not in texts.setdefault(target, (ROOT / target).read_text()):
                yield f"{target}#{place}"
        elif place.startswith("section-"):
            cells = json.loads(texts.setdefault(target, (ROOT / target).read_text()))["cells"]
            if place.removeprefix("section-") not in sections.numbers("".join(cell["source"]) for cell in cells):
                yield f"{target}#{place}"
        elif place and f'<a id="{place}"></a>' not in texts[target or own]:
            yield f"{target}#{place}"


def typed(text):
    """What is outside of the marks between which results are generated."""
    before, _, rest = text.partition(report.BEGIN)
    return before + rest.partition(report.END)[2]


@pytest.mark.parametrize("name", TEXTS)
def test_links_and_pictures_lead_somewhere(name):
    assert len(LINK.findall(TEXTS[name])) > 10
    assert list(dead_links(TEXTS[name], name, dict(TEXTS))) == []


@pytest.mark.parametrize("link", ["](nowhere.md)", "](#nowhere)", "](REPRODUCTION.md#nowhere)",
                                  "](notebooks/kube.ipynb#cell-id=nowhere)", "](notebooks/kube.ipynb#section-9.9)",
                                  "](figures/kube/nowhere.png)"])
def test_a_dead_link_is_noticed(link):
    assert len(list(dead_links(f"[x{link}", "README.md", dict(TEXTS)))) == 1


# The changelog also names what is gone.
@pytest.mark.parametrize("page", [page for folder in ("", "book", "data", "notebooks", ".github")
                                  for page in sorted((ROOT / folder).glob("**/*.md" if folder else "*.md"))
                                  if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page):
    named = re.findall(r"`((?:lib|tests|figures|params|claims|notebooks|book|benchmarks|data|\.github)/[\w./-]+)`",
                       page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_a_front_door_is_short():
    """A page with a line for each claim is as long as the papers have claims; its prose is short."""
    prose = [line for line in TEXTS["REPRODUCTION.md"].splitlines() if not line.startswith("|")]
    assert len(TEXTS["README.md"].splitlines()) <= 150 and len(prose) <= 80


def test_no_results_are_typed_by_hand():
    hand = typed(TEXTS["README.md"])
    assert len(hand) > 1000 and len(hand) < len(TEXTS["README.md"])
    assert "figures/" not in "".join(f"{target}\n" for target, _ in LINK.findall(hand))
    assert re.findall(r"\b[OBKSC]\d+[a-f]?\b|contradicted|undecided|!\[", hand) == []


def test_the_table_of_chapters_is_that_of_the_book_and_each_of_its_papers_is_cited():
    rows = re.findall(r"^\| \[([\w/]+)\]\(notebooks/([\w/]+)\.ipynb\) \| (.*) \|$", typed(TEXTS["README.md"]), re.M)
    assert [name for name, _, _ in rows] == [name for _, name, _ in rows] == [
        name for name in project.chapters(ROOT) if not name.startswith(project.AUDIT)]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    cited = {source["title"] for source in citation["references"]}
    papers = {name: re.findall(r"\*(.+?)\*", row) for name, _, row in rows}
    judged = {path.stem for path in (ROOT / "claims").rglob("*.yaml")}
    assert {name for name in papers if papers[name]} == judged
    assert {title for titles in papers.values() for title in titles} == cited and len(cited) >= 5


def commands(text):
    """The targets of make that a page names, in a span or a block of code."""
    code = re.findall(r"^```\w*\n(.*?)^```|`([^`\n]+)`", text, re.M | re.S)
    return {name for parts in code for part in parts for name in re.findall(r"\bmake ([a-z][\w-]*)(?![\w/.-])", part)}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "notebooks/README.md",
                                  *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("book/*.md"))])
def test_commands_are_those_of_the_makefile(page):
    makefile = (ROOT / "Makefile").read_text()
    assert commands((ROOT / page).read_text()) <= set(re.search(r"^\.PHONY:(.*)$", makefile, re.M)[1].split())


def test_commands_of_a_page_are_found():
    assert commands("`make everything`, `PY=x make test-all`\n```sh\nmake chek  # all\n```\nmake up") == {
        "everything", "test-all", "chek"}
    assert {"all", "test", "lab"} <= commands(TEXTS["README.md"])


@pytest.mark.slow
def test_the_examples_run(capsys):
    examples = re.findall(r"^```python\n(import costbandits as cb\n.*?)^```", TEXTS["README.md"], re.M | re.S)
    wanted = [r"(red|blue), 4,999\.25 dollars left\n",
              r"mean of mine over ω-UCB: \d\.\d+ \[\d\.\d+, \d\.\d+\], larger; mine wins .*\n[\d,]{17,} rounds\n"]
    for example, answer in zip(examples, wanted, strict=True):
        exec(example, {})
        assert re.fullmatch(answer, capsys.readouterr().out)


def test_each_reader_finds_what_to_type_before_any_result():
    """Five lines each at most, with the page that is for him; the scope has a page of its own."""
    before = TEXTS["README.md"].partition(report.BEGIN)[0]
    typed_first = re.findall(r"^```\w+\n(.*?)^```", before, re.M | re.S)
    assert len(typed_first) == 3 and all(1 < block.count("\n") <= 5 for block in typed_first)
    assert before.index("```") < before.index("| chapter |") < before.index("## What came out")
    assert all(f"]({page})" in before for page in ("notebooks/own.ipynb", "notebooks/README.md", "REPRODUCTION.md"))
    assert "](book/scope.md)" in typed(TEXTS["README.md"])
