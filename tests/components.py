"""A module without one of the components of its digests, one after the other: something has to tell that it is missing.

A component is an element of a tuple or a list, a value of a dict, a part of a formatted text, an argument of `digest`,
or a line that yields, as the source of some functions has them. So whatever is added to a digest is left out here, too,
and a test that finds no two things that are alike without it fails.
"""

import ast
import copy
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def _slots(function):
    """Where components stand in a function: text, the node that has it, under which name, and its position there."""
    kinds = {part for node in ast.walk(function) if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)}
    for node in (node for node in ast.walk(function) if node not in kinds):         # dict[str, bytes] is no pair
        for name, field in ast.iter_fields(node):
            if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
                yield from ((ast.unparse(each), node, name, at) for at, each in enumerate(field)
                            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Yield | ast.YieldFrom))
        told = isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "digest"
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        names = ("elts",) if isinstance(node, ast.Tuple | ast.List) and loaded else ("args",) if told else \
            ("values",) if isinstance(node, ast.Dict | ast.JoinedStr) else ()
        for name in names:
            yield from ((_text(part), node, name, at) for at, part in enumerate(getattr(node, name))
                        if not isinstance(part, ast.Constant) and len(getattr(node, name)) > 1)


def _text(part):
    return f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else ast.unparse(part)


def _nothing(part):
    if isinstance(part, ast.Expr):
        return ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load())))
    if isinstance(part, ast.Starred):
        return ast.Starred(ast.Tuple([], ast.Load()), ast.Load())
    return ast.Constant("" if isinstance(part, ast.FormattedValue) else None)


def _made(module, tree, name):
    """The module as a syntax tree has it."""
    made = types.ModuleType(module.__name__)
    made.__package__, made.__file__ = module.__package__, module.__file__
    exec(compile(ast.fix_missing_locations(copy.deepcopy(tree)), name, "exec"), vars(made))
    return made


def left_out(module: types.ModuleType, *functions: str) -> Iterator[tuple[str, types.ModuleType]]:
    """Pairs (function: component, the module without it), for all components of functions and methods of a module.

    Before them all stands the module with all of its components, under the name "".
    """
    tree = ast.parse(Path(module.__spec__.origin).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions]
    assert {node.name for node in found} == set(functions)
    yield "", _made(module, tree, "whole")
    for function in found:
        function.decorator_list = [each for each in function.decorator_list if "cache" not in ast.unparse(each)
                                   or "property" in ast.unparse(each)]
        for text, node, name, at in _slots(function):
            parts = getattr(node, name)
            part, parts[at] = parts[at], _nothing(parts[at])
            made = _made(module, tree, function.name)
            parts[at] = part
            yield f"{function.name}: {' '.join(text.split())}", made


def unnoticed(module: types.ModuleType, functions: Iterable[str], wrong: Callable) -> list[str]:
    """Components without which nothing is wrong; `wrong(module)` tells what is, of the module as it is nothing."""
    assert (found := list(wrong(module))) == [], found
    whole, *others = [name for name, made in left_out(module, *functions) if not _shows(made, wrong)]
    assert whole == ""
    return others


def _shows(made, wrong):
    try:
        return any(True for _ in wrong(made))
    except Exception:       # what cannot be computed files nothing under a wrong name
        return True
