"""Formulas become MathML that browsers show as TeX does; one that cannot be read is never shown as something else."""

import base64
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fontTools.ttLib import TTFont

from compendium import mathematics, page, project
from compendium.mathematics import mathml

ROOT = Path(__file__).resolve().parents[2]
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$`]+?)\$(?!\d)", re.DOTALL)
XML = "<!DOCTYPE math [<!ENTITY ApplyFunction '&#x2061;'>]>"


def formulas(path):
    """(formula, whether it is displayed) of a notebook's prose."""
    for cell in json.loads(path.read_text())["cells"]:
        text = re.sub(r"```.*?```|`[^`]*`", "", "".join(cell["source"]), flags=re.DOTALL)
        for found in FORMULA.finditer(text) if cell["cell_type"] == "markdown" else ():
            yield found[1] or found[2], found[1] is not None


@pytest.mark.parametrize("name", project.notebooks(ROOT))
def test_every_formula_of_a_notebook_is_well_formed(name):
    found = [mathml(*formula) for formula in formulas(ROOT / f"notebooks/{name}.ipynb")]
    assert found or name == "own"          # the page for practitioners has none
    for text in found:
        assert ElementTree.fromstring(XML + text).tag == "math"


@pytest.mark.parametrize(("tex", "part"), [
    (r"\bar\mu", "<mover><mi>μ</mi>"),                              # an accent that leaves room for the letter
    (r"\Big(x\Big)^2", "<msup><mrow><mo stretchy"),                 # a large parenthesis that stays large
    (r"\big|x\big|_2", "<msub><mrow><mo stretchy"),
    (r"S'", '<mi>S</mi><mo lspace="0" rspace="0">′</mo>'),          # a prime that is not raised twice
    (r"\boxed{x}", '<mrow class="boxed"><mi>x</mi></mrow>'),
    (r"\mathbb E\,\mathbf 1", "<mi>𝔼</mi>"), (r"\mathcal C", "𝒞"),
    (r"\max_k x", "<munder>")])
def test_what_a_browser_would_show_wrongly(tex, part):
    assert part in mathml(tex, display=True)


def test_space_between_rows_is_no_text():
    assert mathml(r"\begin{aligned}a&=b\\[.4em]c&=d\end{aligned}") == mathml(
        r"\begin{aligned}a&=b\\c&=d\end{aligned}")
    assert "[" in mathml(r"\begin{aligned}a&=b\\[c]&=d\end{aligned}")


@pytest.mark.parametrize("tex", [r"\nonsense{x}", r"\frac{1}", "{x", r"\left( x"])
def test_what_cannot_be_read(tex):
    with pytest.raises(ValueError, match="formula = "):
        mathml(tex)
    assert page._formula(f"1<{tex}") == f"<code>1&lt;{tex}</code>"


def test_the_style_brings_its_font():
    font = re.search(r"base64,([A-Za-z0-9+/=]+)\)", mathematics.style())
    assert 100_000 < len(font[1]) < 500_000 and base64.b64decode(font[1])[:4] == b"wOFF"


@pytest.mark.slow
def test_the_font_is_the_same_each_time_and_holds_the_letters_of_formulas():
    made = mathematics.font()
    assert mathematics.font.__wrapped__() == made
    there = TTFont(io.BytesIO(made)).getBestCmap()
    assert set(map(ord, "μωρ∑∫≤⌊𝔼𝒞𝟏ˆ")) <= set(there) and ord("Ж") not in there
