"""What is compiled is kept, is current as long as its content is, and works without Numba's private parts."""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numba as nb
import numpy as np
import pytest
from components import unnoticed
from reference import proving

import costbandits as cb
from costbandits.engine import compilation
from costbandits.engine.numerics import with_slack
from costbandits.engine.plain import INDEX, by_rule
from costbandits.fast.lower import lower_of
from costbandits.policies.suak import knowing, suak

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


@pytest.mark.proof
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


def tripled(x):
    return 3.0 * x


def plus_two(x):
    return x + 2.0


@pytest.fixture
def kept_in(tmp_path, monkeypatch):
    """A folder for compiled code that a test may damage, and no warning given yet."""
    monkeypatch.setattr(nb.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setitem(compilation._warn_once.__kwdefaults__, "told", set())
    return tmp_path / "kept"


def fresh(function):
    """What a function gives for 2.0 when it is compiled as in a new process, how often it was found, what was told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = compilation.Kernel(function)
        value = made(2.0)
    return value, sum(made.compiled.stats.cache_hits.values()), [str(each.message) for each in told]


def one_sentence(told, *parts):
    (said,) = told
    assert "\n" not in said and all(part in said for part in (*parts, "NUMBA_CACHE_DIR"))
    return True


DAMAGES = {"cut short": lambda whole: whole[:len(whole) // 3], "empty": lambda whole: b"",
           "its last page zero": lambda whole: whole[:-900] + bytes(900), "nothing but zeros": lambda whole: bytes(64),
           "one bit": lambda whole: whole[:-500] + bytes([whole[-500] ^ 16]) + whole[-499:],
           "something else": lambda whole: b"\x80\x04N." * 99}


@pytest.mark.skipif(nb.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_anew_and_replaced(kept_in, which, damage):
    """Whatever has happened to an index or to compiled code: never an error, nor other code."""
    assert [fresh(tripled)[:2] for _ in range(2)] == [(6.0, 0), (6.0, 1)]
    (path,) = kept_in.rglob(f"*.{which}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    compilation._warn_once.__kwdefaults__["told"].clear()
    value, _, told = fresh(tripled)
    quiet = damage in ("one bit", "something else") and not told        # may be whole, and of another function
    assert value == 6.0 and (quiet or one_sentence(told))
    assert fresh(tripled) == (6.0, 1, [])


@pytest.mark.skipif(nb.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("fault", ["a file in its place", "full", "read-only", "withdrawn"])
def test_a_folder_that_cannot_be_used_is_done_without(kept_in, monkeypatch, fault):
    def refuse(code):
        def fail(*_, **__):
            raise OSError(code, os.strerror(code))
        return fail

    if fault == "a file in its place":
        kept_in.write_text("")
    elif fault == "full":
        monkeypatch.setattr(os, "replace", refuse(errno.ENOSPC))
    elif fault == "read-only":
        monkeypatch.setattr(os, "makedirs", refuse(errno.EROFS))
    else:
        fresh(tripled)
        shutil.rmtree(kept_in)
        kept_in.symlink_to("/dev/full")
    value, hits, told = fresh(tripled)
    assert (value, hits) == (6.0, 0) and one_sentence(told)
    assert fresh(plus_two) == (4.0, 0, [])      # told once


@pytest.mark.slow
def test_a_library_that_nothing_may_be_written_to_is_imported_and_plays(tmp_path):
    """Read-only, without a home: files stand where the folders would be made."""
    lib = copy(tmp_path)
    for folder in (lib / "costbandits").rglob("*/"):
        (folder / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    nowhere = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home"), "NUMBA_CACHE_DIR": "",
               "PYTHONDONTWRITEBYTECODE": "1"}
    hits, told = start(lib, **nowhere)
    assert hits == (0, 0) and told.count("NUMBA_CACHE_DIR") == 1


def test_a_kept_file_that_is_not_what_was_written_is_not_read(tmp_path):
    """Though it opens, as after a page that never reached the disk."""
    made = nb.njit(tripled)
    made.enable_caching()
    kept = compilation._forgiving(type(made._cache._cache_file))(str(tmp_path), "toy", "stamp")
    kept.save("int", b"code" * 99)
    (path,) = tmp_path.glob("*.nbc")
    whole = path.read_bytes()
    assert whole.count(b"codecode") > 1 and kept.load("int") == b"code" * 99
    path.write_bytes(whole.replace(b"codecode", bytes(8), 1))
    with pytest.raises(ValueError, match="damaged"):
        kept.load("int")


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
                     ("* LIMIT", "/ LIMIT"), ("@nb.njit\ndef inner", "@nb.njit(fastmath=True)\ndef inner")):
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


def of_ours(source, name="outer", module="costbandits.toy", **names):
    """A function, as a module of the library has it."""
    names = {"np": np, "nb": nb, "__name__": module, **names}
    exec(source, names)
    return names[name]


def our_modules(parts):
    """Modules of the library with these parts, by their names: {"tools.scale": 2.0}."""
    made = {}
    for name, value in parts.items():
        module, _, part = name.partition(".")
        setattr(made.setdefault(module, types.ModuleType(f"costbandits.{module}")), part, value)
    return made


def functions():
    """Pairs of functions that differ in one thing, and so when they are compiled."""
    def both(source, old, new, **names):
        assert source.count(old) == 1
        return of_ours(source, **names), of_ours(source.replace(old, new), **names)

    yield both("def outer(x):\n    return x + 1", "+", "-")
    yield both("def outer(x):\n    return x + 1", "1", "2")
    yield both("def outer(x):\n    return x.one", "one", "two")
    yield of_ours("def outer(x):\n    return x"), of_ours("def outer(y):\n    return y")
    yield both("def outer(x):\n    return lambda y: x + 1", "+", "-")
    yield both("def outer(x):\n    return lambda y: x + 1", "1", "2")
    # What is called: of the library, of the reader's, or neither.
    yield both("def inner(x):\n    return x + 1\ndef outer(x):\n    return inner(x)", "+", "-")
    made = [of_ours(f"def outer(x):\n    return x + {number}", module="typed_by_hand") for number in (1, 2)]
    for wrapped in (made, list(map(nb.njit, made))):
        yield tuple(of_ours("def outer(x):\n    return inner(x)", inner=inner) for inner in wrapped)
    inner, by_name = of_ours("def outer(x):\n    return x + 1.0"), compilation.apart(nb.float64(nb.float64))
    yield tuple(of_ours("def outer(x):\n    return inner(x)", inner=made(inner)) for made in (nb.njit, by_name))
    # Numbers, arrays and others, by the names under which they are read.
    reads = "def outer(x):\n    return A + B"
    for one, two in ((1.0, 2.0), (np.zeros(2), np.ones(2)), (np.zeros(1, np.int64), np.zeros(1)), (np.sin, np.cos)):
        yield of_ours(reads, A=one), of_ours(reads, A=two)
        yield of_ours(reads, A=one), of_ours(reads, B=one)
    # Modules of ours, each part of each.
    reads, parts = "def outer(x):\n    return one.a + one.b + two.a", ("one.a", "one.b", "two.a")
    for changed in parts:
        yield tuple(of_ours(reads, **our_modules({**dict.fromkeys(parts, 1), changed: number})) for number in (1, 2))
    around = "def outer(a):\n    return lambda x: x + a\nmade = outer({})"
    yield tuple(of_ours(around.format(number), "made") for number in (1, 2))


def taken_for_one(module):
    yield from ((one, two) for one, two in functions() if module.content(one) == module.content(two))


def test_each_component_of_content_tells_two_functions_apart():
    assert unnoticed(compilation, ["_content", "_used"], taken_for_one) == []


def test_what_is_compiled_apart_may_raise_and_is_known_by_its_module_too():
    source = "def inner(x):\n    if x < 0:\n        raise ValueError('below')\n    return x + {}"
    one, two = (compilation.apart(nb.float64(nb.float64))(of_ours(source.format(n), "inner", f"costbandits.toy_{n}"))
                for n in (1, 2))
    both = nb.njit(lambda x: (one(x), two(x)))
    assert both(1.0) == (2.0, 3.0)
    with pytest.raises(ValueError, match="below"):
        both(-1.0)


SCANNED = """
import costbandits as cb
from costbandits.engine.plain import by_scanning

bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Beta(1, 2)] * 2)
said = cb.simulate({"UCB1": cb.UCB1()}, bandit, cb.Budget(50), replications=3, seed=0, fast=False).reward.tolist()
hits = sum(by_scanning.compiled.stats.cache_hits.values())
"""


@pytest.mark.slow
def test_a_kept_loop_finds_what_it_calls_by_name_in_another_process():
    found = {}
    exec(SCANNED, found)
    done = subprocess.run([sys.executable, "-c", f"{SCANNED}\nprint(hits, said)"], text=True, capture_output=True,
                          check=True, env={**os.environ, "PYTHONPATH": str(LIBRARY.parent)})
    assert done.stdout == f"1 {found['said']}\n"


KEPT = """
import numba as nb
from costbandits.engine.compilation import apart, keep

@apart(nb.float64(nb.float64))
def inner(x):
    return x + 1.0

@nb.njit
def middle(x):
    return inner(x)

@nb.njit
def outer(x):
    return middle(x)

keep(outer)
print(outer(1.0), sum(outer.stats.cache_hits.values()))
"""


@pytest.mark.skipif(nb.config.DISABLE_JIT, reason="keeps what is compiled")
def test_whatever_is_kept_finds_what_it_calls_by_name_in_another_process(tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)
    paths = {"PYTHONPATH": str(LIBRARY.parent), "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [subprocess.run([sys.executable, "kept.py"], cwd=tmp_path, text=True, capture_output=True,
                           env={**os.environ, **paths}) for _ in range(2)]
    assert [(each.returncode, each.stdout) for each in said] == [(0, "2.0 0\n"), (0, "2.0 1\n")]


def square(x):
    return x * x


@pytest.mark.skipif(nb.config.DISABLE_JIT, reason="keeps what is compiled")
def test_each_component_of_the_name_of_a_kept_file_decides():
    """Its module, its name, the version of Python, its content and options; these are its stamp besides."""
    def kept(module, options=(), **other):
        function = types.FunctionType(square.__code__, globals(), square.__name__)
        for name, value in other.items():
            setattr(function, name, value)
        made = nb.njit(**dict(options))(function)
        module._keep(made, False)
        return made._cache._cache_file._index_name, made._cache._cache_file._source_stamp

    def unseen(module):
        changes = {"__module__": "costbandits.other", "__qualname__": "other", "__code__": (lambda x: x).__code__,
                   "options": {"_nrt": False}}
        yield from (name for name, value in changes.items() if kept(module)[0] == kept(module, **{name: value})[0])
        with pytest.MonkeyPatch.context() as patch:
            name, stamp = kept(module)
            patch.setattr(sys.implementation, "cache_tag", "cpython-1")
            if kept(module)[0] == name:
                yield "version"
        whole = f"{module.content(square)} {nb.njit(square).targetoptions}"
        if stamp != f"sealed {hashlib.sha256(whole.encode()).hexdigest()}":
            yield "stamp"

    assert unnoticed(compilation, ["_keep"], unseen) == []


@cb.index
def typed(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n


def test_a_rule_is_compiled_into_a_loop_once():
    assert by_rule(knowing) is by_rule(knowing)
    assert by_rule(knowing) is not by_rule(suak) and by_rule(knowing) is not by_rule(knowing, c_ucb)
    if not nb.config.DISABLE_JIT:
        with warnings.catch_warnings(action="error"):
            assert INDEX.args in compilation.ready(m_ucb, INDEX).overloads


def test_a_loop_made_around_a_typed_rule_is_named_for_it():
    """So it is among the files of which only the newest are kept, however deep in the loop's steps the rule is."""
    names = [by_rule(rule, learn).py_func.__qualname__ for rule, learn in (
        (typed, lower_of(typed)), (typed, c_ucb), (c_ucb, lower_of(typed)), (c_ucb, lower_of(c_ucb)))]
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
