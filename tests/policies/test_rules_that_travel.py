"""A rule under @cb.index or @cb.choose arrives in another process as what it is, with what guards it."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from typing import NamedTuple

import joblib
import numba as nb
import pytest
from reference import proving

import costbandits as cb

cloudpickle = pytest.importorskip("cloudpickle")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(nb.config.DISABLE_JIT, reason="there a rule is a plain function")]
PULLS = 40
LIFT = 0.25


class Weights(NamedTuple):
    bonus: float
    floor: float


@nb.njit
def lifted(x):
    return x + LIFT


@cb.index
def by_name(t, arm, p: Weights):
    return max(lifted(arm.reward / arm.n) + p.bonus / arm.n, p.floor)


@cb.index
def by_sums(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / cost + params[0] / n if cost > 0.0 else 9.0


@cb.choose
def in_turn(t, spent, arms, told, p, memory, rng):
    memory[0] += 1.0
    return int(memory[0] + rng.integers(0, 2)) % arms.n.size


def made(rule):
    if rule.maker == "choose":
        return cb.ChoosePolicy(rule, memory=lambda K: 1)
    return cb.IndexPolicy(rule, (0.5, 0.1) if "by_name" in rule.py_func.__name__ else (0.5,))


def play(rule):
    """Build a policy from a rule, here, and play it: the pulls."""
    runs = cb.simulate({"p": made(rule)}, cb.instances.bernoulli(3), cb.Horizon(PULLS), 2, checkpoints=1)
    return runs.pulls.tolist()


def packed_twice(rule):
    """By the plain pickle, and by it again in the process where it arrives."""
    return play(pickle.loads(pickle.dumps(rule)))


RULES = {"by name": by_name, "by sums": by_sums, "a choice": in_turn, "one of the library": cb.MUCB.rule,
         "as the engine calls it": cb.IndexPolicy(by_name, (0.5, 0.1)).rule}


def test_a_rule_is_known_where_it_arrives():
    """In a new process that has only what was packed, where it is packed once more."""
    packed = cloudpickle.dumps((packed_twice, RULES))
    code = "import pickle, sys; work, rules = pickle.load(sys.stdin.buffer); print(*map(work, rules.values()), sep='|')"
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr.decode()
    found = dict(zip(RULES, done.stdout.decode().strip().split("|"), strict=True))
    assert found == {name: str(play(rule)) for name, rule in RULES.items()}


@pytest.mark.proof
def test_workers_of_joblib_and_of_multiprocessing_know_a_rule():
    rules = [by_name, in_turn]
    with joblib.parallel_config("loky", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(play)(rule) for rule in rules) == [play(rule) for rule in rules]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(play, rules) == [play(rule) for rule in rules]


# Rules of both kinds, and a policy of each, packed before or after what they read has changed.
GUARDED = """
import pickle, sys
import numba
import cloudpickle
import costbandits as cb

LIMIT = 3.0

@numba.njit
def helper(x):
    return x / LIMIT

@cb.index
def of_one(t, arm, p):
    return helper(arm.reward) / arm.n

@cb.choose
def of_all(t, spent, arms, told, p, memory, rng):
    return int(helper(3.0 * t)) % arms.n.size

sent = of_one, cb.IndexPolicy(of_one), of_all, cb.ChoosePolicy(of_all)
first = cloudpickle.dumps(sent)
LIMIT = 5.0
sys.stdout.buffer.write(pickle.dumps((first, cloudpickle.dumps(sent))))
"""
ARRIVED = """
import pickle, sys
import costbandits as cb
of_one, one, of_all, all = pickle.loads(pickle.load(sys.stdin.buffer)["changed" in sys.argv])
if "here" in sys.argv:
    for rule in of_one, of_all:
        rule.py_func.__globals__["helper"].py_func.__globals__["LIMIT"] = 4.0
for each in (one, cb.IndexPolicy(of_one), all, cb.ChoosePolicy(of_all)):
    try:
        cb.simulate({"p": each}, cb.instances.bernoulli(3), cb.Horizon(9))
        print("played")
    except ValueError as error:
        print("has changed since the rule was compiled" in str(error))
"""
KEPT = {"env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, "check": True, "capture_output": True}


@pytest.fixture(scope="module")
def packed():
    return subprocess.run([sys.executable, "-c", GUARDED], **KEPT).stdout


JOURNEYS = [("as it was", "", "played"), ("changed", "", "True"), ("as it was", "here", "True")]


@pytest.mark.parametrize(("sent", "there", "said"), proving(JOURNEYS, JOURNEYS[0], JOURNEYS[2]))
def test_its_guard_travels_with_it(packed, sent, there, said):
    """What a rule reads must be what it was compiled with, whether it changed before or after the journey."""
    told = subprocess.run([sys.executable, "-c", ARRIVED, sent, there], input=packed, **KEPT).stdout
    assert told.decode().split() == [said] * 4
