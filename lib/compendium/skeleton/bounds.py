"""What the theorems of the skeleton paper promise: authors, "title" (year)."""

from math import log

from ...checks import count, positive


def theorem_1(gap: float, rounds: int) -> float:
    """Expected pulls of a worse arm, at most (Theorem 1). To be replaced by the paper's theorem; this is UCB1's.

    Parameters
    ----------
    gap : float
        What a pull of the arm loses, in units of reward, above 0.
    rounds : int

    Examples
    --------
    >>> round(theorem_1(0.5, 1000), 1)
    225.3
    """
    return 8 * log(count("rounds", rounds)) / positive("gap", gap) ** 2 + 4.3
