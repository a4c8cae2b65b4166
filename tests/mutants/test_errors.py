"""The table of planted errors: each can be planted, and each is left to a test that exists and says what is wrong."""

import ast
import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from errors import ERRORS, Error, planted

ROOT = Path(__file__).resolve().parents[2]
PINS = "tests/studies/test_pins.py"
ALL = planted(ERRORS)


@cache
def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def parsed(path):
    return ast.dump(ast.parse(text(path)))


@cache
def names_of(path):
    return {node.name for node in ast.walk(ast.parse(text(path))) if isinstance(node, ast.FunctionDef)
            and node.name.startswith("test_") and not any(ast.unparse(mark) == "pytest.mark.proof"
            for mark in node.decorator_list)} if (ROOT / path).is_file() else set()


def faults(error):
    """What is wrong with an entry of the table itself."""
    source = text(f"lib/{error.file}")
    if source.count(error.find) != 1:
        yield f"{error.find!r} occurs {source.count(error.find)} times"
    elif ast.dump(ast.parse(source.replace(error.find, error.put))) == parsed(f"lib/{error.file}"):
        yield "changes nothing"
    for node in error.nodes():
        path, *_, name = node.partition("[")[0].split("::")
        if path == PINS or name not in names_of(path):
            yield f"{node} is a pin, or is not there, or only in `make proof`"
    if not error.nodes() or not error.why:
        yield "has no test or no reason"


@pytest.mark.slow
def test_every_error_can_be_planted_and_has_its_tests():
    assert [(error.file, fault) for error in ALL for fault in faults(error)] == []


def test_no_error_is_planted_twice_and_no_room_is_left_out():
    assert max(Counter((error.file, error.find, error.put) for error in ALL).values()) == 1
    assert len(ALL) >= 120
    rooms = {f"{path.parts[-3]}/{path.parts[-2]}" for path in (ROOT / "lib/costbandits").glob("*/*.py")}
    assert rooms | {"compendium"} <= {"/".join(error.file.split("/")[:2]) for error in ALL} | {
        error.file.split("/")[0] for error in ALL}


@pytest.mark.parametrize(("error", "fault"), [
    (ALL[0]._replace(find="not in this file"), "occurs 0 times"), (ALL[0]._replace(find="return"), "times"),
    (ALL[0]._replace(put=ALL[0].find + "  # told"), "changes nothing"),
    (ALL[0]._replace(tests="policies/test_policies.py::test_nothing"), "is not there"),
    (ALL[0]._replace(tests="compendium/test_settings.py::test_a_user_s_own_settings_decide_no_byte"), "only in"),
    (ALL[0]._replace(tests="studies/test_pins.py::test_pins"), "is a pin"), (ALL[0]._replace(tests=""), "no test")])
def test_a_fault_of_the_table_is_found(error, fault):
    assert isinstance(error, Error) and any(fault in each for each in faults(error))


def tool():
    """What `make mutants` runs, as a module."""
    spec = importlib.util.spec_from_file_location("planting", Path(__file__).with_name("__main__.py"))
    spec.loader.exec_module(planting := importlib.util.module_from_spec(spec))
    return planting


def test_a_word_of_no_error_is_refused(capsys):
    assert tool().main("no such room") == 2
    assert capsys.readouterr().out == "no such room: must be part of the file or of the reason of a planted error\n"


@pytest.mark.slow
@pytest.mark.parametrize(("put", "expected"), [
    ("3 * x", "caught"), ("x + x", "MISSED"), ("2 * y", "BROKEN"), ("2 *", "BROKEN"), ("missing.x", "BROKEN")])
def test_what_becomes_of_an_error(tmp_path, monkeypatch, put, expected):
    """It is caught by a test that fails, not by code that cannot run; the file is as before in the end."""
    planting = tool()
    monkeypatch.setattr(planting, "COMPILED", tmp_path / "numba")
    for folder in ("numba", "lib", "tests"):
        (tmp_path / folder).mkdir()
    source = tmp_path / "lib/toy.py"
    source.write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "tests/test_toy.py").write_text("import toy\n\ndef test_double():\n    assert toy.double(2) == 4\n")
    before = source.read_text(), source.stat().st_mtime_ns
    said, result = planting.plant(Error("toy.py", "2 * x", put, "test_toy.py::test_double", "a toy"), tmp_path)
    assert result.startswith(expected), said
    assert (source.read_text(), source.stat().st_mtime_ns) == before
