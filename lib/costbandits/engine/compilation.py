"""How compiled code is kept on disk, which rests on private parts of Numba.

Numba keeps it in `__pycache__` or where NUMBA_CACHE_DIR says, as long as the file of the function is unchanged. That is
too strict, since a reworded comment changes the file, and too lax, since a function that is called may stand in another
file. Here it is current while the bytecode and the constants of the function and of all that it calls are the same,
wherever the files stand. So loops with a rule typed into a notebook are kept, too, but only the newest of them. Where
code cannot be kept or read it is compiled anew, and one warning says so.
"""

import contextlib
import dis
import functools
import hashlib
import inspect
import os
import pickle
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import numba as nb
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

from ..checks import OURS, ours
from .fingerprint import digest, nested

# 1 / 0 is infinite, as in NumPy; for C, which calls none of it, nothing is compiled.
njit = functools.partial(nb.njit, error_model="numpy", no_cfunc_wrapper=True)
# For what makes no array: references are not counted, which takes as long as ten indices at each call.
uncounted = functools.partial(njit, _nrt=False)
Signature = type(nb.void())            # for annotations: where it stands in Numba is private
TYPED, ROOM = "typed", 128             # how names of what holds a reader's rule begin; how many such files are kept


def keep(made: Callable, holds_a_rule: bool = False) -> None:
    """Let what this dispatcher compiles be kept on disk, as far as this version of Numba and the disk can."""
    if nb.config.DISABLE_JIT:
        return
    before = getattr(made, "_cache", None)
    try:
        with nb.core.compiler_lock.global_compiler_lock:       # another thread may be compiling it
            _keep(made, holds_a_rule)
    except AttributeError as error:     # pragma: no cover - another Numba
        made._cache = before
        _warn_once(f"numba {nb.__version__} keeps compiled code in another way than this library knows", str(error))
    except (RuntimeError, OSError) as error:        # Numba finds no folder, or ours cannot be made
        made._cache = before
        _warn_unkept(error)


def _keep(made, holds_a_rule):
    made.enable_caching()
    cache, stamp = made._cache, hashlib.sha256(f"{content(made.py_func)} {made.targetoptions}".encode()).hexdigest()
    if nb.config.CACHE_DIR:
        # Numba's own folder there has a name that depends on the place of the source.
        cache._cache_path = os.path.join(nb.config.CACHE_DIR, made.py_func.__module__)
        os.makedirs(cache._cache_path, exist_ok=True)
    name = f"{made.py_func.__module__}.{made.py_func.__qualname__}-{stamp[:16]}.{sys.implementation.cache_tag}"
    cache._cache_file = _forgiving(type(cache._cache_file))(cache._cache_path, name, f"sealed {stamp}")
    checked = cache._impl.check_cachable
    if holds_a_rule:
        # Numba refuses to keep whatever holds an address; that of a rule compiled into a loop is never read.
        cache._impl.check_cachable = lambda result: True
        _forget_old(Path(cache._cache_path))
    else:
        # What was compiled for one rule alone is not kept: another process knows that rule by another name.
        cache._impl.check_cachable = lambda result: not any(
            isinstance(kind, nb.types.Dispatcher) for kind in result.signature.args) and checked(result)
    load = cache.load_overload

    def load_overload(*arguments):
        _keep_parts(made.py_func, {made.py_func})       # what it calls by its name is there before it
        return load(*arguments)

    cache.load_overload = _or_none(load_overload)
    cache.save_overload = _or_none(cache.save_overload)


def _or_none(method):
    """A method of a cache that finds, and writes, no file where anything goes wrong with it."""
    @functools.wraps(method)
    def call(*arguments):
        try:
            return method(*arguments)
        except Exception as error:
            _warn_unkept(error)
    return call


def _keep_parts(function, seen):
    """Keep also what a loop calls, for the next loop that calls it."""
    for _, part in _used(function):
        called = getattr(part, "py_func", None)
        if called is not None and called not in seen:
            seen.add(called)
            if hasattr(part, "define"):
                part.define()
            elif ours(called) and not called.__closure__:
                _keep_part(part)
            _keep_parts(called, seen)


@functools.cache
def _keep_part(part):
    if os.path.exists(part.py_func.__code__.co_filename):
        keep(part)


def _forget_old(folder):
    """Remove all but the newest files that hold a reader's rule; another process may be doing the same."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob(f"*.{TYPED}_*"), key=lambda path: path.stat().st_mtime)[:-ROOM]:
            path.unlink()


@functools.cache
def _forgiving(file):
    """Numba's class of files of compiled code, which notices damage; an index that cannot be read counts as empty."""
    class Kept(file):
        def save(self, key, data):      # with its key: two processes at once may give one name to two signatures
            inner = self._dump((key, data))
            super().save(key, (hashlib.sha256(inner).digest(), inner))

        def load(self, key):
            found = super().load(key)
            if found is None:
                return None
            seal, inner = found
            if hashlib.sha256(inner).digest() != seal:
                raise ValueError("a file is damaged")
            saved, data = pickle.loads(inner)
            return data if saved == key else None

        def _load_index(self):
            try:
                return super()._load_index()
            except (AttributeError, ImportError):       # pragma: no cover - in a process of its own
                return {}           # it names types that no longer exist
            except Exception as error:
                _warn_unkept(error)
                return {}

    return Kept


def _warn_unkept(error):
    _warn_once("kept code cannot be read or written", f"{type(error).__name__}: {error}",
               "; set NUMBA_CACHE_DIR to a folder that only you can write to")


def _warn_once(what, why, cure=" in each process", *, told=set()):     # noqa: B006 - of the whole process
    if what not in told:
        told.add(what)
        warnings.warn(f"{what} ({why}): everything works, but is compiled anew{cure}", stacklevel=4)


def compiling() -> bool:
    """Whether another thread of this process is compiling; False where Numba does not say.

    >>> compiling()
    False
    """
    lock = getattr(nb.core.compiler_lock.global_compiler_lock, "_lock", None)
    free = lock is None or lock.acquire(blocking=False)
    if free and lock is not None:
        lock.release()
    return not free


def content(function: Callable) -> str:
    """Digest of the bytecode and constants of a function and of all that it calls, the reader's functions included.

    >>> content(lambda x: x + 1) == content(lambda x: x + 1), content(lambda x: x + 1) == content(lambda x: x + 2)
    (True, False)
    """
    return hashlib.sha256("\n".join(_content(function, set())).encode()).hexdigest()


def _content(function, seen):
    if function in seen:
        return
    seen.add(function)
    for code in nested(function.__code__):
        yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
        # A docstring stands where a function without one has None.
        yield from (repr(None if const == function.__doc__ else const) for const in code.co_consts
                    if not isinstance(const, types.CodeType))
    for name, value in _used(function):
        yield f"{getattr(value, 'targetoptions', '')}"      # what is called by its name has none
        value = getattr(value, "py_func", value)
        if isinstance(value, types.FunctionType) and ours(value):
            yield from _content(value, seen)
        elif isinstance(value, types.FunctionType):
            yield digest(value).hex()
        elif isinstance(value, np.ndarray):
            yield f"{name} {value.dtype} {value.tobytes().hex()}"
        else:
            yield f"{name} {value.__name__ if hasattr(value, '__name__') else repr(value)}"


def _used(function):
    """What a function, and those within it, take from outside: sorted pairs (name, value), of modules of ours, too."""
    codes = list(nested(function.__code__))
    loaded = {step.argval for code in codes for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    names = {name for code in codes for name in code.co_names}
    used = {name: function.__globals__[name] for name in loaded if name in function.__globals__}
    used |= inspect.getclosurevars(function).nonlocals
    for name, value in list(used.items()):
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == OURS:
            used |= {f"{name}.{part}": getattr(value, part) for part in names if hasattr(value, part)}
    return sorted(used.items(), key=lambda item: item[0])


def _holds_typed(rule):
    """Whether a compiled rule is a reader's, or a function of the library that was made around one."""
    inner = inspect.getclosurevars(rule.py_func).nonlocals.values()
    return not ours(rule.py_func) or any(_holds_typed(part) for part in inner if hasattr(part, "py_func"))


class Kernel:
    """A function from a file that only Python calls, such as a pull loop, compiled when it is first called.

    For `signature`, or else for the types of each call; `holds_a_rule` if `around` made it.

    >>> Kernel(lambda x: x + 1).py_func(2)
    3
    """

    def __init__(self, function: Callable, signature: Signature | None = None, holds_a_rule: bool = False):
        self.py_func, self.signature, self.holds_a_rule = function, signature, holds_a_rule

    @functools.cached_property
    def compiled(self) -> Callable:
        """The function as Numba made it."""
        made = njit(nogil=True)(self.py_func)
        if not nb.config.DISABLE_JIT:
            keep(made, self.holds_a_rule)
            if self.signature is not None:
                made.compile(self.signature)
                made.disable_compile()
        return made

    def __call__(self, *arguments):
        return self.compiled(*arguments)


def compiled_for(signature: Signature | None = None) -> Callable[[Callable], Kernel]:
    """Make a function a `Kernel` of this signature.

    >>> compiled_for(nb.float64(nb.int64))(lambda x: x / 2).signature.return_type
    float64
    """
    return lambda function: Kernel(function, signature)


def apart(signature: Signature) -> Callable[[Callable], Callable]:
    """Compile a function for this signature, once: compiled code calls it by its name.

    Numba links whatever a function calls into it and optimizes all of that again, in each loop. The function is
    `uncounted`: it cannot make an array.

    >>> @apart(nb.float64(nb.int64))
    ... def half(x):
    ...     return x / 2
    >>> nb.njit(lambda x: half(x) + half(x + 1))(3), half.py_func(3)
    (3.5, 1.5)
    """
    def register(function):
        if nb.config.DISABLE_JIT:
            return function
        name, returned, kinds = f"{function.__module__}.{function.__qualname__}", signature.return_type, signature.args
        made = uncounted(no_cpython_wrapper=True)(function)

        @functools.cache
        def define():       # before any code that calls it is compiled, or read from disk
            _keep_part(made)
            made.compile(signature)
            found = made.overloads[kinds]
            nb.core.codegen.ll.add_symbol(name, found.library.get_pointer_to_function(found.fndesc.llvm_func_name))

        def call(context, builder, _, arguments):
            define()
            kind = context.call_conv.get_function_type(returned, kinds)
            called = cgutils.get_or_insert_function(builder.module, kind, name)
            status, result = context.call_conv.call_function(builder, called, returned, kinds, arguments)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return result

        names = ", ".join(inspect.signature(function).parameters)
        typed = eval(f"lambda typing, {names}: found", {"found": (signature, call)})
        typed.__name__ = function.__name__
        by_name = intrinsic(typed)
        by_name.py_func, by_name.define = function, define
        return by_name

    return register


@functools.lru_cache(256)
def around(kernel: Kernel, *rules: Callable) -> Callable:
    """A kernel with rules, its first arguments, compiled into it: a quarter faster, for some seconds of compiling.

    >>> around(Kernel(lambda rule, x: 2 * rule(x)), nb.njit(lambda x: x + 1))(3)
    8
    """
    if nb.config.DISABLE_JIT:
        return functools.partial(kernel.py_func, *rules)
    for rule in rules:
        if not hasattr(rule, "py_func"):
            raise TypeError(f"{rule.__qualname__} must be compiled: the steps of a kernel by @step")
    # Inlined before it is typed: else Numba makes machine code of the whole loop twice.
    loop = njit(inline="always")(kernel.py_func)
    inside = {"loop": loop, **{f"rule_{i}": rule for i, rule in enumerate(rules)}}
    # Spelled out: of *arguments Numba could not be told the types.
    names = ", ".join(list(inspect.signature(kernel.py_func).parameters)[len(rules):])
    outer = eval(compile(f"lambda {names}: loop({', '.join(list(inside)[1:])}, {names})", __file__, "eval"), inside)
    outer.__module__ = __name__
    rule = rules[0].py_func
    kind = f"{TYPED}_" if any(_holds_typed(rule) for rule in rules) else ""
    outer.__qualname__ = f"{kind}{kernel.py_func.__name__}_around_{rule.__module__}_{rule.__qualname__}"
    signature = kernel.signature and kernel.signature.return_type(*kernel.signature.args[len(rules):])
    return Kernel(outer, signature, holds_a_rule=True)


def ready(rule: Callable, signature: Signature | None = None) -> Callable:
    """The rule, compiled when it is played: for this signature, or else for the types of each call.

    >>> from costbandits.engine.plain import INDEX
    >>> ready(cb.UCB1.rule, INDEX) is cb.UCB1.rule
    True
    """
    if signature is None and not nb.config.DISABLE_JIT:
        _keep_part(rule)
    elif not nb.config.DISABLE_JIT and signature.args not in rule.overloads:
        if not _holds_typed(rule):      # a reader's takes a tenth of a second, and would stay for ever
            keep(rule)
        rule.compile(signature)
    return rule


def address(rule: Callable, signature: Signature) -> int | Callable:
    """Where the rule's machine code for this signature is, or the rule itself without a compiler; see `called_at`.

    >>> from costbandits.engine.plain import INDEX
    >>> address(cb.UCB1.rule, INDEX) == address(cb.UCB1.rule, INDEX)
    True
    """
    if nb.config.DISABLE_JIT:
        return rule
    made = ready(rule, signature).overloads[signature.args]
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def called_at(signature: Signature) -> Callable:
    """Compiled code's way from an address to a function of this signature.

    A loop that takes functions themselves has Numba look for their addresses at each call of the loop: a quarter of a
    millisecond each time.

    >>> from costbandits.engine.plain import INDEX
    >>> function_at, seen = called_at(INDEX), (9, 4, 3.0, 0.0, 0.0, 0.0, 0.0, np.zeros(0))
    >>> by_address = nb.njit(lambda where, seen: function_at(where)(*seen))
    >>> by_address(address(cb.UCB1.rule, INDEX), seen) == cb.UCB1.rule(*seen)
    True
    """
    if nb.config.DISABLE_JIT:
        return lambda rule: rule
    kind = nb.types.FunctionType(signature)

    def function_of(context, builder, _, values):
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.jit_addr = builder.inttoptr(values[0], context.get_value_type(nb.types.voidptr))
        return made._getvalue()

    @intrinsic
    def function_at(typing, where):
        return kind(where), function_of

    return function_at
