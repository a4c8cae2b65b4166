"""One voice for bad input: what is wrong, and what is allowed."""

import math
import numbers
import types

# Relative. What differs by less is equal but for rounding: 0.07 * 100 is 7.000000000000001, and ten times 0.1 add up
# to 0.9999999999999999.
ROUNDING = 1e-12


def require(ok, name, value, allowed):
    """Raise ValueError naming the argument, its value and what is allowed, unless `ok`."""
    if not ok:
        raise ValueError(f"{name} = {_shown(value)}: {allowed}")


def _shown(value):
    """A value as text; without the place in memory that Python writes into that of functions and plain objects."""
    name = getattr(getattr(value, "py_func", value), "__name__", None)
    if name is not None and not isinstance(value, type):
        return f"{'module' if isinstance(value, types.ModuleType) else 'function'} {name}"
    return f"{type(value).__name__} object" if type(value).__repr__ is object.__repr__ else repr(value)


def number(name, value, low=-math.inf, high=math.inf, allowed="must be a finite number"):
    """A finite real number in [low, high], as float."""
    # Asked a million times of floats, for whom the abstract class takes ten times as long.
    real = isinstance(value, float) or (isinstance(value, numbers.Real) and not isinstance(value, bool))
    require(real and math.isfinite(value) and low <= value <= high, name, value, allowed)
    return float(value)


def positive(name, value):
    """A finite number above 0, as float."""
    require(number(name, value, allowed="must be a finite number above 0") > 0, name, value,
            "must be a finite number above 0")
    return float(value)


def share(name, value):
    """A number in [0, 1), as float."""
    allowed = "must be a number in [0, 1)"
    require(0 <= number(name, value, allowed=allowed) < 1, name, value, allowed)
    return float(value)


def count(name, value, low=1):
    """A whole number of at least `low`, as int."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(whole and value >= low, name, value, f"must be a whole number, {low} or more")
    return int(value)


OURS = __name__.partition(".")[0]


def ours(thing):
    """Whether a class or a function is the library's own."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == OURS
