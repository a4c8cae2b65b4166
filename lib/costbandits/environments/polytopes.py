"""Corners of polytopes: the arms of a budgeted linear bandit."""

import itertools

import numpy as np

from ..checks import count, positive, require


def vertices(normals, limits):
    """The vertices of {x : normals @ x <= limits}.

    Parameters
    ----------
    normals : array_like of shape (m, d)
    limits : array_like of shape (m,)

    Returns
    -------
    ndarray of shape (V, d), in lexicographic order; up to some thousands, d up to about 10

    Raises
    ------
    ValueError
        If the polytope is empty, has no interior, or is unbounded.
    """
    from scipy.optimize import linprog
    from scipy.spatial import HalfspaceIntersection
    normals, limits = np.asarray(normals, float), np.asarray(limits, float)
    shapes = (normals.shape, limits.shape)
    require(normals.ndim == 2 and limits.shape == normals.shape[:1] and normals.size > 0, "(normals, limits) shapes",
            shapes, "must be (m, d) and (m,)")
    m, d = normals.shape
    require(bool(np.isfinite(normals).all() and np.isfinite(limits).all()), "normals, limits", "not finite",
            "must be finite numbers")
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


def box(low, high):
    """The corners of a box.

    Parameters
    ----------
    low, high : array_like of shape (d,)
        Its lowest and its highest corner; low < high in every coordinate.

    Returns
    -------
    ndarray of shape (2^d, d), in lexicographic order
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    finite = bool(np.isfinite(low).all() and np.isfinite(high).all())
    require(low.ndim == 1 and low.size > 0 and low.shape == high.shape and finite and bool((low < high).all()),
            "(low, high)", (low, high), "must be two points, the first below the second in every coordinate")
    return np.array(list(itertools.product(*zip(low, high, strict=True))))


def simplex(d, size=1.0):
    """The corners of {x >= 0, sum x = size}: each coordinate alone.

    Parameters
    ----------
    d : int
        Coordinates, 1 or more.
    size : float
        Above 0.

    Returns
    -------
    ndarray of shape (d, d)
    """
    return positive("size", size) * np.eye(count("d", d))
