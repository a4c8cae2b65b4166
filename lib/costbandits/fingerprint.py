"""What decides a result, as a short digest: code without comments and docstrings, parameters, versions.

The store of finished replications files results under it, so an edited sentence repeats nothing and an edited
formula repeats everything that used it.
"""

import ast
import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
import platform
import types
from pathlib import Path

import numpy as np

# Modules in which any change of code may change any result. Policies and distributions are told apart one by one.
COMMON = ("bandits", "engine", "regret", "simulate", "stacks", "stops")
PACKAGES = ("numba", "numpy", "scipy")


def digest(*things):
    """A 16-byte digest of any mixture of numbers, texts, arrays, functions, classes and plain objects."""
    return hashlib.blake2b("\n".join(_describe(things, ())).encode(), digest_size=16).digest()


@functools.cache
def common():
    """Digest of the simulation's own code and of the versions it runs on."""
    here = Path(__file__).parent
    trees = [ast.dump(_without_docstrings(ast.parse((here / f"{name}.py").read_text()))) for name in COMMON]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return digest(trees, versions, platform.python_version_tuple()[:2])


def _without_docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return tree


def _describe(thing, outer):
    """Lines that tell `thing` from anything that behaves differently; `outer` guards against cycles."""
    if thing is None or isinstance(thing, bool | int | float | complex | str | bytes | np.generic):
        yield f"{type(thing).__name__} {thing!r}"
    elif isinstance(thing, np.ndarray):
        yield f"array {thing.dtype} {thing.shape} {hashlib.blake2b(np.ascontiguousarray(thing)).hexdigest()}"
    elif isinstance(thing, tuple | list):
        yield f"sequence {len(thing)}"
        for part in thing:
            yield from _describe(part, outer)
    elif isinstance(thing, dict):
        yield f"dict {len(thing)}"
        for key in sorted(thing, key=repr):
            yield from _describe((key, thing[key]), outer)
    elif isinstance(thing, types.ModuleType):
        yield f"module {thing.__name__}"
    elif any(thing is seen for seen in outer):
        yield "again"
    elif hasattr(thing, "py_func"):
        yield "jitted"
        yield from _describe(thing.py_func, outer)
    elif isinstance(thing, functools.partial):
        yield from _describe(("partial", thing.func, thing.args, thing.keywords), (*outer, thing))
    elif isinstance(thing, types.MethodType):
        yield from _describe((thing.__func__, thing.__self__), (*outer, thing))
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, (*outer, thing))
    elif isinstance(thing, types.CodeType):
        yield from _code(thing, None, outer)
    elif isinstance(thing, type):
        yield _class(thing)
    else:
        yield _class(type(thing)) if not isinstance(thing, types.BuiltinFunctionType) else f"builtin {thing.__name__}"
        yield from _describe(_fields(thing), (*outer, thing))


def _fields(thing):
    if dataclasses.is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    cached = {name for cls in type(thing).__mro__ for name, member in vars(cls).items()
              if isinstance(member, functools.cached_property)}
    return {name: value for name, value in getattr(thing, "__dict__", {}).items() if name not in cached}


def _function(function, outer):
    yield from _code(function.__code__, function.__doc__, outer)
    yield from _describe((function.__defaults__, function.__kwdefaults__), outer)
    yield from _describe(tuple(cell.cell_contents for cell in function.__closure__ or ()), outer)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield f"global {name}"
            yield from _describe(function.__globals__[name], outer)


def _names(code):
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*(_names(const) for const in inner))


def _code(code, docstring, outer):
    yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for const in code.co_consts:
        if docstring is None or const is not docstring:
            yield from _describe(sorted(const, key=repr) if isinstance(const, frozenset) else const, outer)


@functools.cache
def _class(cls):
    if cls.__module__ == "builtins" or not hasattr(cls, "__mro__"):
        return f"class {cls.__qualname__}"
    lines = [f"class {cls.__module__}.{cls.__qualname__}"]
    for base in cls.__mro__[:-1]:
        for name, member in sorted(vars(base).items(), key=lambda item: item[0]):
            if name.startswith("__") and name != "__call__":
                continue
            member = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "func", None)
                                    or getattr(member, "__func__", member))
            if isinstance(member, types.FunctionType) or hasattr(member, "py_func"):
                lines += [f"member {name}", *_describe(member, (cls,))]
            elif isinstance(member, bool | int | float | str | tuple | types.NoneType):
                lines.append(f"member {name} {member!r}")
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
