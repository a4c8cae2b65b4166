"""What each paper says has a place: book/coverage/<paper>.md names every item, and its links lead somewhere."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from compendium import project, sections

ROOT = Path(__file__).resolve().parents[2]
# Held to it once a paper's results are published, as a chapter is to the rest.
PAPERS = [name for name in project.chapters(ROOT) if (ROOT / f"claims/{name}.yaml").exists()
          and any((ROOT / "figures" / each / "manifest.json").exists() for each in (name, project.AUDIT + name))]
HEAD = "| place in the paper | what it is | here |", "| place | what it is | here |"
TELLING = [name for name in project.chapters(ROOT) if (ROOT / f"figures/{name}/story.json").exists()
           and "gallery.finding(" in (ROOT / f"notebooks/{name}.ipynb").read_text(encoding="utf-8")]
LINK = re.compile(r"\[([^\[\]]+)\]\((?:\.\./)+([^()\s#]+)(?:#([^()\s]+))?\)")


def page_of(name, root=ROOT):
    return (root / f"book/coverage/{name}.md").read_text(encoding="utf-8")


def dead(text, claims, root=ROOT):
    """The links of a page that lead nowhere, or elsewhere than their words say."""
    for label, path, place in LINK.findall(text):
        file = root / (path if (root / path).exists() else f"book/{path}")
        good = file.is_file()
        if good and place and file.suffix == ".ipynb":
            cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
            number = place.removeprefix("section-")
            good = label.endswith(f"section {number}") and number in sections.numbers(
                ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"])
        elif good and path == "REPRODUCTION.md":
            good = label == place and place in claims
        elif good and path.startswith("tests/"):
            name = label.replace("\\_", "_")
            good = re.search(rf"^def {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE) is not None
        if not good:
            yield f"[{label}]({path}#{place})"


def unnamed(text, claims, figures):
    """Claims and published figures (their paths below the project's folder) to which no link of a page leads."""
    there = {place or path for _, path, place in LINK.findall(text)}
    yield from (each for each in (*claims, *figures) if each not in there)


def homeless(text):
    """Rows without a place: not three cells, or neither a link nor a word on why it is not there."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("|") and line not in HEAD and set(line) - set("|-") and (
                len(cells) != 3 or not all(cells) or not re.search(r"\]\(|^Not ", cells[2])):
            yield line


def published(name, root=ROOT):
    return sorted(path.relative_to(root).as_posix() for each in (name, project.AUDIT + name)
                  for path in (root / "figures" / each).glob("*.svg"))


@pytest.mark.parametrize("name", PAPERS)
def test_every_item_of_a_paper_has_a_place(name):
    text, claims = page_of(name), {id: claim for each in (name, project.AUDIT + name)
                                   for id, claim in project.claims(ROOT, each).items()}
    assert len(text.splitlines()) > 50 and published(name) and claims
    assert list(homeless(text)) == []
    assert list(dead(text, project.claims(ROOT))) == []
    assert list(unnamed(text, claims, published(name))) == []


def test_what_has_no_place_is_noticed(tmp_path):
    (tmp_path / "notebooks").mkdir()
    cells = [{"cell_type": "markdown", "source": ["## 3. Theory\n", "### 3.1 A step"]}]
    (tmp_path / "notebooks/a.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "REPRODUCTION.md").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/t.py").write_text("def test_one():\n    pass\n")
    good = ["[section 3.1](../../notebooks/a.ipynb#section-3.1)", "[A1](../../REPRODUCTION.md#A1)",
            r"[test\_one](../../tests/t.py)"]
    bad = ["[section 3.2](../../notebooks/a.ipynb#section-3.2)", "[section 3](../../notebooks/a.ipynb#section-3.1)",
           "[A2](../../REPRODUCTION.md#A2)", "[A1](../../REPRODUCTION.md#A2)", r"[test\_two](../../tests/t.py)",
           "[figure f](../../figures/f.svg)"]
    assert list(dead("\n".join(good), {"A1": 0}, tmp_path)) == []
    assert all(list(dead(link, {"A1": 0}, tmp_path)) for link in bad)
    assert list(unnamed("\n".join(good), ["A1", "A2"], ["figures/f.svg"])) == ["A2", "figures/f.svg"]
    rows = ["| Eq. (1) | a sum | [A1](x) |", "| Eq. (2) | a sum | Not here: no run. |", "| Eq. (3) | a sum | shown |",
            "| Eq. (4) | a sum | |"]
    assert list(homeless("\n".join((*HEAD, "|---|---|---|", *rows)))) == rows[2:]


PLACE = re.compile(rf"^#+ [\d.]+|\b[Ss]ections? {sections.MANY}", re.MULTILINE)
TITLE = re.compile(r"(?:Theorem|Lemma|Figure|Table) \d(?:[\d.]*\d)?(?:\(\w\))?|\b[A-Z]\.\d+")
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
UNITS = {"%": 0.01, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def told(name):
    """A notebook's findings, and what else its sections say, in text and outputs: number -> titles, numbers, values."""
    findings = json.loads((ROOT / f"figures/{name}/story.json").read_text(encoding="utf-8"))["findings"]
    shown, at = {}, ""
    for cell in json.loads((ROOT / f"notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        outputs = [{**out.get("data", {}), "": out.get("text", "")} for out in cell.get("outputs", [])]
        parts = ["".join(each.get(kind, "")) for each in outputs for kind in ("text/plain", "text/markdown", "")]
        if cell["cell_type"] == "markdown":
            parts = re.split(r"^(?=#{2,5} \d)", "".join(cell["source"]), flags=re.MULTILINE)
        for part in parts:
            at = next(iter(sections.numbers([part])), at) if cell["cell_type"] == "markdown" else at
            shown[at] = shown.get(at, "") + "\n" + ("" if part in findings else part)
    return findings, {at: said(text) for at, text in shown.items() if at}


def said(text):
    """Titles of theorems and the like, numbers as they are written, and what these are worth."""
    text = PLACE.sub("", text).replace("{,}", ",")
    numbers = set(NUMBER.findall(text))
    return set(TITLE.findall(text)), numbers, {float(number.replace(",", "")) for number in numbers}


def missing(finding, shown):
    """Titles and numbers of a finding that are not shown where they should be.

    A part of a sentence leads to the section that it names, and to the finding's last if it names none. A number of two
    digits or more may be shown there with more digits, or in other units.
    """
    *_, end = sections.named(finding)
    for part in re.split(r"(?<=[.;:]) ", finding.replace("**", "")):
        units = [1.0, *(size for unit, size in UNITS.items() if unit in part)]
        titles, numbers, _ = said(part)
        there = zip(*(shown[at] for at in sections.named(part) or [end]), strict=True)
        its_titles, its_numbers, values = (set().union(*each) for each in there)
        yield from titles - its_titles
        for number in numbers - its_numbers:
            size, off = float(number.replace(",", "")), 0.5 * 10.0 ** -len(number.partition(".")[2])
            if len(number) == 1 or all(abs(value / unit - size) > off for value in values for unit in units):
                yield number


def led_elsewhere(finding, places):
    """The finding with one of its links changed, in every way."""
    for link in re.finditer(r"(?<=section )\d+(?:\.\d+)*", finding):
        yield from (finding[:link.start()] + at + finding[link.end():] for at in places - {*sections.named(finding)})


def counted(name):
    """The rows of a table that its section shows, as a finding counts them: of statements, variants, and those that
    hold in some families but not in all."""
    if name != "tournament":
        return set()
    arrows = pd.read_csv(ROOT / "figures/tournament/arrows.csv")
    arrows = arrows[(arrows.winner != "UCB-BV1") | ~arrows.loser.str.startswith("KUBE")]
    statements = arrows[["winner", "loser"]].replace(r" \(.*\)| \d+%", "", regex=True).drop_duplicates()
    return {str(len(statements)), str(len(arrows)), str(arrows["mean for"].between(1, arrows.families - 1).sum())}


@pytest.mark.parametrize("name", TELLING)
def test_a_finding_leads_to_the_sections_that_show_its_numbers(name):
    findings, shown = told(name)
    assert {finding: lost for finding in findings
            if (lost := set(missing(finding, shown)) - counted(name))} == {}
    # Not so if a link led elsewhere. But single digits are shown in many a section.
    wrong = [other for finding in findings for other in led_elsewhere(finding, shown.keys())]
    assert sum(any(missing(other, shown)) for other in wrong) > 0.8 * len(wrong) > 10


def test_a_number_that_a_section_does_not_show_is_noticed():
    shown = {"4.1": said("### 4.1 Runs\n2,000 runs: 1.53 (Lemma 3), 0.162, 6.6e+10"), "4.2": said("1.4: section 4.3")}
    for lost, finding in {"": "**1.5 of 2,000 by Lemma 3.** 1.4 (section 4.2); 16 % of 66 billion. (section 4.1)",
                          "1.6": "1.6. (section 4.1)", "1.5": "1.4 and 1.5. (section 4.2)",
                          "66": "66 million. (section 4.1)", "2": "2 of 2,000. (section 4.1)",
                          "4.1": "4.1. (section 4.1)", "4.3": "4.3. (section 4.2)",
                          "Lemma 1.4": "Lemma 1.4. (section 4.2)",
                          "2,000": "2,000 (section 4.2). (section 4.1)"}.items():
        assert "".join(missing(finding, shown)) == lost
