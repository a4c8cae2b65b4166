"""The lazy search finds what a scan of all indices finds, and its bounds hold."""

import inspect
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import costbandits as cb
from costbandits.engine import numerics, plain
from costbandits.engine.compilation import Kernel, around
from costbandits.engine.state import Arms
from costbandits.fast import search as engine

SMOOTH, STEPS, POLES, HOPELESS, TO_THE_END = range(5)
KINDS = {"smooth": SMOOTH, "in steps": STEPS, "infinite": POLES, "hopeless": HOPELESS, "to the end": TO_THE_END}


@cb.index
def drifting(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    """Indices that rise with t in several ways; beyond round params[1] there is none."""
    kind, last, width = params
    if t > last:
        return np.nan
    value = reward / n + constant + width * np.sqrt(np.log(t) / n)
    if kind == STEPS:
        return np.floor(4.0 * value) / 4.0
    if kind == POLES:
        return np.inf if np.log(t) > n * (1.2 + constant) else value
    if kind == HOPELESS:
        return -np.inf if n > 5 else value
    return value + 1.0 / (last - t + 1.0) / n if kind == TO_THE_END else value


class Searched(NamedTuple):
    """What the search works on."""

    constant: np.ndarray
    params: np.ndarray
    search: np.record
    tree: np.ndarray
    rivals: np.ndarray

    @classmethod
    def of(cls, constant, *params):
        """Before the first round."""
        return cls(np.array(constant, float), np.array(params, float), *engine.new_search(len(constant)))


def once_each(K):
    """Arms that were pulled once, and paid and cost nothing."""
    return Arms(np.ones(K, np.int64), *np.zeros((4, K)))


def first_fault(lazy_argmax, pulled, index, own, arms, luck, stray):
    """The first round in which the arm or a bound is wrong, 0 if none; now and then another arm is pulled."""
    search, constant, params, n, reward = own.search, own.constant, own.params, arms.n, arms.reward
    K, last = constant.size, luck.size
    reward[:] = np.floor(2.0 * luck[:K])
    for t in range(K, last):
        arm = search.leader
        if not (t < search.expires and index(t + 1, n[arm], reward[arm], 0.0, 0.0, 0.0, constant[arm], params)
                > search.rival_bound):
            arm = lazy_argmax(index, t, own, arms, last)
        wanted, best = -1, -np.inf
        for k in range(K):
            value = index(t + 1, n[k], reward[k], 0.0, 0.0, 0.0, constant[k], params)
            if value > best or wanted < 0:
                wanted, best = k, value
            if k != arm and value > search.rival_bound and (k < arm or value < np.inf):
                return t + 1
        if arm != wanted or search.leader != arm or search.expires <= t:
            return t + 1
        if luck[t] < stray:
            other = int(luck[t] / stray * K)
            if other != arm:
                pulled(other, own)
            arm = other
        n[arm] += 1
        reward[arm] += np.floor(2.0 * luck[t - 1])
    return 0


FIRST_FAULT = Kernel(first_fault)


def compiled(lazy_argmax, pulled, index, *state):
    """`first_fault`, compiled with these functions in it."""
    return around(FIRST_FAULT, lazy_argmax, pulled, index)(*state)


def fault(kind, K, rounds, seed, stray=0.0, levels=3, functions=engine, play=compiled):
    """`first_fault` on arms of few levels, some of them equal."""
    rng = np.random.default_rng(seed)
    own = Searched.of(rng.integers(0, levels, K) / 10, kind, rounds, rng.choice([0.1, 0.5, 2.0]))
    return play(functions.lazy_argmax, functions.pulled, drifting, own, once_each(K), rng.random(rounds), stray)


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 2, 3, 7, 8, 9, 64, 100, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_is_a_full_scan(kind, K):
    for seed in range(12):
        assert fault(KINDS[kind], K, K + 2000, seed, levels=1 + seed % 3 * 40) == 0


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3, 9, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_other_arms_may_be_pulled_if_the_search_is_told(kind, K):
    for seed in range(12):
        assert fault(KINDS[kind], K, K + 2000, seed, stray=0.2) == 0


# What stands in the source once is replaced by something wrong.
ERRORS = {
    "slack of the wrong sign": ("value + SLACK", "value - SLACK"),
    "a tie to the higher position": ("if tree[1].bound == best and k > arm:", "if tree[1].bound == best:"),
    "a tie to the one found last": ("(value == best and k < arm):\n            arm, best = k, value\n    tied",
                                    "value == best:\n            arm, best = k, value\n    tied"),
    "expiry ignored": ("tree[1].until <= t", "tree[1].until < 0"),
    "expiry one round late": ("tree[1].until <= t", "tree[1].until < t"),
    "the old leader not in the tree again": ("elif k != arm:", "elif k != arm and k != leader:"),
    "nodes above not updated": ("while i > one:", "while i > leaves_of(tree):"),
    "bounds of ties forgotten": ("max(most, tree[1].bound)", "tree[1].bound"),
    "expiry of ties forgotten": ("min(expires, tree[1].until)", "tree[1].until"),
    "ties with the last leader forgotten": ("rivals[leader].value, rivals[leader].after = best, aside",
                                            "rivals[leader].value, rivals[leader].after = best, -1"),
    "a bound beyond the last round": ("LEAST), last - t)", "LEAST), 10 * last)"),
    "an infinite index of an earlier position": ("or holder(tree.bound) > arm)", "or holder(tree.bound) >= 0)"),
    "another's pull ignored": ("put(tree, k, inf, 0)", "None"),
}


@cache
def not_compiled(error=None):
    """The functions of the search, not compiled, with an error."""
    parts = [numerics.with_slack, plain.index_at, engine.put, engine.holder, engine.renew, engine.lazy_argmax,
             engine.pulled]
    source = "\n".join(inspect.getsource(getattr(part, "py_func", part)) for part in parts)
    right, wrong = ERRORS.get(error, ("", ""))
    assert error is None or source.count(right) == 1
    names = {**vars(numerics), **vars(engine), "nb": SimpleNamespace(njit=lambda **_: lambda part: part),
             **dict.fromkeys(("inlined", "jit", "step"), lambda part: part), "leaves_of": lambda tree: tree.size // 2}
    exec(source.replace(right, wrong) if error else source, names)
    return SimpleNamespace(**names)


def caught(error):
    """Whether one of a few short runs shows the error."""
    with np.errstate(all="ignore"):
        return any(fault(kind, K, 300, seed, stray, 3, not_compiled(error), first_fault) for seed in range(2)
                   for K in (3, 12) for stray in (0.0, 0.2) for kind in KINDS.values())


@pytest.mark.slow
def test_not_compiled_it_is_the_same():
    assert not caught(None)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_a_planted_error_is_caught(error):
    assert caught(error)


@cb.index
def known(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return constant


@pytest.mark.slow
@pytest.mark.parametrize("place", range(3))
def test_an_index_that_is_not_a_number_is_reported(place):
    constant = np.zeros(3)
    constant[place] = np.nan
    assert engine.lazy_argmax(known, 3, Searched.of(constant), once_each(3), 10) == -1


@pytest.mark.slow
def test_a_first_search_by_hand():
    own = Searched.of([1.0, 3.0, 2.0])
    assert engine.lazy_argmax(known, 3, own, once_each(3), 10) == 1
    assert (own.search.leader, own.search.tied, own.search.expires) == (1, -1, 10)
    assert own.search.rival_bound == 2.0 * (1 + numerics.SLACK) and engine.holder(own.tree.bound) == 2


def test_the_tree_by_hand():
    _, tree, _ = engine.new_search(5)
    for k, (bound, until) in enumerate([(1.0, 9), (3.0, 8), (-2.0, 3), (3.0, 7), (0.0, 4)]):
        engine.put(tree, k, bound, until)
    assert (engine.holder(tree.bound), engine.holder(tree.until)) == (1, 2)
    assert (tree[1].bound, tree[1].until) == (3.0, 3)
    engine.put(tree, 1, -np.inf, engine.NEVER)
    engine.put(tree, 2, 5.0, 20)
    assert (engine.holder(tree.bound), engine.holder(tree.until)) == (2, 4)
    assert (tree[1].bound, tree[1].until) == (5.0, 4)
