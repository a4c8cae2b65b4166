"""Whether an index of the reader's own keeps what it promises: looked for along the outcomes of a run."""

import numpy as np

from ..engine.numerics import SLACK
from ..engine.run import Run
from ..engine.state import Arm
from ..policies.base import IndexRule, Problem
from .lower import in_blocks, lower_for


def broken(policy: IndexRule, run: Run, problem: Problem, rounds: int) -> tuple[str, int] | None:
    """A promise that breaks and a round at which it does, looked for on the outcomes of a run up to `rounds`.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.25)] * 2)
    >>> from costbandits.engine.stacks import Stacks
    >>> run = Run(Stacks(bandit, seed=0, replication=0, order=[0, 1]), due=[5.0], max_rounds=100)
    >>> problem = Problem.of(bandit, cb.Budget(5), [0, 1])
    >>> status = cb.UCB1().play(run, problem, None)
    >>> broken(cb.UCB1(), run, problem, 20)
    """
    constant = policy.constants(problem)
    blocks = in_blocks(policy) and not run.stacks.negative
    with np.errstate(all="ignore"):     # without compilation
        for k in np.flatnonzero(run.state.arms.n).tolist():
            pairs = run.stacks.pairs(k, int(run.state.arms.n[k]))
            sums = np.cumsum(np.hstack([pairs, pairs**2]), axis=0)
            found = _broken_by(policy, sums, rounds, float(constant[k]), blocks)
            if found is not None:
                return found
    return None


def _broken_by(policy, sums, rounds, constant, blocks):
    """`broken` for one arm; `sums` of rewards, costs and their squares after each of its pulls."""
    def above(value, other):
        return value > other + SLACK * abs(other)

    def at(t, n):
        return policy.rule(t, n, *sums[n - 1].tolist(), constant, policy.parameters)

    last, lower = len(sums), lower_for(policy)
    for n in np.unique(np.geomspace(1, last, 48).astype(int)).tolist():
        times = np.unique(np.geomspace(n + 1, max(rounds, n + 1), 32).astype(int)).tolist()
        values = [at(t, n) for t in times]
        for before, value, t in zip(values, values[1:], times[1:], strict=False):
            if above(before, value):
                return "monotone", t
        arm = Arm(n, *sums[n - 1].tolist(), constant)
        for m in {min(m, last - n) for m in (4, n // 4, n)} - {0} if blocks else ():
            more = (sums[n + m - 1] - sums[n - 1]).tolist()
            for t in times[::8]:
                least = lower(t, m, arm, *more[:2], policy.parameters)
                for j in np.unique(np.linspace(0, m - 1, 8).astype(int)).tolist():
                    if above(least, at(t + j, n + j)):
                        return "regular", t + j
    return None
