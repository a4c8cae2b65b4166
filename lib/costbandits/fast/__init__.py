"""Kernels: how policies are played fast, by the same law as their definitions.

A kernel registers for a policy's class. Where a run finds none, or a subclass changes what the policy does, the
definition is played. So deleting a module of this folder changes speed and reach, never a law.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..engine.run import Run
from ..policies.base import Policy, Problem

KERNELS: dict[type, "Fast"] = {}

# What a policy's law is made of. A kernel serves a subclass that leaves these as they are.
DEFINITION = {"rule", "learn", "prepare", "parameters", "params", "memory", "p", "told", "remember", "play"}


class Fast(NamedTuple):
    """How a kernel is registered."""
    play: Callable          # called like `Policy.play`
    cls: type
    same: str               # "pulls": the very pulls of the definition; "law": its law, by other random numbers
    when: Callable          # whether it plays this policy
    blocks: Callable        # whether it pulls this policy's arms many times at once
    broken: Callable | None     # serves a subclass whatever its rule; finds a promise that the rule breaks


def kernel(cls: type, same: str = "pulls", when: Callable = lambda policy: True,
           blocks: Callable = lambda policy: True, broken: Callable | None = None) -> Callable[[Callable], Callable]:
    """Register a function as the kernel of a class of policies; the other arguments are the fields of `Fast`.

    >>> kernel(cb.UCB1, same="speed")(print)
    Traceback (most recent call last):
    ValueError: same = 'speed': must be 'pulls' or 'law'
    """
    def register(play):
        if same not in ("pulls", "law"):
            raise ValueError(f"same = {same!r}: must be 'pulls' or 'law'")
        if cls in KERNELS:
            raise ValueError(f"{cls.__name__} has a kernel already, {KERNELS[cls].play.__module__}")
        KERNELS[cls] = Fast(play, cls, same, when, blocks, broken)
        return play

    return register


def kernel_of(policy: Policy) -> Fast | None:
    """The kernel that plays a policy; None if its definition does.

    >>> kernel_of(cb.BTS()).same, kernel_of(cb.BTS(naive=True))
    ('law', None)
    """
    mro = type(policy).__mro__
    for cls in mro:
        found = KERNELS.get(cls)
        if found is not None:
            own = set(vars(policy)).union(*(vars(sub) for sub in mro[:mro.index(cls)]))
            serves = (found.broken and "play" not in own) or own.isdisjoint(DEFINITION)
            return found if serves and found.when(policy) else None
    return None


def play(policy: Policy, run: Run, problem: Problem, rng: np.random.Generator, fast: bool = True) -> int:
    """Play a run to its end, by the policy's kernel if it has one; without `fast` by its definition.

    >>> from costbandits.engine.stacks import Stacks
    >>> bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.25)] * 2)
    >>> run = Run(Stacks(bandit, seed=0, replication=0, order=[0, 1]), due=[5.0], max_rounds=100)
    >>> status = play(cb.UCB1(), run, Problem.of(bandit, cb.Budget(5), [0, 1]), None)
    >>> int(run.state.arms.n.sum())
    20
    """
    found = kernel_of(policy) if fast else None
    return found.play(policy, run, problem, rng) if found else policy.play(run, problem, rng)


for _module in pkgutil.iter_modules(__path__):
    try:
        importlib.import_module(f"{__name__}.{_module.name}")
    except ModuleNotFoundError as _error:       # a kernel that stands on a deleted one is gone, too
        if not str(_error.name).startswith(f"{__name__}."):
            raise
        warnings.warn(f"fast.{_module.name} plays nothing: {_error.name} is missing", stacklevel=2)
