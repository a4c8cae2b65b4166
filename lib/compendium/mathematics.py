"""Formulas as MathML: right in Chromium and Firefox, readable at once, without a script or a network.

Browsers need a font made for mathematics: `book/_static/math.woff2`, a part of STIX Two Math that `book/font.py` made.
"""

import base64
import re
from pathlib import Path

from math_core import LatexError, LatexToMathML

FONT = Path(__file__).resolve().parents[2] / "book/_static/math.woff2"
STYLE = """math { font-family: "Compendium Math", math; font-size: 1.12em; }
math[display="block"] { margin: 1em 0; overflow-x: auto; overflow-y: hidden; padding: .1em 0; }
.boxed { border: 1px solid; padding: .3em; }"""

# What Chromium shows wrongly, and a form that both browsers show as TeX does.
MENDED = (
    # An accent comes too close to letters without an ascender, such as μ.
    (re.compile(r'<mover accent="true">(?=<mi>)'), "<mover>"),
    # A large delimiter that carries an exponent stays small, unless it stands in a row of its own.
    (re.compile(r'(<msu(?:b|p|bsup)>)<mo ([^>]*minsize="[^>]*>[^<]*</mo>)'), r'\1<mrow><mo stretchy="true" \2</mrow>'),
    # The prime of a mathematical font is raised already.
    (re.compile(r"<msup>(<mi>[^<]*</mi>)<mo>′</mo></msup>"), r'<mrow>\1<mo lspace="0" rspace="0">′</mo></mrow>'),
    # Browsers no longer know `menclose`.
    (re.compile(r'<menclose notation="box">(.*?)</menclose>'), r'<mrow class="boxed">\1</mrow>'),
)


def mathml(tex, display=False):
    r"""A formula of LaTeX as MathML, in a line of text or displayed.

    Raises
    ------
    ValueError
        If a command is unknown or the formula incomplete: nothing is shown as something else.

    >>> mathml(r"\hat\mu")
    '<math><mover><mi>μ</mi><mo stretchy="false">ˆ</mo></mover></math>'
    >>> mathml("x", display=True)
    '<math display="block"><mi>x</mi></math>'
    """
    try:
        text = LatexToMathML(fancy_error=False).convert_with_local_state(tex.strip(), displaystyle=display)
    except LatexError as error:
        raise ValueError(f"formula = {tex.strip()!r}: {error}") from None
    for wrong, right in MENDED:
        text = wrong.sub(right, text)
    return text


def style():
    """The style of formulas with its font inside, for a page that needs nothing else."""
    font = base64.b64encode(FONT.read_bytes()).decode() if FONT.exists() else ""
    return f'@font-face {{ font-family: "Compendium Math"; src: url(data:font/woff2;base64,{font}); }}\n{STYLE}'
