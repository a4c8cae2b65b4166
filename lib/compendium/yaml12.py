"""Files of YAML, read as YAML 1.2 means them (its core schema): PyYAML by itself reads YAML 1.1.

There `010` is eight, `1:30` is ninety, `no` is false and `1e3` is a text. Here they are ten, a text, a text and a
thousand. A key that is there twice, or is no text, is refused.

>>> parse("{a: 010, b: 1:30, c: no, d: 1e3, e: 1_000, f: 2026-01-01, g: 0o10}")
{'a': 10, 'b': '1:30', 'c': 'no', 'd': 1000.0, 'e': '1_000', 'f': '2026-01-01', 'g': 8}
"""

import os
import re
from pathlib import Path
from typing import ClassVar

import yaml

from costbandits.checks import require

TAG = "tag:yaml.org,2002:"
# Section 10.3.2 of the specification: what a plain scalar is, and its value; everything else is a text.
CORE = {"null": (r"null|Null|NULL|~|", lambda text: None),
        "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
        "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
                lambda text: int(text, 0 if text[:2] in ("0o", "0x") else 10)),
        "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?(?:\.inf|\.Inf|\.INF)"
                  r"|\.nan|\.NaN|\.NAN", lambda text: float(re.sub(r"\.(?=[in])", "", text.lower())))}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):     # read in C, where PyYAML was built with it
    """Texts, lists, mappings and the scalars of CORE; other tags, such as those of dates and sets, are unknown."""
    yaml_implicit_resolvers: ClassVar = {}
    yaml_constructors: ClassVar = {tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items()
                                   if tag in (None, f"{TAG}str", f"{TAG}seq", f"{TAG}map")}

    def construct_core(self, node):
        kind, text = node.tag.removeprefix(TAG), self.construct_scalar(node)
        (pattern, value), where = CORE[kind], f"line {node.start_mark.line + 1}, {kind}"
        require(re.fullmatch(pattern, text), where, text, "is none in YAML 1.2")     # behind a tag like !!int
        return value(text)

    def construct_mapping(self, node, deep=False):
        keys = set()
        for key, _ in node.value:
            where, name = f"line {key.start_mark.line + 1}, key", self.construct_object(key, deep=True)
            require(isinstance(name, str), where, name, "must be a text: write it in quotes")
            require(name not in keys, where, name, "is there twice")
            keys.add(name)
        return super().construct_mapping(node, deep)


for _kind, (_pattern, _) in CORE.items():
    _Loader.add_implicit_resolver(TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), None)
    _Loader.add_constructor(TAG + _kind, _Loader.construct_core)


def parse(text: str, name: str = "YAML") -> object:
    """What a text of YAML says; ValueError, with its `name`, if it is no YAML or has a key twice."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"{name}: not YAML ({' '.join(str(error).split())})") from error
    except ValueError as error:     # a key twice, a number of more digits than Python takes
        raise ValueError(f"{name}, {error}") from error


def read_yaml(path: str | os.PathLike, name: str | None = None) -> object:
    """What a file of YAML says; ValueError, with its `name`, also if it is not UTF-8."""
    name = name or str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: not UTF-8 ({error.reason} at byte {error.start})") from error
    return parse(text, name)
