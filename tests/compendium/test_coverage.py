"""What each paper says has a place: book/coverage/<paper>.md names every item, and its links lead somewhere."""

import json
import re
from pathlib import Path

import pytest

from compendium import project, sections

ROOT = Path(__file__).resolve().parents[2]
# Held to it once a paper's results are published, as a chapter is to the rest.
PAPERS = [name for name in project.chapters(ROOT) if (ROOT / f"claims/{name}.yaml").exists()
          and any((ROOT / "figures" / each / "manifest.json").exists() for each in (name, project.AUDIT + name))]
HEAD = "| place in the paper | what it is | here |", "| place | what it is | here |"
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


def told(cells):
    """What a notebook's sections show, by their numbers, and its findings."""
    shown, findings, at = {}, [], ""
    for cell in cells:
        texts = [{**out.get("data", {}), "": out.get("text", "")} for out in cell.get("outputs", [])]
        parts = [each[kind] for each in texts for kind in ("text/plain", "text/markdown", "") if kind in each]
        if "gallery.finding(" in "".join(cell["source"]):
            findings += map("".join, filter(None, parts))
        elif cell["cell_type"] == "markdown":
            parts = re.split(r"^(?=#{2,5} \d)", "".join(cell["source"]), flags=re.MULTILINE)
        for part in map("".join, parts):
            at = next(iter(sections.numbers([part])), at) if cell["cell_type"] == "markdown" else at
            shown[at] = shown.get(at, "") + part
    return shown, [finding for finding in findings if "(section " in finding]


def missing(finding, shown):
    """Numbers of a finding, but those of one digit, that no section shows to which it leads."""
    there = "\n".join(shown.get(number, "") for number in sections.named(finding))
    numbers = re.findall(r"\d[\d,]*\.\d+|\d[\d,]*\d", re.sub(r"\(section [\d.]+\)", "", finding))
    return [each for each in numbers if not re.search(rf"(?<![\d.,]){re.escape(each)}(?!\d|[.,]\d)", there)]


@pytest.mark.parametrize("name", ["audit/kube"])      # whose findings are held to it so far
def test_a_finding_leads_to_the_sections_that_show_its_numbers(name):
    shown, findings = told(json.loads((ROOT / f"notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"])
    assert len(findings) > 3
    assert {finding: lost for finding in findings if (lost := missing(finding, shown))} == {}


def test_a_number_that_a_section_does_not_show_is_noticed():
    assert missing("It is 1.5 of 2,000 (section 4.1).", {"4.1": "2,000 runs: 1.53", "4.2": "1.5"}) == ["1.5"]
