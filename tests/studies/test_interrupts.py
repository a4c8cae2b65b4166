"""Whatever is played can be interrupted within a second, nothing computes on then, and the next study is sound."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from pins import SMALL, THREE, linear, my_choice, my_index
from reference import proving

import costbandits as cb
from costbandits.engine import run

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="an alarm is what interrupts here")]

FOREVER = 10**16
BETA = cb.Bandit(THREE.rewards, [cb.Constant(c) for c in (0.2, 0.9, 0.6)])      # known costs, rewards drawn one by one


@cb.choose
def idle(t, spent, arms, told, p, memory, rng):
    return -1


def vertices(rng):
    """So many arms that the kernel sets some apart."""
    return cb.LinearBandit(rng.dirichlet(np.ones(5), 60), *rng.uniform(0.1, 0.9, (2, 5)), noise_sd=0.1)


# A loop of each kind -> policy, bandit, a stop rule that is far off, one that is near
ENDLESS = {
    "every arm in every round": (cb.IndexPolicy(my_index, (0.1,)), THREE, cb.Budget(FOREVER), cb.Budget(500)),
    "lazily": (cb.IndexPolicy(my_index, (0.1,), monotone=True), THREE, cb.Budget(FOREVER), cb.Budget(500)),
    "in blocks": (cb.UCB1(), SMALL, cb.Horizon(2**61), cb.Horizon(3000)),
    "a choice": (cb.ChoosePolicy(my_choice, memory=lambda K: 1), SMALL, cb.Horizon(FOREVER), cb.Horizon(3000)),
    "nothing but skips": (cb.ChoosePolicy(idle), SMALL, cb.AnytimeBudget(0.5, FOREVER), cb.AnytimeBudget(0.5, 900)),
    "Thompson": (cb.BTS(), THREE, cb.Budget(FOREVER), cb.Budget(500)),
    "Thompson, as defined": (cb.BTS(naive=True), THREE, cb.Budget(FOREVER), cb.Budget(500)),
    "an arm many times": (cb.BGreedy(), THREE, cb.Budget(FOREVER), cb.Budget(500)),
    "anytime": (cb.SUAK(), THREE, cb.AnytimeBudget(0.4, FOREVER), cb.AnytimeBudget(0.4, 2000)),
    "whole sweeps": (cb.EpsilonFirst(0.9), BETA, cb.HardBudget(FOREVER), cb.HardBudget(500)),
    "a filling": (cb.KUBE(), BETA, cb.HardBudget(FOREVER), cb.HardBudget(500)),
    "Thompson, known costs": (cb.KnownCostTS(), BETA, cb.HardBudget(FOREVER), cb.HardBudget(500)),
    "long spells": (cb.BlindETC(), BETA, cb.Horizon(2**61), cb.Horizon(3000)),
    "bounds": (cb.CSUCB(0.1), BETA, cb.Horizon(FOREVER), cb.Horizon(3000)),
    "subsidy, Thompson": (cb.CSTS(0.1), BETA, cb.Horizon(FOREVER), cb.Horizon(3000)),
    "balls": (cb.BudgetCB(), linear, cb.Budget(1e9), cb.Budget(60.0)),
    "balls, a contest": (cb.CB(), vertices, cb.Budget(1e9), cb.Budget(60.0)),
    "subsidy, in turn": (cb.CSETC(0.1), BETA, cb.Horizon(2**61), cb.Horizon(3000)),
}


class Late(Exception):
    """The alarm."""


@pytest.fixture
def alarm():
    """A function that lets an alarm ring after so many seconds."""
    def ring(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ENDLESS)
def test_every_loop_hears_an_alarm_and_looking_up_decides_nothing(alarm, monkeypatch, kind):
    policy, bandit, far, near = ENDLESS[kind]

    def played(stop=near):
        return cb.simulate({"p": policy}, bandit, stop, seed=2, checkpoints=3, max_rounds=2**62)

    first = played()        # compiles, too
    began = time.monotonic()
    alarm(0.4)
    with pytest.raises(Late):
        played(far)
    assert time.monotonic() - began < 1.4
    assert played() == first
    monkeypatch.setattr(run.PULSE, "SECONDS", 1e-5)         # now it looks up all the time
    assert played() == first


def computing(seconds=0.6):
    """Which share of a core this process computes on."""
    before = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - before) / seconds


@pytest.mark.parametrize(("n_jobs", "fast"), proving([(1, True), (2, True), (3, False)], (1, True)))
def test_after_an_interrupt_nothing_computes_on(n_jobs, fast):
    def played(stop):
        return cb.simulate({"m": cb.MUCB()}, cb.instances.beta(4), stop, 5, n_jobs=n_jobs, fast=fast,
                           max_rounds=2**62)

    first = played(cb.Budget(50))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)       # what a shell runs with & ignores it
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            played(cb.Budget(FOREVER))
    finally:
        signal.signal(signal.SIGINT, before)
    time.sleep(1.0)
    assert computing() < 0.1 and run.PULSE.process is None
    assert played(cb.Budget(50)) == first


@cb.index
def fails(t, arm, p):
    return np.nan if arm.n > 50 and arm.told > p[0] else arm.reward / arm.n


def test_when_one_run_fails_the_others_are_given_up():
    """They would compute on for hours, and the error is told at once."""
    def make(rng):
        return cb.Bandit([cb.Beta(2, 2)] * 4, [cb.Constant(rng.uniform(0.1, 1))] * 4)

    def played(stop, threshold):
        policy = cb.IndexPolicy(fails, (threshold,), prepare=lambda problem: problem.cost_means)
        return cb.simulate({"p": policy}, make, stop, 2, n_jobs=2, max_rounds=2**62)

    costs = [float(bandit.cost_means[0]) for bandit in played(cb.Budget(9), 2.0).bandits]
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="not a number"):
        played(cb.Budget(FOREVER), sum(costs) / 2)
    assert time.monotonic() - began < 5
    time.sleep(1.0)
    assert computing() < 0.1


def test_a_pulse_beats_again_in_a_process_that_was_forked():
    """A fork takes the number of players along, but not the thread."""
    pulse = run.Pulse()
    pulse.SECONDS = 0.01
    pulse.process = os.getpid() + 1        # as it is after a fork: another process's
    pulse.players.add("one of the parent's")
    for player in ("mine", "another"):
        pulse.enter(player)
    at = int(pulse.beat[0])
    time.sleep(0.2)
    assert pulse.beat[0] > at + 2 and pulse.players == {"mine", "another"}
    pulse.players.clear()
    time.sleep(0.2)
    at = int(pulse.beat[0])
    time.sleep(0.1)
    assert pulse.beat[0] == at and pulse.process is None


def interrupted(runs):
    if runs.replications[0] == 3:
        raise KeyboardInterrupt
    return {"rounds": runs.rounds[:, :, -1]}


@pytest.mark.parametrize("store", [True, False])
def test_after_an_interrupt_one_sentence_says_what_is_kept(tmp_path, store):
    """What an earlier call has kept counts."""
    path = tmp_path / "runs.sqlite" if store else None

    def said(replications):
        with pytest.raises(KeyboardInterrupt) as stopped:
            cb.simulate({"m": cb.MUCB()}, SMALL, cb.Budget(50), replications, store=path, reduce=interrupted)
        return str(stopped.value)

    if store:
        assert said(7) == f"3 of 7 replications are kept in {path}; the same call goes on from there"
        assert said([3, 0, 2, 9]).startswith("2 of 4 replications are kept")
    else:
        assert said(7) == 'none of 7 replications is kept; with store="runs.sqlite" those that are finished are'
