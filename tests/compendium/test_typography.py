"""Words and numbers as a page shows them."""

import pytest

from compendium.typography import plain, raised, typeset


@pytest.mark.parametrize(("written", "read"), [
    ("1.34e+03 [9.9e+02, 12.5e+05]", "1,340 [990, 1,250,000]"), ("[1e-09, 1e+06]", "[1·10⁻⁹, 1·10⁶]"), ("22%", "22 %"),
    ("from 3.6e+09 and 4.3e+11 rounds", "from 3.6·10⁹ and 4.3·10¹¹ rounds"), ("f5e+03x, 100 %", "f5e+03x, 100 %"),
    ("omega*-UCB at B^(1 - rho), epsilon-first", "ω*-UCB at B^(1 - ρ), ε-first"),
    ("delta_min, log(2/delta)", "δ_min, log(2/δ)"),
    ("mode, rhombus, test_omega, omegaucb", "mode, rhombus, test_omega, omegaucb")])
def test_numbers_and_symbols_are_written_as_they_are_read(written, read):
    assert typeset(written) == read


def test_a_text_is_shown_as_it_is():
    assert plain("a *b*\n[c] | <d>") == r"a \*b\* \[c\] \| &lt;d&gt;"


def test_powers_are_raised_and_letters_stay():
    assert raised("B^(2/3), 10^-7, t^-ρ, B^0.82. A^b") == (
        "B<sup>2/3</sup>, 10<sup>−7</sup>, t<sup>−ρ</sup>, B<sup>0.82</sup>. A^b")
