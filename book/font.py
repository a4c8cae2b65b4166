"""How `_static/math.woff2` was made from STIX Two Math (SIL Open Font License 1.1, see `_static/OFL.txt`).

    python book/font.py STIXTwoMath-Regular.ttf      needs fonttools and brotli

The letters, operators and delimiters that formulas use are kept. Rules and gaps of small fractions are changed by less
than a tenth of an em, since browsers round them to whole pixels. The part has a name of its own, so that a reader who
has the full font installed sees the same.
"""

import sys

from fontTools import subset

RANGES = ((0x20, 0x7E), (0xA0, 0xFF), (0x131, 0x131), (0x237, 0x237), (0x2C6, 0x2DD), (0x300, 0x338), (0x370, 0x3FF),
          (0x2010, 0x2044), (0x2061, 0x2064), (0x20D0, 0x20F0), (0x2100, 0x214F), (0x2190, 0x21FF), (0x2200, 0x22FF),
          (0x2308, 0x230B), (0x23B4, 0x23E1), (0x25A0, 0x25FF), (0x27C2, 0x27FF), (0x2A00, 0x2AFF), (0x1D400, 0x1D537),
          (0x1D538, 0x1D56B), (0x1D670, 0x1D7CB), (0x1D7CE, 0x1D7E1), (0x1D7F6, 0x1D7FF))
CONSTANTS = {"FractionRuleThickness": 52, "RadicalRuleThickness": 52, "FractionNumeratorGapMin": 120,
             "FractionDenominatorGapMin": 120}

options = subset.Options(flavor="woff2", layout_features=["math", "ssty", "dtls", "flac"], hinting=False,
                         glyph_names=False, name_IDs=["*"], notdef_outline=True)
font = subset.load_font(sys.argv[1], options)
part = subset.Subsetter(options)
part.populate(unicodes=[letter for first, last in RANGES for letter in range(first, last + 1)])
part.subset(font)
for name, value in CONSTANTS.items():
    getattr(font["MATH"].table.MathConstants, name).Value = value
for record in font["name"].names:
    if record.nameID in (1, 3, 4, 6, 16):
        record.string = "CompendiumMath" if record.nameID == 6 else "Compendium Math"
subset.save_font(font, "book/_static/math.woff2", options)
