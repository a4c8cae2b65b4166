"""A short digest of anything that decides a result: the reader's own code by its content, all else by name and value.

An edited comment or docstring of a function changes nothing, an edited formula does. What belongs to Python, to an
installed package or to this library is known by its name: versions, and the declared number of results, stand for its
content. So an edit within an installed package goes unseen while its version stays the same. Where two things can't be
told apart for sure they get different digests, or an error: work done twice is better than a result of something else.
"""

import copyreg
import dataclasses
import dis
import functools
import hashlib
import importlib.metadata
import sys
import types
from collections.abc import Iterator
from numbers import Real
from pathlib import Path

import numpy as np

from ..checks import OURS, ours

PACKAGES = ("numba", "numpy", "scipy")      # what the library's own results rest on: their versions are in every key
INSTALLED = {"site-packages", "dist-packages"}
BUILT_IN = (int, float, complex, str, bytes, np.generic, np.ndarray, tuple, list, set, frozenset, dict)


def digest(*things: object) -> bytes:
    """A 16-byte digest of any mixture of numbers, texts, arrays, functions, classes and plain objects.

    Raises ValueError for an object whose content can't be read, such as an open file.

    >>> digest(cb.OmegaUCB(0.25)) == digest(cb.OmegaUCB()), digest(cb.OmegaUCB(0.25)) == digest(cb.OmegaUCB(0.5))
    (True, False)
    """
    return hashlib.blake2b("\n".join(_describe(things, ())).encode(), digest_size=16).digest()


@functools.cache
def _known(module):
    """Whether a module belongs to Python, to an installed package or to us: then its name says what is in it."""
    top = str(module).partition(".")[0]
    # __main__ may be a tool's (python -m ...), and yet be what a function of the user's calls its module.
    if top == "__main__":
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    # Packages of the user, of the system and of another environment on the path are installed, too.
    return top in (*sys.stdlib_module_names, OURS) or not INSTALLED.isdisjoint(Path(file or "").parts)


@functools.cache
def _named(module):
    """A module's name; for an installed package of the reader's own choice with its version."""
    top = str(module).partition(".")[0]
    if top in (*sys.stdlib_module_names, OURS, *PACKAGES) or not _known(module):
        return f"{module}"
    found = importlib.metadata.packages_distributions().get(top, ())
    return " ".join([f"{module}", *(importlib.metadata.version(name) for name in sorted(set(found)))])


def _describe(thing, outer):
    """Lines that tell `thing` from anything that behaves differently; `outer` guards against cycles."""
    if isinstance(thing, BUILT_IN) and not _known(type(thing).__module__):
        yield from _describe(type(thing), outer)        # the methods of a NamedTuple, for instance
        if getattr(thing, "__dict__", None):
            yield from _describe(vars(thing), outer)
    if thing is None or isinstance(thing, bool | int | float | complex | str | bytes | np.generic):
        yield f"{type(thing).__name__} {thing!r}"
    elif isinstance(thing, dict | np.ndarray) and type(thing) not in (dict, np.ndarray) and _known(
            type(thing).__module__):
        yield from _compound(thing, outer)      # such as an array with a mask, or a dict with a default
    elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        yield f"array {thing.dtype} {thing.shape} {hashlib.blake2b(np.ascontiguousarray(thing)).hexdigest()}"
    elif isinstance(thing, tuple | list):
        yield f"sequence {len(thing)}"
        for part in thing:
            yield from _describe(part, outer)
    elif isinstance(thing, set | frozenset):
        yield from _describe(("set", sorted(thing, key=repr)), outer)
    elif isinstance(thing, dict):
        yield f"dict {len(thing)}"
        for key in sorted(thing, key=repr):
            yield from _describe((key, thing[key]), outer)
    elif isinstance(thing, types.ModuleType):
        yield f"module {_named(thing.__name__)}"
    elif any(thing is seen for seen in outer):
        yield "again"
    else:
        yield from _compound(thing, (*outer, thing))


def _compound(thing, outer):
    if hasattr(thing, "py_func"):
        yield from _describe(("jitted", getattr(thing, "targetoptions", None), thing.py_func), outer)
    elif isinstance(thing, functools.partial):
        yield from _describe(("partial", thing.func, thing.args, thing.keywords), outer)
    elif isinstance(thing, functools._lru_cache_wrapper) and not _known(thing.__module__):
        yield from _describe(("cached", thing.__wrapped__), outer)
    elif isinstance(getattr(thing, "registry", None), types.MappingProxyType) and not _known(thing.__module__):
        # The function itself shows only one of Python's, which looks them up.
        yield from _describe(("single dispatch", dict(thing.registry)), outer)
    elif isinstance(thing, types.MethodType):
        yield from _describe((thing.__func__, thing.__self__), outer)
    elif isinstance(thing, types.FunctionType | types.BuiltinFunctionType | type) and _known(thing.__module__):
        yield f"{_named(thing.__module__)}.{thing.__qualname__}"
        yield from _describe(_enclosed(thing) if ours(thing) else (), outer)
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, outer)
    elif isinstance(thing, types.CodeType):
        yield from _code(thing, None, outer)
    elif isinstance(thing, type):
        yield from _class(thing, outer)
    else:
        state = _state(thing)
        named = isinstance(state, str)       # known by its name alone, as functions of C are
        yield from _describe((getattr(thing, "__module__", None) if named else type(thing), state), outer)


def _state(thing):
    """What an instance holds, as it would be pickled, without what it has merely cached."""
    try:
        registered = copyreg.dispatch_table.get(type(thing))
        reduced = registered(thing) if registered else thing.__reduce_ex__(4)
    except Exception as error:
        raise ValueError(f"{thing!r}: its content can't be read ({error}), so results that depend on it can't be told "
                         "apart in a store") from error
    if isinstance(reduced, str):
        return reduced
    cached = {name for cls in type(thing).__mro__ for name, member in vars(cls).items()
              if isinstance(member, functools.cached_property)}
    # In a parameter of ours that is a number, 20 and 20.0 are the same.
    known = dataclasses.fields(thing) if ours(type(thing)) and dataclasses.is_dataclass(thing) else ()
    floats = {field.name for field in known if field.type in (float, float | None)}
    return tuple({name: float(value) if name in floats and isinstance(value, Real) else value
                  for name, value in part.items() if name not in cached} or None if isinstance(part, dict)
                 else list(part) if isinstance(part, Iterator) else part for part in reduced)


def _enclosed(function):
    """What a function has from the function around it."""
    return tuple(cell.cell_contents for cell in getattr(function, "__closure__", None) or ())


def _function(function, outer):
    yield from _code(function.__code__, function.__doc__, outer)
    yield from _describe((function.__defaults__, function.__kwdefaults__), outer)
    yield from _describe(_enclosed(function), outer)
    codes = nested(function.__code__)
    names = sorted({name for code in codes for name in code.co_names})
    # Names of attributes may be those of globals, too, which have nothing to do with the function.
    loaded = {step.argval for code in codes for step in dis.get_instructions(code)
              if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    used = {name: function.__globals__[name] for name in loaded if name in function.__globals__}
    used |= _imported(function.__code__, function.__globals__.get("__package__"))
    for name in sorted(used):
        yield f"global {name}"
        yield from _describe(used[name], outer)
        yield from _module(used[name], names, outer)


def _module(thing, names, outer):
    """Of a module of the user's: what it has under these names, and so on in the modules among that."""
    if isinstance(thing, types.ModuleType) and not _known(thing.__name__) and thing not in outer:
        for name in names:
            if hasattr(thing, name):
                yield f"part {name}"
                yield from _describe(getattr(thing, name), outer)
                yield from _module(getattr(thing, name), names, (*outer, thing))


def nested(code: types.CodeType) -> list[types.CodeType]:
    """The code of a function and of all functions within it.

    >>> [code.co_name for code in nested((lambda x: lambda y: x + y).__code__)]
    ['<lambda>', '<lambda>']
    """
    return [code, *(part for const in code.co_consts if isinstance(const, types.CodeType) for part in nested(const))]


def _imported(code, package):
    """What a function imports when it is called: name -> module, or what comes from it."""
    found, steps = {}, [step for part in nested(code) for step in dis.get_instructions(part)]
    for at, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level, wanted = steps[at - 2].argval, steps[at - 1].argval
            try:
                module = importlib.import_module("." * level + step.argval, package if level else None)
            except ImportError:         # the function may be prepared for that
                found[step.argval] = "cannot be imported"
                continue
            found |= {name: getattr(module, name, sys.modules.get(f"{module.__name__}.{name}"))
                      for name in wanted} if wanted else {step.argval: module}
    return found


def _code(code, docstring, outer):
    yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for const in code.co_consts:
        yield from _describe(None if docstring is not None and const is docstring else const, outer)


def _class(cls, outer):
    yield f"class {cls.__module__}.{cls.__qualname__}"
    for base in cls.__mro__:
        if _known(base.__module__):
            yield f"base {base.__module__}.{base.__qualname__}"
            continue
        for name, member in sorted(vars(base).items(), key=lambda item: item[0]):
            member = _WRAPPED.get(type(member), lambda plain: plain)(member)
            # What makes and compares objects decides nothing that their state does not show.
            # Not hasattr(object, name): `object` can be called, and so has the __call__ of its own class.
            usual = name in vars(object) or name == "__post_init__" or not callable(member)
            if name != "_abc_impl" and not (name.startswith("__") and usual):
                yield f"member {name}"
                yield from _describe(member, outer)


_WRAPPED = {property: lambda it: (it.fget, it.fset), functools.cached_property: lambda it: it.func,
            staticmethod: lambda it: it.__func__, classmethod: lambda it: it.__func__}
