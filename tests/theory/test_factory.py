"""The Bernoulli factory: unbiased, within its guarantee, and as expensive as its exact law says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costbandits.theory import factory

CASES = [(0.3, 2.0, 0.3), (0.02, 10.0, 0.6), (0.45, 1 / 0.9, 0.5), (0.0, 3.0, 0.4), (0.4, 2.0, 0.2)]


def coin_of(p, rng):
    return lambda: rng.random() < p


@pytest.mark.parametrize("p, C, delta", CASES)
def test_output_is_unbiased_and_cost_is_the_exact_one(p, C, delta):
    """Each mean within five standard errors: it fails by chance with a probability below 1e-5 in all."""
    rng, n = np.random.default_rng(5), 2000
    flips = [factory.flip(coin_of(p, rng), C, delta, rng) for _ in range(n)]
    heads, coins = np.array(flips, float).T
    law = factory.law(p, C, delta)
    assert abs(heads.mean() - C * p) <= 5 * (C * p * (1 - C * p) / n) ** 0.5
    assert abs(coins.mean() - law.coins) <= 5 * coins.std() / n**0.5
    assert coins.min() >= 1 and coins.mean() <= factory.guarantee(C, delta)


@given(st.floats(1.01, 200), st.floats(0.005, 0.99), st.floats(0, 1))
def test_law_is_unbiased_and_within_the_guarantee(C, delta, share):
    p = share * (1 - delta) / C
    law = factory.law(p, C, delta)
    assert law.heads == pytest.approx(C * p, abs=1e-12)
    assert 1 <= law.coins <= factory.guarantee(C, delta)


@pytest.mark.parametrize("p, C", [(0.3, 2.0), (0.05, 10.0), (0.7, 1.2)])
def test_a_flip_keeps_the_mean_of_the_power(p, C):
    tails = np.arange(400)                                  # geometric number less 1
    stay = (C - 1) / C * C ** -tails.astype(float)
    for i in (1, 2, 7):
        after = p * (C * p) ** (i - 1) + (1 - p) * (stay * (C * p) ** (i + tails)).sum()
        assert after == pytest.approx((C * p) ** i)


def test_law_of_one_phase_by_linear_equations():
    """Heads and coins up to the first upper end, from the transition matrix itself."""
    p, C, limit = 0.35, 2.0, 10                             # 4.6 / 0.46: the first phase ends at 10
    moves = np.zeros((limit - 1, limit - 1))
    for i in range(1, limit):
        if i > 1:
            moves[i - 1, i - 2] += p
        for g in range(1, limit - i + 1):
            moves[i - 1, i + g - 2] += (1 - p) * 0.5**g
    inverse = np.linalg.inv(np.eye(limit - 1) - moves)
    heads, steps = inverse[0, 0] * p, inverse[0].sum()
    growth = 1 + 0.46 / 2
    past = (1 - heads) * sum(0.5**g * growth ** -(limit - 1.0 + g) for g in range(1, 80))
    law = factory.law(p, C, 0.46)
    assert heads <= law.heads <= heads + past
    assert steps <= law.coins <= steps + past * 200


def test_a_coin_outside_the_promise_gives_a_biased_result():
    inside, outside = factory.law(0.45, 2.0, 0.1), factory.law(0.45, 2.0, 0.5)
    assert inside.heads == pytest.approx(0.9)
    assert outside.heads < 0.89


def test_the_coin_is_flipped_as_often_as_is_said():
    rng, flipped = np.random.default_rng(2), []

    def coin():
        flipped.append(1)
        return rng.random() < 0.3

    assert sum(factory.flip(coin, 2.0, 0.3, rng).coins for _ in range(50)) == len(flipped)


class Fixed:
    """Stands in for a generator: the next geometric number is 10, the next uniform one is what it was made with."""

    def __init__(self, uniform):
        self.uniform = uniform

    def geometric(self, p):
        assert p == 0.5
        return 10

    def random(self):
        return self.uniform


@pytest.mark.parametrize("uniform, expected", [(0.108, (False, 1)), (0.107, (True, 11))])
def test_the_first_factor_is_decided_at_the_limit(uniform, expected):
    """C = 2, delta = 1/2: i = 10 after one tail is the limit, 4.6 / delta; 1.25^-10 = 0.1074. Then ten heads."""
    outcomes = iter([False] + [True] * 10)
    assert factory.flip(lambda: next(outcomes), 2.0, 0.5, Fixed(uniform)) == expected


def test_guarantee_by_hand():
    assert factory.guarantee(2.0, 0.5) == 38.0


@pytest.mark.parametrize("factor, margin, name", [(1.0, 0.5, "factor"), (0.5, 0.5, "factor"), (np.inf, 0.5, "factor"),
                                                  ("2", 0.5, "factor"), (2.0, 0.0, "margin"), (2.0, 1.0, "margin"),
                                                  (2.0, np.nan, "margin")])
def test_bad_factor_and_margin(factor, margin, name):
    rng = np.random.default_rng(0)
    for call in (lambda: factory.flip(lambda: True, factor, margin, rng), lambda: factory.law(0.1, factor, margin),
                 lambda: factory.guarantee(factor, margin)):
        with pytest.raises(ValueError, match=name):
            call()


@pytest.mark.parametrize("p", [-0.1, 1.0, 0.5, 0.4, np.nan])
def test_bad_probability(p):
    with pytest.raises(ValueError, match="p = "):
        factory.law(p, 2.0, 0.5)                            # 0.5 and 0.4: C p is 1 in the first and the second phase
