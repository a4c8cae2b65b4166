"""Error messages for invalid arguments: what is wrong, and what is allowed."""

import math
import sys
import types
from numbers import Integral, Real

import numpy as np

# Relative. What differs by less is equal but for rounding: 0.07 * 100 is 7.000000000000001, and ten times 0.1 add up
# to 0.9999999999999999.
ROUNDING = 1e-12
FINITE = sys.float_info.max
OURS = __name__.partition(".")[0]


def rounding(total):
    """How far sums that should reach a total may miss it by rounding alone; never as much as a small cost."""
    return min(ROUNDING * total, 1e-3)


def ours(thing):
    """Whether a class or a function belongs to the library, not to its user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == OURS


def frozen(array):
    """The array, read-only from now on: others are given it, too."""
    array.flags.writeable = False
    return array


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


def number(name, value, low=-math.inf, high=math.inf, allowed="must be a finite number", above=-math.inf,
           below=math.inf):
    """A finite real number in [low, high], above `above` and below `below`, as float."""
    # Asked a million times of floats, for whom the abstract class takes ten times as long.
    real = isinstance(value, float) or (isinstance(value, Real) and not isinstance(value, bool))
    require(real and math.isfinite(value) and low <= value <= high and above < value < below, name, value, allowed)
    return float(value)


def numbers(name, values, low=-FINITE, high=FINITE, allowed="must be finite numbers", above=None, shape=None):
    """Finite numbers in [low, high] and above `above`, as float array; a letter in `shape` is any size of 1 or more."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        require(False, name, values, allowed)
    if shape is not None and shape != array.shape:
        fits = array.size and len(shape) == array.ndim
        require(fits and all(size in (own, str(size)) for size, own in zip(shape, array.shape, strict=True)),
                name, values, f"{allowed}, of shape ({', '.join(map(str, shape))}{',' * (len(shape) == 1)})")
    good = (array >= low) & (array <= high)
    if above is not None:
        good &= array > above
    if not good.all():
        place = tuple(np.argwhere(~good)[0].tolist())
        require(False, f"{name}{list(place) or ''}", float(array[place]), allowed)
    return array


def positive(name, value):
    """A finite number above 0, as float."""
    return number(name, value, allowed="must be a finite number above 0", above=0)


def share(name, value):
    """A number in [0, 1), as float."""
    return number(name, value, 0, allowed="must be a number in [0, 1)", below=1)


def count(name, value, low=1):
    """A whole number of at least `low`, as int."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    require(whole and value >= low, name, value, f"must be a whole number, {low} or more")
    return int(value)
