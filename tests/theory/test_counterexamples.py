"""Counterexamples to theorems in rational arithmetic, by hand and without the library: nothing can be rounded here.

For n = 1 and a Bernoulli outcome of 1, Theorem 1 of the omega-UCB paper has A = 1 + z^2, B = 2 + z^2 and C = 1, with
eta = 1 as for every Bernoulli law. So its lower end is 1 / (1 + z^2), and a smaller mean is missed whenever a 1 shows.
Each z below is larger than what the theorem takes: the theorem's own interval is narrower still.
"""

from fractions import Fraction as F
from math import log
from statistics import NormalDist


def lower_end(z_squared):
    """The smaller root of A x^2 - B x + C = 0."""
    end = 1 / (1 + z_squared)
    assert (1 + z_squared) * end**2 - (2 + z_squared) * end + 1 == 0 and end < 1
    return end


def test_theorem_1_misses_a_mean_of_13_percent_thirteen_times_too_often():
    z, alpha, mean = F(2576, 1000), F(1, 100), F(13, 100)
    assert float(z) > NormalDist().inv_cdf(1 - float(alpha) / 2)
    assert mean < lower_end(z * z)                      # so the probability of a miss is that of a 1, the mean
    assert mean == 13 * alpha


def test_theorem_2_is_violated_eleven_times_too_often():
    z, alpha, cost = F(281, 100), F(1, 100), F(11, 100)      # the reward is always 1, and so is its upper end
    assert float(z) > NormalDist().inv_cdf(1 - float(alpha) / 4)      # each of two sides with alpha / 2
    assert 1 / cost > 1 / lower_end(z * z) and cost == 11 * alpha


def test_theorem_3_is_violated_nine_hundred_times_too_often():
    rho, t, cost = 1, 10_000, F(5, 100)
    z_squared = 2 * rho * F(922, 100)                   # z^2 = 2 rho log t
    assert z_squared > 2 * rho * log(t)
    promised = F(51, 10**6)                             # more than 1 - sqrt(1 - t^-rho)
    assert 1 - promised > 0 and (1 - promised)**2 < 1 - F(1, t)**rho
    assert 1 / cost > 1 / lower_end(z_squared) and cost > 900 * promised
