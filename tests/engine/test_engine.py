"""The engine: the lazy scan pulls what the full scan pulls, and what stops a run."""

import errno
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import FAMILIES, INDICES, INSTANCE, ORDER, run, same_record, stream

import costbandits as cb
from costbandits import fast
from costbandits.engine import stacks
from costbandits.engine.driver import DONE
from costbandits.engine.run import RuleError, Run
from costbandits.engine.stacks import Stacks
from costbandits.policies.base import Problem
from costbandits.studies import study

SHARES = np.arange(1, 41) / 40


def short_run():
    return Run(Stacks(cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)]), 0, 0, [0]), [9.0], 100)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), PermissionError("kept code"), SystemExit(),
                                   MemoryError("Allocation failed"), KeyboardInterrupt(), BlockingIOError()])
def test_a_fault_of_the_machine_is_not_the_rules(error):
    def loop(game):
        raise error

    with pytest.raises(type(error)) as told:
        short_run().play(loop)
    assert told.value is error


class Late(Exception):
    """What the handler of an alarm raises."""


def ring(number, frame):
    raise Late


class Bell:
    def ring(self, number, frame):
        raise Late


@pytest.mark.parametrize("handler", [ring, Bell().ring])
def test_what_the_handler_of_a_signal_raises_is_not_the_rules(handler):
    def loop(game):
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(Late):
            short_run().play(loop)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [ZeroDivisionError("division"), Late(), IndexError("out of bounds"), TypeError()])
def test_what_a_rule_raises_is_the_rules(error):
    def loop(game):
        raise error

    with pytest.raises(RuleError) as told:
        short_run().play(loop)
    assert told.value.__cause__ is error and str(told.value) == "1"


def same_runs(policy, bandit, marks, seed=0):
    """Whether lazy and full scan agree in everything they note at every checkpoint."""
    lazy, full = (run(policy, bandit, marks, seed, fast=way) for way in (True, False))
    assert lazy[0] == full[0] == DONE
    return same_record(lazy[1], full[1])


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 2, 10, 60])
@pytest.mark.parametrize("family", FAMILIES)
def test_lazy_is_full_scan(family, K):
    bandit = FAMILIES[family](K)(stream(7, K, INSTANCE))
    marks = 1500 * np.median(bandit.cost_means) * SHARES
    assert all(same_runs(policy, bandit, marks) for policy in INDICES.values())


STAIRCASE, FADING, SLOWLY_FADING, UNTIL_THE_END, STEEPER_TO_THE_END, HOPELESS, LEVEL, BROKEN, BROKEN_AT_FIRST = range(9)


@cb.index
def shaped(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    """Indices of all the shapes that are tested here: one rule, so that one loop is compiled for it."""
    shape, a = params[0], params[1]
    if shape == STAIRCASE:
        if cost <= 0.0:
            return np.inf
        value = reward / cost + a * np.log(t) / n ** params[2] - params[4]
        return np.floor(value / params[3]) * params[3]     # coarse steps make ties, and keep the order in t
    if shape == FADING:
        return reward / n + 5.0 / n * np.exp(-t / 30.0)
    if shape == SLOWLY_FADING:
        return reward / cost * (1.0 + 5.0 / np.sqrt(t * n)) if cost > 0.0 else np.inf
    if shape == UNTIL_THE_END:
        return reward / n + np.sqrt(np.log(a / (a - t + 1)) / n)
    if shape == STEEPER_TO_THE_END:
        return reward / n + 1.0 / ((a - t + 1) * n)
    if shape == HOPELESS:
        return -np.inf if n > a else reward / n
    if shape == BROKEN:
        return np.nan if t >= 12 and n > 1 else 1.0 / n
    if shape == BROKEN_AT_FIRST:        # in turn; in one round it is a number for the last arm alone
        return np.nan if t == 12 and n > 3 else -n
    return constant


def policy_of(shape, *params, **options):
    return cb.IndexPolicy(shaped, (shape, *params, 0.0), **options)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(K=st.integers(1, 12), scale=st.floats(0, 3), decay=st.floats(0, 2), step=st.sampled_from([1e-9, 0.01, 1.0]),
       shift=st.sampled_from([0.0, 2.5]), seed=st.integers(0, 2**32), family=st.sampled_from(sorted(FAMILIES)))
@pytest.mark.slow
def test_lazy_is_full_scan_for_any_rising_index(K, scale, decay, step, shift, seed, family):
    bandit = FAMILIES[family](K)(np.random.default_rng(seed))
    policy = policy_of(STAIRCASE, scale, decay, step, shift, monotone=True)
    assert same_runs(policy, bandit, 300 * bandit.cost_means.mean() * SHARES, seed)


@pytest.mark.slow
def test_broken_promise_of_monotony_is_caught():
    study = {"stop": cb.Budget(100), "bandits": cb.instances.bernoulli(5)}
    assert cb.simulate({"honest": policy_of(FADING)}, **study).rounds[0, 0, -1] > 100
    with pytest.raises(ValueError, match=r"'hasty' monotone = True: at round \d+ its index decreases while the arm"):
        cb.simulate({"hasty": policy_of(FADING, monotone=True)}, **study)


@pytest.mark.slow
def test_a_broken_promise_is_caught_where_it_made_no_difference():
    """In the first replication, whose arms are the same either way; in others they are not."""
    study = {"bandits": cb.instances.bernoulli(5), "stop": cb.Budget(300), "replications": 20}
    honest = cb.simulate({"honest": policy_of(SLOWLY_FADING)}, **study).pulls[0, 0, -1]
    order = stream(0, 0, ORDER).permutation(5)
    bandit = cb.instances.bernoulli(5)(stream(0, 0, INSTANCE))
    run, hasty = Run(Stacks(bandit, 0, 0, order), 300 * SHARES, 10**6), policy_of(SLOWLY_FADING, monotone=True)
    fast.play(hasty, run, Problem.of(bandit, cb.Budget(300), order), None)
    assert np.array_equal(run.state.arms.n, honest[order])
    with pytest.raises(ValueError, match=r"monotone = True: at round \d+ its index decreases while the arm rests"):
        cb.simulate({"hasty": hasty}, **study)


@cb.index
def peaked(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return 2.0 if t == params[0] and n == 1 else reward / n


def test_a_broken_promise_is_caught_where_nobody_looked():
    """It rises for a single round between those that are probed, and falls after it."""
    bandit = cb.Bandit([cb.Constant(0.9), cb.Constant(0.1)], [cb.Constant(1.0)] * 2)
    assert cb.simulate({"honest": cb.IndexPolicy(peaked, (777.0,))}, bandit, cb.Horizon(2000)).pulls[0, 0, -1, 1] == 2
    with pytest.raises(ValueError, match="monotone = True: at round 778 its index decreases while the arm rests"):
        cb.simulate({"hasty": cb.IndexPolicy(peaked, (777.0,), monotone=True)}, bandit, cb.Horizon(2000))


@pytest.mark.parametrize("shape", [UNTIL_THE_END, STEEPER_TO_THE_END])
@pytest.mark.slow
def test_an_index_is_not_asked_for_rounds_after_the_last(shape):
    lazy, full = (cb.simulate({"mine": policy_of(shape, 500.0, monotone=monotone)}, cb.instances.bernoulli(3),
                              cb.Horizon(500), 5).pulls for monotone in (True, False))
    assert np.array_equal(lazy, full)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.slow
def test_an_index_may_be_minus_infinity(lazy):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Constant(1.0)] * 3)
    status, table, _ = run(policy_of(HOPELESS, 4, monotone=True), bandit, 30, fast=lazy)
    # Five pulls each, then all are alike and the first position is pulled for good.
    assert status == DONE and table.state.arms.n.tolist() == [20, 5, 5]


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.slow
def test_a_tie_goes_to_the_lowest_position(lazy):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 4, [cb.Constant(1.0)] * 4)
    policy = policy_of(LEVEL, prepare=lambda problem: [0.0, 1.0, 1.0, 0.5], monotone=True)
    assert run(policy, bandit, 50, fast=lazy)[1].state.arms.n.tolist() == [1, 47, 1, 1]


@cb.choose
def astray(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return int(params[0]) if t == 9 else (t - 1) % len(n)


@cb.choose
def asleep(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return -1


FAULTS = {
    "NaN before numbers": (policy_of(BROKEN_AT_FIRST), "round 12: the index is not a number"),
    "NaN": (policy_of(BROKEN), "round 12: the index is not a number"),
    "NaN, lazy": (policy_of(BROKEN, monotone=True), r"round \d+: the index is not a number"),
    "arm 3 of 3": (cb.ChoosePolicy(astray, (3,)), r"round 9: .* out of range; allowed are 0 to 2, -1 to skip and -2"),
    "arm -3": (cb.ChoosePolicy(astray, (-3,)), r"round 9: .* out of range; allowed are 0 to 2, -1 to skip and -2"),
    "no end": (cb.ChoosePolicy(asleep), "round 1001: the run did not end within max_rounds = 1000"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_faults_name_policy_replication_and_round(fault, n_jobs):
    policy, message = FAULTS[fault]
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Bernoulli(0.5)] * 3)
    first = "4" if n_jobs == 1 else "[45]"                  # of two at a time either may be first
    with pytest.raises(RuntimeError, match=f"policy 'mine', replication {first}, {message}"):
        cb.simulate({"fine": cb.MUCB(), "mine": policy}, bandit, cb.Budget(50), replications=[4, 5], max_rounds=1000,
                    n_jobs=n_jobs)


@cb.choose
def sleeps_then_fails(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    if t == 50:
        raise ValueError
    return -2 if t % 2 == 0 else 0


def test_the_round_of_an_error_counts_rounds_without_a_pull():
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.5)])
    with pytest.raises(RuntimeError, match="policy 'mine', replication 0, round 50: "):
        cb.simulate({"mine": cb.ChoosePolicy(sleeps_then_fails)}, bandit, cb.AnytimeBudget(1.0, 100))


def test_a_run_without_end_says_why_its_rounds_take_time(monkeypatch):
    def told(policy, reward, **options):
        with pytest.raises(RuntimeError) as error:
            cb.simulate({"p": policy}, cb.Bandit([reward], [cb.Constant(1e-4)]), cb.Budget(1), **options)
        return str(error.value).partition("did not end within ")[2]

    monkeypatch.setattr(study, "PATIENCE", 2000)
    half, beta = cb.Bernoulli(0.5), cb.Beta(2, 2)
    assert told(cb.MUCB(), half, max_rounds=99) == "max_rounds = 99; allow more"
    assert told(cb.MUCB(), beta, max_rounds=99) == ("max_rounds = 99; allow more (rounds are played one by one, for "
                                                    "these outcomes have too many values to be counted)")
    assert told(cb.MUCB(), beta).startswith("2,000 rounds; max_rounds allows more (rounds are played one by one, for ")
    assert told(cb.BGreedy(), cb.Constant(-1), max_rounds=99).endswith("for some outcomes are below 0)")
    assert told(cb.ChoosePolicy(asleep), half, max_rounds=99).endswith("one by one, for no kernel plays ChoosePolicy)")
    assert told(cb.MUCB(), half, max_rounds=99, fast=False).endswith("for MUCB is played by its definition)")
    assert told(cb.MUCB(), half, fast=False).startswith("2,000 rounds; max_rounds allows more (rounds are ")


def test_the_longest_run_allowed():
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)])
    assert cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(300), max_rounds=300).rounds[0, 0, -1] == 300
    with pytest.raises(RuntimeError, match=r"'m', replication 0, round 300: .*max_rounds = 299"):
        cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(300), max_rounds=299)


@cb.choose
def every_third(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    memory[0] += 1.0
    if memory[0] != t:
        return -3                                          # the memory must survive a new leaf
    return -1 if t % 3 == 0 else 0


def test_skips_pass_time_and_memory_lasts():
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)])
    policy = cb.ChoosePolicy(every_third, memory=lambda K: 1)
    runs = cb.simulate({"p": policy}, bandit, cb.Budget(1000), checkpoints=[0.002, 0.003, 1.0])
    assert runs.pulls[0, 0, :, 0].tolist() == [2, 3, 1000]
    assert runs.rounds[0, 0].tolist() == [2, 4, 1499] and runs.skips[0, 0].tolist() == [0, 1, 499]


@cb.choose
def counts_itself(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    first = t == 1 and n.sum() == 0 and reward.sum() == 0.0
    known = problem[0] == 2.0 and params[1] == 0.5 and len(memory) == 6
    return 1 if (first or n.sum() == t - 1) and known else -3


def test_a_choice_is_told_what_prepare_knows():
    policy = cb.ChoosePolicy(counts_itself, (0.25, 0.5), memory=lambda K: 3 * K, prepare=lambda problem: [problem.K])
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0)] * 2)
    assert cb.simulate({"p": policy}, bandit, cb.Budget(20)).pulls[0, 0, -1].tolist() in ([0, 20], [20, 0])


@cb.choose
def first_arm(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return 0


@pytest.mark.parametrize("policy", [cb.MUCB(), policy_of(LEVEL), cb.ChoosePolicy(first_arm), cb.BTS()])
def test_one_pull_may_cross_several_checkpoints(policy):
    bandit = cb.Bandit([cb.Constant(0.5)], [cb.Constant(1.0)])
    runs = cb.simulate({"p": policy}, bandit, cb.Budget(2), checkpoints=[0.1, 0.2, 0.3, 0.6, 0.7, 1.0])
    assert runs.pulls[0, 0, :, 0].tolist() == runs.spent[0, 0].tolist() == [1, 1, 1, 2, 2, 2]


class MyBeta(cb.Beta):
    """A subclass may sample as it likes: its outcomes are drawn in Python."""


@pytest.mark.parametrize("K", [1, 3])
def test_a_run_resumed_after_every_chunk_is_the_same(K, monkeypatch):
    """Kernels return when a stack is empty; with a law of the reader's own that is wherever a chunk ends."""
    bandit = cb.instances.beta(K)(np.random.default_rng(8))
    typed = cb.Bandit([MyBeta(law.a, law.b) for law in bandit.rewards], bandit.costs)
    for policy in (cb.OmegaUCB(), cb.BTS()):
        runs = []
        for shortest in (1, 16, 64):
            monkeypatch.setattr(MyBeta, "sample", lambda law, rng, size: np.arange(size) % 64 / 64)
            monkeypatch.setattr(stacks, "SHORTEST", shortest)
            runs.append(run(policy, typed, 30 * SHARES, stacks=Stacks(typed, 0, 0, np.arange(K)))[1])
        assert same_record(runs[0], runs[1]) and same_record(runs[1], runs[2])
