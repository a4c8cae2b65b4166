"""A run draws of an arm's tree no more than the paths to the places where it decided."""

import numpy as np
import pytest
from reference import proving

import costbandits as cb
from costbandits import fast
from costbandits.engine import trees
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.policies.base import Problem

ARMS = 10
OMEGA = cb.OmegaUCB.rule


@cb.index
@cb.tally
def noting(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    """Omega-UCB that notes which arm it evaluates, and after how many pulls; params begin with rho and a count."""
    place = 2 + 2 * int(params[1])
    if place + 1 < params.size:
        params[place], params[place + 1] = constant, n
    params[1] += 1
    return OMEGA(t, n, reward, cost, reward_sq, cost_sq, 0.0, params)


def played(instance, rounds):
    """A run and its policy, on ten Bernoulli arms."""
    bandit = cb.instances.bernoulli(ARMS)(np.random.default_rng(instance))
    policy = cb.IndexPolicy(noting, np.r_[0.25, np.zeros(10**6)], monotone=True, regular=True,
                            prepare=lambda problem: np.arange(problem.K))
    stop = cb.Horizon(rounds)
    largest, *limits = stop.limits(bandit)
    run = Run(Stacks(bandit, 0, 0, range(ARMS)), stop.due(np.ones(1)), 2**62, largest, *limits, stop.ends(np.ones(1)))
    fast.play(policy, run, Problem.of(bandit, stop, np.arange(ARMS)), np.random.default_rng(0))
    return run, policy


def needed(run, policy, arm):
    """Blocks that were split and leaves that were opened, as (first pull, pulls), if nothing was drawn in vain."""
    many = int(policy.params[1])
    arms, n = policy.params[2:2 + 2 * many].reshape(many, 2).astype(int).T
    ends = np.unique(np.r_[0, 1, n[arms == arm], run.state.arms.n[arm]])
    split, opened = set(), set()
    for first, size in zip(ends[:-1].tolist(), np.diff(ends).tolist(), strict=True):
        if size < trees.LEAF:
            first, size = first - first % trees.LEAF, trees.LEAF
            opened.add((first, size))
        while first not in (0, size):                   # a root begins there
            size *= 2
            first -= first % size
            split.add((first, size))
    return split, opened


def in_memory(run, arm, column):
    """Those of the arm that are in memory at the end: later ones take the place of earlier ones."""
    kept = run.outcomes.kept
    tags = kept[:, column][kept[:, column] > 0] - 1
    places = tags[tags % (2 * ARMS) == 2 * arm] // (2 * ARMS)
    level = np.log2(places & -places).astype(int)
    return {(trees.LEAF * (int(p) >> lv >> 1 << lv), trees.LEAF << int(lv))
            for p, lv in zip(places, level, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("instance", proving([0, 1, 2], 1, 2))
def test_nothing_is_drawn_that_no_decision_needs(instance):
    run, policy = played(instance, 10**6)
    arm = int(run.state.arms.n.argmax())
    split, opened = needed(run, policy, arm)
    nodes, leaves = in_memory(run, arm, trees.NODE), in_memory(run, arm, trees.LEFT)
    assert nodes and leaves
    assert nodes <= split
    assert leaves <= opened
    assert trees.LEAF * len(opened) < 0.9 * run.state.arms.n[arm]        # the others were never opened
