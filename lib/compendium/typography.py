"""Words and numbers as a page shows them."""

import html
import re

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(text):
    """A text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_|$~\[\]])", r"\\\1", escaped(text))


def escaped(text):
    """A text that HTML shows as it is, on one line."""
    return html.escape(typeset(" ".join(text.split())), quote=False)


def typeset(text):
    """Numbers as they are read: 1,340 for 1.34e+03, 3.6·10⁹ for 3.6e+09, and 33 % for 33%."""
    return re.sub(r"(?<=\d)%", " %", re.sub(r"(\d+(?:\.\d+)?)e([+-]\d\d)\b", _power, text))


def _power(found):
    digits, exponent = found[1], int(found[2])
    if 0 <= exponent < 6:
        return f"{float(found[0]):,.0f}"
    return f"{digits}·10{str(exponent).translate(SUPERSCRIPTS)}"
