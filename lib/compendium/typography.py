"""Words and numbers as a page shows them."""

import html
import re

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
GREEK = {"alpha": "α", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "Epsilon": "ε", "kappa": "κ",
         "lambda": "λ", "mu": "μ", "rho": "ρ", "tau": "τ", "omega": "ω"}
NAMED = re.compile(rf"(?<![\w.])({'|'.join(GREEK)})(?![A-Za-z0-9])")


def plain(text):
    """A text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_|$~\[\]])", r"\\\1", html.escape(typeset(" ".join(text.split())), quote=False))


def typeset(text):
    """Numbers and symbols as they are read: 1,340 for 1.34e+03, 3.6·10⁹ for 3.6e+09, 33 % for 33%, ρ for rho."""
    def power(found):
        if 0 <= (exponent := int(found[2])) < 6:
            return f"{float(found[0]):,.0f}"
        return f"{found[1]}·10{str(exponent).translate(SUPERSCRIPTS)}"

    numbers = re.sub(r"(?<=\d)%", " %", re.sub(r"(\d+(?:\.\d+)?)e([+-]\d\d)\b", power, text))
    return NAMED.sub(lambda found: GREEK[found[0]], numbers)


def raised(text):
    """Powers as HTML raises them: B<sup>2/3</sup> for B^(2/3), 10<sup>10</sup> for 10^10; letters stay."""
    return re.sub(r"\^(?:(-?(?:\d+(?:\.\d+)?|[α-ω]))|\(([^()]+)\))",
                  lambda found: f"<sup>{found[1] or found[2]}</sup>".replace("-", "−"), text)
