"""Studies: what runs report, what they do not depend on, and what is refused before anything is played."""

import dataclasses
import pickle
from functools import partial
from math import inf, nan

import numpy as np
import pytest
from reference import FAMILIES, INDICES, POLICIES, bits, outcomes, run, small_study

import costbandits as cb
from costbandits.engine import stacks, stops
from costbandits.engine.driver import DONE, LAST_ROUND
from costbandits.engine.run import Run
from costbandits.studies import study

FIELDS = ("pulls", "rounds", "skips", "spent", "reward")


@pytest.fixture(scope="module")
def studies():
    return small_study(POLICIES)


def test_results_are_shown_in_a_line():
    study = {"ω-UCB": cb.OmegaUCB(), "m-UCB": cb.MUCB()}, cb.instances.bernoulli(3)
    assert repr(cb.simulate(*study, cb.Budget(5), 20, checkpoints=4)) \
        == "Runs: ω-UCB, m-UCB; 20 replications, 4 checkpoints, 3 arms, Budget(total=5)"
    fresh = cb.simulate(*study, lambda bandit: cb.Budget(9 * bandit.cost_means.min()), 20)
    assert repr(fresh) == "Runs: ω-UCB, m-UCB; 20 replications, 50 checkpoints, 3 arms, a Budget for each"
    assert repr(cb.simulate(*study, cb.Budget(5), 2, reduce=lambda runs: {"spent": runs.spent})) \
        == "Reduced: ω-UCB, m-UCB; 2 replications, 50 checkpoints; of each run: spent"
    numbered = cb.simulate({1: cb.MUCB()}, study[1], cb.Budget(5), 2, reduce=lambda runs: {0: runs.spent})
    assert repr(numbered) == "Reduced: 1; 2 replications, 50 checkpoints; of each run: 0"


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


def test_books_balance(studies):
    for runs in studies.values():
        assert runs.pulls.shape == (len(POLICIES), 2, 20, 6) and runs.pulls.dtype == np.int64
        assert (runs.pulls.sum(axis=3) + runs.skips == runs.rounds).all() and (runs.skips == 0).all()
        for name in ("pulls", "rounds", "spent", "reward"):
            assert (np.diff(getattr(runs, name), axis=2) >= 0).all()
        due = np.array([stop.total for stop in runs.stops])[:, None] * runs.fractions
        assert (runs.spent >= due).all() and (runs.spent < due + 1).all()           # a pull costs at most 1
        first = [p for p, label in enumerate(runs.policies) if "BTS" not in label]  # which has no forced pulls
        assert (runs.pulls[first, :, -1] >= 1).all()


def test_outcomes_are_those_of_the_stacks(studies):
    """Replayed from the pull counts: what was spent and collected is the sum over each arm's first pulls."""
    for runs in studies.values():
        for r, bandit in enumerate(runs.bandits):
            order, *drawn = outcomes(bandit, 0, r, runs.pulls.max())
            for pairs, booked in zip(drawn, (runs.reward, runs.spent), strict=True):
                sums = np.zeros((6, runs.pulls.max() + 1))
                sums[order, 1:] = np.cumsum(pairs, axis=1)
                assert booked[:, r] == pytest.approx(sums[np.arange(6), runs.pulls[:, r]].sum(axis=-1), rel=1e-12)


@pytest.mark.parametrize("label", POLICIES)
def test_the_last_pull_is_the_one_that_crosses_the_budget(studies, label):
    for runs in studies.values():
        rounds, total = int(runs.rounds[runs.index(label), 0, -1]), runs.stops[0].total
        status, table, _ = run(POLICIES[label], runs.bandits[0], total, max_rounds=rounds - 1)
        assert status == LAST_ROUND and table.state.now.spent < total
        status, table, order = run(POLICIES[label], runs.bandits[0], total, max_rounds=rounds)
        assert status == DONE and table.state.now.spent >= total
        assert runs.pulls[runs.index(label), 0, -1, order].tolist() == table.state.arms.n.tolist()


def test_arms_are_reported_in_the_bandits_order():
    bandit = cb.Bandit([cb.Constant(2.0**k) for k in range(8)], [cb.Constant(1.0)] * 8)
    runs = cb.simulate({"b": cb.BGreedy()}, bandit, cb.Budget(100), replications=20, checkpoints=10)
    assert np.array_equal(runs.pulls @ 2.0**np.arange(8), runs.reward)
    assert (runs.pulls[..., -1, :].argmax(axis=-1) == 7).all()


def test_ties_favour_no_arm():
    """Equal arms, deterministic: the one pulled most is the first of the shuffled order, each with probability 1/4."""
    bandit = cb.Bandit([cb.Constant(0.5)] * 4, [cb.Constant(0.5)] * 4)
    pulls = cb.simulate({"c": cb.CUCB()}, bandit, cb.Budget(1.5), replications=800, checkpoints=1).pulls[0, :, 0]
    share = np.mean(pulls, axis=0)                         # three of the four arms are pulled once
    assert (pulls.sum(axis=1) == 3).all()
    assert (abs(share - 0.75) < 5.5 * (0.25 * 0.75 / 800) ** 0.5).all()              # false alarm: 4 x 4e-8


def test_arms_may_keep_their_own_order(tmp_path):
    """Of equal arms the first is pulled; outcomes are those of a study that shuffles, which is filed apart."""
    alike = cb.Bandit([cb.Constant(0.5)] * 4, [cb.Constant(0.5)] * 4)
    study = {"c": cb.CUCB()}, alike, cb.Budget(1.5), 40
    options = {"checkpoints": 1, "store": tmp_path / "store.sqlite"}
    shuffled, given = cb.simulate(*study, **options), cb.simulate(*study, **options, shuffle=False)
    assert (given.pulls[0, :, 0] == [1, 1, 1, 0]).all() and (shuffled.pulls[0, :, 0, 3] == 1).any()
    assert same(given, cb.simulate(*study, **options, shuffle=False))
    assert same(shuffled, cb.simulate(*study, **options))
    each_once = {"m": cb.MUCB()}, cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0)] * 2), cb.Budget(2), 40
    assert same(cb.simulate(*each_once, checkpoints=1), cb.simulate(*each_once, checkpoints=1, shuffle=False))


def test_checkpoints_are_states_after_the_pull_that_reaches_them():
    bandit = cb.Bandit([cb.Constant(1.0)], [cb.Constant(2.0)])
    runs = cb.simulate({"m": cb.BGreedy()}, bandit, cb.Budget(11), checkpoints=[0.1, 0.2, 0.5, 0.6, 1.0])
    assert runs.spent[0, 0].tolist() == [2, 4, 6, 8, 12] and runs.rounds[0, 0].tolist() == [1, 2, 3, 4, 6]
    early = cb.simulate({"m": cb.BGreedy()}, bandit, cb.Budget(11), checkpoints=[0.1, 0.5])
    assert early.rounds[0, 0].tolist() == [1, 3]
    thirds = cb.simulate({"m": cb.BGreedy()}, bandit, cb.Budget(11), checkpoints=3)
    assert thirds.fractions.tolist() == [1 / 3, 2 / 3, 1]
    # One pull may pass several at once.
    assert cb.simulate({"m": cb.BGreedy()}, bandit, cb.Budget(1), checkpoints=5).rounds[0, 0].tolist() == [1] * 5


# What results do not depend on.

@pytest.mark.parametrize("slots", [1, 1024])
def test_slots(studies, monkeypatch, slots):
    monkeypatch.setattr(study, "Stacks", partial(stacks.Stacks, slots=slots))
    assert bits(small_study(POLICIES), *FIELDS) == bits(studies, *FIELDS)


@pytest.mark.parametrize("label", POLICIES)
def test_company_and_labels(studies, label):
    assert bits(small_study({"alone": POLICIES[label]}), *FIELDS)["alone"] == bits(studies, *FIELDS)[label]


@pytest.mark.parametrize("order", [[3, 1], [2], (0, 3, 1)])
def test_the_other_replications(order):
    study = {"policies": POLICIES, "bandits": cb.instances.beta(4), "stop": cb.Budget(15), "seed": 9}
    some, every = cb.simulate(**study, replications=order), cb.simulate(**study, replications=range(4))
    assert some.replications.tolist() == list(order)
    assert all(np.array_equal(getattr(some, name), getattr(every, name)[:, list(order)]) for name in FIELDS)
    assert [repr(some.bandits[i]) for i in range(len(order))] == [repr(every.bandits[r]) for r in order]


def test_each_replication_has_draws_of_its_own():
    # All arms are alike and free of chance, and all rounds explore: what differs is what the policy draws.
    bandit = cb.Bandit([cb.Constant(0.5)] * 3, [cb.Constant(1.0)] * 3)
    runs = cb.simulate({"e": cb.EpsilonGreedy(5, 0.1)}, bandit, cb.Horizon(300), 3, checkpoints=20, shuffle=False)
    assert len({runs.pulls[0, r].tobytes() for r in range(3)}) == 3


def test_checkpoints_change_nothing_but_what_is_seen():
    few, many = (cb.simulate(POLICIES, cb.instances.beta(4), cb.Budget(15), checkpoints=c) for c in (3, 300))
    assert np.array_equal(few.pulls[:, :, -1], many.pulls[:, :, -1])
    assert np.array_equal(few.spent, many.spent[:, :, [99, 199, 299]])


def test_seeds():
    study = {"bandits": cb.instances.bernoulli(4), "stop": cb.Budget(40), "replications": 2}
    runs = {seed: cb.simulate(POLICIES, **study, seed=seed) for seed in (0, 1, 2**40)}
    assert same(runs[1], cb.simulate(POLICIES, **study, seed=np.int64(1)))
    for a, b in ((0, 1), (0, 2**40), (1, 2**40)):
        assert repr(runs[a].bandits) != repr(runs[b].bandits)
        assert all(bits({"": runs[a]}, "pulls")[label] != bits({"": runs[b]}, "pulls")[label] for label in POLICIES)
    fixed = [cb.simulate(POLICIES, runs[0].bandits[0], cb.Budget(40), seed=seed).pulls for seed in (0, 1)]
    assert not np.array_equal(*fixed)
    assert not np.array_equal(runs[0].pulls[:, 0], runs[0].pulls[:, 1])


# Reduced results, joined results, frames.

def test_reduce_keeps_what_it_is_told():
    study = {"policies": POLICIES, "bandits": cb.instances.beta(4), "stop": cb.Budget(15), "replications": 3}
    whole = cb.simulate(**study)
    reduced = cb.simulate(**study, n_jobs=2, reduce=lambda runs: {"regret": cb.regret.budgeted(runs),
                                                                  "end": runs.spent[:, :, -1]})
    assert np.array_equal(reduced["regret"], cb.regret.budgeted(whole))
    assert np.array_equal(reduced["end"], whole.spent[:, :, -1])
    assert reduced.policies == whole.policies and reduced.replications.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"value = 'pulls': must be one of \['regret', 'end'\]"):
        reduced["pulls"]


@pytest.mark.parametrize("wrong", [
    lambda runs: 3, lambda runs: None, lambda runs: {}, lambda runs: {"x": 1.0}, lambda runs: {"x": runs.spent[0]},
    lambda runs: {"x": np.full((1, 1), None)}, lambda runs: {("x", 1): runs.spent}, lambda runs: {None: runs.spent},
    lambda runs: {"x": [[1, 2], [3]]}])
def test_reduce_must_return_arrays(wrong):
    with pytest.raises(ValueError, match=r"reduce\(runs\) = .*dict from names to arrays of numbers with leading axes"):
        cb.simulate(POLICIES, cb.instances.beta(4), cb.Budget(15), reduce=wrong)


@pytest.mark.parametrize("wrong", [lambda runs: {"x": np.zeros((1, 1, runs.pulls[0, 0, -1, 0]))},
                                   lambda runs: {str(runs.pulls[0, 0, -1, 0]): runs.spent}])
def test_reduce_must_return_the_same_kind_every_time(wrong):
    calls = []
    with pytest.raises(ValueError, match=r"reduce\(runs\) = .*names and shapes must be the same for every run"):
        cb.simulate({"m": cb.MUCB()}, cb.instances.beta(4), cb.Budget(15), replications=100,
                    reduce=lambda runs: calls.append(1) or wrong(runs))
    assert len(calls) < 20                    # it is told as soon as it is known


def test_reduce_does_not_see_labels():
    """For the same policy under two labels has one result in the store."""
    reduced = cb.simulate({"m": cb.MUCB(), "same": cb.MUCB()}, HALF, cb.Budget(10),
                          reduce=lambda runs: {"x": np.full((1, 1), len(runs.policies[0]))})
    assert (reduced["x"] == len("policy")).all()


def test_join_pairs_what_they_share():
    study = {"bandits": cb.instances.beta(4), "stop": cb.Budget(15)}
    a = cb.simulate({"m": cb.MUCB()}, **study, replications=[0, 2, 3])
    b = cb.simulate({"c": cb.CUCB(), "i": cb.IUCB()}, **study, replications=[3, 1, 0])
    both = cb.join(a, b)
    direct = cb.simulate({"m": cb.MUCB(), "c": cb.CUCB(), "i": cb.IUCB()}, **study, replications=[0, 3])
    assert both.policies == direct.policies and both.replications.tolist() == [0, 3] and same(both, direct)
    assert repr(both.bandits) == repr(direct.bandits) and both.stops == direct.stops


def test_join_of_reduced_results():
    study = {"bandits": cb.instances.beta(4), "stop": cb.Budget(15), "replications": 3,
             "reduce": lambda runs: {"x": runs.spent}}
    a, b = (cb.simulate({label: POLICIES[label]}, **study) for label in ("m", "c"))
    assert np.array_equal(cb.join(a, b)["x"], np.concatenate([a["x"], b["x"]]))
    assert cb.join(cb.join(a, b), cb.simulate({"i": cb.IUCB()}, **study)).policies == ["m", "c", "i"]


@pytest.mark.parametrize(("change", "message"), [
    ({"seed": 1}, "instances, stop rules or seeds"), ({"stop": cb.Budget(16)}, "instances, stop rules or seeds"),
    ({"bandits": cb.instances.beta(4, high=4)}, "instances, stop rules or seeds"),
    ({"reduce": lambda runs: {"x": runs.spent, "y": runs.spent}}, "values = .*must be the same in both")])
def test_join_refuses_reduced_results_that_are_not_paired(change, message):
    study = {"policies": {"m": cb.MUCB()}, "bandits": cb.instances.beta(4), "stop": cb.Budget(15),
             "reduce": lambda runs: {"x": runs.spent}}
    with pytest.raises(ValueError, match=message):
        cb.join(cb.simulate(**study), cb.simulate(**{**study, "policies": {"c": cb.CUCB()}, **change}))


def test_join_refuses_what_is_no_result():
    with pytest.raises(ValueError, match=r"results = \('Runs', 'int'\): must be two Runs or two Reduced"):
        cb.join(cb.simulate({"m": cb.MUCB()}, cb.instances.beta(4), cb.Budget(15)), 5)


@pytest.mark.parametrize(("change", "message"), [
    ({"seed": 1}, "instances, stop rules or seeds"), ({"stop": cb.Budget(16)}, "instances, stop rules or seeds"),
    ({"bandits": cb.instances.beta(4, high=4)}, "instances, stop rules or seeds"), ({"checkpoints": 7}, "fractions"),
    ({"replications": [5]}, "must have some in common"), ({"policies": POLICIES}, r"policies = \['m'\]: a label"),
    ({"reduce": lambda runs: {"x": runs.spent}}, "must be two Runs or two Reduced")])
def test_join_refuses_what_is_not_paired(change, message):
    study = {"policies": {"m": cb.MUCB()}, "bandits": cb.instances.beta(4), "stop": cb.Budget(15)}
    with pytest.raises(ValueError, match=message):
        cb.join(cb.simulate(**study), cb.simulate(**{**study, "policies": {"c": cb.CUCB()}, **change}))


def test_frames_are_tidy():
    policies = {"m": cb.MUCB(), "c": cb.CUCB()}
    runs = cb.simulate(policies, cb.instances.beta(4), cb.Budget(15), replications=[4, 2], checkpoints=2)
    frame = runs.frame(runs.spent)
    assert list(frame.columns) == ["policy", "replication", "checkpoint", "value"] and len(frame) == 8
    assert frame.iloc[5].tolist() == ["c", 4, 1.0, runs.spent[1, 0, 1]]
    assert runs.frame(runs.spent[:, :, -1]).iloc[2].tolist() == ["c", 4, runs.spent[1, 0, -1]]
    with pytest.raises(ValueError, match=r"values.shape = \(2, 2, 2, 4\): must be \(2, 2, 2\) or \(2, 2\)"):
        runs.frame(runs.pulls)
    with pytest.raises(ValueError, match=r"policy = 'x': must be one of \['m', 'c'\]"):
        runs.index("x")


# Bad input.

HALF = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Bernoulli(0.5)] * 3)


@pytest.mark.parametrize(("change", "message"), [
    ({"policies": {}}, r"policies = \{\}: must be a non-empty dict"),
    ({"policies": [cb.MUCB()]}, "policies = .*: must be a non-empty dict label -> policy"),
    ({"policies": {"m": cb.MUCB}}, r"policies\['m'\] = <class.*: must be a policy"),
    ({"policies": {"m": "m-UCB"}}, r"policies\['m'\] = 'm-UCB': must be a policy"),
    ({"bandits": [HALF]}, "bandits = .*: must be a Bandit or a function rng -> Bandit"),
    ({"bandits": lambda rng: 3}, r"bandits\(rng\) in replication 0 = 3: must return a Bandit"),
    ({"stop": 100}, r"stop = 100: must be a stop rule \(Budget, .*\) or a function"),
    ({"stop": lambda bandit: 100}, r"stop\(bandit\) in replication 0 = 100: must return a stop rule \(Budget, .*\)"),
    ({"stop": lambda bandit: cb.Budget(-bandit.cost_means.min())}, "Budget total = .*-0.5.*above 0"),
    ({"replications": 0}, "replications = 0: must be a whole number, 1 or more"),
    ({"replications": 2.5}, "replications = 2.5: must be a whole number, 1 or more"),
    ({"replications": True}, "replications = True: must be a whole number"),
    ({"replications": []}, r"replications = \[\]: must be distinct and .*, at least one"),
    ({"replications": [1, 1]}, r"replications = \[1, 1\]: must be distinct"),
    ({"replications": [-1]}, "replications = -1: must be a whole number, 0 or more"),
    ({"seed": -1}, "seed = -1: must be a whole number, 0 or more"),
    ({"seed": 1.5}, "seed = 1.5: must be a whole number"),
    ({"seed": None}, "seed = None: must be a whole number"),
    ({"checkpoints": 0}, "checkpoints = 0: must be a whole number, 1 or more"),
    ({"checkpoints": 2.5}, "checkpoints = 2.5: must be a whole number"),
    ({"checkpoints": []}, "checkpoints = .*increasing fractions"),
    ({"checkpoints": [0, 1]}, "checkpoints = .*increasing fractions"),
    ({"checkpoints": [0.5, 0.5]}, "checkpoints = .*increasing fractions"),
    ({"checkpoints": [0.5, 1.1]}, "checkpoints = .*increasing fractions"),
    ({"checkpoints": [0.5, nan]}, r"checkpoints\[1\] = nan: .*increasing fractions"),
    ({"checkpoints": [[0.5, 1.0]]}, "checkpoints = .*increasing fractions"),
    ({"checkpoints": [[0.5], [0.5, 1.0]]}, "checkpoints = .*increasing fractions"),
    ({"checkpoints": "half"}, "checkpoints = 'half': .*increasing fractions"),
    ({"replications": [2**32]}, r"replications = .*below 2\*\*32"),
    ({"store": ""}, "store = '': must be the path of a file"),
    ({"store": 5}, "store = 5: must be the path of a file"),
    ({"max_rounds": 0}, "max_rounds = 0: must be a whole number, 1 or more"),
    ({"max_rounds": 2**62 + 1}, r"max_rounds = 4611686018427387905: must be at most 2\*\*62"),
    ({"max_rounds": inf}, "max_rounds = inf: must be a whole number"),
    ({"n_jobs": 0}, "n_jobs = 0: must be a whole number, not 0"),
    ({"n_jobs": "two"}, "n_jobs = 'two': must be a whole number"),
    ({"reduce": "regret"}, "reduce = 'regret': must be a function"),
    ({"shuffle": 0}, "shuffle = 0: must be True or False"),
    ({"fast": 0}, "fast = 0: must be True or False"),
])
def test_bad_arguments(change, message, monkeypatch):
    monkeypatch.setattr(Run, "play", None)          # nothing is played
    with pytest.raises(ValueError, match=message):
        cb.simulate(**{"policies": {"m": cb.MUCB()}, "bandits": HALF, "stop": cb.Budget(10), **change})


@cb.choose
def the_first(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return 0


@pytest.mark.parametrize(("given", "message"), [
    ({"memory": lambda K: -1}, r"policies\['mine'\] memory\(K\) = -1: must be a whole number, 0 or more"),
    ({"memory": lambda K: None}, r"memory\(K\) = None: must be a whole number"),
    ({"memory": lambda: 3}, "memory = function <lambda>: must take one argument, K"),
    ({"prepare": lambda problem: "abc"}, r"policies\['mine'\] prepare\(problem\) = 'abc': must be a sequence of num"),
    ({"prepare": lambda problem: None}, r"prepare\(problem\) = None: must be a sequence of numbers"),
    ({"prepare": lambda: 1}, "prepare = function <lambda>: must take one argument, the Problem")])
def test_what_a_policy_is_given_is_tried_before_anything_is_played(given, message, monkeypatch):
    monkeypatch.setattr(Run, "play", None)
    with pytest.raises(ValueError, match=message):
        cb.simulate({"m": cb.MUCB(), "mine": cb.ChoosePolicy(the_first, **given)}, HALF, cb.Budget(10))


def test_a_policy_that_cannot_play_here_is_refused_before_the_others_have_played(monkeypatch):
    monkeypatch.setattr(Run, "play", None)
    costs = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.3), cb.Constant(0.4)])
    for policy in (cb.EpsilonGreedy(1, 0.5), cb.BGreedy(), cb.BTS()):
        with pytest.raises(ValueError, match="may draw an arm that is not affordable any more"):
            cb.simulate({"k": cb.KUBE(), "mine": policy}, costs, cb.HardBudget(50))
    with pytest.raises(ValueError, match=r"EpsilonFirst needs HardBudget\(total\)"):
        cb.simulate({"e": cb.EpsilonFirst(0.3)}, costs, cb.Budget(10))


def test_K_is_the_same_in_every_replication():
    def sometimes_larger(rng):
        return cb.instances.beta(3 if rng.random() < 0.7 else 5)(rng)

    with pytest.raises(ValueError, match=r"bandits\(rng\) in replication \d+ = '[35] arms': must have as many arms"):
        cb.simulate({"m": cb.MUCB()}, sometimes_larger, cb.Budget(5), replications=40)


def test_a_bad_instance_among_good_ones_is_refused():
    def sometimes_free(rng):
        return cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.5), cb.Constant(0.5 * (rng.random() < 0.7))])

    with pytest.raises(ValueError, match=r"expected cost of arm 1 = 0\.0: .* every expected cost must be positive"):
        cb.simulate({"m": cb.MUCB()}, sometimes_free, cb.Budget(5), replications=40)


def test_an_arm_that_is_refused_is_called_by_its_name():
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.5), cb.Constant(0.0)], names=["dear", "free"])
    with pytest.raises(ValueError, match=r"expected cost of arm 'free' = 0\.0"):
        cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(5))


@pytest.mark.parametrize("family", FAMILIES)
def test_one_arm(family):
    runs = cb.simulate(INDICES, FAMILIES[family](1), cb.Budget(20), checkpoints=4)
    assert (runs.pulls[..., 0] == runs.rounds).all() and (runs.pulls == runs.pulls[0]).all()


# What a reader's functions are given, and what they say.

@pytest.mark.parametrize("change", [
    {"policies": {"mine": cb.IndexPolicy(cb.UCB1.rule, prepare=lambda p: p.cost_means.__itruediv__(2.0))}},
    {"policies": {"mine": cb.IndexPolicy(cb.UCB1.rule, prepare=lambda p: p.reward_means.sort())}},
    {"policies": {"mine": cb.IndexPolicy(cb.UCB1.rule, prepare=lambda p: p.linear.vertices[:, 0].sort())}},
    {"stop": lambda bandit: bandit.cost_means.sort() or cb.Budget(5)},
    {"stop": lambda bandit: bandit.linear.vertices.sort() or cb.Budget(5)},
    {"reduce": lambda runs: {"x": runs.spent + runs.bandits[0].reward_means.sort()}}])
def test_no_function_of_the_readers_can_change_what_others_are_given(change):
    bandit = cb.LinearBandit([[0.5, 0.1], [0.0, 1.0]], reward=[0.6, 0.8], cost=[0.3, 0.4], noise_sd=0.1)
    with pytest.raises(ValueError, match="read-only"):
        cb.simulate(**{"policies": {"m": cb.MUCB()}, "bandits": bandit, "stop": cb.Budget(5), **change})


def test_reduce_cannot_move_the_checkpoints_of_the_others():
    def moved(runs):
        runs.fractions[:] = 0.0
        return {"spent": runs.spent}

    assert cb.simulate({"m": cb.MUCB()}, HALF, cb.Budget(5), reduce=moved, checkpoints=2).fractions.tolist() == [0.5, 1]


def test_a_bandit_that_went_to_another_process_is_read_only_too():
    bandit = cb.LinearBandit([[0.5, 0.1], [0.0, 1.0]], reward=[0.6, 0.8], cost=[0.3, 0.4], noise_sd=0.1)
    means = bandit.reward_means.tolist(), bandit.cost_means.tolist()
    there = pickle.loads(pickle.dumps(bandit))
    assert (there.reward_means.tolist(), there.cost_means.tolist()) == means
    for array in (there.reward_means, there.cost_means, there.linear.vertices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize(("change", "said"), [
    ({"policies": {"mine": cb.IndexPolicy(cb.UCB1.rule, prepare=lambda problem: np.random.random(problem.K))}},
     r"policies\['mine'\] prepare = function <lambda>: called twice"),
    ({"stop": lambda bandit: cb.Budget(5 + np.random.random())}, r"stop\(bandit\) in replication 0 = .*: called twice"),
    ({"stop": lambda bandit: Patient(np.random.random())}, r"stop\(bandit\) in replication 0 = .*: called twice")])
def test_what_is_random_must_come_from_a_generator_that_is_given(change, said):
    with pytest.raises(ValueError, match=said):
        cb.simulate(**{"policies": {"m": cb.MUCB()}, "bandits": HALF, "stop": cb.Budget(5), **change})


class Patient(stops.StopRule):
    """A rule of the reader's own, whose equality is identity."""

    total, horizon = inf, 9

    def __init__(self, patience):
        self.patience = patience

    def due(self, fractions):
        return np.full(np.shape(fractions), inf)

    def ends(self, fractions):
        return np.full(np.shape(fractions), self.horizon)


def test_a_stop_rule_without_equality_is_known_by_its_content():
    assert cb.simulate({"m": cb.MUCB()}, HALF, lambda bandit: Patient(0.5)).rounds[0, 0, -1] == 9


@pytest.mark.parametrize(("name", "value", "said"), [
    ("total", None, "Patient total = None: must be a number above 0"),
    ("total", np.nan, "Patient total = nan: must be a number above 0"),
    ("due", lambda fractions: np.array([inf]), r"Patient due\(fractions\) = .*: must be numbers that do not decr"),
    ("due", lambda fractions: -fractions, r"Patient due\(fractions\) = .*: must be numbers that do not decrease"),
    ("ends", lambda fractions: fractions * 21.3, r"Patient ends\(fractions\) = .*: must be whole numbers, 1 or more"),
    ("ends", lambda fractions: np.rint(-20 * fractions), r"Patient ends\(fractions\) = .*: must be whole numbers, 1 o"),
    ("ends", lambda fractions: 9, r"Patient ends\(fractions\) = .*: must be whole numbers, 1 or more, or None that"),
    ("limits", lambda bandit: (np.zeros(1), inf, 0.0), r"Patient limits\(bandit\) = .*: must be an array of 3 numbers"),
    ("limits", lambda bandit: None, r"Patient limits\(bandit\) = None: must be an array of 3 numbers")])
def test_a_stop_rule_of_ones_own_returns_what_can_be_played(name, value, said):
    rule = Patient(0.5)
    setattr(rule, name, value)
    with pytest.raises(ValueError, match=said):
        cb.simulate({"m": cb.MUCB()}, HALF, rule, checkpoints=4)


def test_a_law_must_not_change_after_its_bandit_has_told_its_mean():
    law = Fair()
    bandit = cb.Bandit([law, cb.Bernoulli(0.5)], [cb.Bernoulli(0.5)] * 2)
    assert cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(5)) is not None and bandit.reward_means[0] == 0.5
    law.mean = 0.25
    with pytest.raises(ValueError, match=r"reward of arm 0 = .*: its mean was 0.5 when it was first asked for"):
        cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(5))


class Fair:
    """A law of one's own."""

    mean, variance, support = 0.5, 0.25, (0.0, 1.0)

    def sample(self, rng, size):
        return (rng.random(size) < 0.5).astype(float)


def test_joined_replications_stand_in_the_order_of_the_first():
    study = {"bandits": cb.instances.beta(4), "stop": cb.Budget(15)}
    a = cb.simulate({"m": cb.MUCB()}, **study, replications=[3, 0, 2])
    b = cb.simulate({"c": cb.CUCB()}, **study, replications=[0, 1, 3])
    both, direct = cb.join(a, b), cb.simulate({"m": cb.MUCB(), "c": cb.CUCB()}, **study, replications=[3, 0])
    assert both.replications.tolist() == [3, 0] and same(both, direct)


def test_reduced_results_of_another_seed_are_not_paired_on_one_bandit_either():
    a, b = (cb.simulate({label: POLICIES[label]}, HALF, cb.Budget(15), seed=seed, reduce=lambda runs: {"x": runs.spent})
            for label, seed in (("m", 0), ("c", 1)))
    with pytest.raises(ValueError, match="instances, stop rules or seeds"):
        cb.join(a, b)


@pytest.mark.parametrize("change", ["seed", "stop", "reward", "cost"])
def test_runs_of_one_bandit_are_paired_only_if_all_else_is_the_same(change):
    """One thing differs at a time: instances that are drawn differ with the seed, and so tell it too soon."""
    def played(label, other):
        bandit = cb.Bandit([cb.Bernoulli(0.5 if other != "reward" else 0.75)] * 3,
                           [cb.Bernoulli(0.5 if other != "cost" else 0.75)] * 3)
        return cb.simulate({label: POLICIES[label]}, bandit, cb.Budget(15 + (other == "stop")), 2, int(other == "seed"))

    assert cb.join(played("m", ""), played("c", "")).policies == ["m", "c"]
    with pytest.raises(ValueError, match="instances, stop rules or seeds"):
        cb.join(played("m", ""), played("c", change))


# ---- equal results ------------------------------------------------------------------------------------

def test_results_differ_if_one_of_their_numbers_does():
    runs = cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(20), 2)
    kept = cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(20), 2,
                       reduce=lambda runs: {"regret": cb.regret.budgeted(runs), "spent": runs.spent})
    told = {"bandits", "stops", "seed", "origin"}       # numbers follow from these
    for result in (runs, kept):
        for field in dataclasses.fields(result):
            value = getattr(result, field.name)
            others = [value + 1] if isinstance(value, np.ndarray) else [["other"]] if field.name == "policies" else \
                [{**value, name: value[name] + 1} for name in value] if field.name == "values" else []
            assert (others == []) == (field.name in told)
            assert all(dataclasses.replace(result, **{field.name: other}) != result for other in others)
        assert dataclasses.replace(result) == result

def test_results_are_equal_if_all_numbers_are():
    def runs(seed=0, **options):
        return cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(20), 2, seed=seed, **options)

    def kept(seed=0):
        return runs(seed, reduce=lambda runs: {"regret": cb.regret.budgeted(runs)})

    assert runs() == runs() and runs() != runs(seed=1) and runs() != runs(checkpoints=2) and runs() != kept()
    assert kept() == kept() and kept() != kept(seed=1)


def test_a_stop_rule_that_is_not_called_is_refused():
    with pytest.raises(ValueError, match=r"stop = .*Budget.*: is a class; call it with its budget or its rounds"):
        cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget)


def test_one_replication_is_not_compared():
    runs = cb.simulate({"m": cb.MUCB(), "c": cb.CUCB()}, cb.instances.bernoulli(3), cb.Budget(20))
    with pytest.raises(ValueError, match="replications = 1: must be 2 or more, to be compared"):
        cb.paired(runs, "m", "c")
