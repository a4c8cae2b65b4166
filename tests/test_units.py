"""What a change of the unit changes, and what it does not: laws, samplers, statistics, regrets, optima and policies.

Numbers whose deviation is near 1, or that lie between 0 and 1, hide a root or a square too many. Units are powers of
2, which round nothing, and others. Each table names all that there is, so that what is new is asked, too.
"""

import inspect

import numpy as np
import pytest
from scipy import stats

import costbandits as cb
from costbandits.analysis import regret
from costbandits.analysis import statistics as st
from costbandits.environments.distributions import Distribution
from costbandits.theory import intervals, optimum

UNITS = [2.0**-70, 1e-3, 1000.0, 2.0**30]
UNIT = pytest.mark.parametrize("unit", UNITS)


def public(module, kind=inspect.isfunction):
    """Names of what a module defines for others."""
    return {name for name, thing in vars(module).items()
            if kind(thing) and thing.__module__ == module.__name__ and not name.startswith("_")}


# ---- laws and their samplers -------------------------------------------------------------------------

# Laws with a unit, and where they begin: what they are in another unit, at another place.
LAWS = {cb.Constant: lambda u, at: cb.Constant(u * 0.75 + at),
        cb.Discrete: lambda u, at: cb.Discrete([u * 2 + at, u * 3 + at, u * 7 + at], [0.25, 0.5, 0.25]),
        cb.Empirical: lambda u, at: cb.Empirical([u * 2 + at, u * 3 + at, u * 7 + at]),
        cb.TruncatedNormal: lambda u, at: cb.TruncatedNormal(u * 2 + at, u * 3, u + at, u * 9 + at)}
WITHOUT = {cb.Bernoulli, cb.Beta, cb.ClippedLogNormal}


@UNIT
@pytest.mark.parametrize("kind", LAWS)
def test_a_law_in_another_unit(kind, unit):
    assert set(LAWS) | WITHOUT == {law for law in Distribution.__subclasses__() if law.__module__.startswith("costb")}
    for at in (0.0, 16 * unit):
        one, law = LAWS[kind](1.0, 0.0), LAWS[kind](unit, at)
        assert law.mean == pytest.approx(unit * one.mean + at, rel=1e-12)
        assert law.variance == pytest.approx(unit**2 * one.variance, rel=1e-10)
        assert law.support == pytest.approx([unit * end + at for end in one.support], rel=1e-15)
        drawn, of_one = (each.sample(np.random.default_rng(1), 100) for each in (law, one))
        assert drawn == pytest.approx(unit * of_one + at, rel=1e-12)
        cb.check_sampler(law)


class Stubborn(Distribution):
    """A law that always gives one value, whatever it says of itself."""

    def __init__(self, value, mean, sd, support):
        self.value, self.mean, self.variance, self.support = value, mean, sd**2, support

    def sample(self, rng, size):
        return np.full(size, self.value)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 3000.0])
@pytest.mark.parametrize("at", [0.0, -5.0, 1e5])
def test_how_far_off_a_sampler_may_be_is_in_the_unit_of_its_law(unit, at):
    """Bernstein: sd sqrt(32 / n) + 32 width / (3 n) from the mean, and the same of squared deviations.

    For n = 10,000: with sd = 0.02 and width 4 it is 0.0011314 + 0.0042667, and 1e-9 of the mean for its rounding. A
    deviation that never shows is noticed where its square exceeds 4 sd sqrt(32 / n) + 16 * 32 / (3 n): from 0.28597 on.
    """
    support = (unit * at, unit * (at + 4))
    mean = unit * (at + 1.5)
    off = unit * (0.02 * 32**0.5 / 100 + 32 * 4 / 30_000) + 1e-9 * abs(mean)
    assert off == pytest.approx(unit * (0.0011314 + 0.0042667 + 1e-9 * abs(at + 1.5)), rel=1e-4)
    for side in (1, -1):
        cb.check_sampler(Stubborn(mean + 0.99 * side * off, mean, 0.02 * unit, support))
        with pytest.raises(ValueError, match=r"its mean = .* is too far from the mean that the law states"):
            cb.check_sampler(Stubborn(mean + 1.01 * side * off, mean, 0.02 * unit, support))
    cb.check_sampler(Stubborn(mean, mean, 0.2859 * unit, support))
    with pytest.raises(ValueError, match=r"its variance = 0\.0: is too far from the variance that the law states"):
        cb.check_sampler(Stubborn(mean, mean, 0.2861 * unit, support))


# ---- statistics --------------------------------------------------------------------------------------

def heavy(n=60):
    """Paired samples with a heavy tail, in whole numbers with a few ties; deviations far from 1."""
    rng = np.random.default_rng(8)
    x = np.rint(40 + 25 * np.exp(1.2 * rng.normal(size=n)))
    return x, np.where(rng.random(n) < 0.1, x, np.rint(x * rng.uniform(0.8, 1.5, n)))


def ends(interval, power):
    return [(power, value) for value in (interval.estimate, interval.low, interval.high)]


def of_frame(frame, *powers):
    """Columns of numbers; those whose names begin like one of `powers` are in the unit of the samples."""
    return [(int(name.startswith(powers)), value) for name in frame.select_dtypes("number") for value in frame[name]]


def reports(x, y):
    """Of all functions of samples: (power of the unit in it, value) of each number they give."""
    values = {"a": x, "b": y, "c": 1.25 * y[::-1]}
    grid, curves = np.array([0.1, 0.3, 1.0]), np.array([[v, 2 * v, 5 * v + w] for v, w in zip(x, y, strict=True)])
    money = "mean_", "median_", "p95", "p99", "difference", "worst"
    pairs = st.tournament(values)
    compared = st.compare(x, y).as_dict()
    return {
        "mean": ends(st.mean(x - y), 1), "median": ends(st.median(x), 1), "mean_ratio": ends(st.mean_ratio(x, y), 0),
        "median_ratio": ends(st.median_ratio(x, y), 0),
        "typical_ratio": ends(st.typical_ratio([x, y], [y, x[::-1]]), 0),
        "extreme_ratio": ends(st.extreme_ratio(x, {"b": y, "c": y[::-1]}), 0),
        "compare": [(int(name.startswith(money) and "share" not in name), value)
                    for name, value in compared.items() if not isinstance(value, str)],
        "worst_share": [(0, st.worst_share(x))],
        "tournament": of_frame(pairs, "difference"),
        "standings": of_frame(st.standings(values, pairs), "mean", "median", "p95", "p99", "worst"),
        "dominance": of_frame(st.dominance(values).filter(regex="^(?!worst)"), *money),
        "table": of_frame(st.table(values, [("a", "b"), ("a", "c")]).drop(
            columns=["worst_share_a", "worst_share_b"]), *money),
        "growth_ratio": ends(st.growth_ratio(grid, curves, (0.1, 0.3, 1.0)), 0),
        "log_slope": ends(st.log_slope(grid, curves, (0.1, 1.0)), 0),
        "crossing": [(0, st.crossing(grid, [x[0], x[1], x[2]], [x[0] + 1 * x[3], x[1] - x[3], x[2] - x[3]]))]}


# `paired` is `compare` of a regret; the others know no sample, or are numbers of replications.
NO_SAMPLES = {"paired", "holm", "share"}


@UNIT
def test_statistics_in_another_unit(unit):
    x, y = heavy()
    one, scaled = reports(x, y), reports(unit * x, unit * y)
    assert set(one) | NO_SAMPLES == public(st)
    for name, found in one.items():
        powers, values = zip(*found, strict=True)
        assert [value for _, value in scaled[name]] == pytest.approx(
            [unit**power * value for power, value in zip(powers, values, strict=True)], rel=1e-7), name


@UNIT
def test_a_difference_far_beyond_the_resamples_in_another_unit(unit):
    """Where no resample lies beyond 0 their normal tail goes on: BCa's level, by its formula and the resamples."""
    x = 20 + 30 * np.random.default_rng(3).gamma(2.0, size=50)
    drawn = st.resamples(50) @ x
    z0 = stats.norm.ppf((drawn < x.mean()).mean())
    w = -x.mean() / drawn.std() - z0
    expected = 2 * stats.norm.cdf(-abs(w / (1 + stats.skew(x) / (6 * 50**0.5) * w) - z0))
    assert 1e-200 < expected < 1e-20
    pair = st.tournament({"a": unit * (x + 1000), "b": np.full(50, unit * 1000)})
    assert pair.p_mean[0] == pytest.approx(expected, rel=1e-5)


@UNIT
def test_the_whole_of_a_distribution_moved(unit):
    """Means, medians and their intervals move along, and differences and who wins do not."""
    x, y = heavy()
    at = 512.0 * unit
    for function in (st.mean, st.median):
        one, moved = vars(function(x)), vars(function(unit * x + at))
        assert moved == pytest.approx({end: unit * value + at for end, value in one.items()}, rel=1e-9)
    one, moved = st.compare(x, y), st.compare(unit * x + at, unit * y + at)
    for name, power in (("difference", 1), ("median_difference", 1), ("improvement", 0)):
        assert vars(getattr(moved, name)) == pytest.approx(
            {end: unit**power * value for end, value in vars(getattr(one, name)).items()}, rel=1e-7)
    assert moved.p_value == one.p_value and moved.worst_share_a == pytest.approx(one.worst_share_a)
    assert moved.decisive == pytest.approx(one.decisive, rel=1e-6)


# ---- intervals and optima ----------------------------------------------------------------------------

@UNIT
@pytest.mark.parametrize("at", [0.0, -3.0, 20.0])
def test_an_interval_in_another_unit(unit, at):
    mean, n, z, eta = np.array([0.1, 0.5, 0.93]), 7, 1.7, 0.6
    one = np.array(intervals.asymmetric_interval(mean, n, z, eta))
    found = intervals.asymmetric_interval(unit * (mean + at), n, z, eta, unit * at, unit * (at + 1))
    assert np.array(found) == pytest.approx(unit * (one + at), rel=1e-12)
    assert intervals.asymmetry(unit * (mean + at), n, z, eta, unit * at, unit * (at + 1)) == pytest.approx(
        intervals.asymmetry(mean, n, z, eta), rel=1e-9)


@UNIT
def test_optima_in_other_units(unit):
    values, costs, budget, rate = np.array([3.0, 5.5, 2.0, 0.5]), np.array([2.0, 3.5, 1.25, 0.25]), 23.0, 1.5
    for r, c in ((unit, 1.0), (1.0, unit), (unit, 1 / unit)):
        game = r * values, c * costs
        for plan in (optimum.knapsack, optimum.greedy, optimum.rounded):
            one, found = plan(values, costs, budget), plan(*game, c * budget)
            assert found.value == pytest.approx(r * one.value) and found.counts.tolist() == one.counts.tolist()
        assert optimum.fractional(*game, c * budget) == pytest.approx(r * optimum.fractional(values, costs, budget))
        one, found = optimum.mixture(values, costs, rate), optimum.mixture(*game, c * rate)
        assert (found.value, found.price, found.floor) == pytest.approx((r * one.value, r / c * one.price,
                                                                         r * one.floor))
    assert public(optimum) == {"knapsack", "greedy", "rounded", "fractional", "mixture"}


# ---- regrets -----------------------------------------------------------------------------------------

# name -> stop rule by the unit of costs, regret, and whether it is one of rewards
REGRETS = {"budgeted": (lambda c: cb.Budget(c * 40), lambda runs: regret.budgeted(runs), True),
           "budgeted, of the budget": (lambda c: cb.Budget(c * 40), lambda runs: regret.budgeted(runs, "budget"), True),
           "knapsack": (lambda c: cb.HardBudget(c * 40), regret.knapsack, True),
           "anytime": (lambda c: cb.AnytimeBudget(c, 20), regret.anytime, True),
           "quality": (lambda c: cb.Horizon(20), lambda runs: regret.quality(runs, 0.4), True),
           "cost": (lambda c: cb.Horizon(20), lambda runs: regret.cost(runs, 0.4), False)}


@UNIT
@pytest.mark.parametrize("name", REGRETS)
def test_a_regret_in_other_units(name, unit):
    """Arms with rewards of up to 9 and costs of up to 5, in units of their own."""
    assert {each.partition(",")[0] for each in REGRETS} == public(regret)
    stop, function, of_rewards = REGRETS[name]

    def found(r, c):
        bandit = cb.Bandit([cb.Constant(r * mean) for mean in (9.0, 4.0, 6.0)],
                           [cb.Discrete([c, c * 5], [0.5, 0.5]) if name == "budgeted" else cb.Constant(c * mean)
                            for mean in (5.0, 1.5, 2.5)])
        pulls = np.array([[3, 2, 1], [5, 6, 2]])[None, None]
        rounds = np.array([[[8, 20]]])
        return function(cb.Runs(["p"], np.array([0]), np.array([0.5, 1.0]), pulls, rounds, rounds * 0, rounds * 0.0,
                                rounds * 0.0, [bandit], [stop(c)], 0))[0, 0]

    one = found(1.0, 1.0)
    assert (np.abs(one) > 0.3).any() and one.tolist() != [1, 1]
    small = min(unit, 1 / unit)         # an average budget is at most 1
    for r, c in ((unit, 1.0), (1.0, small if name == "anytime" else unit), (unit, 0.125)):
        assert found(r, c) == pytest.approx((r if of_rewards else c) * one, rel=1e-9)


# ---- policies ----------------------------------------------------------------------------------------

# Policies that may be played in units of the reader's own: by the largest reward, if they are told it.
KNOWN = {"KUBE": cb.KUBE, "fractional KUBE": cb.FractionalKUBE, "KL-UCB": cb.KLUCB, "TS": cb.KnownCostTS,
         "TS naive": lambda largest: cb.KnownCostTS(largest, naive=True),
         "eps-first": lambda largest: cb.EpsilonFirst(0.1)}
SUBSIDY = {"CS-UCB": cb.CSUCB(0.1), "CS-TS": cb.CSTS(0.1), "CS-ETC": cb.CSETC(0.1), "once": cb.CommitOnce(0.1),
           "PE": cb.PairwiseElimination(0.1), "blind": cb.BlindETC()}


@pytest.mark.parametrize(("r", "c"), [(2.0**20, 1.0), (1.0, 2.0**-9), (2.0**-7, 2.0**13)])
def test_policies_with_known_costs_in_other_units(r, c):
    """Pull for pull the same, with rewards of three values and with continuous ones."""
    def pulls(r, c):
        costs = [cb.Constant(c * cost) for cost in (1.5, 4.0, 2.25)]
        for laws in ([cb.Discrete([0.0, r * 2, r * 5], [0.5, 0.5 - p, p]) for p in (0.1, 0.4, 0.25)],
                     [cb.TruncatedNormal(r * mean, r, 0.0, r * 5) for mean in (1.0, 3.0, 2.0)]):
            yield cb.simulate({label: make(r * 5) for label, make in KNOWN.items()}, cb.Bandit(laws, costs),
                              cb.HardBudget(c * 500.25), 2, checkpoints=3).pulls.tolist()

    assert list(pulls(r, c)) == list(pulls(1.0, 1.0))


@pytest.mark.parametrize("c", [2.0**-6, 0.3])
def test_with_a_cost_subsidy_costs_are_compared_in_any_unit(c):
    def pulls(c):
        bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.4, 0.5, 0.47, 0.2)],
                           [cb.Constant(c * cost) for cost in (0.2, 1.0, 0.6, 0.1)])
        return cb.simulate(SUBSIDY, bandit, cb.Horizon(2000), 2, checkpoints=3).pulls.tolist()

    assert pulls(c) == pulls(1.0)


@pytest.mark.parametrize(("r", "c"), [(2.0**20, 1.0), (1.0, 2.0**-30), (2.0**-7, 2.0**13)])
def test_a_game_in_other_units_is_the_same_game(r, c):
    """Pulls and rounds at each checkpoint; what is spent and earned is scaled: nothing in the engine is absolute."""
    def game(r, c):
        laws = {"few": [cb.Discrete([0.0, r * 2, r * 5], [0.5, 0.5 - p, p]) for p in (0.1, 0.4, 0.25)],
                "many": [cb.TruncatedNormal(r * mean, r, 0.0, r * 5) for mean in (1.0, 3.0, 2.0)]}
        costs = {"few": [cb.Discrete([c * 0.25, c * 3], [p, 1 - p]) for p in (0.3, 0.5, 0.8)],
                 "many": [cb.TruncatedNormal(c * mean, c, c * 0.125, c * 4) for mean in (1.5, 2.0, 3.0)]}
        for kind in ("few", "many"):
            yield cb.simulate({"e": cb.EpsilonGreedy(2.0, 0.5)}, cb.Bandit(laws[kind], costs[kind]),
                              cb.Budget(c * 700), 2, seed=3, checkpoints=7)

    for one, found in zip(game(1.0, 1.0), game(r, c), strict=True):
        assert found.pulls.tolist() == one.pulls.tolist() and found.rounds.tolist() == one.rounds.tolist()
        assert found.spent == pytest.approx(c * one.spent, rel=1e-12)
        assert found.reward == pytest.approx(r * one.reward, rel=1e-12)
        assert cb.regret.budgeted(found) == pytest.approx(r * cb.regret.budgeted(one), rel=1e-9)
