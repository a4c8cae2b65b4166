"""What changes the digest of a policy, a law or a function, and what does not."""

import cmath
import fnmatch
import functools
import importlib.metadata
import logging
import math
import re
import string
import sys
import types
from collections import OrderedDict, defaultdict, deque
from fractions import Fraction
from functools import cache, partial, singledispatch
from itertools import combinations

import numpy as np
import pytest
from components import unnoticed
from reference import POLICIES

import costbandits as cb
from costbandits import checks
from costbandits.engine import fingerprint

SOURCE = '''
import costbandits as cb
import numpy as np

SCALE = 2.0                  # a global number
TABLE = np.array([1.0, 2.0])
KINDS = {"a", "b"}

def helper(x):
    """Say what it does."""
    return SCALE * x

def outer(shift):
    @cb.index
    def rule(t, n, reward, cost, reward_sq, cost_sq, constant, params):
        return (reward + shift * t) / n + params[0]
    return rule

class Law:
    """A law of one's own."""
    support = (0.0, 1.0)
    weights = [0.5, 0.5]

    def __init__(self, p):
        self.p = p

    @property
    def mean(self):
        return helper(self.p) / 2.0

    def sample(self, rng, size):
        return (rng.random(size) < self.p) * TABLE[0]

class Mine(cb.policies.base.IndexRule):
    rule = staticmethod(outer(0.5))

    def prepare(self, problem):
        return helper(problem.cost_means)

def kept(runs):
    """What is kept of a run."""
    return {"x": helper(runs.reward), "kinds": len(KINDS)}
'''


@functools.cache
def digests(source=SOURCE):
    """Digests of everything one might hand to `simulate`, as defined by a source text."""
    module = types.ModuleType("typed_by_hand")
    exec(compile(source, "typed_by_hand", "exec"), vars(module))
    things = {"policy": cb.IndexPolicy(module.outer(0.5), (1.0,)), "class": module.Mine(), "law": module.Law(0.3),
              "function": module.kept}
    return {name: fingerprint.digest(thing) for name, thing in things.items()}


@pytest.mark.parametrize(("old", "new"), [
    ("# a global number", "# some global number"),
    ('"""Say what it does."""', '"""Say it\n\n    at greater length."""'),
    ('"""A law of one\'s own."""', '"""A law."""'),
    ('"""What is kept of a run."""', '"""What is kept."""'),
    ("def helper", "\n\n# moved down\n\ndef helper"),
    ("return (reward + shift * t) / n + params[0]", "return ((reward + shift * t) / n\n                + params[0])"),
])
@pytest.mark.slow
def test_words_and_layout_change_nothing(old, new):
    assert SOURCE.count(old) == 1
    assert digests(SOURCE.replace(old, new)) == digests()


@pytest.mark.parametrize(("old", "new", "changed"), [
    ("(reward + shift * t)", "(reward - shift * t)", "policy class"),                # a formula
    ("SCALE = 2.0", "SCALE = 3.0", "class law function"),                            # a global of a helper
    ("return SCALE * x", "return SCALE + x", "class law function"),                  # a helper
    ("outer(0.5))", "outer(0.25))", "class"),                                        # a closure
    ("np.array([1.0, 2.0])", "np.array([1.0, 2.5])", "law"),                         # a global array
    ('{"a", "b"}', '{"a", "c"}', "function"),                                        # a global set
    ("helper(problem.cost_means)", "problem.cost_means", "class"),                   # a method
    ("helper(self.p) / 2.0", "helper(self.p) / 4.0", "law"),                         # a property
    ("[0.5, 0.5]", "[0.4, 0.6]", "law"),                                             # a class attribute
    ("support = (0.0, 1.0)", "support = (0.0, 2.0)", "law"),
    ("rule = staticmethod", "monotone = False\n    rule = staticmethod", "class"),
])
@pytest.mark.slow
def test_what_decides_results_changes_the_digest(old, new, changed):
    assert SOURCE.count(old) == 1
    before, after = digests(), digests(SOURCE.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == set(changed.split())


CALLED = """
from typing import NamedTuple

class Called:
    def __call__(self, runs):
        return runs.reward * 2.0

class Pair(NamedTuple):
    low: float = 0.0
    def width(self):
        return 1.0 - self.low

class Number(float):
    def twice(self):
        return self + self

class Kept(dict):
    def __missing__(self, key):
        return 5.0
"""


@pytest.mark.parametrize(("name", "old", "new"), [
    ("Called", "reward * 2.0", "reward * 3.0"), ("Pair", "1.0 - self.low", "2.0 - self.low"),
    ("Number", "self + self", "self * self"), ("Kept", "return 5.0", "return 6.0")])
def test_what_an_object_of_a_class_of_ones_own_does_counts(name, old, new):
    def digest(source):
        module = types.ModuleType("typed_by_hand")
        exec(source, vars(module))
        return fingerprint.digest(vars(module)[name]())

    assert CALLED.count(old) == 1
    assert digest(CALLED) == digest(CALLED) != digest(CALLED.replace(old, new))


def test_the_order_of_a_dict_and_of_a_set_does_not_count():
    assert fingerprint.digest({"a": 1, "b": {2: 3, 1: 4}}) == fingerprint.digest({"b": {1: 4, 2: 3}, "a": 1})
    assert fingerprint.digest({"a": 1, "b": 2}) != fingerprint.digest({"a": 2, "b": 1})
    assert fingerprint.digest({"a", "b", "c"}) == fingerprint.digest({"c", "b", "a"})


def test_defaults_of_arguments_change_the_digest():
    made = [lambda x, power=1: x**power, lambda x, power=2: x**power, lambda x, *, power=1: x**power,
            lambda x, *, power=2: x**power]
    assert [function(3) for function in made] == [3, 9, 3, 9]
    assert len({fingerprint.digest(function) for function in made}) == 4


@pytest.mark.parametrize("wrapper", ["functools.cache", "functools.lru_cache(maxsize=3)", "functools.singledispatch"])
@pytest.mark.slow
def test_a_helper_behind_a_wrapper_counts(wrapper):
    """Of a cache that is filled, too."""
    source = "import functools\n" + SOURCE.replace("def helper", f"@{wrapper}\ndef helper")
    module = types.ModuleType("typed_by_hand")
    exec(source, vars(module))
    before = fingerprint.digest(module.kept)
    assert module.helper(1.0) == 2.0 and fingerprint.digest(module.kept) == before == digests(source)["function"]
    for old, new in (("return SCALE * x", "return SCALE + x"), ("SCALE = 2.0", "SCALE = 3.0")):
        assert digests(source.replace(old, new))["function"] != before


@pytest.mark.slow
def test_another_case_of_a_dispatched_helper_counts():
    def of(result):
        source = ("import functools\n" + SOURCE.replace("def helper", "@functools.singledispatch\ndef helper")
                  + f"\n@helper.register\ndef _(x: int):\n    return {result}\n")
        return digests(source)["function"]

    assert of(1) != of(2)


def test_what_belongs_to_the_library_to_python_and_to_packages_goes_by_name():
    for named in (cb.regret.budgeted, checks.count, fnmatch.translate, cb.regret.knapsack):
        other = types.FunctionType((lambda: 0).__code__, {}, named.__name__)
        other.__module__, other.__qualname__ = named.__module__, named.__qualname__
        assert fingerprint.digest(named) == fingerprint.digest(other)
    assert fingerprint.digest(cb.OmegaUCB(0.5)) != fingerprint.digest(cb.OmegaStarUCB(0.5))


def test_the_present_value_of_a_global_counts():
    """In a notebook a cell below may redefine what a class or function above uses."""
    module = types.ModuleType("typed_by_hand")
    exec(SOURCE, vars(module))
    before = fingerprint.digest(module.Mine())
    module.SCALE = 5.0
    assert fingerprint.digest(module.Mine()) != before


def test_what_a_function_uses_of_a_module_of_its_own_counts():
    tools, inner = types.ModuleType("my_tools"), types.ModuleType("my_tools.inner")
    tools.inner, inner.scale, tools.unused = inner, 2.0, 1.0
    module = types.ModuleType("typed_by_hand")
    module.tools = tools
    exec("def kept(runs):\n    return tools.inner.scale", vars(module))
    before = fingerprint.digest(module.kept)
    tools.unused = 7.0
    assert fingerprint.digest(module.kept) == before
    inner.scale = 3.0
    assert fingerprint.digest(module.kept) != before


def imports_as_it_runs():
    import fnmatch
    return fnmatch.translate("x")


def imports_another():
    import fractions
    return fractions.translate("x")


def imports_what_may_be_missing():
    try:
        import there_is_no_such_module as fast
    except ImportError:
        return 1
    return fast.two


def test_what_is_imported_inside_of_a_function_counts():
    assert fingerprint.digest(imports_as_it_runs) != fingerprint.digest(imports_another)


def test_a_function_may_import_what_is_missing():
    assert fingerprint.digest(imports_what_may_be_missing) == fingerprint.digest(imports_what_may_be_missing)


@cb.index
def flat(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return params[0] + constant


@cb.choose
def random_arm(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return int(rng.random() * len(n))


def different():
    """Things of which no two may have the same digest."""
    yield from POLICIES.values()
    yield from (cb.OmegaUCB(0.26), *(cb.BudgetUCB(*options) for options in ((0.1,), (0.2,), (0.1, 2.0))))
    for options in ({}, {"params": (1.0,)}, {"params": (1.0, 0.0)}, {"params": (2.0,)}, {"monotone": True},
                    {"prepare": lambda problem: np.zeros(problem.K)}, {"prepare": lambda problem: np.ones(problem.K)}):
        yield cb.IndexPolicy(flat, **options)
    for options in ({}, {"params": (1.0,)}, {"memory": lambda K: K}, {"memory": lambda K: 2 * K}):
        yield cb.ChoosePolicy(random_arm, **options)
    yield from (cb.Budget(1.0), cb.Budget(2.0), cb.Bernoulli(0.5), cb.Beta(0.5, 1), cb.TruncatedNormal(0, 1, 0, 1),
                cb.TruncatedNormal(0, 1, 0, 2))
    yield from (None, 0, False, 0.0, -0.0, 1, True, 1.0, "1", b"1", np.int32(1))
    yield from ((1,), [(1,)], {1}, {1: 1}, (1, 1), ((1,), 1))
    yield from (np.zeros(2), np.zeros(2, int), np.zeros((1, 2)), np.ones(2), np.array([None, 1]))
    yield from (Fraction(1, 3), Fraction(2, 3), range(3), range(4), deque([1]), deque([2]), np.sin, np.cos)
    yield from (np.random.default_rng(1).bit_generator, np.random.default_rng(2).bit_generator, np.dtype("f4"))
    yield from (max, min, re.compile("a"), re.compile("b"), np, re, Fraction, deque)
    yield from (partial(max, 1), partial(max, 2), partial(max, key=abs), partial(min, 1))
    yield from ([].append, [1].append, deque([1]).append, "a".join, Fraction(1, 3).limit_denominator)


def test_no_two_have_the_same_digest():
    found = [(thing, fingerprint.digest(thing)) for thing in different()]
    assert [(a, b) for (a, x), (b, y) in combinations(found, 2) if x == y] == []
    assert [digest for _, digest in found] == [fingerprint.digest(thing) for thing, _ in found]


def test_what_is_merely_cached_changes_nothing():
    policy, law = cb.UCBSCPlus(), cb.TruncatedNormal(0, 1, 0, 1)
    before = fingerprint.digest(policy, law)
    assert len(policy.parameters) == 0 and law.mean < 0.5
    assert fingerprint.digest(policy, law) == before


class Chicken:
    def makes(self):
        return Egg


class Egg:
    def makes(self):
        return Chicken


def test_circles_end():
    chain = types.SimpleNamespace()
    chain.next = chain
    things = (Chicken(), Egg(), chain, test_circles_end)
    assert len({fingerprint.digest(thing) for thing in things}) == len(things)


def test_what_cannot_be_read_is_refused():
    with open(__file__) as file, pytest.raises(ValueError, match="content can't be read"):
        fingerprint.digest(lambda: file)


UNRELATED = 1


def through_the_package(runs):
    return cb.regret.budgeted(runs), cb.regret.knapsack(runs)


def by_an_import_of_its_own(runs):
    from costbandits.analysis.regret import budgeted, knapsack
    return [budgeted(runs) for _ in range(2)], knapsack(runs)


def test_what_a_function_takes_from_the_library_goes_by_name(monkeypatch):
    functions = through_the_package, by_an_import_of_its_own
    before = [fingerprint.digest(function) for function in functions]
    monkeypatch.setattr(cb.regret.budgeted, "__doc__", "Other words.")
    assert [fingerprint.digest(function) for function in functions] == before and len(set(before)) == 2


def reads_an_attribute(thing):
    return thing.UNRELATED, [thing.UNRELATED for _ in range(2)]


def reads_the_global():
    return [UNRELATED for _ in range(2)]


def test_a_global_counts_where_it_is_read_and_not_where_an_attribute_has_its_name(monkeypatch):
    before = [fingerprint.digest(function) for function in (reads_an_attribute, reads_the_global)]
    monkeypatch.setitem(globals(), "UNRELATED", 2)
    after = [fingerprint.digest(function) for function in (reads_an_attribute, reads_the_global)]
    assert before[0] == after[0] and before[1] != after[1]


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """A package in somebody's site-packages, of a version to be set."""
    module = types.ModuleType("somebodys")
    exec("def kept(runs):\n    return {'x': runs.spent}\n", vars(module))
    module.__file__ = str(tmp_path / "site-packages/somebodys/__init__.py")
    monkeypatch.setitem(sys.modules, "somebodys", module)
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: {"somebodys": ["its-name", "its-name"]})

    def digest(version):
        monkeypatch.setattr(importlib.metadata, "version", {"its-name": version}.get)
        for cached in (fingerprint._known, fingerprint._named):
            cached.cache_clear()
        return fingerprint.digest(module.kept), fingerprint.digest(module), fingerprint.digest(lambda runs: module.kept)
    yield digest
    for cached in (fingerprint._known, fingerprint._named):
        cached.cache_clear()


def test_an_installed_package_is_known_by_its_version(installed):
    assert installed("1.0") == installed("1.0")
    assert all(one != two for one, two in zip(installed("1.0"), installed("1.1"), strict=True))


def test_of_what_a_store_looks_at_anyway_no_version_is_asked(monkeypatch):
    """Python's, Numba's, NumPy's and SciPy's are in every key, and the number of results stands for the library's."""
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: {name: ["its-name"] for name in named})
    monkeypatch.setattr(importlib.metadata, "version", {"its-name": "1.0"}.get)
    named = {"math", "costbandits", "numba", "numpy", "scipy", "pytest"}
    told = {name: fingerprint._named.__wrapped__(f"{name}.inner") for name in named}
    assert told == {name: f"{name}.inner" + " 1.0" * (name == "pytest") for name in named}


@pytest.mark.parametrize(("folder", "known"), [("dist-packages", True), ("site-packages", True), ("packages", False)])
def test_a_package_outside_of_the_environment_is_installed_too(monkeypatch, tmp_path, folder, known):
    file = str(tmp_path / folder / "elsewhere.py")
    monkeypatch.setitem(sys.modules, "elsewhere", types.SimpleNamespace(__file__=file))
    fingerprint._known.cache_clear()
    assert fingerprint._known("elsewhere.inner") == known
    fingerprint._known.cache_clear()


# Every component of a digest, one at a time: two things that only it tells apart.

def typed(source, name="it", module="typed_by_hand", **names):
    """What a source text, typed into a module with some names, calls `it`."""
    made = types.ModuleType(module)
    vars(made).update(names)
    exec(source, vars(made))
    return vars(made)[name]


def both(source, *others, **names):
    """A pair: the source as it is, and with one text in the place of another."""
    old, new = others
    assert source.count(old) == 1
    return typed(source, **names), typed(source.replace(old, new), **names)


def modules(**parts):
    """A module of the reader's own with these parts."""
    made = types.ModuleType("my_tools")
    vars(made).update(parts)
    return made


def ring(*objects):
    """The first of some objects, each of which leads to the next, and the last to the first."""
    for one, after in zip(objects, (*objects[1:], objects[0]), strict=True):
        one.next = after
    return objects[0]


def closing(*parts):
    """An object that holds these parts, of which None is the object itself."""
    made = types.SimpleNamespace()
    made.parts = tuple(made if part is None else part for part in parts)
    return made


def uses(function, **names):
    """A function that has these globals."""
    return types.FunctionType(function.__code__, names)


def told_apart():
    """Pairs of which each differs in one component only."""
    yield 1.0, np.float64(1.0)
    yield {1}, {2}
    yield ((1,), 2), ((1, 2),)
    yield {1: {2: 3}, 4: 5}, {1: {2: 3, 4: 5}}
    yield {"a": 1}, {"b": 1}
    yield np.zeros(2), np.ones(2)
    yield np.zeros(2), np.zeros(2, np.int64)
    yield np.zeros((1, 2)), np.zeros((2, 1))
    yield closing(None, 1), closing(1, None)
    yield ring(types.SimpleNamespace(), types.SimpleNamespace()), ring(types.SimpleNamespace())
    yield math, cmath
    # What stands for itself, and what wraps it.
    jitted = [types.SimpleNamespace(py_func=made, targetoptions=options) for made, options in (
        (lambda x: x + 1, None), (lambda x: x - 1, None), (lambda x: x + 1, {"fastmath": True}))]
    yield jitted[0], jitted[1]
    yield jitted[0], jitted[2]
    yield partial(max, 1), partial(min, 1)
    yield partial(max, 1), partial(max, 2)
    yield partial(max, key=abs), partial(max, key=len)
    yield cache(typed("it = lambda x: x + 1")), cache(typed("it = lambda x: x - 1"))
    yield singledispatch(typed("it = lambda x: x + 1")), singledispatch(typed("it = lambda x: x - 1"))
    yield both("class It:\n    def f(self):\n        return 1\n    def g(self):\n        return 2\nit = It().f",
               "It().f", "It().g")
    yield both("class It(list):\n    def f(self):\n        return 1\nit = It([1]).f", "[1]", "[2]")
    yield math.sin, cmath.sin
    yield (typed("outer = lambda a: lambda: a\nit = outer(1)", __name__="costbandits.toy"),
           typed("outer = lambda a: lambda: a\nit = outer(2)", __name__="costbandits.toy"))
    # Functions.
    yield both("it = lambda x: x + 1", "+", "-")
    yield both("it = lambda x: x + 1", "1", "2")
    yield both("it = lambda x: x.one", "one", "two")
    yield typed("it = lambda x: x"), typed("it = lambda y: y")
    yield typed("it = lambda x: x + 1").__code__, typed("it = lambda x: x + 2").__code__
    yield both("it = lambda x=1: x", "1", "2")
    yield both("it = lambda *, x=1: x", "1", "2")
    yield both("outer = lambda a: lambda: a\nit = outer(1)", "(1)", "(2)")
    reads = typed("it = lambda: (A, B)")
    yield uses(reads, A=1), uses(reads, A=2)
    yield uses(reads, A=1), uses(reads, B=1)
    yield both("it = lambda: A", "A", "B", A=1, B=1)
    # Modules of the reader's own, and what is imported in a function.
    reads = typed("it = lambda: (tools.a, tools.b, tools.inner.a)")
    yield uses(reads, tools=modules(a=1)), uses(reads, tools=modules(a=2))
    yield uses(reads, tools=modules(a=1)), uses(reads, tools=modules(b=1))
    yield uses(reads, tools=modules(inner=modules(a=1))), uses(reads, tools=modules(inner=modules(a=2)))
    around = modules(inner=modules())
    around.inner.tools = around
    yield uses(typed("it = lambda: tools.inner.tools.a"), tools=around), None
    yield both("def it():\n    from math import sin", "math", "cmath")
    yield both("def it():\n    from math import sin", "sin", "cos")
    yield both("def it():\n    import math as m", "math", "cmath")
    # Classes, and instances.
    yield from (both("class it: a = 1", "a = 1", "b = 1"), both("class it: a = 1", "1", "2"))
    yield typed("class it: pass"), typed("class It: pass\nit = It")
    yield typed("class it: pass", __name__="one"), typed("class it: pass", __name__="two")
    yield both("class it(float): pass", "float", "int")
    yield typed("class it(base): pass", base=string.Formatter), typed("class it(base): pass", base=logging.Formatter)
    yield both("class It(float):\n    def f(self):\n        return 1\nit = It(1.0)", "return 1", "return 2")
    yield both("class It:\n    def f(self):\n        return 1\n    def __reduce__(self):\n        return max, (0, 1)\n"
               "it = It()", "return 1", "return 2")
    # What an array, a dict or a number of a class of its own holds besides.
    yield tuple(np.ma.array([1, 2], mask=mask) for mask in ([0, 1], [0, 0]))
    yield np.ma.array([1, 2]), np.array([1, 2])
    yield defaultdict(int, a=1), defaultdict(float, a=1)
    yield defaultdict(int, a=1), {"a": 1}
    yield OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
    for kind, value in (("float", "1.0"), ("list", "[1]"), ("dict", "{1: 2}"), ("tuple", "(1,)")):
        yield both(f"class It({kind}): pass\nit = It({value})\nit.scale = 3", "3", "4")
    yield cb.Budget(1.0), cb.HardBudget(1.0)
    yield cb.Bernoulli(0.25), cb.Bernoulli(0.75)
    named = "class It:\n    def __reduce__(self):\n        return 'IT'\nit = It()"
    yield typed(named, __name__="one"), typed(named, __name__="two")


def taken_for_one(module):
    """Pairs to which a module gives one digest, and should not, or two."""
    older = {"legacy": "1.25"} if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else {}
    with np.printoptions(**older):              # an older NumPy shows numbers without their type
        yield from ((a, b) for a, b in told_apart() if module.digest(a) == module.digest(b))
    # And things that are one, to which it gives two.
    square = np.arange(4.0).reshape(2, 2)
    for one, same in (({"a": 1, "b": 2}, {"b": 2, "a": 1}), (square, np.asfortranarray(square))):
        if module.digest(one) != module.digest(same):
            yield one, same
    # A module within a package that does not say so, as while both are being imported.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "my_tools", modules())
        patch.setitem(sys.modules, "my_tools.inner", inner := modules(a=1))
        function = typed("def it():\n    from my_tools import inner\n    return inner.a")
        before, inner.a = module.digest(function), 2
        if module.digest(function) == before:
            yield function, inner


def test_each_component_of_a_digest_tells_two_things_apart():
    functions = ("_describe", "_compound", "_enclosed", "_function", "_module", "_imported", "_code", "_class")
    assert unnoticed(fingerprint, functions, taken_for_one) == []
