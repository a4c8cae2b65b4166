"""What is compiled is kept, is current as long as its content is, and works without Numba's private parts."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba as nb
import numpy as np
import pytest
from reference import proving

import costbandits as cb
from costbandits.engine import compilation
from costbandits.engine.numerics import with_slack
from costbandits.engine.plain import INDEX
from costbandits.fast.indices import by_blocks
from costbandits.fast.lower import lower_of, no_lower

c_ucb, m_ucb = cb.CUCB.rule, cb.MUCB.rule

LIBRARY = Path(cb.__file__).parent
TOY = """
import numba as nb

from costbandits.engine.compilation import compiled_for
from costbandits.engine.driver import DONE, add_up
from costbandits.engine.numerics import with_slack
from costbandits.engine.plain import INDEX
from costbandits.engine.state import GAME


@compiled_for(nb.int64(nb.types.FunctionType(INDEX), nb.float64[::1], nb.float64[::1], GAME))
def loop(index, constant, params, game):
    add_up(game.state)
    game.state.now.reward += with_slack(index(9, 2, 1.0, 0.5, 1.0, 0.25, constant[0], params))
    return DONE
"""
PLAYED = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    {before}
    import numpy as np
    import costbandits as cb
    from costbandits import toy
    from costbandits.engine import compilation, driver, run, stacks, state

    made = compilation.around(toy.loop, cb.{policy}.rule)
    run = run.Run(stacks.Stacks(cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)]), 0, 0, [0]), [1.0], 10)
    assert made(np.zeros(1), np.ones(1), state.Game(run.outcomes, run.state, run.record, run.limits)) == driver.DONE
hits = [sum(each.stats.cache_hits.values()) for each in (made.compiled, driver.add_up)]
print(*hits, run.state.now.reward, [str(each.message) for each in told])
"""


def start(lib, before="pass", policy="MUCB", **environment):
    """Cache hits of a small loop with a rule and of a function that it calls, in a new process; value and warnings."""
    done = subprocess.run([sys.executable, "-c", PLAYED.format(before=before, policy=policy)], text=True,
                          capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(lib), **environment})
    loop, part, rest = done.stdout.split(" ", 2)
    return (int(loop), int(part)), rest


def copy(folder):
    """A library in another folder, with nothing compiled, and with a small loop."""
    shutil.copytree(LIBRARY, folder / "costbandits", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "costbandits/toy.py").write_text(TOY)
    return folder


def reword(lib):
    """As a checkout does; and other words."""
    for path in lib.rglob("*.py"):
        path.write_text(path.read_text().replace('"""', '"""Said otherwise. ', 1))
        os.utime(path, (1e9, 1e9))


@pytest.mark.slow
def test_a_clone_in_other_words_finds_what_another_has_compiled(tmp_path):
    one, two = copy(tmp_path / "one"), copy(tmp_path / "two")
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    none, told = start(one, **kept)
    assert none == (0, 0) and told.endswith("[]\n")
    reword(two)
    assert start(two, **kept) == ((1, 0), told)
    numerics = two / "costbandits/engine/numerics.py"
    numerics.write_text(numerics.read_text().replace("SLACK = 1e-12", "SLACK = 2e-12"))
    assert start(two, **kept)[0] == (0, 1)


@pytest.mark.slow
@pytest.mark.proof
def test_a_clone_finds_what_another_has_compiled(tmp_path):
    one, two = copy(tmp_path / "one"), copy(tmp_path / "two")
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    none, told = start(one, **kept)
    assert none == (0, 0) and told.endswith("[]\n")
    assert start(two, **kept) == ((1, 0), told)
    reword(two)
    assert start(two, **kept) == ((1, 0), told)
    assert start(two, policy="CUCB", **kept)[0] == (0, 1)           # another rule: the loop is new, what it calls not
    numerics = two / "costbandits/engine/numerics.py"
    numerics.write_text(numerics.read_text().replace("SLACK = 1e-12", "SLACK = 2e-12"))
    assert "SLACK = 2e-12" in numerics.read_text()
    assert start(two, **kept)[0] == (0, 1)
    assert start(one, **kept) == ((1, 0), told)  # they do not stand in each other's way
    state = two / "costbandits/engine/state.py"  # kept files that name types which are gone are not opened
    for path in two.rglob("*.py"):
        path.write_text(path.read_text().replace("Outcomes", "Draws"))
    assert "Draws" in state.read_text() and start(two, **kept)[0][0] == 0


def test_code_for_another_signature_is_never_loaded(tmp_path):
    """Two processes that save at a time do not see each other's index, and give the same name to both."""
    made = nb.njit(lambda x: x)
    made.enable_caching()
    kept = compilation._forgiving(type(made._cache._cache_file))(str(tmp_path), "toy", "stamp")
    kept.save("int", "for whole numbers")
    (index,) = tmp_path.glob("*.nbi")
    seen = index.read_bytes()
    assert kept.load("int") == "for whole numbers" and kept.load("float") is None
    index.unlink()
    kept.save("float", "for others")
    index.write_bytes(seen)
    assert len(list(tmp_path.glob("*.nbc"))) == 1 and kept.load("int") is None


GONE = {"the cache": "_cache", "its file": "_cache_file", "its parts": "_impl"}


@pytest.mark.slow
@pytest.mark.parametrize("gone", proving([*GONE], "the cache", "its file"))
def test_without_a_private_part_of_numba_all_works_with_one_warning(tmp_path, gone):
    hidden = {"_cache": "from numba.core import dispatcher as d; del d.Dispatcher.enable_caching",
              "_cache_file": "from numba.core import caching as c; c.IndexDataCacheFile = None; "
                             "c.Cache.__init__ = lambda self, function: None",
              "_impl": "from numba.core import caching as c; c.CompileResultCacheImpl.check_cachable = None; "
                       "c.Cache.__init__ = lambda self, function: None"}[GONE[gone]]
    lib = copy(tmp_path)
    hits, told = start(lib, hidden)
    assert hits == (0, 0) and told.count("keeps compiled code in another way than this library knows") == 1
    assert told.startswith(f"{with_slack(m_ucb(9, 2, 1.0, 0.5, 1.0, 0.25, 0.0, np.ones(1)))} [")


def test_content_is_that_of_all_that_is_called():
    def content(source, name="outer"):
        names = {"nb": nb, "__name__": "costbandits.toy"}
        exec(source, names)
        return compilation.content(getattr(names[name], "py_func", names[name]))

    source = ("LIMIT = 2.0\n@nb.njit\ndef inner(x):\n    return x + 1.0\n"
              "@nb.njit\ndef outer(x):\n    return inner(x) * LIMIT\n")
    assert content(source) == content(source.replace("def outer(x):", "# more\ndef outer(x):\n    'Say it.'"))
    for old, new in (("x + 1.0", "x - 1.0"), ("1.0\n", "1.5\n"), ("LIMIT = 2.0", "LIMIT = 3.0"),
                     ("* LIMIT", "/ LIMIT")):
        assert source.count(old) == 1 and content(source.replace(old, new)) != content(source)


def test_content_is_also_that_of_functions_within_and_of_modules_of_ours():
    from types import ModuleType

    def content(inner="y + 1.0", scale=2.0, spare=0):
        tools = ModuleType("costbandits.tools")
        tools.scale, tools.spare = scale, spare
        names = {"nb": nb, "__name__": "costbandits.toy", "tools": tools, "LIMIT": 3.0}
        exec(f"def outer(x):\n    def inner(y):\n        return {inner}\n    return inner(x) * tools.scale\n", names)
        return compilation.content(names["outer"])

    assert content() == content(spare=1)
    assert len({content(), content(inner="y - 1.0"), content(inner="y * LIMIT"), content(scale=4.0)}) == 4


@cb.index
def typed(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n


def test_a_rule_is_compiled_into_a_loop_once():
    def around(rule, lower=None):
        return by_blocks(rule, lower or lower_of(rule))

    assert around(c_ucb) is around(c_ucb)
    assert around(c_ucb) is not around(m_ucb) and around(c_ucb) is not around(c_ucb, no_lower)
    if not nb.config.DISABLE_JIT:
        with warnings.catch_warnings(action="error"):
            assert INDEX.args in compilation.ready(m_ucb, INDEX).overloads


def test_a_loop_made_around_a_typed_rule_is_named_for_it():
    """So it is among the files of which only the newest are kept, however deep in the loop's steps the rule is."""
    names = [by_blocks(rule, lower).py_func.__qualname__ for rule, lower in (
        (typed, lower_of(typed)), (typed, no_lower), (c_ucb, lower_of(typed)), (c_ucb, lower_of(c_ucb)))]
    assert [name.startswith(f"{compilation.TYPED}_") for name in names] == [True, True, True, False]


TYPED = """
import costbandits as cb
from numba import njit
from costbandits.engine import compilation
FACTOR = {factor}

@njit
def helper(x):
    return FACTOR * x

@cb.index
def rule(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return helper(reward) / n + {more}

def loop(rule, x, params):
    return rule(1, 1, x, x, x, x, x, params)

made = compilation.around(compilation.Kernel(loop), rule)
made(2.0, cb.UCB1().parameters)
print(sum(made.compiled.stats.cache_hits.values()))
"""


@pytest.fixture
def hits(tmp_path):
    """Cache hits of a loop with a rule that a new process has typed."""
    def played(factor=2.0, more="n", room=None):
        lines = TYPED.format(factor=factor, more=more)
        lines = lines if room is None else lines.replace("FACTOR =", f"compilation.ROOM = {room}\nFACTOR =", 1)
        done = subprocess.run([sys.executable, "-c", lines], text=True, capture_output=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(LIBRARY.parent), "NUMBA_CACHE_DIR": str(tmp_path)})
        return int(done.stdout)

    return played


@pytest.mark.slow
def test_a_typed_rule_is_kept(hits):
    assert [hits(), hits(), hits(factor=3.0)] == [0, 1, 0]


@pytest.mark.slow
@pytest.mark.proof
def test_a_typed_rule_is_kept_with_all_that_it_reads(tmp_path, hits):
    assert [hits(), hits(), hits(factor=3.0), hits(more="1/n"), hits()] == [0, 1, 0, 0, 1]
    kept = [path for path in tmp_path.rglob("*") if ".typed_" in path.name]     # of other processes than this one
    assert len(kept) == 6                        # an index and a file for each of the three
    assert hits(more="2/n", room=2) == 0 and hits() == 0
