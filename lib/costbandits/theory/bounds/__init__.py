"""Each paper's theorems as functions that return the numbers they promise; one module per paper."""

import importlib
import pkgutil

__all__ = sorted(module.name for module in pkgutil.iter_modules(__path__))

for _name in __all__:
    importlib.import_module(f".{_name}", __name__)
