"""The library's index rules as WebAssembly, for pictures that move: `python -m compendium.wasm` compiles them anew.

Numba's code of a rule of numbers is given to LLVM once more, for another target. The object file that comes out becomes
a module when what only a linker needs is dropped and the rule is exported.
"""

import base64
import hashlib
import inspect
import itertools
import json
import re
from pathlib import Path

import llvmlite.binding as llvm
import numba as nb

import costbandits as cb
from costbandits.engine.state import Arm, Arms
from costbandits.policies import imed
from costbandits.policies.rules import parameters_of

FILE = Path(__file__).parents[2] / "book/_static/live/rules.js"
RULES = {policy.__name__: policy.rule.__wrapped__ for policy in (
    cb.OmegaUCB, cb.OmegaStarUCB, cb.MUCB, cb.BudgetUCB, cb.KLUCBSC)}
TARGET = "wasm32-unknown-unknown"


def of_numbers(rule):
    """An index rule that takes round, pulls, four sums, what it is told and its parameters, all as numbers."""
    P = parameters_of(rule)
    names = ", ".join(f"p{i}" for i in range(len(P._fields)))
    text = (f"lambda t, n, reward, cost, reward_sq, cost_sq, told, {names}: "
            f"rule(int(t), Arm(int(n), reward, cost, reward_sq, cost_sq, told), P({names}))")
    return eval(text, {"rule": rule, "Arm": Arm, "P": P})


def moment_imed(n, reward, cost, reward_sq, cost_sq, rho, scale, max_reward):
    """n D + scale log n of moment IMED, for an arm whose reward and cost are independent."""
    arms = Arms((int(n),), (reward,), (cost,), (reward_sq,), (cost_sq,))
    return imed.index(0, rho, arms, False, imed.Tuning(scale, max_reward, imed.INDEPENDENT), (0.0,))


def compiled(function):
    """A function of numbers as a module of WebAssembly, `rule(where, 8, ...)`, which writes what it returns there."""
    kinds = (nb.float64,) * len(inspect.signature(function).parameters)
    made = nb.njit(kinds, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    # Attributes in quotes are about the processor at hand.
    text = re.sub(r"^attributes .*$", lambda found: re.sub(r' "[^"]*"(="[^"]*")?', "", found[0]),
                  made.inspect_llvm(kinds), flags=re.MULTILINE)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TARGET).create_target_machine(opt=2)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = TARGET, str(machine.target_data)
    name = made.overloads[kinds].fndesc.llvm_func_name
    for part in (*module.functions, *module.global_variables):
        if part.name != name and not part.is_declaration:
            part.linkage = "internal"
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return _exported(machine.emit_object(module))


def _exported(code):
    """An object file with one function as a module: without sections for a linker, and with an export, `rule`."""
    found, at = {}, 8
    while at < len(code):
        id, size, shift, byte = code[at], 0, 0, 128
        while byte & 128:
            at += 1
            byte = code[at]
            size, shift = size | (byte & 127) << shift, shift + 7
        found[id] = code[at + 1:at + 1 + size]
        at += 1 + size
    found.pop(0, None)      # the custom ones are for a linker
    imported = found[2].count(b"\x03env") - 1      # but for the memory, these are functions; `rule` comes after them
    found[7] = b"\x01\x04rule\x00" + bytes([imported])
    return code[:8] + b"".join(bytes([id]) + _number(len(part)) + part for id, part in sorted(found.items()))


def _number(n):
    """A whole number in WebAssembly's LEB128."""
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _number(n >> 7)


def sources():
    """Digest of the text of all rules, and of all that they call."""
    texts = {text for function in (*RULES.values(), moment_imed) for text in _texts(function)}
    return hashlib.sha256("".join(sorted(texts)).encode()).hexdigest()[:16]


def _texts(function):
    function = getattr(function, "py_func", function)
    yield inspect.getsource(function)
    names, known = function.__code__.co_names, function.__globals__
    modules = [vars(known[name]) for name in names if inspect.ismodule(known.get(name))]
    for name, space in itertools.product(names, [known, *modules]):
        value = space.get(name)
        if hasattr(value, "py_func"):
            yield from _texts(value)
        elif isinstance(value, float):
            yield f"{name} = {value!r}\n"


def script():
    """The file that pages load: each module in base64."""
    functions = {name: of_numbers(rule) for name, rule in RULES.items()} | {"MomentIMED": moment_imed}
    codes = {name: base64.b64encode(compiled(function)).decode() for name, function in functions.items()}
    return (f"// The library's own rules, compiled by `python -m compendium.wasm` from sources {sources()}.\n"
            f"live.rules = {json.dumps(codes, indent=1)};\n")


if __name__ == "__main__":
    FILE.write_text(script(), encoding="utf-8")
