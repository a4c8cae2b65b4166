"""Documentation of public names: every example runs; in ROOMS nothing public lacks annotations, docstring, example."""

import doctest
import functools
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest

import compendium
import costbandits
from costbandits import fast
from costbandits.policies.base import Policy

ROOMS = ("environments", "engine", "policies", "fast", "studies", "theory", "analysis")
MODULES = ["costbandits", *(info.name for info in pkgutil.walk_packages(costbandits.__path__, "costbandits."))]
COMPLETE = [name for name in MODULES if name.startswith(tuple(f"costbandits.{room}" for room in ROOMS))]


BOOK = [info.name for info in pkgutil.walk_packages(compendium.__path__, "compendium.") if "__main__" not in info.name]


@pytest.mark.parametrize("name", [*MODULES, *BOOK])
def test_examples_run(name):
    # They may use cb and np without saying so, and the names of their own module.
    with np.printoptions(precision=4, suppress=True), pd.option_context(
            "display.width", 100, "display.float_format", None):      # whatever the house style has set before
        result = doctest.testmod(importlib.import_module(name), extraglobs={"cb": costbandits, "np": np},
                                 optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("name", COMPLETE)
def test_public_names_are_documented(name):
    assert faults(importlib.import_module(name)) == []


def faults(module):
    """What public names of a module lack, one text each."""
    found = []
    public = {name: thing for name, thing in vars(module).items() if not name.startswith("_") and callable(thing)
              and getattr(getattr(thing, "py_func", thing), "__module__", None) == module.__name__}
    plain = {name: thing for name, thing in public.items() if not hasattr(thing, "py_func")}
    # Numba knows the types of what it compiles, and parts of a loop are read with the loop: a docstring is enough.
    found += [f"{name} lacks a docstring" for name in public.keys() - plain if not public[name].py_func.__doc__]
    for name, thing in plain.items():
        found += [f"{name} lacks {what}" for what in lacks(thing)]
        if not (has_example(thing) or is_part(thing) or shown_by_maker(thing, plain.values())):
            found.append(f"{name} lacks an example")
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            function = underlying(value)
            if function is not None and not hasattr(function, "py_func") and not member.startswith("_"):
                found += [f"{name}.{member} lacks {what}" for what in lacks(function)
                          if what != "a docstring" or not documented_by_a_class(thing, member)]
    return found


def lacks(thing):
    # Exceptions take a message; Python knows no signature of theirs.
    raised = inspect.isclass(thing) and issubclass(thing, Exception)
    signature = inspect.Signature() if raised else inspect.signature(thing)
    for parameter in signature.parameters.values():
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls"):
            yield f"an annotation of {parameter.name}"
    if not inspect.isclass(thing) and signature.return_annotation is signature.empty:
        yield "an annotation of what it returns"
    # A dataclass or a NamedTuple without a docstring is given its signature as one.
    if not thing.__doc__ or thing.__doc__.startswith(f"{thing.__name__}("):
        yield "a docstring"


def is_part(thing):
    """Whether a thing needs no example: a record of a loop's state; a kernel, or a loop that is made for it, which
    tests/fast tries; a check, which returns nothing to show."""
    if inspect.isclass(thing):
        return issubclass(thing, tuple)
    kernel = thing in {kernel.play for kernel in fast.KERNELS.values()} or hasattr(thing, "cache_info")
    return kernel or inspect.signature(thing).return_annotation is None


def has_example(thing):
    return bool(doctest.DocTestParser().get_examples(thing.__doc__ or ""))


def shown_by_maker(thing, public):
    """Whether a record is what a function returns whose example shows it."""
    return inspect.isclass(thing) and any(
        not inspect.isclass(maker) and inspect.signature(maker).return_annotation is thing and has_example(maker)
        for maker in public)


def underlying(member):
    """The function of a method or property; None for other members of a class."""
    if isinstance(member, property | functools.cached_property | staticmethod | classmethod):
        return getattr(member, "fget", None) or getattr(member, "func", None) or member.__func__
    return member if inspect.isfunction(member) else None


def documented_by_a_class(cls, name):
    """Whether a member stands among the attributes of the class or of a base, or a base has it with a docstring."""
    return any(getattr(vars(base).get(name), "__doc__", None)
               or re.search(rf"^ *(\w+, )*{name}\b.* : ", base.__doc__ or "", re.MULTILINE) for base in cls.__mro__)


@pytest.mark.parametrize(("source", "lacking"), [
    ('def f(x: float) -> float:\n    """Doc.\n\n    >>> 1\n    1\n    """', None),
    ('def f(x) -> float:\n    """Doc.\n\n    >>> 1\n    1\n    """', "f lacks an annotation of x"),
    ('def f(x: float):\n    """Doc.\n\n    >>> 1\n    1\n    """', "f lacks an annotation of what it returns"),
    ('def f() -> int: pass', "f lacks a docstring"),
    ('def f() -> int:\n    """Doc."""', "f lacks an example"),
    ('def f() -> None:\n    """Doc."""', None),
    ('import numba\n@numba.njit\ndef f(x):\n    """Doc."""', None),
    ('import numba\n@numba.njit\ndef f(x): return x', "f lacks a docstring"),
    ('class C:\n    """Doc.\n\n    >>> 1\n    1\n    """\n    def m(self, y): "Doc."', "C.m lacks an annotation of y"),
    ('class C:\n    """Doc.\n\n    >>> 1\n    1\n    """\n    @property\n    def m(self) -> int: pass',
     "C.m lacks a docstring")])
def test_a_planted_fault_is_found(source, lacking):
    module = type(inspect)("planted")
    exec(source, vars(module))
    assert faults(module) == [] if lacking is None else lacking in faults(module)


def test_every_policy_is_exported():
    modules = [importlib.import_module(name) for name in MODULES if name.startswith("costbandits.policies.")]
    there = {name for module in modules for name, thing in vars(module).items()
             if inspect.isclass(thing) and issubclass(thing, Policy) and thing.__module__ == module.__name__}
    public = {name for name in there if not name.startswith("_")} - {"Policy", "IndexRule", "ChoiceRule", "NamedRule"}
    assert len(public) > 30 and public - set(costbandits.__all__) == set()
