"""The page of an executed notebook: folded plumbing and solutions, links between sections, nothing of the machine."""

import base64
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from compendium import page


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    told = new_output("display_data", {"text/markdown": "**Told**, in section 1.1.", "text/plain": "<Markdown>"})
    (folder / "a.svg").write_text("<svg>a</svg>")
    cells = [new_markdown_cell("# Toy\n## 1. One\n### 1.1 Part\nSee section 1.1 and section 7."),
             new_markdown_cell("With $x^2$ and $\\badly{$.\n\n$$\\frac{1}{y}$$\n\n![a](a.svg)"),
             new_markdown_cell("Why?\n\n<details><summary>Answer</summary>\n\nBecause *so*.\n\n</details>\n\nNext."),
             new_code_cell("store = 'somewhere/store.sqlite'", metadata={"tags": ["injected-parameters"]}),
             new_code_cell("import plumbing", metadata={"tags": ["hide-input"]}, outputs=[told]),
             new_code_cell("mathematics = 1", execution_count=160),
             new_code_cell("# Solution 1", metadata={"tags": ["solution"]},
                           outputs=[new_output("stream", name="stdout", text="the answer")]),
             new_code_cell("interact(f)", metadata={"tags": ["skip-execution", "nbval-skip"]})]
    job = SimpleNamespace(name="toy", source=Path(folder / "toy.ipynb"), folder=folder)
    return page.html(new_notebook(cells=cells), job)


def folds(html):
    """Name and text of each part that is folded."""
    return [(name, re.sub(r"<[^>]+>", "", text))
            for name, text in re.findall(r"<summary>([^<]*)</summary>(.*?)</details>", html, re.DOTALL)]


def test_code_that_teaches_nothing_is_folded_and_what_it_shows_is_not(html):
    _, (code, plumbing), (solution, answer), (slider, interact) = folds(html)
    assert (code, solution, slider) == ("code", "solution", "a slider, in JupyterLab")
    assert "plumbing" in plumbing and "Told" not in plumbing and "interact" in interact
    assert "Solution 1" in answer and "the answer" in answer
    assert "<strong>Told</strong>" in html and "mathematics" not in plumbing + answer + interact


def test_what_the_prose_folds_is_folded(html):
    name, answer = folds(html)[0]
    assert (name, answer.strip()) == ("Answer", "Because so.") and "Next." in html


def test_what_is_folded_is_printed_but_for_code_that_teaches_nothing(html):
    """Browsers leave out of print what is folded: before it, all is opened that is no code; a rule does without it."""
    kinds = dict(zip([name for name, _ in folds(html)], re.findall(r"<details([^>]*)><summary>", html), strict=True))
    code = ' class="code"'
    assert kinds == {"Answer": "", "code": code, "solution": ' class="jp-Cell"', "a slider, in JupyterLab": code}
    assert 'querySelectorAll("details:not([open], .code)")' in html and "beforeprint" in html and "afterprint" in html
    assert "@media print { details:not(.code)::details-content { content-visibility: visible; } }" in html


def test_sections_are_links_where_there_are_such(html):
    assert html.count('<a href="#section-1.1">section 1.1</a>') == 2 and html.count('id="section-1.1"') == 1
    assert "section-7" not in html


def test_formulas_are_mathml_and_what_cannot_be_read_is_its_source(html):
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html and "<mfrac>" in html and "<code>\\badly{</code>" in html


def test_a_picture_of_the_prose_is_in_the_page(html):
    held = base64.b64encode(b"<svg>a</svg>").decode()
    assert f'src="data:image/svg+xml;base64,{held}' in html and "a.svg" not in html


def test_nothing_of_the_machine_and_no_prompt_is_shown(html):
    assert "somewhere" not in html and "160" not in re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
