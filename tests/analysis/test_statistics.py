"""Paired comparisons: known answers, agreement with SciPy, coverage, and what heavy tails do."""

import pickle
import re
from functools import partial

import numpy as np
import pytest
from scipy import stats

import costbandits as cb
from costbandits.analysis import statistics as st
from costbandits.checks import require


def heavy(seed, n=300):
    rng = np.random.default_rng(seed)
    x = np.exp(1.5 * rng.normal(size=n))
    return x, 1.1 * x * np.exp(0.5 * rng.normal(size=n))


def test_bca_agrees_with_scipy():
    x, y = heavy(0)
    ours = st.mean_ratio(x, y)
    theirs = stats.bootstrap((x, y), lambda x, y, axis: x.mean(axis) / y.mean(axis), paired=True, vectorized=True,
                             n_resamples=9999, method="BCa", random_state=np.random.default_rng(1)).confidence_interval
    # Two Monte Carlo estimates of one interval: they differ by a few per cent of its length.
    assert ours.low == pytest.approx(theirs.low, abs=0.1 * (theirs.high - theirs.low))
    assert ours.high == pytest.approx(theirs.high, abs=0.1 * (theirs.high - theirs.low))


def test_bootstrap_is_deterministic_and_paired():
    x, y = heavy(1)
    assert st.mean_ratio(x, y) == st.mean_ratio(x, y)
    paired, unpaired = st.mean(x - y), st.mean(x - np.random.default_rng(0).permutation(y))
    assert paired.high - paired.low < 0.7 * (unpaired.high - unpaired.low)


def test_the_acceleration_of_a_mean_is_a_sixth_of_its_standardised_skewness():
    # Efron (1987): of a mean it is skewness / (6 sqrt(n)), above 0 where the right tail is the longer one.
    x = heavy(2, n=80)[0]
    for sample in (x, -x, np.r_[np.zeros(7), 1.0]):
        estimate, draws, left_out = (each[..., 0] for each in st._means([sample]))
        _, acceleration = st._bias_and_acceleration(estimate, draws, left_out)
        assert acceleration == pytest.approx(stats.skew(sample) / (6 * np.sqrt(len(sample))), rel=1e-9)


def test_bca_by_its_formula():
    # Efron (1987, Eq. 2.3): the ends are the quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of the resampled means.
    x = np.r_[np.zeros(25), 1.0, 2.0, 9.0]
    means, a = st.resamples(len(x)) @ x, stats.skew(x) / (6 * np.sqrt(len(x)))
    sums = np.rint(st.resamples(len(x)) * len(x)) @ x                           # whole numbers: ties are exact
    z0 = stats.norm.ppf((sums < x.sum()).mean() + (sums == x.sum()).mean() / 2)
    assert a > 0.1 and z0 > 0.1                                                 # each of the corrections matters
    ends = [stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z))) for z in stats.norm.ppf([0.025, 0.975])]
    found = st.mean(x)
    assert (found.estimate, found.low, found.high) == pytest.approx((x.mean(), *np.quantile(means, ends)), rel=1e-9)


@pytest.mark.parametrize("interval", [st.mean, lambda x, level: st.mean_ratio(x, x + 1, level)])
def test_a_level_that_the_resamples_cannot_carry_is_refused(interval):
    x = np.arange(20.0) ** 2
    wide, wider = interval(x, 0.99), interval(x, 0.9996)
    assert wider.low < wide.low < wide.high < wider.high
    with pytest.raises(ValueError, match=r"confidence = 0.9997: must be at most 0.9996: one of 4,999 resamples"):
        interval(x, 0.9997)


def test_an_end_that_no_level_reaches_is_the_last_resample():
    x = np.r_[np.zeros(60), 1.0]
    bias, acceleration = st._bias_and_acceleration(*(each[..., 0] for each in st._means([x])))
    assert acceleration * (bias + stats.norm.ppf(0.9998)) < 1          # at every level that is allowed, by a margin
    assert st.mean(x, 0.9996).high <= (st.resamples(len(x)) @ x).max()
    draws = np.linspace(-1.0, 1.0, st.RESAMPLES)                       # all below the estimate, and a long right tail
    found = st._bootstrap(lambda means: means, (2.0, draws, np.r_[np.zeros(99), -1.0]), 0.9996)
    assert found.high == draws[-1] and found.low > draws[0]


def test_a_ratio_of_medians_is_of_values_that_are_not_negative():
    x = np.arange(1.0, 10.0)
    assert st.median_ratio(x, 2 * x).high < 1
    with pytest.raises(ValueError, match=r"the smallest of x and y = -18.0: must be 0 or more"):
        st.median_ratio(-x, -2 * x)


def test_a_bootstrap_that_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(st, "affordable", lambda name, value, size: require(size < 10**6, name, value, "is too much"))
    with pytest.raises(ValueError, match="replications = 500: is too much"):
        st.resamples(500)


def test_coverage_of_the_mean():
    # 400 normal samples: an honest 95 % interval covers fewer than 91 % or more than 98.5 % with a probability of 1e-3.
    rng = np.random.default_rng(2)
    covered = [i.low <= 0 <= i.high for i in (st.mean(rng.normal(size=50)) for _ in range(400))]
    assert 0.91 < np.mean(covered) < 0.985


def test_constant_samples_have_no_width():
    assert st.mean(np.full(20, 3.0)) == st.Interval(3.0, 3.0, 3.0)
    assert st.mean_ratio(np.full(20, 3.0), np.full(20, 2.0)) == st.Interval(1.5, 1.5, 1.5)


def test_samples_that_are_constant_but_for_rounding_have_no_width_and_others_do():
    x = np.array([0.3, 0.1 + 0.2] * 10)
    assert np.ptp(x) > 0 and st.mean(x).low == st.mean(x).high == st.mean(x).estimate == pytest.approx(0.3)
    for off, wide in ((1e-14, False), (1e-10, True)):
        found = st.mean(x + off * np.arange(20))
        assert (found.low < found.high) == wide
        duel = st.tournament({"a": x + 2 + off * 100 * np.arange(20), "b": x}).iloc[0]
        assert (duel.difference_low < duel.difference_high) == wide and duel.p_mean == 0
    same = st.tournament({"a": x, "b": x}).iloc[0]
    assert (same.p_mean, same.difference_low, same.difference_high) == (1, 0, 0)


def test_a_mean_that_can_vanish_has_an_unbounded_ratio():
    y = np.array([1.0] + [0.0] * 5)
    assert st.mean_ratio(np.arange(6.0) + 1, y).high == np.inf


def test_medians_of_what_is_infinite_and_of_one_value():
    assert st.median([1.0] * 9 + [np.inf] * 11).estimate == np.inf
    assert st.median([5.0]) == st.Interval(5.0, -np.inf, np.inf)


def test_median_interval_is_made_of_order_statistics():
    # n = 10: binom(10, 1/2) has 1.07 % up to 1 and 5.5 % up to 2, so the interval runs from the 2nd to the 9th value.
    assert st.median(np.arange(1.0, 11.0)) == st.Interval(5.5, 2.0, 9.0)
    assert st.median(np.array([1.0, 2.0, 3.0])) == st.Interval(2.0, -np.inf, np.inf)


@pytest.mark.parametrize("y, means, wins", [([2.0, 2.0, 5.0, 8.0, 7.0], "undecided", 70),
                                            ([7.0, 8.0, 9.0, 9.0, 15.0], "smaller", 100),
                                            ([0.5, 1.5, 2.5, 3.5, 8.5], "larger", 0)])
def test_a_comparison_in_words_says_how_the_means_compare(y, means, wins):
    said = str(st.compare([1.0, 2.0, 3.0, 4.0, 9.0], y, "mine", "theirs"))
    assert re.fullmatch(rf"mean of mine over theirs: \d\.\d+ \[\d\.\d+, \d\.\d+\], {means}; "
                        rf"mine wins {wins}% of 5 replications \(ties half\)", said)


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


def test_a_comparison_has_the_columns_of_a_table():
    c = st.compare([1.0, 2.0, 9.0], [2.0, 2.0, 7.0], "x", "y")
    row = c.as_dict()
    assert list(row)[:5] == ["a", "b", "replications", "mean_a", "mean_b"]
    assert list(row)[-4:] == ["p_value", "worst_share_a", "worst_share_b", "decisive"]
    assert (row["mean_a"], row["p99_b"], row["median_b"]) == (c.mean_a, c.p99_b, c.median_b)
    assert (row["worst_share_a"], row["worst_share_b"]) == (c.worst_share_a, c.worst_share_b)
    assert (row["ratio_low"], row["decisive"]) == (c.ratio.low, c.decisive)
    assert pickle.loads(pickle.dumps(c)) == c


def test_worst_share_finds_the_outlier():
    x = np.r_[np.zeros(99), 100.0]
    assert st.worst_share(x) == pytest.approx(99**2 / (99**2 + 99))
    assert st.worst_share(np.ones(10)) == st.worst_share([1.1] * 100) == 0.0
    # Of 300 values the three largest, of 20 the largest: 1 % of them, rounded, one at least.
    many = np.r_[np.zeros(296), 1.0, 8.0, 9.0, 10.0]
    squares = (many - many.mean())**2
    assert st.worst_share(many) == pytest.approx(squares[-3:].sum() / squares.sum(), rel=1e-12)
    assert st.worst_share(many, 0.5 / 300) == pytest.approx(squares[-1] / squares.sum(), rel=1e-12)
    assert st.worst_share(many, 4 / 300) == pytest.approx(squares[-4:].sum() / squares.sum(), rel=1e-12)
    assert st.worst_share(many, 2.9 / 300) == st.worst_share(many)


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


def test_samples_of_different_lengths_are_paired_on_their_first_replications():
    # The pairs agree in the first four replications, and in nothing after them: their differences are exactly 1.
    short, long = np.array([3.0, 1.0, 2.0, 5.0]), np.array([4.0, 2.0, 3.0, 6.0, 100.0, 0.0, 7.0, 50.0])
    for a, b, sign in (("short", "long", -1), ("long", "short", 1)):
        row = st.table({"short": short, "long": long}, [(a, b)]).iloc[0]
        assert (row.replications, row.difference_low, row.difference_high) == (4, sign, sign)
        assert row[f"mean_{'ab'[a == 'short']}"] == 3.75                                        # of 4, 2, 3, 6
    for x, y, ratio in ((long[:4], 2 * long, 0.5), (2 * long, long[:4], 2.0)):
        found = st.extreme_ratio(x, {"y": y})
        assert (found.estimate, found.low, found.high, found.replications) == (ratio, ratio, ratio, 4)


@pytest.mark.parametrize(("won", "n"), [(0, 5), (3, 7), (8, 10), (50, 50), (412, 1000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_a_share_has_wilsons_interval(won, n, confidence):
    theirs, ours = stats.binomtest(won, n).proportion_ci(confidence, method="wilson"), st.share(won, n, confidence)
    assert (ours.estimate, ours.low, ours.high) == pytest.approx((won / n, theirs.low, theirs.high), abs=1e-12)


def test_an_inverse_by_hand():
    """Its ends change places; an interval with 0 in it may be the inverse of anything."""
    Interval = st.Interval
    assert Interval(0.5, 0.25, 2.0).inverse() == Interval(2.0, 0.5, 4.0)
    assert Interval(-4.0, -8.0, -2.0).inverse() == Interval(-0.25, -0.5, -0.125)
    assert Interval(1.0, 0.5, np.inf).inverse() == Interval(1.0, 0.0, 2.0)
    assert Interval(2.0**-700, 2.0**-701, 2.0**-699).inverse() == Interval(2.0**700, 2.0**699, 2.0**701)
    for low, high in ((-1.0, 2.0), (0.0, 2.0), (-np.inf, np.inf), (0.0, np.inf)):
        assert Interval(1.0, low, high).inverse() == Interval(1.0, -np.inf, np.inf)
    assert Interval(0.0, 0.0, 2.0).inverse() == Interval(np.inf, -np.inf, np.inf)


def test_replications_needed_by_hand():
    # The longer arm of the interval, 0.4, has to shrink to the border's distance, 0.2: four times the replications.
    for interval in (st.Interval(0.2, 0.1, 0.6), st.Interval(0.2, -0.2, 0.3)):
        assert interval.needed(50) == pytest.approx(200)


def test_growth_slope_and_crossing():
    x = np.geomspace(0.01, 1, 25)
    line = np.log(x / x[0])[None] * np.ones((10, 1))
    assert st.growth_ratio(x, line, (0.01, 0.1, 1)).estimate == pytest.approx(1.0)
    assert st.growth_ratio(x, line, (0.01, 0.1, 0.3)).estimate == pytest.approx(1.0)
    assert st.growth_ratio(x, x[None] * np.ones((10, 1)), (0.01, 0.1, 1)).estimate == pytest.approx(0.9 / 0.09)
    assert st.log_slope(x, x[None] ** 0.75 * np.ones((10, 1)), (0.1, 1)).estimate == pytest.approx(0.75)
    assert st.crossing(x, x, np.full(25, 0.1)) == pytest.approx(0.1, rel=0.05)
    assert st.crossing(x, x, np.full(25, 2.0)) == np.inf
    assert st.crossing(x, x, np.zeros(25)) == 0.0
    # Between 1 and 10 they meet where log10 x is 1/4 of the way: from -1 below to 3 above; before and after they may
    # touch. A curve that ends where the other does, or below it, has not risen above it.
    assert st.crossing([1, 10, 100], [-1, 3, 5], [0, 0, 0]) == pytest.approx(10**0.25, rel=1e-12)
    assert st.crossing([1, 10, 100, 1000], [1, 0, -2, 2], [0, 0, 0, 0]) == pytest.approx(10**2.5, rel=1e-12)
    assert st.crossing([1, 10, 100], [-1, 0, 5], [0, 0, 0]) == pytest.approx(10, rel=1e-12)
    assert [st.crossing([1, 10], [-1, end], [0, 0]) for end in (0, -0.5)] == [np.inf] * 2
    assert [st.crossing([1, 10], [begin, 1], [0, 0]) for begin in (0.5, 2.0)] == [0] * 2
    assert st.crossing([1, 10], [0, 1], [0, 0]) == 1 and st.crossing([1, 2, 4, 8], [-1, 1, 0, 1], [0] * 4) == 4


def test_paired_of_what_only_the_end_was_kept_of():
    study = {"policies": {"a": cb.MUCB(), "b": cb.CUCB()}, "bandits": cb.instances.beta(3), "stop": cb.Budget(20),
             "replications": 10}
    end = cb.simulate(**study, reduce=lambda runs: {"regret": cb.regret.budgeted(runs)[:, :, -1]})
    assert cb.paired(end, "a", "b") == cb.paired(cb.simulate(**study), "a", "b")


def test_where_neither_has_lost_anything_the_ratio_is_1():
    assert st.median_ratio(np.zeros(9), np.zeros(9)) == st.Interval(1.0, 1.0, 1.0)
    assert st.median_ratio(np.r_[np.zeros(5), 2.0, 3.0], np.r_[np.zeros(5), 1.0, 1.0]).estimate == 1.0


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


def test_a_tournament_by_hand():
    a, b = np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.array([2.0, 2.0, 5.0, 8.0, 7.0])
    pairs = st.tournament({"a": a, "b": b, "twin of a": a.copy()})
    assert list(zip(pairs.a, pairs.b, strict=True)) == [("a", "b"), ("a", "twin of a"), ("b", "twin of a")]
    assert pairs.ties.tolist() == [1, 5, 1]
    assert pairs.wins.tolist() == pytest.approx([0.7, 0.5, 0.3])                # three wins, one tie, one loss
    assert pairs.p_wins.tolist() == pytest.approx([2 * (1 + 4) / 16, 1, 2 * (1 + 4) / 16])
    assert pairs.difference.tolist() == pytest.approx([-1, 0, 1])
    assert pairs.p_mean[1] == 1 and (pairs.difference_low[1], pairs.difference_high[1]) == (0, 0)
    assert pairs.p_mean[0] == pytest.approx(pairs.p_mean[2])                    # whoever is named first
    for what in ("wins", "mean"):
        assert pairs[f"p_{what}_holm"].tolist() == pytest.approx(st.holm(pairs[f"p_{what}"]).tolist())


def test_a_tournament_agrees_with_the_comparison_of_a_pair():
    x, y = heavy(7)
    pair, single = st.tournament({"x": x, "y": y}).iloc[0], st.compare(x, y)
    length = single.difference.high - single.difference.low
    assert [pair.difference, pair.difference_low, pair.difference_high] == pytest.approx(
        [*vars(single.difference).values()], abs=1e-9 * length)
    assert [pair.wins, pair.wins_low, pair.wins_high] == pytest.approx([*vars(single.improvement).values()])
    assert pair.p_wins == pytest.approx(single.p_value)


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_p_value_of_a_mean_is_the_level_at_which_its_interval_ends_at_0(seed):
    x = np.random.default_rng(seed).exponential(size=300)
    d = x - x.mean() + 0.1                                                      # skewed, its mean 1.7 s.e. above 0
    p = st.tournament({"a": d, "b": np.zeros(300)}).p_mean[0]
    assert 0.02 < p < 0.2
    assert st.mean(d, 1 - p).low == pytest.approx(0, abs=2e-3)                  # 0.03 s.e.: one resample more or less


@pytest.mark.parametrize(("n", "ones"), [(10, 3), (30, 9), (250, 75)])
def test_resampled_means_that_equal_the_estimate_but_for_rounding_count_half(n, ones):
    x = np.r_[np.ones(ones), np.zeros(n - ones)]
    sums = np.rint(st.resamples(n) * n) @ x
    z0 = stats.norm.ppf((sums < ones).mean() + (sums == ones).mean() / 2)
    estimate, draws, left_out = (each[..., 0] for each in st._means([x]))
    assert st._bias_and_acceleration(estimate, draws, left_out)[0] == pytest.approx(z0, abs=1e-12)
    found = st.compare(x + 0.1, np.full(n, 0.1)).difference                     # sums that are not whole
    assert vars(found) == pytest.approx(vars(st.mean(x)))


def test_who_else_plays_changes_no_pair_of_a_tournament():
    rng = np.random.default_rng(0)
    pair = {"a": rng.exponential(size=100), "b": rng.exponential(size=100)}
    alone = st.tournament(pair).iloc[0, :-2]
    for worst in (1e9, 1e12, 1e15):
        assert st.tournament({**pair, "lost": rng.uniform(0, worst, 100)}).iloc[0, :-2].equals(alone)


def test_samples_that_are_equal_but_for_rounding_are_equal():
    x = np.random.default_rng(0).uniform(1, 2, 50)
    pairs = st.tournament({"a": x, "b": x / 3 * 3})
    assert (pairs.ties[0], pairs.p_wins[0], pairs.p_mean[0]) == (50, 1, 1)
    assert st.compare(x, x / 3 * 3).difference == st.Interval(0.0, 0.0, 0.0)


def test_a_difference_in_one_replication_is_seen_however_large_others_are():
    x = np.random.default_rng(0).uniform(0, 1e6, 1000)
    x[0] = 1e6
    y = x.copy()
    y[5] += 2e-4
    found = st.compare(x, y)
    assert found.difference.estimate == pytest.approx(-2e-7, rel=1e-3)
    assert found.difference.low < found.difference.high <= 0
    assert (found.improvement.estimate, st.tournament({"x": x, "y": y}).ties[0]) == (0.5005, 999)
    few = np.r_[np.arange(1.0, 10.0), 1e9]
    assert st.compare(few, few + np.r_[np.full(9, 4e-4), 0.0]).improvement.estimate == 0.95
    infinite = st._difference(np.array([1.0, 2.0, 3.0, np.inf]), np.array([2.0, 3.0, 4.0, 5.0]))
    assert st._who_wins(infinite, 0.95)[0].estimate == 0.75


def test_a_large_mean_widens_no_interval():
    x = np.random.default_rng(1).exponential(size=100)
    for offset in (1e6, 1e9):
        far, near = vars(st.mean(x + offset)), vars(st.mean(x))
        assert far == pytest.approx({end: value + offset for end, value in near.items()}, abs=1e-3)
    same = st.tournament({"x": x + 1e12, "y": x + 1e12})
    assert (same.p_mean[0], same.ties[0]) == (1, 100)


def test_equal_but_for_rounding_is_a_tie_everywhere():
    x = np.random.default_rng(0).uniform(1, 2, 50)
    for y in (x / 3 * 3, x + 1e-13):
        assert st.tournament({"x": x, "y": y}).wins[0] == 0.5
        assert vars(st.median_ratio(x, y)) == {"estimate": 1, "low": 1, "high": 1}


def test_a_ratio_that_never_changes_is_certain():
    y = np.random.default_rng(0).normal(size=50)
    for x, ratio in ((2 * y, 2.0), (-y / 3, -1 / 3), (0 * y, 0.0), (y, 1.0)):
        assert vars(st.mean_ratio(x, y)) == pytest.approx({"estimate": ratio, "low": ratio, "high": ratio})


@pytest.mark.parametrize("y", [np.array([1.0, 2.0, -3.0, 20.0, 20.0, 20.0]) / part for part in (1, 3, 7)])
def test_a_resample_of_mean_0_leaves_a_ratio_open_however_it_rounds(y):
    assert st.mean_ratio(np.arange(5.0, 11.0), y).high == np.inf


def test_whether_a_ratio_is_bounded_is_a_question_of_the_level():
    # Of the resampled means of y 1.5 in a hundred are below 0: so at 95 % its sign is known, at 98 and 99 % open.
    rng = np.random.default_rng(2)
    x, y = rng.normal(1, 1, 100), rng.normal(0.22, 1, 100)
    below = (st.resamples(100) @ y < 0).mean()
    assert 0.01 < below < 0.02
    for sign in (1, -1):
        assert np.isfinite(st.mean_ratio(x, sign * y).high) and np.isfinite(st.mean_ratio(x, sign * y).low)
        for level in (0.98, 0.99):      # at 98 % more than 1 in a hundred leave it open, on either side of 0
            found = st.mean_ratio(x, sign * y, level)
            assert (found.low, found.high) == (-np.inf, np.inf)


def test_a_ratio_is_unbounded_where_the_sign_of_its_denominator_is_open():
    # 200 ratios of normal means, the denominator's 1 standard error from 0: 180 or fewer covered by chance with 3e-3.
    rng = np.random.default_rng(0)
    found = [st.mean_ratio(rng.normal(1, 1, 100), rng.normal(0.1, 1, 100)) for _ in range(200)]
    assert sum(each.low <= 10 <= each.high for each in found) > 180


@pytest.mark.parametrize("seed", range(3))
def test_where_most_replications_are_ties_rounding_takes_no_side(seed):
    d = np.zeros(250)
    d[:4] = 1.0, 1.0, -1.0, 1.0
    common = np.random.default_rng(seed).uniform(100, 200, 250)                 # what both lose in a replication
    coarse, fine = np.floor(common), np.floor(common) + common[::-1] / 3
    exact = st.tournament({"a": d, "b": np.zeros(250)}).iloc[0]
    for base in (coarse, fine, fine[::-1] * 1e6):
        scaled = d * (1e6 if base[0] > 1e3 else 1.0)
        pair = st.tournament({"a": base + scaled, "b": base}).iloc[0]
        assert pair.p_mean == pytest.approx(exact.p_mean, rel=1e-6) and pair.ties == 246


def test_a_difference_far_beyond_the_resamples_has_a_p_value_that_many_pairs_leave_significant():
    x = np.random.default_rng(0).normal(size=200)
    p = st.tournament({"a": x, "b": np.full(200, 1.0)}).p_mean[0]               # 14 standard errors
    assert 0 <= p < 1e-20                                   # its value: test_units.py
    # So far out that BCa's formula turns back, where acceleration times distance is -1.5, there is no level.
    x = np.r_[np.full(9, 0.95), 1.95]
    turn = stats.skew(x) / (6 * 10**0.5) * x.mean() / (st.resamples(10) @ x).std()
    assert 1.4 < turn < 1.7 and st.tournament({"a": x, "b": np.zeros(10)}).p_mean[0] == 0
    assert st.tournament({"a": np.arange(9.0), "b": np.arange(9.0) + 2}).p_mean[0] == 0


@pytest.mark.slow
def test_false_verdicts_of_a_tournament_are_rare():
    # 50 tournaments of three policies with one heavy-tailed law. With a family-wise error of 5 % there are more than 9
    # with a false verdict with a probability of 2e-4, by the mean and by wins each.
    rng, false = np.random.default_rng(5), {"p_mean_holm": 0, "p_wins_holm": 0}
    for _ in range(50):
        pairs = st.tournament({label: np.exp(rng.normal(size=100)) for label in "abc"})
        for name in false:
            false[name] += int((pairs[name] < 0.05).any())
    assert max(false.values()) <= 9
    assert false["p_mean_holm"] > 0                                             # not by never deciding


@pytest.mark.slow
def test_at_a_small_level_a_heavy_tail_is_called_better_too_easily():
    """As the tournament's notebook says: one run in a hundred locked, equal means, exponential losses of such runs."""
    rng, n, pairs = np.random.default_rng(0), 250, 1000
    locked = (rng.random((n, pairs)) < 0.01) * rng.exponential(50, (n, pairs))
    d = rng.lognormal(0, 0.5, (n, pairs)) + locked - rng.lognormal(0, 0.5, (n, pairs)) - 0.5
    estimates, draws, left_out = d.mean(axis=0), st.resamples(n) @ d, (d.sum(axis=0) - d) / (n - 1)
    p = np.array([st._p_value(*each) for each in zip(estimates, draws.T, left_out.T, strict=True)])
    # 15,000 pairs more gave 15.8 % and 22.4 %, most for the heavy tail; the bounds are four standard errors away.
    assert 0.11 < (p < 0.0005).mean() < 0.205 and (estimates[p < 0.0005] < 0).mean() > 0.95
    assert 0.17 < (p < 0.05).mean() < 0.28


def test_a_typical_ratio_by_hand():
    # Ratios of means 1/2 and 8: their geometric mean is 2.
    found = st.typical_ratio([[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]], [[4.0, 2.0, 6.0], [1.0, 0.5, 1.5]])
    assert found.estimate == pytest.approx(2) and found.low < 2 < found.high


def test_a_typical_ratio_does_not_depend_on_units():
    x, y = np.random.default_rng(4).exponential(size=(2, 3, 60))
    units = np.array([[1.0], [100.0], [0.01]])
    assert vars(st.typical_ratio(x, y)) == pytest.approx(vars(st.typical_ratio(x * units, y * units)))


def test_a_typical_ratio_of_one_family_is_a_ratio_of_means():
    x, y = np.random.default_rng(3).exponential(size=(2, 80))
    one, usual = st.typical_ratio([x], [y]), st.mean_ratio(x, y)
    assert [one.estimate, one.low, one.high] == pytest.approx([usual.estimate, usual.low, usual.high])


def test_standings_count_who_is_better_beyond_doubt():
    rng = np.random.default_rng(6)
    common = rng.exponential(size=400)
    values = {"good": common, "twin": common.copy(), "bad": common + rng.uniform(0, 1, 400)}
    table = st.standings(values, st.tournament(values))
    assert table.better_mean.to_dict() == table.better_wins.to_dict() == {"good": 0, "twin": 0, "bad": 2}
    assert table.loc["good", ["mean", "median", "p95", "p99", "worst"]].tolist() == pytest.approx(
        [common.mean(), *np.quantile(common, [0.5, 0.95, 0.99]), common.max()])


def test_mean_and_wins_can_name_different_policies():
    # The gambler wins nine games of ten and loses the tenth by a hundred.
    gambler = np.where(np.arange(500) % 10 == 0, 100.0, 0.0)
    values = {"gambler": gambler, "steady": np.ones(500)}
    table = st.standings(values, st.tournament(values))
    assert table.better_mean.tolist() == [1, 0] and table.better_wins.tolist() == [0, 1]


def test_wins_can_go_in_a_circle():
    # Rock, paper, scissors: each beats the next in two thirds of the replications, so nobody is unbeaten.
    values = {label: np.roll([1.0, 2.0, 3.0] * 100, i) for i, label in enumerate("abc")}
    table = st.standings(values, st.tournament(values))
    assert table.better_wins.tolist() == [1, 1, 1] and table.better_mean.tolist() == [0, 0, 0]


def test_each_interval_has_the_level_that_is_asked_for():
    x, y = heavy(7)
    c, d = st.compare(x, y, confidence=0.5), x - y
    for found, expected in ((c.difference, st.mean(d, 0.5)), (c.median_difference, st.median(d, 0.5))):
        assert list(vars(found).values()) == pytest.approx(list(vars(expected).values()))
    assert (c.ratio, c.improvement) != (st.compare(x, y).ratio, st.compare(x, y).improvement)
    (pair,) = st.tournament({"x": x, "y": y}, 0.5).itertuples()
    assert (pair.difference_low, pair.difference_high) == pytest.approx((c.difference.low, c.difference.high))
    (row,) = st.dominance({"x": x, "y": y}, 0.5).itertuples()
    assert (row.ratio_low, row.ratio_high) == (c.ratio.low, c.ratio.high)


def test_standings_go_by_corrected_p_values():
    values = {label: np.arange(4.0) + i for i, label in enumerate("abc")}
    pairs = st.tournament(values).assign(p_mean=0.01, p_wins=0.01, p_mean_holm=0.2, p_wins_holm=0.2)
    assert (st.standings(values, pairs)[["better_mean", "better_wins"]] == 0).all(axis=None)
    pairs = pairs.assign(p_mean_holm=0.03, p_wins_holm=0.03)
    assert [st.standings(values, pairs, level).better_mean.sum() for level in (0.01, 0.05)] == [0, 3]


def test_the_worst_values_are_the_largest_on_one_side():
    # Of -100 and 99 zeros the largest value is a 0, 1 above the mean: 1 of 99^2 + 99.
    assert st.worst_share(np.r_[np.zeros(99), -100.0]) == pytest.approx(1 / (99**2 + 99))


def test_a_typical_ratio_is_a_geometric_mean_and_no_median():
    assert st.typical_ratio([[2.0, 2.0]] * 2 + [[16.0, 16.0]], [[2.0, 2.0]] * 3).estimate == pytest.approx(2)


def test_the_nearest_checkpoint_is_nearest_in_the_logarithm():
    # 0.04 is 4 times 0.01, and 0.1 is 2.5 times 0.04.
    x, values = np.array([0.01, 0.1, 1.0]), np.array([[1.0, 2.0, 8.0], [1.0, 2.0, 8.0]])
    assert st.log_slope(x, values, (0.04, 1)) == st.log_slope(x, values, (0.1, 1)) != st.log_slope(x, values, (0.01, 1))


def test_the_lower_end_of_a_largest_ratio_is_the_highest_of_all():
    # One rival's ratio is the larger one and hardly known; the other's is known to be 1/1.2: so much it is at least.
    x = np.random.default_rng(4).uniform(1, 2, 100)
    found = st.extreme_ratio(x, {"known": 1.2 * x, "little": np.random.default_rng(2).permutation(x)[:10]})
    assert found.rival == "little" and found.pairs["little"][0].low < 1 / 1.2
    assert found.low == pytest.approx(1 / 1.2)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: st.compare([1.0, 2.0], [1.0]), "equal length"),
    (lambda: st.compare([1.0, 2.0], [1.0, 3.0], confidence=1.5), r"confidence = 1.5.*\(0, 1\)"),
    (lambda: st.growth_ratio([0.1, 1.0], np.ones((2, 2)), (0.1, 0.2, 1)), "split = .*3 checkpoints in incr"),
    (lambda: st.log_slope([0.1, 1.0], np.ones((2, 2)), (1, 1)), "ends = .*2 checkpoints in increasing order"),
    (lambda: st.tournament({"a": [1.0, 2.0], "b": [1.0]}), r"samples = {'a': \(2,\), 'b': \(1,\)}.*equal length"),
    (lambda: st.typical_ratio([[1.0, 2.0]], [[1.0, 2.0]] * 2), r"families = \(1, 2\): must be as many"),
    (lambda: st.tournament({"a": [1.0, 2.0]}), "two or more"),
    (lambda: st.tournament({"a": [1.0, 2.0], "b": [1.0, 2.0]}, confidence=95), r"confidence = 95.*\(0, 1\)"),
    *((lambda f=f, x=x: f(x), r"sample x = .*, 2 or more, without NaN")
      for f in (st.mean, lambda x: st.mean_ratio(x, x), lambda x: st.median_ratio(x, x), lambda x: st.compare(x, x),
                lambda x: st.extreme_ratio(x, {"a": x}))
      for x in ([5.0], [], [1.0, 2.0, np.nan], np.ones((3, 2)))),
    *((lambda x=x: st.median(x), "without NaN") for x in ([], [1.0, np.nan], 3.0)),
    (lambda: st.tournament({"a": [1.0, np.nan], "b": [1.0, 2.0]}), "sample a = .*1 NaN"),
    (lambda: st.tournament({"a": [1.0, 2.0], "b": [1.0, np.nan]}), "sample b = .*1 NaN"),
    (lambda: st.tournament({"a": [1.0], "b": [2.0]}), r"sample a = .*, 2 or more"),
    (lambda: st.mean_ratio([1.0, 2.0, 3.0], [1.0, 2.0]), "equal length"),
    (lambda: st.median_ratio([1.0, 2.0, 3.0], [1.0]), "equal length"),
    (lambda: st.extreme_ratio([1.0, 2.0], {}), "rivals = {}: must be one or more"),
    (lambda: st.log_slope([0.1, 1.0], np.ones((1, 2)), (0.1, 1)), "2 or more"),
    *((lambda f=f: f(confidence=95), r"confidence = 95.*\(0, 1\)")
      for f in (partial(st.mean, [1.0, 2.0]), partial(st.mean_ratio, [1.0, 2.0], [1.0, 3.0]),
                partial(st.median, [1.0, 2.0]), partial(st.extreme_ratio, [1.0, 2.0], {"a": [1.0, 3.0]}),
                partial(st.share, 1, 2))),
    (lambda: st.share(0, 0), "n = 0: must be a whole number, 1 or more"),
    (lambda: st.share(3, 2), "must be 0 to n"),
    (lambda: st.worst_share([]), r"x = .*\(0,\).*1 or more"),
    (lambda: st.worst_share([1.0], worst=1), r"worst = 1: must be in \(0, 1\)"),
    (lambda: st.holm([0.1, np.nan]), r"p_values\[1\] = nan: must be numbers in \[0, 1\]"),
    (lambda: st.table({"a": [1.0, 2.0]}, [("a",)]), r"pairs = \[\('a',\)\]: must be one or more pairs among \['a'\]"),
    (lambda: st.dominance({"a": [1.0, 2.0]}), r"pairs = \[\]: must be one or more pairs among \['a'\]"),
    (lambda: st.table({"a": [1.0, 2.0]}, [("a", "b")]), r"pairs = \[\('a', 'b'\)\].*among \['a'\]"),
    (lambda: st.growth_ratio([0.1, 0.5, 1.0], np.ones((2, 2)), (0.1, 0.5, 1)), r"must be \(C,\) and \(repl"),
    (lambda: st.log_slope([-1.0, 1.0], np.ones((2, 2)), (0.1, 1)), "x above 0"),
    (lambda: st.crossing([1, 2], [1, 2, 3], [1, 2, 3]), r"must be \(C,\) both"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_question_that_is_settled_needs_no_more_runs():
    assert cb.statistics.extreme_ratio([1, 2, 4], {"BTS": [2, 4, 8]}).needed(3, 1.0) <= 3


def test_a_ratio_of_zeros_may_be_any_whoever_comes_first():
    rivals = {"a": [0, 0], "b": [1, 2]}
    for order in (rivals, dict(reversed(rivals.items()))):
        with np.errstate(invalid="ignore", divide="ignore"):
            found = cb.statistics.extreme_ratio([0, 0], order)
        assert np.isnan(found.estimate) and found.high == np.inf
