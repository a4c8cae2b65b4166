"""Error messages for invalid arguments: what is wrong, and what is allowed."""

import functools
import math
import os
import sys
import types
from decimal import Decimal
from numbers import Integral, Real

import numpy as np

# Relative. What differs by less is equal but for rounding: 0.07 * 100 is 7.000000000000001, and ten times 0.1 add up
# to 0.9999999999999999.
ROUNDING = 1e-12
FINITE = sys.float_info.max
SHOWN = 300     # characters of a value in a message
OURS = __name__.partition(".")[0]


class Plain:
    """Base of what has parameters. Numbers of NumPy, and Decimals, become those of Python: equal ones count as one."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        check = cls.__post_init__

        def plain(self):
            for name, value in vars(self).items():
                if isinstance(value, np.generic | Decimal):
                    object.__setattr__(self, name, value.item() if isinstance(value, np.generic) else float(value))
            check(self)
        cls.__post_init__ = plain

    def __post_init__(self):
        """Raise ValueError if a parameter is wrong: dataclasses call it."""


def rounding(total):
    """How far a sum may stay below a total, or exceed it, and count as equal: 1e-12 of the total, at most 0.001."""
    return min(ROUNDING * total, 1e-3)


def ours(thing):
    """Whether a class or a function belongs to the library, not to its user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == OURS


def frozen(array):
    """The same array, made read-only, since several objects share it."""
    array.flags.writeable = False
    return array


def require(ok, name, value, allowed):
    """Raise ValueError naming the argument, its value and what is allowed, unless `ok`."""
    if not ok:
        raise ValueError(f"{name} = {_shown(value)}: {allowed}")


def _shown(value):
    """A value as one line of text, without the memory address that Python shows of functions and objects."""
    name = getattr(getattr(value, "py_func", value), "__name__", None)
    if name is not None and not isinstance(value, type):
        return f"{'module' if isinstance(value, types.ModuleType) else 'function'} {name}"
    if type(value).__repr__ is object.__repr__:
        return f"{type(value).__name__} object"
    try:
        text = " ".join(repr(value).split())
    except Exception:       # a whole number of more than 4,300 digits, an object that is broken
        return f"{type(value).__name__} that cannot be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."


def number(name, value, low=-math.inf, high=math.inf, allowed="must be a finite number", above=-math.inf,
           below=math.inf):
    """A finite real number in [low, high], above `above` and below `below`, as float; it may be a Decimal."""
    # Called a million times with floats, for which a look at the abstract class Real takes ten times as long.
    real = isinstance(value, float) or (isinstance(value, Real | Decimal) and not isinstance(value, bool))
    try:
        good = real and math.isfinite(value) and low <= value <= high and above < value < below
    except OverflowError:       # a whole number beyond all floats
        good = False
    require(good, name, value, f"{allowed}, and no text" if isinstance(value, str) else allowed)
    return float(value)


positive = functools.partial(number, allowed="must be a finite number above 0", above=0)
share = functools.partial(number, low=0, allowed="must be a number in [0, 1)", below=1)


def numbers(name, values, low=-FINITE, high=FINITE, allowed="must be finite numbers", above=None, shape=None):
    """Finite numbers in [low, high] and above `above`, as float array; a letter in `shape` is any size of 1 or more."""
    array = floats(values)
    require(array is not None, name, values, allowed)
    if shape is not None and shape != array.shape:
        fits = array.size and len(shape) == array.ndim
        require(fits and all(size in (own, str(size)) for size, own in zip(shape, array.shape, strict=True)),
                name, values, f"{allowed}, of shape ({', '.join(map(str, shape))}{',' * (len(shape) == 1)})")
    good = (array >= low) & (array <= high) & (above is None or array > above)
    if not good.all():
        place = tuple(np.argwhere(~good)[0].tolist())
        require(False, f"{name}{list(place) or ''}", float(array[place]), allowed)
    return array


def floats(values):
    """Numbers as a float array; None for texts, None, complex numbers, ragged lists, and truth values alone."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and all(isinstance(value, Real | Decimal) for value in array.flat):
            array = array.astype(float)
    except (TypeError, ValueError, OverflowError):
        return None
    return array.astype(float, copy=False) if array.dtype.kind in "iuf" or array.size == 0 else None


def count(name, value, low=1, high=math.inf):
    """A whole number of at least `low` and at most `high`, as int."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and low <= value <= high):        # else no words: an agent looks at each pull
        require(whole and value >= low, name, value, f"must be a whole number, {low} or more")
        require(False, name, value, f"must be at most {high:,}")
    return int(value)


def bare(label):
    """A label without the blanks at its ends: two that differ by them alone are one label, written twice."""
    return label.strip() if isinstance(label, str) else label


def flag(name, value):
    """True or False."""
    require(isinstance(value, bool | np.bool_), name, value, "must be True or False")
    return bool(value)


def affordable(name, value, size):
    """Raise ValueError if `size` bytes are more than the machine's memory, before they are allocated."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):    # pragma: no cover - Windows, which does not tell
        memory = 2**34
    require(size <= memory, name, value, f"needs more memory than the {memory / 2**30:.0f} GB of this machine")
