"""Joint laws, and bandits from logs: what they say of themselves, and what they refuse."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import costbandits as cb

LOG = pd.DataFrame({"ad": ["red", "blue", "red", "blue"], "sales": [30.0, 12.0, 0.0, 0.0],
                    "spent": [0.5, 0.2, 0.25, 0.0]}, index=list("wxyz"))
COLUMNS = {"arm": "ad", "reward": "sales", "cost": "spent"}


def test_columns_are_laws_of_their_own():
    law = cb.Pairs([0, 0, 10], [0, 0.25, 0.25], [0.5, 0.25, 0.25])
    assert (law.rewards.mean, law.costs.mean, law.costs.support) == (2.5, 0.125, (0.0, 0.25)) and law.rows is None
    same = cb.Pairs([0, 10, 0, 0], [0.25, 0.25, 0, 0])
    assert same.rows.tolist() == [[0, 0], [0, 0], [0, 0.25], [10, 0.25]] and same.correlation == law.correlation
    assert cb.Pairs([0, 1], [1, 0]).correlation == -1 and not same.rows.flags.writeable
    kinds = [type(cb.Pairs(np.arange(m), np.arange(m)).rewards) for m in (32, 33)]
    assert kinds == [cb.Discrete, cb.Empirical]
    assert cb.Pairs([2.0] * 40, np.arange(40)).rewards == cb.Constant(2.0)


def test_a_bandit_may_be_joint_in_part_and_has_names():
    bandit = cb.Bandit(outcomes=[cb.Pairs([0, 1], [0.5, 1]), (cb.Beta(1, 3), cb.Bernoulli(0.1))], names=["a", 7])
    assert bandit.joint == (True, False) and bandit.names == ("a", 7) and bandit.units == (1, 1)
    assert bandit.ratios.tolist() == pytest.approx([2 / 3, 2.5]) and repr(bandit).startswith("Bandit(outcomes=[Pairs(")
    plain = cb.Bandit([cb.Bernoulli(0.5)], [cb.Bernoulli(0.5)])
    assert plain.joint == (False,) and plain.names is plain.outcomes is None


@pytest.mark.parametrize(("arguments", "said"), [
    ({"outcomes": [cb.Pairs], "names": None}, r"outcomes\[0\] = .*must be Pairs\(rewards, costs\), or"),
    ({"outcomes": [(cb.Beta(1, 1),)]}, r"outcomes\[0\] = .*must be Pairs"),
    ({"outcomes": [(cb.Beta(1, 1), 0.5)]}, r"costs\[0\] = 0\.5: must be a distribution"),
    ({"outcomes": []}, "a bandit needs at least one arm"), ({}, "rewards = None: must be a sequence"),
    ({"outcomes": [cb.Pairs([0, 1], [1, 1])], "costs": []}, "must be left out beside outcomes"),
    ({"outcomes": [cb.Pairs([0, 1], [1, 1])], "names": "a"}, "names = 'a': must be 1 different labels"),
    ({"outcomes": [cb.Pairs([0, 1], [1, 1])] * 2, "names": ["a", "a"]}, "must be 2 different labels, one per arm"),
    ({"outcomes": [cb.Pairs([0, 1], [1, 1])] * 2, "names": ["a"]}, "must be 2 different labels, one per arm")])
def test_what_a_bandit_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        cb.Bandit(**arguments)


def test_a_log_is_divided_and_never_shifted():
    bandit = cb.Bandit.from_log(LOG, **COLUMNS, max_reward=40, max_cost=2.5)
    assert bandit.names == ("blue", "red") and bandit.units == (40, 2.5) and bandit.units.cost == 2.5
    assert bandit.outcomes[1].rows.tolist() == [[0, 0.1], [0.75, 0.2]]
    largest = cb.Bandit.from_log(LOG, **COLUMNS, max_reward=30, max_cost=0.5)
    assert largest.outcomes[1].rows.max(axis=0).tolist() == [1, 1]
    lossy = LOG.assign(sales=LOG.sales - 20)        # what is not divided may be below 0
    assert cb.Bandit.from_log(lossy, **COLUMNS).reward_means == pytest.approx([-14, -5])
    plain = cb.Bandit.from_log(LOG, **COLUMNS)
    assert plain.units == (1, 1) and plain.reward_means == pytest.approx(bandit.reward_means * 40)
    assert plain.ratios == pytest.approx(bandit.ratios * 16)


def test_a_log_without_limits_is_told_how_to_give_them():
    for what, limits in (("reward", {}), ("cost", {"max_reward": 40})):
        bandit = cb.Bandit.from_log(LOG.assign(spent=[1.5, 2, 3, 0]), **COLUMNS, **limits)
        said = rf"{what} support = .*as from_log\(\.\.\., max_{what}=the largest that can occur\) does$"
        with pytest.raises(ValueError, match=said):
            cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(20))


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [True, False, True, True], [Decimal("1.5"), 1, 2, 0],
                                    pd.array([1, 2, 3, 4], "Int64"), pd.array([0.5, 1, 2, 3], "Float64")])
def test_numbers_of_any_kind_are_numbers(values):
    bandit = cb.Bandit.from_log(LOG.assign(sales=values), **COLUMNS)
    assert bandit.reward_means.tolist() == [float(values[1] + values[3]) / 2, float(values[0] + values[2]) / 2]


def test_labels_of_any_kind_name_arms():
    for labels, names in (([2, 1, 2, 1], (1, 2)), (["b", 1, "b", 1], (1, "b")), ([(1, 2), 3, (1, 2), 3], None),
                          (pd.Categorical(["b", "a", "b", "a"], ["b", "a", "c"]), ("b", "a"))):
        bandit = cb.Bandit.from_log(LOG.assign(ad=labels), **COLUMNS)
        assert bandit.K == 2 and names in (None, bandit.names)


BAD = [
    ({"ad": ["red", None, "red", "blue"]}, {}, "column 'ad', row 1 (from 0) = "),
    ({"sales": [1, 2, np.nan, 3]}, {}, "column 'sales', row 2 (from 0) = nan: must be a finite number"),
    ({"sales": [1, "12.50", 2, 3]}, {}, "column 'sales', row 1 (from 0) = '12.50': must be a finite number, and no"),
    ({"sales": ["1", "2", "twelve", None]}, {}, "column 'sales', row 2 (from 0) = 'twelve': must be a finite number"),
    ({"sales": ["1", "2", "3", "4"]}, {}, "row 0 (from 0) = '1': must be a finite number, and no text: pd.to_numeric("),
    ({"ad": [" red", "red ", "red ", "blue"]}, {}, "column 'ad' = [' red', 'red ']: must be labels that differ"),
    ({"sales": [1, np.inf, 2, 3]}, {}, "column 'sales', row 1 (from 0) = inf: must be a finite number"),
    ({"sales": pd.array([1, 2, None, 3], "Int64")}, {}, "column 'sales', row 2 (from 0) = <NA>: must be a finite"),
    ({"sales": pd.to_datetime(["2024-01-01"] * 4)}, {}, "column 'sales', row 0 (from 0) = Timestamp"),
    ({"spent": [1, 2, 3, -0.5]}, {}, "column 'spent', row 3 (from 0) = -0.5: must be a finite number, 0 or more"),
    ({"spent": ["a", 2, 3, 0.5]}, {}, "column 'spent', row 0 (from 0) = 'a': must be a finite number, 0 or more"),
    ({"spent": [1j, 2, 3, 0.5]}, {}, "column 'spent', row 0 (from 0) = "),
    ({}, {"max_reward": 20}, "column 'sales', row 0 (from 0) = 30.0: must be a finite number, 0 or more, at most 20"),
    ({"sales": [1, -2, 3, 4]}, {"max_reward": 20}, "column 'sales', row 1 (from 0) = -2: must be a finite number, 0"),
    ({}, {"max_cost": 0}, "max_cost = 0: must be a finite number above 0"),
    ({}, {"cost": "price"}, "cost = 'price': must be the name of one column, of ['ad', 'sales', 'spent']"),
    ({}, {"cost": "sales"}, "must be three columns")]


@pytest.mark.parametrize(("change", "arguments", "said"), BAD, ids=lambda part: part if isinstance(part, str) else "")
def test_a_bad_log_is_refused_by_its_row(change, arguments, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        cb.Bandit.from_log(LOG.assign(**change), **{**COLUMNS, **arguments})


def test_other_bad_logs():
    for frame, said in ((LOG[:0], "frame = 'no rows'"), (LOG.to_dict("list"), "must be a DataFrame"),
                        (pd.concat([LOG, LOG["ad"]], axis=1), "arm = 'ad': must be the name of one column")):
        with pytest.raises(ValueError, match=said):
            cb.Bandit.from_log(frame, **COLUMNS)


def test_theory_that_needs_independence_says_so():
    pair = cb.Pairs([0, 1], [0.5, 1])
    bandit = cb.Bandit(outcomes=[pair, (cb.Bernoulli(0.1), cb.Constant(0.5))])
    with pytest.raises(ValueError, match="independent = True: must be False: this bandit draws"):
        cb.bounds.kl_ucb.pulls(bandit, 100)
    with np.errstate(divide="ignore"):
        assert cb.bounds.kl_ucb.pulls(bandit, 100, a=2.0, independent=False)[1] > 1
    with pytest.raises(ValueError, match="must have independent rewards and costs"):
        cb.bounds.kl_ucb.rates(bandit)


LOG_NORMALS = [(0, 1, 0, 1e9), (1, 0.5, 0.2, 4), (-3, 2, 0, 1), (0, 1, 5, 9), (0, 1, 0, 0.01), (2, 0.01, 0, 100),
               (0, 30, 0, 1e6), (-700, 1, 0, 1)]


@pytest.mark.parametrize("arguments", LOG_NORMALS)
def test_a_clipped_log_normal_has_the_moments_of_its_integral(arguments):
    import mpmath
    m, s, low, high = map(mpmath.mpf, arguments)
    a, b = ((mpmath.log(end) - m) / s if end > 0 else -mpmath.inf for end in (low, high))

    def moment(power):
        middle = mpmath.exp(power * m + (power * s)**2 / 2) * (mpmath.ncdf(b - power * s) - mpmath.ncdf(a - power * s))
        return low**power * mpmath.ncdf(a) + middle + high**power * mpmath.ncdf(-b)

    law = cb.ClippedLogNormal(*arguments)
    with mpmath.workdps(60):
        mean = moment(1)
        assert law.mean == pytest.approx(float(mean), rel=1e-12)
        assert law.variance == pytest.approx(float(moment(2) - mean**2), rel=1e-10, abs=1e-14 * law.mean**2 + 1e-300)
    x = law.sample(np.random.default_rng(2), 20_000)
    assert law.support[0] <= x.min() and x.max() <= law.support[1]
    assert abs(x.mean() - law.mean) <= 5.3 * (law.variance / 20_000)**0.5 + 1e-9 * law.mean    # one in ten million
    cb.check_sampler(law)
