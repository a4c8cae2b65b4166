"""Vertices of polytopes, against all subsets of d constraints and against numbers worked out by hand."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import costbandits as cb
from costbandits.environments import polytopes

pytestmark = pytest.mark.slow     # exhaustive checks


def inequalities(low, high):
    """A box as normals and limits."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    return np.r_[np.eye(len(low)), -np.eye(len(low))], np.r_[high, -low]


def cross(d, centre=0.0):
    """|x - centre|_1 <= 1 as 2^d inequalities: in d > 2 dimensions each vertex lies on 2^(d-1) > d facets."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=d)))
    return signs, 1 + signs @ np.full(d, float(centre))


def corner_simplex(d, size=1.0):
    """x >= 0, sum x <= size: the origin and d unit vectors, times size."""
    return np.r_[-np.eye(d), np.ones((1, d))], np.r_[np.zeros(d), size]


def brute_force(normals, limits):
    """Solve every d of the m constraints as equations; keep the solutions that satisfy the others, each once."""
    m, d = normals.shape
    subsets = np.array(list(itertools.combinations(range(m), d)))
    systems, found = normals[subsets], []
    regular = np.abs(np.linalg.det(systems)) > 1e-8
    points = np.linalg.solve(systems[regular], limits[subsets[regular]][..., None])[..., 0]
    for point in points[(points @ normals.T <= limits + 1e-9).all(axis=1)]:
        if not any(np.abs(point - other).max() < 1e-7 for other in found):
            found.append(point)
    return np.array(found)


def same_points(found, expected, scale=1.0):
    """Whether two sets of points agree, in any order, each point once."""
    expected = np.asarray(expected, float)
    if found.shape != expected.shape:
        return False
    near = np.abs(found[:, None] - expected[None]).max(axis=2) < 1e-9 * scale
    return bool((near.sum(axis=0) == 1).all() and (near.sum(axis=1) == 1).all())


def test_the_comparison_itself():
    square = polytopes.box([0, 0], [1, 1])
    assert same_points(square[::-1], square)
    assert not same_points(square[:3], square) and not same_points(square + 1e-6, square)
    assert not same_points(square[[0, 1, 2, 2]], square) and not same_points(square[[0, 1, 2, 0]], square)


# ---- known answers ----------------------------------------------------------------------------------

def test_a_triangle_by_hand():
    # x >= 0, y >= 0, x + 2 y <= 4, and a line that cuts off the corner (4, 0) at x = 3, where 2 y = 1.
    normals, limits = [[-1, 0], [0, -1], [1, 2], [1, 0]], [0, 0, 4, 3]
    assert np.allclose(polytopes.vertices(normals, limits), [[0, 0], [0, 2], [3, 0], [3, 0.5]], atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_box(d):
    rng = np.random.default_rng(d)
    low = rng.uniform(-2, 0, d)
    high = low + rng.uniform(0.1, 3, d)
    corners = polytopes.box(low, high)
    assert corners.shape == (2**d, d) and len(np.unique(corners, axis=0)) == 2**d
    assert ((corners == low) | (corners == high)).all()
    assert same_points(polytopes.vertices(*inequalities(low, high)), corners)


def test_a_box_in_ten_dimensions_has_1024_corners():
    assert same_points(polytopes.vertices(*inequalities(np.zeros(10), np.ones(10))),
                       list(itertools.product((0, 1), repeat=10)))


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
def test_simplex(d):
    assert polytopes.simplex(d, 0.5).tolist() == (0.5 * np.eye(d)).tolist()
    assert same_points(polytopes.vertices(*corner_simplex(d, 0.5)), np.r_[np.zeros((1, d)), polytopes.simplex(d, 0.5)])


@pytest.mark.parametrize("centre", [0.0, 0.3, 1 / 1024])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_cross_polytope(d, centre):
    expected = centre + np.r_[np.eye(d), -np.eye(d)]
    assert same_points(polytopes.vertices(*cross(d, centre)), expected)


def test_a_pyramid_whose_apex_lies_on_many_facets():
    # The apex (0, 0, 1) lies on 24 facets, at angles that are no round numbers; the base z >= 0 cuts each edge once.
    angles = 0.1 + 2 * np.pi * np.arange(24) / 24
    normals = np.r_[np.c_[np.cos(angles), np.sin(angles), np.ones(24)], [[0, 0, -1]]]
    halfway, radius = angles + np.pi / 24, 1 / np.cos(np.pi / 24)
    expected = np.r_[np.c_[radius * np.cos(halfway), radius * np.sin(halfway), np.zeros(24)], [[0, 0, 1]]]
    assert same_points(polytopes.vertices(normals, np.r_[np.ones(24), 0]), expected)


def test_one_dimension():
    assert polytopes.vertices([[1.0], [-1.0]], [0.7, -0.2]).tolist() == [[0.2], [0.7]]
    # The tightest of several, not scaled alike: x <= 3, x <= 0.7, x >= -1, x >= 0.2
    assert np.allclose(polytopes.vertices([[1.0], [10.0], [-1.0], [-5.0]], [3.0, 7.0, 1.0, -1.0]), [[0.2], [0.7]])


# ---- random polytopes -------------------------------------------------------------------------------

def random_polytope(rng, d, extra):
    """A box around a point, with `extra` random cuts that leave the point inside."""
    inside = rng.uniform(-1, 1, d)
    normals = np.r_[np.eye(d), -np.eye(d), rng.normal(size=(extra, d))]
    return normals, normals @ inside + rng.uniform(0.1, 1, len(normals)) * np.linalg.norm(normals, axis=1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), d=st.integers(2, 4), extra=st.integers(0, 6))
def test_random_polytopes(seed, d, extra):
    normals, limits = random_polytope(np.random.default_rng(seed), d, extra)
    assert comb(len(normals), d) < 3000
    assert same_points(polytopes.vertices(normals, limits), brute_force(normals, limits))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), d=st.integers(2, 4), extra=st.integers(1, 4))
def test_redundant_and_repeated_rows_change_nothing(seed, d, extra):
    rng = np.random.default_rng(seed)
    normals, limits = random_polytope(rng, d, extra)
    expected = polytopes.vertices(normals, limits)
    slack = rng.normal(size=(3, d))
    reach = (expected @ slack.T).max(axis=0)
    # Cuts that miss it; one that just touches it in a corner; the same rows again, some of them times a number.
    more = np.r_[normals, slack, slack[:1], normals, 2.5 * normals[:2]]
    bounds = np.r_[limits, reach + 0.5, reach[:1], limits, 2.5 * limits[:2]]
    order = rng.permutation(len(more))
    assert same_points(polytopes.vertices(more[order], bounds[order]), expected)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), d=st.integers(2, 4), extra=st.integers(1, 5))
def test_degenerate_corners(seed, d, extra):
    """d + extra random facets through one corner of a box."""
    rng = np.random.default_rng(seed)
    apex = np.round(rng.uniform(-0.5, 0.5, d), 3)
    facets = rng.normal(size=(d + extra, d))
    facets *= np.where(facets @ apex < 0, -1, 1)[:, None]                  # the origin stays inside
    normals = np.r_[facets, np.eye(d), -np.eye(d)]
    limits = np.r_[facets @ apex, np.ones(2 * d)]
    if (facets @ apex).min() < 0.01:
        return
    found = polytopes.vertices(normals, limits)
    assert same_points(found, brute_force(normals, limits))
    assert (np.abs(found - apex).max(axis=1) < 1e-9).sum() == 1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rows", [1e-3, 1.0, 1e6])
def test_units_do_not_matter(scale, rows):
    """A polytope in other units, or inequalities multiplied through, has the same vertices."""
    normals, limits = random_polytope(np.random.default_rng(4), 3, 4)
    expected = scale * brute_force(normals, limits)
    assert same_points(polytopes.vertices(rows * normals, rows * scale * limits), expected, scale)


def test_order_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(5)
    for d in (1, 2, 3, 4):
        normals, limits = random_polytope(rng, d, 3)
        found = polytopes.vertices(normals, limits)
        assert np.array_equal(np.lexsort(np.round(found, 9).T[::-1]), np.arange(len(found)))
        order = rng.permutation(len(limits))
        assert np.allclose(polytopes.vertices(normals[order], limits[order]), found, atol=1e-9)


@pytest.mark.slow
def test_vertices_are_arms():
    normals, limits = inequalities([0.1] * 3, [0.9] * 3)
    arms = polytopes.vertices(np.r_[normals, [[1, 1, 1]]], np.r_[limits, 2.0])
    bandit = cb.LinearBandit(arms, [0.3, 0.2, 0.1], [0.1, 0.2, 0.3], 0.1)
    runs = cb.simulate({"Budget-CB": cb.BudgetCB(), "CB": cb.CB()}, bandit, cb.Budget(20))
    assert bandit.K == len(arms) == 10 and (runs.pulls[:, 0, -1].sum(axis=1) == runs.rounds[:, 0, -1]).all()


# ---- what is refused --------------------------------------------------------------------------------

SQUARE = inequalities([0, 0], [1, 1])


def with_row(normal, limit):
    return np.r_[SQUARE[0], [normal]], np.r_[SQUARE[1], limit]


@pytest.mark.parametrize(("normals", "limits", "message"), [
    # empty
    (*inequalities([0, 1], [1, 0]), "polytope = 'empty': no point satisfies all inequalities"),
    (*with_row([1, 1], -0.1), "polytope = 'empty'"),
    ([[1], [-1]], [0, -1], "polytope = 'empty'"),
    ([[1, 0], [-1, 0]], [0, -1], "polytope = 'empty'"),                    # and without bounds in y
    # unbounded
    ([[1], [2]], [1, 1], "polytope = 'unbounded': must be bounded"),
    ([[-1, 0], [0, -1]], [0, 0], "polytope = 'unbounded'"),                # a quadrant
    ([[1, 0], [-1, 0]], [1, 0], "polytope = 'unbounded'"),                 # a strip
    ([[1, 1], [-1, -1]], [1, 0], "polytope = 'unbounded'"),                # one that is not parallel to an axis
    ([[1, 0]], [1], "polytope = 'unbounded'"),
    ([[1, 0], [-1, 0], [0, -1]], [1, 0, 0], "polytope = 'unbounded'"),
    ([[1, 1e-3], [-1, 1e-3], [0, 1]], [0, 0, 1], "polytope = 'unbounded'"),    # a narrow cone downwards
    (np.empty((0, 2)), [], r"normals = .*of shape \(m, d\)"),
    # flat
    (*inequalities([0, 1], [1, 1]), "polytope = 'flat': must have an interior"),
    (*with_row([1, 1], 0), "polytope = 'flat'"),                           # a single point
    (*with_row([-1, -1], -2), "polytope = 'flat'"),
    ([[1], [-1]], [1, -1], "polytope = 'flat'"),
    (np.r_[-np.eye(3), np.ones((1, 3)), -np.ones((1, 3))], [0, 0, 0, 1, -1], "polytope = 'flat'"),     # sum x = 1
    # shapes and numbers
    (SQUARE[0], SQUARE[1][:3], r"limits = .* of shape \(4,\)"),
    (SQUARE[0], SQUARE[1][None], r"limits = .* of shape \(4,\)"),
    (*with_row([0, 0], 1), r"normals\[4\] = .*must not be zero"),
    (*with_row([np.nan, 0], 1), r"normals\[4, 0\] = nan: must be finite numbers"),
    (*with_row([1, 0], np.inf), r"limits\[4\] = inf"),
])
def test_bad_polytopes(normals, limits, message):
    with pytest.raises(ValueError, match=message):
        polytopes.vertices(normals, limits)


@pytest.mark.parametrize(("low", "high"), [([0], [0]), ([0, 1], [1, 0]), ([0], [np.nan]), ([0, 0], [1]),
                                           ([[0]], [[1]]), (0, 1)])
def test_bad_boxes(low, high):
    with pytest.raises(ValueError, match=r"^(low|high).* = .*must be finite numbers"):
        polytopes.box(low, high)


@pytest.mark.parametrize("d", [0, -1, 2.0, "3", None, True])
def test_a_simplex_has_a_dimension(d):
    with pytest.raises(ValueError, match=r"d = .*must be a whole number, 1 or more"):
        polytopes.simplex(d)
