"""Paired comparisons: known answers, agreement with SciPy, coverage, and what heavy tails do."""

import numpy as np
import pytest
from scipy import stats

import costbandits as cb
from costbandits import statistics as st


def heavy(seed, n=300):
    rng = np.random.default_rng(seed)
    x = np.exp(1.5 * rng.normal(size=n))
    return x, 1.1 * x * np.exp(0.5 * rng.normal(size=n))


def test_bca_agrees_with_scipy():
    x, y = heavy(0)
    ours = st.mean_ratio(x, y)
    theirs = stats.bootstrap((x, y), lambda x, y, axis: x.mean(axis) / y.mean(axis), paired=True, vectorized=True,
                             n_resamples=9999, method="BCa", rng=np.random.default_rng(1)).confidence_interval
    # Two Monte Carlo estimates of one interval: they differ by a few per cent of its length.
    assert ours.low == pytest.approx(theirs.low, abs=0.1 * (theirs.high - theirs.low))
    assert ours.high == pytest.approx(theirs.high, abs=0.1 * (theirs.high - theirs.low))


def test_bootstrap_is_deterministic_and_paired():
    x, y = heavy(1)
    assert st.mean_ratio(x, y) == st.mean_ratio(x, y)
    paired, unpaired = st.mean(x - y), st.mean(x - np.random.default_rng(0).permutation(y))
    assert paired.high - paired.low < 0.7 * (unpaired.high - unpaired.low)


def test_coverage_of_the_mean():
    # 400 normal samples: an honest 95 % interval covers fewer than 91 % or more than 98.5 % with a probability of 1e-3.
    rng = np.random.default_rng(2)
    covered = [i.low <= 0 <= i.high for i in (st.mean(rng.normal(size=50)) for _ in range(400))]
    assert 0.91 < np.mean(covered) < 0.985


def test_constant_samples_have_no_width():
    assert st.mean(np.full(20, 3.0)) == st.Interval(3.0, 3.0, 3.0)
    assert st.mean_ratio(np.full(20, 3.0), np.full(20, 2.0)) == st.Interval(1.5, 1.5, 1.5)


def test_a_mean_that_can_vanish_has_an_unbounded_ratio():
    y = np.array([1.0] + [0.0] * 5)
    assert st.mean_ratio(np.arange(6.0) + 1, y).high == np.inf


def test_median_interval_is_made_of_order_statistics():
    # n = 10: binom(10, 1/2) has 1.07 % up to 1 and 5.5 % up to 2, so the interval runs from the 2nd to the 9th value.
    assert st.median(np.arange(1.0, 11.0)) == st.Interval(5.5, 2.0, 9.0)
    assert st.median(np.array([1.0, 2.0, 3.0])) == st.Interval(2.0, -np.inf, np.inf)


def test_comparison_by_hand():
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.array([2.0, 2.0, 5.0, 8.0, 7.0])
    c = st.compare(x, y, "x", "y")
    assert (c.mean_a, c.mean_b, c.replications) == (3.8, 4.8, 5)
    assert c.difference.estimate == pytest.approx(-1.0)
    assert c.median_difference.estimate == -1.0
    assert c.improvement.estimate == pytest.approx((3 + 0.5) / 5)         # three wins, one tie, one loss
    assert c.p_value == pytest.approx(2 * (1 + 4) / 16)                   # sign test, 3 of 4
    assert c.ratio.estimate == pytest.approx(3.8 / 4.8)


def test_equal_samples():
    c = st.compare(np.arange(5.0), np.arange(5.0))
    assert c.ratio == st.Interval(1.0, 1.0, 1.0)
    assert (c.improvement.estimate, c.p_value, c.decisive) == (0.5, 1.0, np.inf)


def test_worst_share_finds_the_outlier():
    x = np.r_[np.zeros(99), 100.0]
    assert st.worst_share(x) == pytest.approx(99**2 / (99**2 + 99))
    assert st.worst_share(np.ones(10)) == 0.0


def test_holm_by_hand():
    assert st.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert st.holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])


def test_extreme_ratio_takes_the_least_favourable_rival_at_its_own_length():
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 2, 200)
    found = st.extreme_ratio(x, {"worse": 2 * x, "better": (0.9 * x)[:50]})
    assert (found.rival, found.far, found.replications) == ("better", "better", 50)
    assert found.estimate == pytest.approx(1 / 0.9)
    noisy = rng.uniform(1, 2, 200)
    both, corrected = st.extreme_ratio(x, {"noisy": noisy, "double": 2 * x}), st.mean_ratio(x, noisy, 0.975)
    assert (both.low, both.high) == (corrected.low, corrected.high)         # Bonferroni: 0.975 for each of two
    alone = st.mean_ratio(x, noisy)
    assert corrected.low < alone.low and alone.high < corrected.high


def test_extreme_ratio_names_whose_end_reaches_highest():
    # The rival with the better estimate is known exactly; one that was seen ten times could be better still.
    rng = np.random.default_rng(4)
    x = rng.uniform(1, 2, 100)
    found = st.extreme_ratio(x, {"known": 1.2 * x, "little": 1.6 * rng.permutation(x)[:10]})
    assert (found.rival, found.far, found.replications) == ("known", "little", 10)
    assert (found.estimate, found.low) == pytest.approx((1 / 1.2, 1 / 1.2))
    assert found.high == found.pairs["little"][0].high > 1 / 1.2


def test_growth_slope_and_crossing():
    x = np.geomspace(0.01, 1, 25)
    line = np.log(x / x[0])[None] * np.ones((10, 1))
    assert st.growth_ratio(x, line, (0.01, 0.1, 1)).estimate == pytest.approx(1.0)
    assert st.growth_ratio(x, x[None] * np.ones((10, 1)), (0.01, 0.1, 1)).estimate == pytest.approx(0.9 / 0.09)
    assert st.log_slope(x, x[None] ** 0.75 * np.ones((10, 1)), (0.1, 1)).estimate == pytest.approx(0.75)
    assert st.crossing(x, x, np.full(25, 0.1)) == pytest.approx(0.1, rel=0.05)
    assert st.crossing(x, x, np.full(25, 2.0)) == np.inf
    assert st.crossing(x, x, np.zeros(25)) == 0.0


def test_paired_of_runs_and_of_reduced_runs_agree():
    policies = {"a": cb.OmegaUCB(), "b": cb.MUCB()}
    options = {"stop": cb.Budget(30), "replications": 12, "checkpoints": 3}
    whole = cb.simulate(policies, cb.instances.bernoulli(4), **options)
    reduced = cb.simulate(policies, cb.instances.bernoulli(4), **options,
                          reduce=lambda runs: {"regret": cb.regret.budgeted(runs)})
    assert cb.paired(whole, "a", "b") == cb.paired(reduced, "a", "b")
    table = st.dominance({"a": whole.reward[0, :, -1], "b": whole.reward[1, :, -1], "c": whole.spent[0, :, -1]})
    assert list(zip(table.a, table.b, strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert (table.p_holm >= table.p_value).all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: st.compare([1.0, 2.0], [1.0]), "equal length"),
    (lambda: st.compare([1.0, 2.0], [1.0, 3.0], confidence=1.5), r"confidence = 1.5.*\(0, 1\)"),
    (lambda: st.growth_ratio([0.1, 1.0], np.ones((2, 2)), (0.1, 0.2, 1)), "three different checkpoints"),
    (lambda: st.log_slope([0.1, 1.0], np.ones((2, 2)), (1, 1)), "two different checkpoints"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
