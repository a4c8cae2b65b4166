"""A thousand wrong arguments: each is refused at once, by a ValueError or TypeError of one sentence; none passes.

A case is a function of the library, the arguments with which it works, and the name of the one that is replaced by what
makes no sense there. Kinds of arguments share their wrong values: what is wrong as a probability is wrong everywhere.
"""

import time
import warnings
from fractions import Fraction
from functools import cache
from math import inf, nan

import numpy as np
import pytest

import costbandits as cb
from costbandits.engine.run import Run

BIG = 10**400
# Never right where a number, an array of numbers, a whole number, a text ... is wanted.
NO_NUMBER = [None, "1", "", b"1", [], {}, (), object(), nan, inf, -inf, 1j, BIG, -BIG, True, np.array([0.5, 0.5]),
             np.array(0.5), int, len, np.datetime64("2024-01-01"), Fraction(BIG)]
NO_PARAMETERS = [None, "1", "abc", b"1", {}, object(), [nan], ["1"], [None], [1j], [BIG], [True, False],
                 [[1.0], [1.0, 2.0]], int, len, {0.5}, np.array(["1"]), np.array([1j]), np.array([True])]
NO_NUMBERS = [*NO_PARAMETERS, [], [inf], [-inf], [[[0.5]]]]
NEGATIVE = [-1, -1e-300, -1e300]
KINDS = {
    "number": NO_NUMBER,
    "positive": [*NO_NUMBER, 0, 0.0, -0.0, *NEGATIVE],
    "probability": [*NO_NUMBER, *NEGATIVE, 1.0000001, 2, 1e300],
    "level": [*NO_NUMBER, *NEGATIVE, 0, 1, 1.0, 2, 95],
    "share": [*NO_NUMBER, *NEGATIVE, 1, 1.0, 2],
    "count": [*NO_NUMBER, *NEGATIVE, 0, 0.5, 1.0, 2.0, "two", [2], np.float64(2)],
    "index": [*NO_NUMBER, *NEGATIVE, 0.5, 1.0, "two", [2], np.float64(2)],
    "flag": [None, "yes", 0, 1, 2, 0.5, [], object(), nan],
    "text": [None, 0, 1, "", "nothing of the kind", [], {}, object(), nan, b"beta", ("beta",)],
    "parameters": NO_PARAMETERS,
    "numbers": NO_NUMBERS,
    "positives": [*NO_NUMBERS, [0.0], [-1.0], [1.0, -1.0]],
    "chances": [*NO_NUMBERS, [-0.1, 1.1], [0.5, 0.6], [2.0]],
    "weights": [*NO_NUMBERS[1:], [-0.1, 1.1], [0.5, 0.6], [2.0]],
    "laws": [None, 5, "ab", [], [1], [None], [cb.Bernoulli], object(), cb.Bernoulli(0.5), ["a"], [[]]],
    "bandit": [None, 5, "b", [], object(), cb.Bernoulli(0.5), len, lambda: 1, lambda rng: None, lambda rng: 5],
    "stop": [None, 5, "s", [], object(), cb.Budget, cb.Bernoulli(0.5), lambda: 1, lambda b: None, lambda b: 5],
    "runs": [None, 5, "r", [], {}, object(), np.ones((2, 2)), cb.Bernoulli(0.5)],
    "rule": [None, 5, "r", [], object(), lambda x: x, len, cb.MUCB, cb.MUCB()],
    "function": [5, "f", [], object(), 0.5],
}
HALF = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Bernoulli(0.5)] * 2)
KNOWN = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.5)] * 2)
STUDY = {"policies": {"m": cb.MUCB()}, "bandits": HALF, "stop": cb.Budget(5)}
SAMPLES = {"a": [1.0, 2.0, 4.0], "b": [2.0, 4.0, 5.0]}


@cache
def played():
    """Some runs; made when a test needs them."""
    return cb.simulate(**STUDY, replications=3)


st, intervals, optimum = cb.statistics, cb.intervals, cb.optimum

# (function, arguments that are right, name of an argument = kind ...)
CALLS = [
    (cb.Bernoulli, {"p": 0.5}, {"p": "probability"}),
    (cb.Beta, {"a": 1, "b": 1}, {"a": "positive", "b": "positive"}),
    (cb.Constant, {"value": 1}, {"value": "number"}),
    (cb.Discrete, {"values": [0, 1], "probabilities": [0.5, 0.5]}, {"values": "numbers", "probabilities": "chances"}),
    (cb.Empirical, {"values": [0, 1]}, {"values": "numbers"}),
    (cb.ClippedLogNormal, {"mean_log": 0, "sd_log": 1, "low": 0, "high": 9},
     {"mean_log": "number", "sd_log": "positive", "low": "number", "high": "positive"}),
    (cb.Pairs, {"rewards": [0, 1], "costs": [1, 2], "probabilities": [0.5, 0.5]},
     {"rewards": "numbers", "costs": "numbers", "probabilities": "weights"}),
    (cb.Bandit, {"outcomes": [cb.Pairs([0, 1], [1, 2])]}, {"outcomes": "laws"}),
    (cb.TruncatedNormal, {"mean": 0, "sd": 1, "low": 0, "high": 1},
     {"mean": "number", "sd": "positive", "low": "number", "high": "number"}),
    (cb.Bandit, {"rewards": [cb.Bernoulli(0.5)], "costs": [cb.Bernoulli(0.5)]}, {"rewards": "laws", "costs": "laws"}),
    (cb.LinearBandit, {"vertices": [[0.5, 0.1]], "reward": [0.6, 0.8], "cost": [0.3, 0.4], "noise_sd": 0.1},
     {"vertices": "numbers", "reward": "numbers", "cost": "numbers", "noise_sd": "positive"}),
    (cb.Budget, {"total": 5}, {"total": "positive"}), (cb.HardBudget, {"total": 5}, {"total": "positive"}),
    (cb.AnytimeBudget, {"rate": 0.5, "horizon": 9}, {"rate": "positive", "horizon": "count"}),
    (cb.Horizon, {"rounds": 9}, {"rounds": "count"}),
    (cb.instances.bernoulli, {"K": 3, "cost_low": 0.1}, {"K": "count", "cost_low": "probability"}),
    (cb.instances.generalized_bernoulli, {"K": 3, "values": [0, 1]}, {"K": "count", "values": "numbers"}),
    (cb.instances.beta, {"K": 3, "low": 0, "high": 5}, {"K": "count", "low": "number", "high": "positive"}),
    (cb.instances.knapsack, {"K": 3, "cost_low": 1, "cost_high": 2},
     {"K": "count", "cost_low": "positive", "cost_high": "positive"}),
    (cb.polytopes.box, {"low": [0, 0], "high": [1, 1]}, {"low": "numbers", "high": "numbers"}),
    (cb.polytopes.simplex, {"d": 2, "size": 1}, {"d": "count", "size": "positive"}),
    (cb.polytopes.vertices, {"normals": [[-1, 0], [0, -1], [1, 1]], "limits": [0, 0, 1]},
     {"normals": "numbers", "limits": "numbers"}),
    (cb.OmegaUCB, {"rho": 0.25}, {"rho": "positive"}), (cb.OmegaStarUCB, {"rho": 0.25}, {"rho": "positive"}),
    (cb.IMED, {"scale": 1.0}, {"scale": "positive"}),
    (cb.MomentIMED, {"scale": 1.0}, {"scale": "positive", "max_reward": "positive", "dependence": "text"}),
    (cb.BudgetUCB, {"min_cost": 0.1, "exploration": 1}, {"exploration": "positive"}),
    (cb.EpsilonGreedy, {"c": 5, "d": 0.25}, {"c": "positive", "d": "positive"}),
    (cb.KUBE, {"reward_scale": 1}, {"reward_scale": "positive"}),
    (cb.EpsilonFirst, {"epsilon": 0.1}, {"epsilon": "level"}),
    (cb.CSUCB, {"alpha": 0.1}, {"alpha": "share"}), (cb.CSTS, {"alpha": 0.1}, {"alpha": "share", "posterior": "text"}),
    (cb.OnePhaseSkip, {}, {"radius": "text"}),
    (cb.IndexPolicy, {"rule": cb.UCB1.rule}, {"rule": "rule", "params": "parameters", "monotone": "flag",
                                              "prepare": "function"}),
    (cb.ChoosePolicy, {"rule": cb.BGreedy.rule}, {"rule": "rule", "params": "parameters", "memory": "function"}),
    (cb.simulate, STUDY, {"bandits": "bandit", "stop": "stop", "replications": "count", "seed": "index",
                          "checkpoints": "count", "shuffle": "flag", "reduce": "function", "max_rounds": "count"}),
    (cb.Agent, {"policy": cb.MUCB(), "arms": ["a", "b"], "stop": cb.Budget(5)},
     {"policy": "bandit", "arms": "runs", "stop": "stop", "max_reward": "positive", "clip": "flag"}),
    (cb.regret.budgeted, {"runs": played}, {"runs": "runs", "against": "text"}),
    (cb.regret.knapsack, {"runs": played}, {"runs": "runs"}), (cb.regret.anytime, {"runs": played}, {"runs": "runs"}),
    (cb.regret.quality, {"runs": played, "alpha": 0.1}, {"runs": "runs", "alpha": "share"}),
    (cb.regret.cost, {"runs": played, "alpha": 0.1}, {"runs": "runs", "alpha": "share"}),
    (cb.paired, {"runs": played, "a": "m", "b": "m"}, {"runs": "runs", "a": "text", "confidence": "level"}),
    (st.compare, {"x": SAMPLES["a"], "y": SAMPLES["b"]}, {"x": "numbers", "y": "numbers", "confidence": "level"}),
    (st.mean, {"x": SAMPLES["a"]}, {"x": "numbers", "confidence": "level"}),
    (st.median, {"x": SAMPLES["a"]}, {"confidence": "level"}),
    (st.share, {"successes": 1, "n": 2}, {"successes": "number", "n": "count", "confidence": "level"}),
    (st.worst_share, {"x": SAMPLES["a"]}, {"worst": "level"}),
    (st.holm, {"p_values": [0.5]}, {"p_values": "numbers"}),
    (intervals.asymmetric_interval, {"mean": 0.5, "n": 9, "z": 1.0}, {}),
    (intervals.bernoulli_miss, {"p": 0.5, "n": 9, "z": 1.0}, {"n": "count"}),
    (intervals.worst_miss, {"n": 9, "z": 1.0}, {"n": "count", "low": "probability"}),
    (intervals.bernoulli_ratio_miss, {"p_reward": 0.5, "p_cost": 0.5, "n": 9, "z": 1.0},
     {"p_reward": "probability", "p_cost": "probability", "n": "count"}),
    (optimum.knapsack, {"values": [3, 2], "costs": [2, 1.5], "budget": 5},
     {"values": "numbers", "costs": "positives", "budget": "number", "tolerance": "probability"}),
    (optimum.mixture, {"rewards": [0.5, 0.2], "costs": [0.5, 0.2], "rate": 0.5},
     {"rewards": "numbers", "costs": "numbers", "rate": "positive"}),
    (cb.factory.guarantee, {"factor": 2.0, "margin": 0.5}, {"factor": "number", "margin": "level"}),
    (cb.factory.law, {"p": 0.2, "factor": 2.0, "margin": 0.5}, {"p": "share", "margin": "level"}),
]

# What is wrong for one argument only.
MORE = [(cb.simulate, STUDY, name, value) for name, values in {
    "policies": [None, {}, [], 5, "m", {"m": None}, {"m": cb.MUCB}, {"m": 5}, [cb.MUCB()], {"m": cb.UCB1.rule}],
    "replications": [10**12, 10**15, np.array(3), b"123", "12", [1, 1], [-1], [0.5], [2**32], [None], ["1"], {},
                     iter([1]), range(10**12), np.ones((2, 2), int), [True], {"a": 1}, np.array([1.0])],
    "checkpoints": [10**8, 10**12, "0.5", ["0.5", "1"], b"1", [0, 1], [1, 0.5], [0.5, 0.5], [0.5, 1.5], [nan], [[1.0]],
                    {}, np.linspace(1e-9, 1, 10**6 + 1)],
    "n_jobs": [0, 2000, 500_000, 10**6, BIG, "two", 1.5, [], True, nan, "1"],
    "progress": [5, None, 0, 1, [], b"x", 0.5, object()],
    "store": [":memory:", "", 5, [], b"x", 0, object(), 1.5],
    "max_rounds": [2**62 + 1, BIG], "seed": [-1, "0", b"0", [0]],
}.items() for value in values] + [
    (cb.polytopes.box, {"low": [0], "high": [1]}, "low", [0] * 40),
    (cb.polytopes.simplex, {"d": 2}, "d", 10**6),
    (cb.Beta, {"b": 1e308}, "a", 1e308), (cb.Beta, {"a": 1.7e308}, "b", 1.7e308),
    (intervals.bernoulli_miss, {"p": 0.5, "z": 1.0}, "n", 10**9), (intervals.worst_miss, {"z": 1.0}, "n", 10**9),
    (intervals.bernoulli_ratio_miss, {"p_reward": 0.5, "p_cost": 0.5, "z": 1.0}, "n", 10**9),
    (intervals.lattice_miss, {"probabilities": [0.25, 0.5, 0.25], "z": 1.0}, "n", 10**9),
    (st.share, {"n": 3}, "successes", 1.3), (st.share, {"n": 3}, "successes", 4),
    (st.share, {"successes": 1}, "n", 2.5),
    *((st.holm, {}, "p_values", wrong) for wrong in ([-0.1], [1.1], [[0.5]], 0.5)),
    *((st.worst_share, {"x": wrong}, "worst", 0.01) for wrong in ([], [nan], ["1"], None, 5, [[1.0]])),
]


# Wrong of its kind elsewhere, and right here: a list of replications, any whole number, as many rounds as there may be.
RIGHT = {"replications": [2], "seed": BIG, "max_rounds": None}


def cases():
    for function, arguments, kinds in CALLS:
        for name, kind in kinds.items():
            for value in KINDS[kind]:
                if function is not cb.simulate or repr(value) != repr(RIGHT.get(name, ...)):
                    yield function, arguments, name, value
    yield from MORE


CASES = list(cases())


def right(arguments):
    return {name: played() if value is played else value for name, value in arguments.items()}


def refused(function, arguments):
    """What is wrong with how a call ends; nothing, if it is refused as it should be."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = function(**arguments)
    except (ValueError, TypeError) as error:
        said = str(error)
        late = time.perf_counter() - start
        return f"takes {late:.1f} s" if late > 1 else "" if 0 < len(said) < 900 and "\n" not in said else f"says {said}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"passes: {found!r:.80}"


def test_a_thousand_wrong_arguments_are_refused_in_one_sentence(monkeypatch):
    def play(*_, **__):
        raise AssertionError("is played")

    assert played().rounds.shape == (1, 3, 50)
    monkeypatch.setattr(Run, "play", play)
    assert len(CASES) >= 1000 and refused(cb.simulate, STUDY) == "AssertionError: is played"
    faults = [f"{function.__name__}({name}={value!r:.60}) {fault}" for function, arguments, name, value in CASES
              if (fault := refused(function, {**right(arguments), name: value}))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0].__name__)
def test_what_is_right_passes(call):
    function, arguments, _ = call
    if function not in (cb.regret.knapsack, cb.regret.anytime, cb.regret.quality, cb.regret.cost):     # of other rules
        function(**right(arguments))
