"""The library's public names, a page for each room; their docstrings hold the examples that the tests run."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import costbandits

from .. import ledger

ROOMS = {"environments": "what is played", "engine": "how it is played", "policies": "who plays",
         "fast": "the same policies, played fast", "studies": "many runs", "theory": "what is promised",
         "analysis": "what came out"}


def pages():
    """Path -> text of the page of each room, and of what chapters use of the book's own package."""
    found = {room: ([], []) for room in ROOMS}
    for name in sorted(set(costbandits.__all__), key=str.lower):
        thing = getattr(costbandits, name)
        module = isinstance(thing, ModuleType)
        found[(thing.__name__ if module else thing.__module__).split(".")[1]][module].append((name, thing))
    made = {"api/compendium.md": f"# compendium: how chapters judge\n{_module('compendium.ledger', ledger)}"}
    for room, (names, packages) in found.items():
        told = "\n".join(_entry("costbandits", name, thing) for name, thing in names)
        told += "".join(_module(f"cb.{name}", module) for name, module in packages)
        path = importlib.import_module(f"costbandits.{room}").__path__
        modules = [importlib.import_module(info.name) for info in pkgutil.walk_packages(path, f"costbandits.{room}.")]
        table = "\n".join(f"| `{'/'.join(each.__name__.split('.')[2:])}` | {_summary(each)} |" for each in modules)
        made[f"api/{room}.md"] = (f"# {room}: {ROOMS[room]}\n\n| module | what is in it |\n|---|---|\n{table}\n\n"
                                  f"```{{eval-rst}}\n.. currentmodule:: costbandits\n```\n\n{told}")
    return made


def _summary(module):
    """The first paragraph of a module's docstring."""
    return (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")


def _module(name, module):
    """The public functions and classes of a module, or of the modules of a package, below its summary."""
    text = f"\n## {name}\n\n```{{eval-rst}}\n{_summary(module)}\n```\n\n"
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        text += _module(f"{name}.{info.name}", importlib.import_module(f"{module.__name__}.{info.name}"))
    return text + "\n".join(
        _entry(module.__name__, key, thing) for key, thing in vars(module).items() if not key.startswith("_")
        and (inspect.isfunction(thing) or inspect.isclass(thing)) and thing.__module__ == module.__name__)


def _entry(module, name, thing):
    kind = "autoexception" if inspect.isclass(thing) and issubclass(thing, Exception) else \
        "autoclass" if inspect.isclass(thing) else "autofunction"
    # What the engine asks of a policy is no part of its interface.
    members = "\n   :members:" * (kind == "autoclass" and ".policies." not in thing.__module__)
    return f"```{{eval-rst}}\n.. {kind}:: {module}.{name}{members}\n```\n"
