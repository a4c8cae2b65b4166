"""What the theorems of the skeleton paper promise: authors, "title" (year)."""

from math import log

from ...checks import count, positive


def theorem_1(gap, rounds):
    """Expected pulls of a worse arm, at most. To be replaced by the paper's theorem; this is UCB1's.

    Parameters
    ----------
    gap : float
        What a pull of the arm loses, above 0.
    rounds : int

    Returns
    -------
    float
    """
    return 8 * log(count("rounds", rounds)) / positive("gap", gap) ** 2 + 4.3
