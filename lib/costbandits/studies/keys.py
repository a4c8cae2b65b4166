"""What a finished replication is filed under in a store."""

import ast
import contextlib
import dataclasses
import functools
import importlib.metadata
import marshal
import operator
import platform
from pathlib import Path

from ..engine.fingerprint import OURS, digest

COMMON = ("engine/loops", "policies/base", "studies/study", "engine/stacks")
RESULTS = 1     # raised whenever the same study gives other results: a pinned trajectory of the tests has changed
PACKAGES = ("numba", "numpy", "scipy")


def instance(bandit):
    """Digest of a bandit: its laws' code and parameters."""
    kinds = sorted({type(law) for law in (*bandit.rewards, *bandit.costs)}, key=lambda kind: kind.__qualname__)
    halves = (bandit.rewards, bandit.costs, *(bandit.linear or ()))
    if len(halves) == 2 and all(kind.__module__.startswith(f"{OURS}.") for kind in kinds):
        # The fields of our own laws say all, and plain numbers are quick to write down: a study asks for thousands.
        parts = {kind: (number, _fields(kind)) for number, kind in enumerate(kinds)}
        numbers = [[(parts[type(law)][0], parts[type(law)][1](law)) for law in half] for half in halves]
        with contextlib.suppress(ValueError):      # numbers of NumPy, for instance
            return digest(kinds, marshal.dumps(numbers, 2))
    return digest(kinds, halves)


@functools.cache
def _fields(kind):
    return operator.attrgetter(*(field.name for field in dataclasses.fields(kind)))


@functools.cache
def common():
    """Digest of the simulation's own code and of the versions it runs on."""
    here = Path(__file__).parents[1]
    trees = [ast.dump(_without_words(ast.parse((here / f"{name}.py").read_text()))) for name in COMMON]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return digest(trees, versions, platform.python_version_tuple()[:2])


def _without_words(tree):
    """Without docstrings, and without what only says how an object is shown."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
        if isinstance(node, ast.ClassDef):
            node.body = [part for part in node.body if getattr(part, "name", "") != "__repr__"]
    return tree
