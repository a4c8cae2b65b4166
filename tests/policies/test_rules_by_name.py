"""Rules written by names, (t, arm, p) and the like, play as those with long signatures, and are checked like them."""

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
import pytest
from reference import in_plain_python

import costbandits as cb
from costbandits.policies.rules import by_sums
from costbandits.studies.store import Store

FAMILY, BUDGET, FACTOR = cb.instances.beta(4), cb.Budget(60), [0.5]


class Two(NamedTuple):
    """Parameters of the rules below."""

    width: float
    power: float


@cb.index
def named(t, arm, p: Two):
    return arm.reward / arm.cost + p.width * (log(t) / arm.n)**p.power + arm.told if arm.cost > 0.0 else inf


@cb.index
def by_place(t, arm, p):
    return arm.reward / arm.cost + p[0] * (log(t) / arm.n)**p[1] + arm.told if arm.cost > 0.0 else inf


@cb.index
def long(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / cost + params[0] * (log(t) / n)**params[1] + constant if cost > 0.0 else inf


@cb.choose
def picks(t, spent, arms, told, p: Two, memory, rng):
    K = arms.n.size
    memory[0] += 1.0
    if t <= K or rng.random() < p.width / (1.0 + spent):
        return (t - 1) % K
    return int(np.argmax(arms.reward / arms.n + told[:K] + sqrt(memory[0]) / arms.n))


@cb.choose
def picks_long(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    K, spent = n.size, 0.0
    for x in cost:
        spent += x
    memory[0] += 1.0
    if t <= K or rng.random() < params[0] / (1.0 + spent):
        return (t - 1) % K
    return int(np.argmax(reward / n + problem[:K] + sqrt(memory[0]) / n))


def told(problem):
    return problem.cost_means / 8


def everything(n_jobs=1):
    """Pulls of all of them, in one study."""
    params = 0.25, 0.5
    indices = {f"{rule.__name__} {monotone}": cb.IndexPolicy(rule, params, monotone, told)
               for rule in (named, by_place, long) for monotone in (False, True)}
    choices = {rule.__name__: cb.ChoosePolicy(rule, params, lambda K: 1, told) for rule in (picks, picks_long)}
    return cb.simulate(indices | choices, FAMILY, BUDGET, 3, n_jobs=n_jobs).pulls[:, :, -1].tolist()


def test_an_annotation_may_be_a_text():
    def texted(t, arm, p: "Two"):
        return p.width * arm.reward

    assert cb.IndexPolicy(cb.index(texted), (3.0, 0.5)).rule(1, 1, 2.0, 1.0, 4.0, 1.0, 0.0, np.array([3.0, 0.5])) == 6


def test_names_change_nothing():
    *indices, choice, same = everything()
    assert all(pulls == indices[0] for pulls in indices) and choice == same != indices[0]
    assert everything(n_jobs=2) == [*indices, choice, same]


@pytest.mark.slow
def test_the_same_pulls_in_plain_python():
    assert in_plain_python("test_rules_by_name", "m.everything()") == everything()


def test_a_rule_is_wrapped_once():
    assert by_sums(named) is by_sums(named) is by_sums(by_sums(named)) and by_sums(long) is long
    assert cb.IndexPolicy(cb.OmegaUCB.rule, [0.5]).rule is cb.OmegaUCB.rule
    assert named(2, cb.engine.state.Arm(4, 2.0, 1.0, 2.0, 1.0, 0.5), Two(0.0, 1.0)) == 2.5


def not_a_tuple(t, arm, p: dict):
    return arm.n


def out_of_place(arm, t, p):
    return arm.reward


def returns_nothing(t, arm, p):
    arm.reward  # noqa: B018


def of_no_field(t, arm, p: Two):
    return p.depth


def of_no_sum(t, arm, p):
    return arm.profit / arm.n


def adds_to_p(t, arm, p):
    p[0] += 1
    return arm.reward


def adds_to_arms(t, spent, arms, told, p, memory, rng):
    arms.reward[0] += 1
    return 0


def adds_to_told(t, spent, arms, told, p, memory, rng):
    told[0] += 1
    return 0


def draws_from_numpy(t, arm, p):
    return arm.reward + np.random.normal()


@pytest.mark.parametrize(("maker", "rule", "says"), [
    (cb.index, not_a_tuple, "annotation of p = .*: must be a class of typing.NamedTuple"),
    (cb.index, out_of_place, r"must take \(t, arm, p\) in this order; out of place: arm, t"),
    (cb.index, returns_nothing, "returns nothing, for a return is missing"),
    (cb.index, of_no_field, "in `return p.depth`: .* has no depth"),
    (cb.index, of_no_sum, "in `return arm.profit / arm.n`: .* has no profit"),
    (cb.index, adds_to_p, "must not write to its arrays"),
    (cb.choose, adds_to_arms, r"in `arms.reward\[0\] \+= 1`: must not write to its arrays"),
    (cb.choose, adds_to_told, "must not write to its arrays"),
    (cb.index, draws_from_numpy, "all share it, so that no run could be repeated"),
    (cb.choose, of_no_sum, r"of_no_sum\(t, arm, p\).: must take \(t, spent, arms, told, p, memory, rng\)")],
    ids=lambda each: getattr(each, "__name__", ""))
def test_what_is_refused_is_told_by_its_line(maker, rule, says):
    with pytest.raises(ValueError, match=says):
        maker(rule)


@pytest.mark.parametrize("params", [(), (1.0,), (1.0, 2.0, 3.0)])
def test_each_field_has_a_parameter(params):
    with pytest.raises(ValueError, match=r"params = .*must be one number for each of \('width', 'power'\)"):
        cb.IndexPolicy(named, params)


def test_a_place_beyond_the_parameters_is_an_error():
    with pytest.raises(ValueError, match=r"its rule reads beyond the end of an array: it is given 4 arms and 1 params"):
        cb.simulate({"p": cb.IndexPolicy(by_place, [1.0])}, FAMILY, BUDGET)


@pytest.mark.parametrize("late", [False, True], ids=["before the policy is made", "after it"])
def test_what_has_changed_since_a_rule_was_compiled_is_seen(late, monkeypatch):
    @cb.index
    def reads(t, arm, p):
        return HEIGHT * arm.reward / arm.n

    policies = [cb.IndexPolicy(reads)] if late else []
    cb.simulate({"p": cb.IndexPolicy(reads)}, FAMILY, BUDGET) if late else None
    monkeypatch.setitem(globals(), "HEIGHT", 2.0)
    with pytest.raises(ValueError, match="has changed since the rule was compiled"):
        cb.simulate({"p": (policies or [cb.IndexPolicy(reads)])[0]}, FAMILY, BUDGET)


HEIGHT = 1.0


def test_a_rule_by_names_has_a_key_of_its_own(tmp_path):
    """What it reads, its parameters and its words matter; to type it again does not."""
    def study(width, deep):
        scope = {"cb": cb, "Two": Two, "DEEP": deep}
        exec("@cb.index\ndef mine(t, arm, p: Two):\n    return p.width + DEEP * arm.reward / arm.n", scope)
        cb.simulate({"mine": cb.IndexPolicy(scope["mine"], [width, 1.0])}, FAMILY, BUDGET, store=path)
        with Store(path) as store:
            return len(store)

    path = tmp_path / "runs.sqlite"
    kept = [study(*of) for of in [(1.0, 1.0), (2.0, 1.0), (1.0, -1.0)] for _ in range(2)]
    assert kept == [1, 1, 2, 2, 3, 3]


def test_a_rule_by_names_may_count():
    @cb.index
    @cb.tally
    def counts(t, arm, p):
        p[0] += 1.0
        return arm.reward / arm.n

    policy = cb.IndexPolicy(counts, [0.0])
    rounds = cb.simulate({"p": policy}, FAMILY, cb.Horizon(40)).rounds[0, 0, -1]
    assert policy.params[0] == 4 * (rounds - 4)
