"""Corners of polytopes: the arms of a budgeted linear bandit."""

import itertools

import numpy as np
from numpy.typing import ArrayLike

from ..checks import count, numbers, positive, require


def vertices(normals: ArrayLike, limits: ArrayLike) -> np.ndarray:
    """The vertices of {x : normals @ x <= limits}, in lexicographic order.

    `normals` has shape (m, d) and `limits` (m,), with d up to about 10; the vertices, an array of shape (V, d), are up
    to some thousands. Raises ValueError if the polytope is empty, has no interior, or is unbounded.

    >>> vertices([[-1, 0], [0, -1], [1, 1]], [0, 0, 1]) + 0.0
    array([[0., 0.],
           [0., 1.],
           [1., 0.]])
    """
    from scipy.optimize import linprog
    from scipy.spatial import HalfspaceIntersection
    normals = numbers("normals", normals, shape=("m", "d"))
    m, d = normals.shape
    limits = numbers("limits", limits, shape=(m,))
    lengths = np.linalg.norm(normals, axis=1)
    for row in np.flatnonzero(lengths == 0):
        require(False, f"normals[{row}]", normals[row].tolist(), "must not be zero")
    # In units in which all normals have length 1 and the polytope is of size 1.
    normals, limits = normals / lengths[:, None], limits / lengths
    unit = np.abs(limits).max() or 1.0
    limits = limits / unit
    # The centre of the largest ball inside.
    ball = linprog(np.r_[np.zeros(d), -1.0], np.c_[normals, np.ones(m)], limits,
                   bounds=[(None, None)] * d + [(0, None)])
    require(ball.status != 2, "polytope", "empty", "no point satisfies all inequalities")
    # In bounded ones the normals positively span the space: no direction is free.
    free = [linprog(sign * axis, normals, np.zeros(m), bounds=[(-1, 1)] * d).fun < -1e-9
            for axis, sign in itertools.product(np.eye(d), (1.0, -1.0))]
    require(not any(free), "polytope", "unbounded", "must be bounded: an arm is a point, its mean a probability")
    require(ball.x is not None and ball.x[-1] > 1e-9, "polytope", "flat",
            "must have an interior; describe it in fewer dimensions")
    if d == 1:
        ends = limits / normals[:, 0]
        return unit * np.array([[ends[normals[:, 0] < 0].max()], [ends[normals[:, 0] > 0].min()]])
    corners = HalfspaceIntersection(np.c_[normals, -limits], ball.x[:-1]).intersections
    # A corner where more than d faces meet may be found more than once.
    keys = np.round(corners / np.abs(corners).max(), 9) + 0.0
    return unit * corners[np.unique(keys, axis=0, return_index=True)[1]]


def box(low: ArrayLike, high: ArrayLike) -> np.ndarray:
    """The corners of a box, an array of shape (2^d, d), in lexicographic order.

    `low` and `high`, of shape (d,), are its lowest and its highest corner; low < high in every coordinate.

    >>> box([0, 0], [1, 2])
    array([[0., 0.],
           [0., 2.],
           [1., 0.],
           [1., 2.]])
    """
    low = numbers("low", low, shape=("d",))
    require(len(low) <= 20, "low", low.tolist(), "must have at most 20 coordinates: a box has 2^d corners")
    high = numbers("high", high, allowed="must be finite numbers above low", above=low, shape=low.shape)
    return np.array(list(itertools.product(*zip(low, high, strict=True))))


def simplex(d: int, size: float = 1.0) -> np.ndarray:
    """The corners of {x >= 0, sum x = size}, each coordinate alone: an array of shape (d, d), for a size above 0.

    >>> simplex(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return positive("size", size) * np.eye(count("d", d, high=10_000))
