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
