"""The indices of omega-UCB and omega*-UCB against numbers worked out by hand."""

from math import inf, log, sqrt

import pytest
from reference import index_value

from costbandits.policies import omega_ucb


def rho(z2, t):
    """The rho for which z^2 = 2 rho log t is the number wanted."""
    return z2 / (2 * log(t))


OMEGA = {
    # w = z^2/n = 1: upper (1 + 1 + sqrt(1 + 1)) / 4 = 0.853553, lower (1/2 + 1 - sqrt(3/4 + 1)) / 4 = 0.0442811
    "inside": (8, 4, 0.5, 0.25, 4, 19.27580069602),
    # all rewards 1: upper 1; lower (2 - sqrt 2) / 4 = 0.146447
    "full reward": (8, 4, 1.0, 0.5, 4, 4 + 2 * sqrt(2)),
    # no rewards, all costs 1, w = 1: upper w / (1 + w) = 1/2, lower 1 / (1 + w) = 1/2
    "no reward": (8, 4, 0.0, 1.0, 4, 1.0),
    # n = 1, w = 4: upper 4/5, lower 1/5
    "one pull": (8, 1, 0.0, 1.0, 4, 4.0),
    "zero cost": (8, 4, 0.5, 0.0, 4, inf),
    "zero cost and reward": (8, 4, 0.0, 0.0, 4, inf),
    # m = 1e-9: lower 2 m^2 / (2 m + 1 + sqrt(1 + 4 m)) = 1e-18 / (1 + 2e-9); centre minus half-width is noise here
    "small cost": (8, 4, 0.5, 1e-9, 4, 0.85355339059327 / 1e-18 * (1 + 2e-9)),
}


@pytest.mark.parametrize("case", OMEGA)
def test_omega_by_hand(case):
    t, n, r, c, z2, expected = OMEGA[case]
    for rule in (omega_ucb.omega_ucb, omega_ucb.omega_star_ucb):        # n < 30: the same
        assert index_value(rule, t, n, r, c, rho(z2, t)) == pytest.approx(expected, rel=1e-8)


OMEGA_STAR = {
    # z^2 = n, so w = eta; r = c = 1/2. eta = 1: (2 + sqrt 2) / (2 - sqrt 2)
    "29 pulls": (29, 0.5, 0.5, 1 / 16, 1 / 16, 3 + 2 * sqrt(2)),
    # eta = (1/16) / (1/4) = 1/4: (5/4 + sqrt(5)/4) / (5/4 - sqrt(5)/4) = the golden ratio squared
    "30 pulls": (30, 0.5, 0.5, 1 / 16, 1 / 16, (3 + sqrt(5)) / 2),
    # Bernoulli outcomes: the sample variance exceeds 1/4 by 30/29, and eta stops at 1
    "capped": (30, 0.5, 0.5, None, None, 3 + 2 * sqrt(2)),
    # all outcomes alike: the intervals have no width
    "no variance": (30, 0.5, 0.25, 0.0, 0.0, 2.0),
    # each has its own eta: upper (5 + sqrt 5) / 10 as above, lower 1/2 without variance
    "two etas": (30, 0.5, 0.5, 1 / 16, 0.0, (5 + sqrt(5)) / 5),
    # means on the boundary: eta = 1, upper 1, lower 1 / (1 + w) = 1/2
    "boundary": (30, 1.0, 1.0, None, None, 2.0),
    "zero cost": (30, 0.5, 0.0, None, None, inf),
}


@pytest.mark.parametrize("case", OMEGA_STAR)
def test_omega_star_by_hand(case):
    n, r, c, v_r, v_c, expected = OMEGA_STAR[case]
    found = index_value(omega_ucb.omega_star_ucb, 8, n, r, c, rho(n, 8), v_r=v_r, v_c=v_c)
    assert found == pytest.approx(expected, rel=1e-12)
