"""Compile a policy's rule, and say in plain words what keeps it from being compiled.

Numba's own messages are exact and forty lines long. What is refused here is refused in its cell, not amid a study.
"""

import dis
import functools
import inspect
import linecache
import random
import re
import types
from collections.abc import Callable
from typing import NamedTuple

import numba as nb
import numpy as np
from numba.core import errors
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.typed_passes import NopythonTypeInference

from ..checks import ours, require
from ..engine import fingerprint
from ..engine.compilation import Signature, uncounted
from ..engine.plain import CHOICE, CHOICE_ARGUMENTS, INDEX, INDEX_ARGUMENTS
from ..engine.state import Arm, Arms

ALLOWED = ("a rule is compiled: it may use numbers, arrays, loops, functions of math and numpy, and your own under "
           "@numba.njit, but no other Python objects")

# What Numba says -> what it means; the first that fits.
MEANINGS = (
    (r"Untyped global name '(\w+)':.*[Ee]mpty list",
     "{0}, which comes from outside, is an empty list; make it an array, such as np.zeros(0)"),
    (r"Cannot infer the type of variable '(\w+)'.*list\(undefined\)",
     "{0} is an empty list, of which nobody can tell what will be in it; use memory or np.zeros"),
    (r"Untyped global name '(\w+)':.*<class 'function'>",
     "{0} is a plain Python function: write @numba.njit above its def"),
    (r"Untyped global name '(\w+)':.*<class '(?:\w+\.)*ufunc'>",
     "{0} is no ufunc that can be compiled; use functions of math and numpy, or look values up in an array"),
    (r"Untyped global name '(\w+)':.*<class '(?:\w+\.)*(\w+)'>",
     "{0}, which comes from outside, is of type {1}; only numbers, tuples of numbers and arrays can come from there"),
    (r"reflected list.* assigned to variable '(\w+)' in globals",
     "{0}, which comes from outside, is a list; make it a tuple or an array"),
    (r"NameError: name '(\w+)' is not defined", "{0} is not defined"),
    (r"variable '(\w+)' referenced before assignment", "{0} may be used before it has a value"),
    (r"Unknown attribute '(\w+)' of type (?:Module\(<module '([\w.]+)'.*|(.*))",
     "{1}{2} has no {0} that a rule could use"),
    (r"Can't unify return type from the following types: (.+)", "it returns {0}, but must return one number"),
    (r"unsupported opcode \((?:IMPORT|STORE_GLOBAL|LOAD_BUILD_CLASS)", "import, global and class have to stay outside"),
    (r">>> (.+)", "{0} is not possible in a rule"),
)


def tally(function: Callable) -> Callable:
    """Let a rule write to its array of parameters, to count: write @cb.tally below @cb.index or @cb.choose.

    What it counts is of all runs that one process has played since the policy was made; so play it with one job and
    without a store, and let no decision hang on it.

    >>> @cb.index
    ... @cb.tally
    ... def counting(t, arm, p):
    ...     p[0] += 1
    ...     return arm.reward / arm.n
    """
    require(inspect.isfunction(function), "@cb.tally", function, "must stand above the def of a plain function")
    function.tally = True
    return function


class Form(NamedTuple):
    """What a rule takes and returns: by names, and as the engine calls it, where an arm's sums come one by one."""
    maker: str                  # the decorator
    names: tuple[str, ...]
    kinds: tuple                # their types, but for that of p
    arguments: tuple[str, ...]
    signature: Signature
    call: str                   # the rule, called with the engine's arguments


FORMS = {"index": Form("index", ("t", "arm", "p"), (nb.int64, nb.typeof(Arm(1, *[1.0] * 5)), None), INDEX_ARGUMENTS,
                       INDEX, "rule(t, Arm(n, reward, cost, reward_sq, cost_sq, constant), {p})"),
         "choose": Form("choose", ("t", "spent", "arms", "told", "p", "memory", "rng"),
                        (nb.int64, nb.float64, nb.typeof(Arms.of(1)), nb.float64[::1], None, nb.float64[::1],
                         nb.types.npy_rng), CHOICE_ARGUMENTS, CHOICE,
                        "rule(t, in_all(cost), Arms(n, reward, cost, reward_sq, cost_sq), problem, {p}, memory, rng)")}


@nb.njit(error_model="numpy")
def in_all(costs):
    """What was spent, as a sum over arms."""
    spent = 0.0
    for cost in costs:
        spent += cost
    return spent


def parameters_of(function: Callable) -> type | None:
    """The NamedTuple of numbers that a rule's p is annotated by; None if p is an array.

    >>> from costbandits.policies.omega_ucb import omega_ucb
    >>> parameters_of(omega_ucb)._fields
    ('rho',)
    """
    function = getattr(function, "py_func", function)
    P = inspect.get_annotations(function, eval_str=True).get("p")
    require(P is None or hasattr(P, "_fields"), f"rule {function.__name__}, annotation of p", P,
            "must be a class of typing.NamedTuple, whose fields are the parameters")
    return P


@functools.lru_cache(1024)
def by_sums(rule: Callable) -> Callable:
    """A rule under `cb.index` or `cb.choose` as the engine calls it: with sums one by one, and an array of parameters.

    A rule that is written so is returned as it is.

    >>> from costbandits.policies.omega_ucb import omega_ucb
    >>> round(by_sums(omega_ucb)(101, 50, 20.0, 10.0, 8.0, 2.0, 0.0, np.array([0.25])), 2)
    3.96
    """
    function = getattr(rule, "py_func", rule)
    taken = len(inspect.signature(function).parameters)
    form = next((form for form in FORMS.values() if len(form.names) == taken), None)
    if form is None:
        return rule
    P = parameters_of(rule)
    p = "params" if P is None else f"P({', '.join(f'params[{i}]' for i in range(len(P._fields)))})"
    text = f"lambda {', '.join(form.arguments)}: {form.call.format(p=p)}"
    names = {"rule": rule, "P": P, "Arm": Arm, "Arms": Arms, "in_all": in_all}
    summed = functools.update_wrapper(eval(compile(text, __file__, "eval"), names), function)
    del summed.__wrapped__      # Numba would look there for the arguments
    if nb.config.DISABLE_JIT:
        return summed
    # An index of the library's makes no array; choices, and what readers type, may.
    made = (uncounted if ours(function) and form.maker == "index" else nb.njit)(error_model="numpy")(summed)
    if not ours(function):
        made.compile(form.signature.args)
        made.disable_compile()
    # Of when the rule itself was compiled; and `inspect` shows its source.
    return _marked(made, maker=form.maker, compiled_from=getattr(rule, "compiled_from", None), __wrapped__=rule)


def _marked(made, **marks):
    """A compiled rule that is known as one, also where it arrives by pickle: Numba sends only what it knows itself."""
    vars(made).update(marks, __reduce_ex__=lambda _: (_rebuilt, (*type(made).__reduce__(made), marks)))
    return made


def _rebuilt(rebuild, arguments, marks):
    return _marked(rebuild(*arguments), **marks)


def compiled(function: Callable, maker: str) -> Callable:
    """The function compiled for what `cb.index` or `cb.choose` says; `maker` is the decorator's name.

    Raises ValueError if it takes other arguments, uses what cannot be compiled or repeated, or returns something else.

    >>> compiled(lambda t, arm, p: arm.reward / p[0], "index")(3, Arm(1, 1.0, 1.0, 1.0, 1.0, 0.0), np.array([2.0]))
    0.5
    """
    require(inspect.isfunction(function), f"@cb.{maker}", function, "must stand above the def of a plain function")
    arguments, signature = _taken(function, FORMS[maker])
    if nb.config.DISABLE_JIT:
        return function
    if ours(function):
        # Compiled when it is played (`compilation.ready`): to load all rules would be half of the import.
        return _marked(nb.njit(error_model="numpy")(function), maker=maker, compiled_from=None)
    _check_chance(function)
    # Reading beyond the end of an array is an error here, not rubbish; the check costs nothing measurable.
    made = nb.njit(error_model="numpy", boundscheck=True)(function)
    try:
        made.compile(signature.args)
        returned = made.nopython_signatures[0].return_type
        _check_returned(function, returned, signature.return_type)
        if returned != signature.return_type:
            made = nb.njit(signature, error_model="numpy", boundscheck=True)(function)
        _check_writes(function, signature.args, arguments)
    except (errors.NumbaError, errors.UnsupportedBytecodeError) as error:
        raise ValueError(f"rule {function.__name__}, {_plain(error)}") from None
    made.disable_compile()
    # Numba keeps the values of globals as they are now; `require_current` sees whether they still are.
    return _marked(made, maker=maker, compiled_from=fingerprint.digest(function))


def require_current(name: str, rule: Callable | None) -> None:
    """Raise ValueError if what a compiled rule reads from outside has changed since: it plays by the old values."""
    then = getattr(rule, "compiled_from", None)
    require(then is None or then == fingerprint.digest(inspect.unwrap(rule)), name, rule,
            "something that its rule reads from outside has changed since the rule was compiled: run the cell with the "
            "rule again, or hand over what changes by params")


def _taken(function, form):
    """The names of a rule's arguments, which it may call otherwise, and its signature."""
    names, arguments, signature = tuple(inspect.signature(function).parameters), form.arguments, form.signature
    if len(names) == len(form.names):
        P, arguments = parameters_of(function), form.names
        p = nb.float64[::1] if P is None else nb.typeof(P(*[1.0] * len(P._fields)))
        signature = signature.return_type(*(p if kind is None else kind for kind in form.kinds))
    given = f"{function.__name__}({', '.join(names)})"
    require(len(names) == len(arguments), form.maker, given,
            f"must take ({', '.join(form.names)}); numbers of your own reach it by p")
    swapped = [name for name, place in zip(names, arguments, strict=True) if name != place and name in arguments]
    require(not swapped, form.maker, given,
            f"must take ({', '.join(arguments)}) in this order; out of place: {', '.join(swapped)}")
    return arguments, signature


def _check_chance(function, rule=None, seen=()):
    """Refuse generators that all share: their numbers depend on who else draws, and cannot be repeated."""
    value, rule = None, rule or function.__name__
    for step in dis.get_instructions(function):
        if step.opname == "LOAD_GLOBAL":
            value = function.__globals__.get(step.argval)
        elif step.opname == "LOAD_DEREF":
            value = inspect.getclosurevars(function).nonlocals.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, types.ModuleType):
            value = getattr(value, step.argval, None)
        else:
            continue
        owner = getattr(value, "__self__", None)
        shared = value is random or value is np.random or isinstance(owner, np.random.RandomState | random.Random)
        require(not shared, f"rule {rule}, what it draws from", value,
                "all share it, so that no run could be repeated; write a choice (cb.choose), and draw from its rng: "
                "rng.random()")
        helper = getattr(value, "py_func", None)        # a function of the user's under numba.njit
        if helper is not None and helper not in seen:
            _check_chance(helper, rule, (*seen, helper))


def _check_writes(function, kinds, arguments):
    """Refuse a rule that writes to what other runs and policies are given, too: their results would depend on it."""
    own = {"memory", "params", "p"} if getattr(function, "tally", False) else {"memory"}
    shared = tuple(kind if name in own else _read_only(kind) for name, kind in zip(arguments, kinds, strict=True))
    # Whether it writes can be told from types, but for two methods, whose own code is typed when machine code is made.
    quick = not {"sort", "itemset"} & {*function.__code__.co_names}
    for options in [{"pipeline_class": _Typing}] * quick + [{}]:
        found = None
        try:
            nb.njit(error_model="numpy", **options)(function).compile(shared)
        except AttributeError as error:     # Numba fails in itself at `params *= 2`; or its passes are others now
            found = error
            continue
        except errors.NumbaError as error:
            # Whatever else readonly arrays don't go with, such as a helper with a signature, is no matter: it has been
            # compiled without.
            found = error if "Cannot modify readonly array" in str(error) else None
        break
    if found:
        place = getattr(found, "loc", None)
        source = f", in `{linecache.getline(place.filename, place.line).strip()}`" if place else ""
        raise ValueError(f"rule {function.__name__}{source}: must not write to its arrays, which other runs are given, "
                         "too; what a choice remembers belongs in memory")


class _Typing(CompilerBase):
    """Numba's compiler as far as the types: then it raises a NumbaError, for there is no machine code to return."""

    def define_pipelines(self):
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        last = [each for each, _ in manager.passes].index(NopythonTypeInference)
        manager.passes, self.state.cr = manager.passes[:last + 1], None
        return [manager]


def _read_only(kind):
    if isinstance(kind, nb.types.BaseNamedTuple):
        return nb.types.BaseTuple.from_types([*map(_read_only, kind.types)], kind.instance_class)
    return kind.copy(readonly=True) if isinstance(kind, nb.types.Array) else kind


def _check_returned(function, returned, wanted):
    whole = isinstance(wanted, nb.types.Integer)
    wants = "the arm as a whole number, -1 to skip or -2 to pass" if whole else "one number on every path"
    if not isinstance(returned, nb.types.Integer if whole else nb.types.Integer | nb.types.Float):
        raise ValueError(f"rule {function.__name__} returns {_what(returned)}: must return {wants}")


def _what(returned):
    """A type of Numba's in words."""
    if isinstance(returned, nb.types.Optional):
        return f"{_what(returned.type)}, or nothing where no return is reached"
    words = {nb.types.NoneType: "nothing, for a return is missing", nb.types.Boolean: "True or False",
             nb.types.Float: "a number with decimals", nb.types.Integer: "a whole number", nb.types.UnicodeType: "text",
             nb.types.StringLiteral: "text", nb.types.Complex: "a complex number", nb.types.BaseTuple: "several values",
             nb.types.Array: "an array, of which an element such as params[0] is a number",
             nb.types.Generator: "values one by one, by yield"}
    return next((text for kind, text in words.items() if isinstance(returned, kind)), str(returned))


def _plain(error):
    """What an error of Numba's is about: the line of the rule, and the one sentence that matters."""
    text = re.sub(r"Literal\[(\w+)\]\([^)]*\)|<iv=None>", r"\1", str(error))
    for pattern, words in MEANINGS:
        if found := re.search(pattern, text):
            said = words.format(*(group or "" for group in found.groups()))
            break
    else:
        lines = [line.strip() for line in text.splitlines()]
        said = next((line for line in lines if line and not line.startswith(("Failed in", "During", "File"))), "")
        said = f"{said.partition(' Raised from ')[0].rstrip('. ')}; {ALLOWED}"
    place = getattr(error, "loc", None)
    source = linecache.getline(place.filename, place.line).strip() if place is not None else ""
    return f"in `{source}`: {said}" if source else said
