"""YAML is read as its version 1.2 has it: each scalar by the core schema, each key once."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compendium.yaml12 import parse, read_yaml

# What YAML 1.1, which PyYAML reads, has as something else comes first in each line.
SCALARS = [
    ("007", 7), ("0778", 778), ("-012", -12), ("+012", 12), ("0o14", 12), ("0xfF", 255), ("00", 0), ("-0", 0),
    ("6e2", 600.0), ("6E2", 600.0), ("1e-3", 0.001), ("-2e+1", -20.0), ("06e1", 60.0), (".5e1", 5.0), ("3.", 3.0),
    ("2.50", 2.5), ("+.25", 0.25), ("-.inf", -math.inf), ("+.INF", math.inf), (".Inf", math.inf),
    ("2:30", "2:30"), ("-1:00:00", "-1:00:00"), ("2:30.5", "2:30.5"), ("10_000", "10_000"), ("0b11", "0b11"),
    ("1_0.5", "1_0.5"), ("0X1F", "0X1F"), ("-0x1F", "-0x1F"), ("0o9", "0o9"), ("1e", "1e"), (".", "."),
    ("inf", "inf"), ("NaN", "NaN"), ("\u0663", "\u0663"), ("\uff11\uff12", "\uff11\uff12"),
    ("yes", "yes"), ("No", "No"), ("ON", "ON"), ("off", "off"), ("y", "y"), ("tRUE", "tRUE"), ("true", True),
    ("True", True), ("FALSE", False), ("2026-02-30", "2026-02-30"), ("2026-11-27 10:00:00", "2026-11-27 10:00:00"),
    ("=", "="), ("~", None), ("NULL", None), ("nULL", "nULL"), ("", None), ("'010'", "010"), ('"1e3"', "1e3"),
    ("!!str 010", "010"), ("!!int 010", 10), ("!!float 3", 3.0), ("!!bool TRUE", True)]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_scalar_is_what_the_core_schema_says(text, value):
    for found in (parse(f"a: {text}")["a"], parse(f"- {text}")[0], parse(f"{{a: {{b: {text}}}}}")["a"]["b"]):
        assert repr(found) == repr(value)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_python_writes_them_are_read_back(number):
    for text in (repr(number), f"{number:e}" if isinstance(number, float) else f"{number:d}"):
        assert repr(parse(text)) == repr(type(number)(text))


@pytest.mark.parametrize("text", ["!!int 1:30", "!!int 1_0", "!!int 0b1", "!!float 1:30.5", "!!bool yes", "!!null none",
                                  "!!int ''"])
def test_a_tag_makes_no_number_of_what_is_none(text):
    with pytest.raises(ValueError, match=r"^here, line 2, \w+ = .*: is none in YAML 1.2$"):
        parse(f"a: 1\nb: {text}", "here")


@pytest.mark.parametrize("text", ["!!timestamp 2026-11-27", "!!set {a, b}", "!!omap [a: 1]", "!!binary aGk=", "!law x",
                                  "!!python/name:os.system", "!!merge a"])
def test_other_tags_are_unknown(text):
    with pytest.raises(ValueError, match=r"^here: not YAML \(could not determine a constructor for the tag"):
        parse(f"a: {text}", "here")


@pytest.mark.parametrize(("text", "key"), [
    ("b: 1\nc: 2\nb: 3", "b"), ("b: 1\n'b': 2", "b"), ('b: 1\n"\\x62": 2', "b"), ("{a: {d: 1, d: 1}}", "d"),
    ("- - a: 1\n    c: 2\n    a: 1", "a"), ("x: &x {a: 1}\ny:\n  <<: *x\n  <<: *x", "<<"), ("? a\n? a", "a"),
    ("'1': a\n\"1\": b", "1"), ("on: 1\n!!str on: 2", "on")])
def test_a_key_that_is_there_twice_is_refused_by_name(text, key):
    with pytest.raises(ValueError, match=rf"line \d, key = '{key}': is there twice"):
        parse(text)


@pytest.mark.parametrize(("text", "key"), [("1: a\n0x1: b", "1"), ("true: a", "True"), ("~: a", "None"),
                                           ("[a, b]: c", r"\['a', 'b'\]"), ("5e-1: c", "0.5")])
def test_a_key_is_a_text(text, key):
    """Papermill would make a text of it; and two that differ as texts could be one number."""
    with pytest.raises(ValueError, match=rf"line 1, key = {key}: must be a text: write it in quotes"):
        parse(text)


def test_a_merge_is_a_key_like_others():
    assert parse("a: &a {x: 1}\nb: {<<: *a, x: 2}")["b"] == {"<<": {"x": 1}, "x": 2}


def test_other_users_of_pyyaml_read_as_before():
    assert yaml.safe_load("{a: 010, b: yes, c: 1:30}") == {"a": 8, "b": True, "c": 90}


def test_a_file_is_utf_8_and_is_named(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffname: Größe, 予算".encode())
    assert read_yaml(path) == {"name": "Größe, 予算"}
    for content, said in (("name: Größe".encode("latin-1"), "not UTF-8"), ("a: 予算".encode("euc-jp"), "not UTF-8"),
                          (b"a: [", "not YAML"), (b"a: 1\n---\na: 2", "not YAML"),
                          (b"a: 1\na: 2", "line 2, key = 'a'")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"^mine.*{said}"):
            read_yaml(path, "mine")
