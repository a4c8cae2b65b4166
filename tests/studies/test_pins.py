"""Results that changed without a word, and keys that must not change with one."""

import ast
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pins
import pytest

import costbandits as cb
from costbandits.engine.stops import StopRule
from costbandits.environments.distributions import Distribution
from costbandits.studies.keys import RESULTS

LIBRARY = Path(cb.__file__).parent


@pytest.fixture(scope="module")
def found():
    return pins.everything()


def test_results_change_only_with_their_number(found):
    pinned = json.loads(pins.PINS.read_text())
    alike = pinned["versions"] == pins.versions()
    now, then = (each if alike else pins.decisions(each) for each in (found, pinned["pins"]))
    changed = sorted(name for name in {*now, *then} if now.get(name) != then.get(name))
    assert not changed, "new: run tests/pins.py; changed or gone, and meant so: raise RESULTS in studies/keys.py first"
    assert pinned["history"][str(RESULTS)] == pins.summary(pinned["pins"])
    same = len(pinned["history"]) - len(set(pinned["history"].values()))
    assert not same, "RESULTS was raised though no pin changed: pin what did"


def test_a_changed_pin_needs_a_new_number_and_a_new_one_does_not(tmp_path):
    path, before, after = tmp_path / "pins.json", {"a": 1, "b": 1}, {"a": 2, "b": 1}
    pins.renew(path, {"a": 1}, 1)
    pins.renew(path, before, 1)
    for changed in (after, {"a": 1}):
        with pytest.raises(SystemExit, match=r"RESULTS = 1 stands for other pins.* Changed: [ab]$"):
            pins.renew(path, changed, 1)
    assert json.loads(path.read_text())["pins"] == before
    pins.renew(path, after, 2)
    assert json.loads(path.read_text()) == {
        "history": {"1": pins.summary(before), "2": pins.summary(after)}, "pins": after, "versions": pins.versions()}


def test_other_versions_only_add_pins_and_refuse_other_decisions(tmp_path, capsys):
    path, bits = tmp_path / "pins.json", {"pulls": ["3 4"], "working": "0a"}
    pins.renew(path, {"a": bits, "index: i": "0a"}, 1)
    path.write_text(path.read_text().replace(pins.versions()[-1], "another kind"))
    others = json.loads(path.read_text())["versions"]
    with pytest.raises(SystemExit, match=r"Changed: a$"):
        pins.renew(path, {"a": bits | {"pulls": ["4 3"]}}, 1)
    found = {"a": bits | {"working": "0b"}, "b": bits, "index: i": "0b"}
    pins.renew(path, found, 1)
    after = {"a": bits, "b": bits, "index: i": "0a"}
    assert json.loads(path.read_text()) == {"history": {"1": pins.summary(after)}, "pins": after, "versions": others}
    assert "another kind" in (said := capsys.readouterr().out) and said.endswith(": b\n") and said.count("\n") == 1
    pins.renew(path, found, 2)
    assert json.loads(path.read_text())["pins"] == found and str(pins.versions()) not in str(others)
    assert json.loads(path.read_text())["versions"] == pins.versions()


def test_every_policy_stop_rule_and_law_is_pinned():
    policies = {type(policy) for study in pins.STUDIES.values() for policy in study[0].values()}
    unpinned = {cls for cls in vars(cb).values() if inspect.isclass(cls) and hasattr(cls, "prepare")} - policies
    assert unpinned == set(), "book/contributing/policy.md, Before it is merged, 2, says how a policy is pinned"
    stops = {type(pins.share_of_budget(pins.THREE)), *(type(study[2]) for study in pins.STUDIES.values())}
    assert {cls for cls in vars(cb).values() if inspect.isclass(cls) and issubclass(cls, StopRule)} <= stops
    assert {cls for cls in vars(cb).values() if inspect.isclass(cls) and issubclass(cls, Distribution)} == \
        {type(law) for law in pins.LAWS}


@pytest.mark.parametrize("label", pins.INDICES)
def test_one_rounding_changes_the_pin_of_an_index(label):
    policy = pins.INDICES[label]
    with np.errstate(all="ignore"):
        values = np.array([policy.rule(*state, policy.parameters) for state in pins.states()])
    finite = np.flatnonzero(np.isfinite(values))
    values[finite[0]] = np.nextafter(values[finite[0]], np.inf)
    pinned = json.loads(pins.PINS.read_text())["pins"].get(f"index: {label}")
    assert pinned is not None, "not pinned yet: run tests/pins.py"
    assert pins.bits(values) != pinned


class Reword(ast.NodeTransformer):
    """Other words in every message, other names for the local variables of every function."""

    def visit_FunctionDef(self, function):
        self.generic_visit(function)
        inner = [node for node in ast.walk(function) if node is not function and isinstance(
            node, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp)]
        if not inner:
            arguments = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
            stored = {node.id for node in ast.walk(function)
                      if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - arguments
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id in stored:
                    node.id += "_renamed"
        return function

    def visit_Call(self, call):
        self.generic_visit(call)
        if getattr(call.func, "id", "") in ("require", "ValueError", "RuntimeError") and call.args:
            call.args[-1] = ast.BinOp(call.args[-1], ast.Add(), ast.Constant(" In other words."))
        return call


KEYS = """
import pins, json, sys
from costbandits.studies.study import Study
import numpy as np
def keys(policies, bandits, stop, _):
    study = Study(policies, bandits, stop, 5, np.array([1.0]), 10**6)
    return {label: key.hex() for label, key in study.keys(1).items()}
keys = {name: keys(*study) for name, study in pins.STUDIES.items()}
print(json.dumps([keys, pins.cb.__file__]))
"""


def keys_of(lib):
    """The keys of all pinned studies under a library in this folder, and where it was found."""
    path = os.pathsep.join([str(lib), str(Path(pins.__file__).parent)])
    done = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"})
    return json.loads(done.stdout)


@pytest.mark.slow
def test_other_words_and_names_leave_every_key_as_it_is(tmp_path):
    shutil.copytree(LIBRARY, tmp_path / "costbandits", ignore=shutil.ignore_patterns("__pycache__"))
    changed = 0
    for path in (tmp_path / "costbandits").rglob("*.py"):
        text = path.read_text()
        path.write_text(ast.unparse(ast.fix_missing_locations(Reword().visit(ast.parse(text)))))
        changed += "_renamed" in path.read_text()
    assert changed > 20
    ours, theirs = keys_of(LIBRARY.parent), keys_of(tmp_path)
    assert theirs[1].startswith(str(tmp_path)) and theirs[0] == ours[0]


@pytest.mark.slow
def test_a_raised_number_changes_every_key(tmp_path):
    shutil.copytree(LIBRARY, tmp_path / "costbandits", ignore=shutil.ignore_patterns("__pycache__"))
    keys = tmp_path / "costbandits/studies/keys.py"
    keys.write_text(keys.read_text().replace(f"RESULTS = {RESULTS}", f"RESULTS = {RESULTS + 1}"))
    ours, theirs = ({key for study in keys_of(lib)[0].values() for key in study.values()}
                    for lib in (LIBRARY.parent, tmp_path))
    assert not ours & theirs
