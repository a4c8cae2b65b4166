"""What a finished replication is filed under in a store.

The reader's own policies, laws and functions count by their content; the library's by their name and parameters, and by
one declared number, RESULTS. A reworded message or a renamed variable loses no stored result; a changed one changes a
pinned trajectory in the tests, which ask for the next number.
"""

import dataclasses
import functools
import importlib.metadata
import marshal
import operator
import platform

from ..checks import ours
from ..engine.fingerprint import PACKAGES, digest
from ..environments.bandits import Bandit

RESULTS = 3     # raised whenever the same study gives other results: `tests/pins.py`


def instance(bandit: Bandit) -> bytes:
    """Digest of a bandit: its laws and their parameters, and which of its outcomes are pairs.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0)] * 2)
    >>> instance(bandit) == instance(cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(2.0)] * 2))
    False
    """
    kinds = sorted({type(law) for law in (*bandit.rewards, *bandit.costs)}, key=lambda kind: kind.__qualname__)
    halves = (bandit.rewards, bandit.costs, *(bandit.linear or ()))
    pairs = ("pairs", bandit.joint) if any(bandit.joint) else ()
    if len(halves) == 2 and all(map(ours, kinds)):
        # The fields of our own laws say all, and plain numbers are quick to write down: a study asks for thousands.
        parts = {kind: (number, _fields(kind)) for number, kind in enumerate(kinds)}
        numbers = [[(parts[type(law)][0], parts[type(law)][1](law)) for law in half] for half in halves]
        return digest(kinds, marshal.dumps(numbers, 2), *pairs)
    return digest(kinds, halves, *pairs)


@functools.cache
def _fields(kind):
    return operator.attrgetter(*(field.name for field in dataclasses.fields(kind)))


@functools.cache
def common() -> bytes:
    """Digest of the declared number of results and of the versions that they rest on.

    >>> len(common())
    16
    """
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return digest(RESULTS, versions, platform.python_version_tuple()[:2])
