"""Formulas as MathML: right in Chromium and Firefox, readable at once, without a script or a network.

Browsers need a font made for mathematics: STIX Two Math (SIL Open Font License 1.1), which the package ziamath brings.
"""

import base64
import functools
import importlib.util
import io
import re
from pathlib import Path

from math_core import LatexError, LatexToMathML

# Letters, operators and delimiters that formulas use: the part of the font that a page carries.
LETTERS = ((0x20, 0x7E), (0xA0, 0xFF), (0x131, 0x131), (0x237, 0x237), (0x2C6, 0x2DD), (0x300, 0x338), (0x370, 0x3FF),
           (0x2010, 0x2044), (0x2061, 0x2064), (0x20D0, 0x20F0), (0x2100, 0x214F), (0x2190, 0x21FF), (0x2200, 0x22FF),
           (0x2308, 0x230B), (0x23B4, 0x23E1), (0x25A0, 0x25FF), (0x27C2, 0x27FF), (0x2A00, 0x2AFF), (0x1D400, 0x1D537),
           (0x1D538, 0x1D56B), (0x1D670, 0x1D7CB), (0x1D7CE, 0x1D7E1), (0x1D7F6, 0x1D7FF))
# Space between rows, which math_core would print.
ROWS_APART = re.compile(r"(?<=\\\\)\[[\d.]+(?:em|ex|pt)\]")
# Rules and gaps of small fractions, in thousandths of an em: browsers round them to whole pixels.
CONSTANTS = {"FractionRuleThickness": 52, "RadicalRuleThickness": 52, "FractionNumeratorGapMin": 120,
             "FractionDenominatorGapMin": 120}
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
    r"""A formula of LaTeX as MathML, in a line of text or displayed; ValueError says if it cannot be read as a whole.

    >>> mathml(r"\hat\mu")
    '<math><mover><mi>μ</mi><mo stretchy="false">ˆ</mo></mover></math>'
    """
    try:
        tex = tex.strip()
        text = LatexToMathML(fancy_error=False).convert_with_local_state(ROWS_APART.sub("", tex), displaystyle=display)
    except LatexError as error:
        raise ValueError(f"formula = {tex!r}: {error}") from None
    for wrong, right in MENDED:
        text = wrong.sub(right, text)
    return text


@functools.cache
def font():
    """The part of the font that formulas need, as the bytes of a WOFF file."""
    from fontTools import subset
    (package,) = importlib.util.find_spec("ziamath").submodule_search_locations
    options = subset.Options(flavor="woff", layout_features=["math", "ssty", "dtls", "flac"], hinting=False,
                             glyph_names=False, name_IDs=["*"], notdef_outline=True)
    whole = subset.load_font(Path(package) / "fonts/STIXTwoMath-Regular.ttf", options)
    part = subset.Subsetter(options)
    part.populate(unicodes=[letter for first, last in LETTERS for letter in range(first, last + 1)])
    part.subset(whole)
    for name, value in CONSTANTS.items():
        getattr(whole["MATH"].table.MathConstants, name).Value = value
    for record in whole["name"].names:      # of its own: a reader who has the full font installed sees the same
        if record.nameID in (1, 3, 4, 6, 16):
            record.string = "CompendiumMath" if record.nameID == 6 else "Compendium Math"
    file = io.BytesIO()
    subset.save_font(whole, file, options)
    return file.getvalue()


def style():
    """The style of formulas with its font inside, for a page that needs nothing else."""
    face = f"src: url(data:font/woff;base64,{base64.b64encode(font()).decode()});"
    return f'@font-face {{ font-family: "Compendium Math"; {face} }}\n{STYLE}'
