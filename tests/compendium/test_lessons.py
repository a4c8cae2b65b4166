"""What a lesson is held to: short, one thread, no ledger in the text, each exercise solved; and what its audit has."""

import ast
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest

import costbandits as cb
from compendium import project
from costbandits.engine.stacks import Stacks

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = {name: project.claims_file(ROOT, name) for name in project.chapters(ROOT)}
LESSONS = [name for name, file in CLAIMS.items()
           if file is None and CLAIMS.get(project.AUDIT + name) == f"claims/{name}.yaml"]
PER_LESSON = pytest.mark.parametrize("name", LESSONS)
# The lessons on a policy of ours and on exact runs judge no paper.
EACH_LESSON = pytest.mark.parametrize("name", [*LESSONS, "imed", "exact"])


def cells_of(name, kind):
    cells = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4).cells
    return [cell for cell in cells if cell.cell_type == kind]


def text_of(name):
    return "\n\n".join(cell.source for cell in cells_of(name, "markdown"))


def sections_of(name):
    return re.split(r"^## ", text_of(name), flags=re.MULTILINE)[1:]


def words_of(text):
    """How many words a reader sees before he opens a solution."""
    return len(re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL).split())


@EACH_LESSON
def test_a_lesson_is_short(name):
    code, words = cells_of(name, "code"), words_of(text_of(name))
    assert 4500 <= words <= 5500 and len(code) <= 25 and len(code) + len(cells_of(name, "markdown")) <= 60
    assert max(cell.source.count("\n") + 1 for cell in code) <= 12
    assert all(80 <= words_of(section) <= 800 for section in sections_of(name))


@PER_LESSON
def test_no_verdict_and_no_label_of_a_claim_stands_in_a_lesson(name):
    shown = text_of(name) + "".join(cell.source for cell in cells_of(name, "code"))
    assert re.findall(r"\b(?:" + "|".join(project.claims(ROOT, project.AUDIT + name)) + r")\b", shown) == []
    assert re.findall(r"contradicted|undecided|primary reading", shown) == []


@EACH_LESSON
def test_a_lesson_begins_with_its_scene_and_not_with_its_parameters(name):
    cells = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4).cells
    assert [cell.cell_type for cell in cells[:3]] == ["markdown", "code", "markdown"]
    assert "parameters" not in cells[1].metadata.tags and cells[2].source.startswith("## 1. ")


@PER_LESSON
def test_lesson_and_audit_lead_to_each_other(name):
    audit, sections = f"](audit/{name}.ipynb", sections_of(name)
    assert all(section.count(audit) <= 1 for section in sections[:-1]) and sum(audit in each for each in sections) >= 3
    assert f"](../{name}.ipynb" in text_of(f"audit/{name}")
    there = set(re.findall(r"^#{2,5} (\d+(?:\.\d+)*)", text_of(f"audit/{name}"), re.MULTILINE))
    named = re.findall(r"\[sections? ([^\]]+)\]\(audit/", text_of(name))
    assert {number for each in named for number in re.findall(r"\d+(?:\.\d+)*", each)} <= there


@EACH_LESSON
def test_figures_are_numbered_and_say_what_to_see(name):
    told = re.findall(r"^\*\*Figure (\d)[^*]*\*\* \*(.+?)\*$", text_of(name), re.MULTILINE)
    assert [int(number) for number, _ in told] == list(range(1, len(told) + 1)) and 5 <= len(told) <= 8
    assert all(len(caption.split()) >= 15 for _, caption in told)


@EACH_LESSON
def test_exercises_have_solutions_and_hypotheses_are_dropped(name):
    parts = re.split(r"^\*\*Exercise (\d+)\*\* ", text_of(name), flags=re.MULTILINE)
    numbers, bodies = parts[1::2], parts[2::2]
    assert [int(n) for n in numbers] == list(range(1, len(numbers) + 1)) and 8 <= len(numbers) <= 10
    assert all(re.match(r"\(★{1,3}, [\w, ]+\)\. ", body) and "<details><summary>" in body for body in bodies)
    assert text_of(name).count("> **What if") >= 4


@PER_LESSON
def test_what_both_define_is_the_same(name):
    """A function that a lesson shares with its audit, say a policy of ours, is typed in both."""
    def functions(notebook):
        # Magics and lines that end in the middle are no Python of their own: cells are parsed one by one.
        trees = [ast.parse(cell.source) for cell in cells_of(notebook, "code")]
        return {node.name: ast.unparse(node) for tree in trees for node in tree.body
                if isinstance(node, ast.FunctionDef) and node.decorator_list}

    ours, theirs = functions(name), functions(f"audit/{name}")
    assert {each: ours[each] for each in ours.keys() & theirs} == {each: theirs[each] for each in ours.keys() & theirs}
    assert name != "suak" or "never_asks" in ours.keys() & theirs


@EACH_LESSON
def test_ten_questions_on_a_lesson_have_answers(name):
    text = (ROOT / f"book/questions/{name}.md").read_text(encoding="utf-8")
    assert text.count("<details>") == text.count("</details>") == 10


def test_the_page_for_practitioners_is_short_and_asks_for_no_theory():
    """From a log to a running agent in an hour; nothing of the ledger, and each of its terms at its first use."""
    code, text = cells_of("own", "code"), text_of("own")
    assert len(text.split()) <= 5500 and len(code) <= 25 and len(code) + len(cells_of("own", "markdown")) <= 60
    assert max(cell.source.count("\n") + 1 for cell in code) <= 12
    assert re.findall(r"contradicted|undecided|\$", text) == []
    for term in ("arm", "pull", "reward", "cost", "budget", "bandit", "policy", "loss", "replay", "under way"):
        assert re.search(rf"\*\*{term}|\*\*{term.title()}", text), term


def test_the_page_for_practitioners_takes_other_columns_and_an_ad_with_one_row(tmp_path, capsys):
    log = pd.DataFrame({"price": [0.5, 1.0] * 20, "variant": [7, 8] * 20, "revenue": [0, 3.5, 1.25, 0] * 10})
    log.loc[40] = [1.0, 9, 2.0]
    log.to_csv(tmp_path / "mine.csv", index=False)
    code, known = [cell.source for cell in cells_of("own", "code")], {"folder": tmp_path}
    code[0] += f"\nlog_file, columns = {str(tmp_path / 'mine.csv')!r}, ['variant', 'revenue', 'price']"
    cells = [cell for cell in code if "house_style()" not in cell]      # that is for all cells to come
    for cell in cells[:1 + next(i for i, cell in enumerate(cells) if "seen" in cell)]:
        exec(cell, known)
    said = capsys.readouterr().out
    assert "column 'price', row 17 (from 0) = -0.35: must be" in said
    assert "Left out, for fewer than ten rows tell nothing yet: 9 (" in said
    assert known["seen"].index.tolist() == [8, 7] and known["ads"] == [7, 8] and len(known["log"]) == 40


@pytest.mark.parametrize("name", ["tournament", "extend"])
def test_pages_beside_the_lessons_are_short(name):
    code, text = cells_of(name, "code"), text_of(name)
    assert len(code) <= 40 and len(code) + len(cells_of(name, "markdown")) <= 60
    assert max(cell.source.count("\n") + 1 for cell in code) <= 12
    captions = re.findall(r"^\*\*Figure (\d)\.\*\* \*", text, re.MULTILINE)
    assert [int(number) for number in captions] == list(range(1, len(captions) + 1)) and len(captions) >= 3


def test_the_worst_run_that_the_lesson_on_moment_imed_tells_of():
    """Section 7: 6 sales in the magazine's first 485 showings, which then rests while the radio has 130,000."""
    laws = [cb.Discrete([0, 1], [0.95, 0.05]), cb.Discrete([1 / 40, 2 / 40], [0.5, 0.5]),
            cb.Discrete([0, 2 / 40], [0.5, 0.5]), cb.Discrete([0, 1], [0.975, 0.025])]
    shop = cb.Bandit(laws, [cb.Discrete([1 / 3, 1], [0.5, 0.5])] * 4)
    run = cb.simulate({"it": cb.MomentIMED()}, shop, cb.Budget(1e6 / 1.5), [52], 20261, [0.12, 1])
    assert round(40 * cb.regret.budgeted(run)[0, 0, -1]) == 70_838
    magazine, radio = run.pulls[0, 0, 0, :2]
    assert magazine <= 485 and 110_000 < radio < run.pulls[0, 0, 1, 1] < 140_000
    assert round(Stacks(shop, 20261, 52, range(4)).pairs(0, 485)[:485, 0].sum()) == 6
    assert "saw 6 sales in 485 showings" in text_of("imed")
