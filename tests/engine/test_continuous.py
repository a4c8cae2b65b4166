"""The samplers of continuous outcomes follow their laws, to the tails, and the same bits come out without compilation.

A statistical test refuses what is right with probability 1e-6 at most, were the key drawn anew; it is fixed.
"""

from math import exp, expm1, inf, log
from types import FunctionType

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import costbandits as cb
from costbandits.engine import continuous, keyed
from costbandits.engine.compilation import Kernel, around, compiled_for
from costbandits.engine.continuous import beta, exponential, log_kept, normal, quantile, refused, tail, truncated_normal
from costbandits.engine.keyed import start, uniform
from costbandits.engine.stacks import Stacks

RISK = 1e-6
KEY = np.uint64(0x1234567890ABCDEF)
N = 2**20
SIZES = (1e-3, 0.1, 0.5, 1.0, 1.5, 5.0, 50.0, 1e4)
SHAPES = [(a, a) for a in SIZES] + [(1e-3, 0.1), (0.1, 1e-3), (1e-3, 5.0), (50.0, 1e-3), (0.1, 1e4), (0.3, 2.0),
                                    (2.0, 0.3), (0.999, 1.001), (1.0, 5.0), (2.0, 5.0), (1e4, 1.0), (1.2, 50.0)]


@compiled_for()
def betas(a, b, key, stream, leaves):
    state, out = np.empty(4, np.uint64), np.empty((leaves, 64))
    for place in range(leaves):
        start(state, key, stream, 3, place)
        beta(state, a, b, out[place])
    return out


@Kernel
def many(draw, key, size):
    state, out = np.empty(4, np.uint64), np.empty(size)
    start(state, key, 0, 0, 0)
    for i in range(size):
        out[i] = draw(state)
    return out


normals, exponentials, tails = (around(many, draw) for draw in (normal, exponential, tail))


@compiled_for()
def truncated_normals(law, key, size):
    state, out, uniforms = np.empty(4, np.uint64), np.empty(size), np.empty(size)
    start(state, key, 0, 0, 0)
    truncated_normal(state, law, out)
    start(state, key, 0, 0, 0)
    for i in range(size):
        uniforms[i] = uniform(state)
    return out, uniforms


def ours(law, *args):
    """What TruncatedNormal(*args) draws, and the uniform numbers that it draws it from."""
    return truncated_normals((*map(float, args), *law._ends, law._side), KEY, N)


def chance(x, edges, below):
    """p-value of a chi-square test: counts of x between the edges, of which each has this probability below it."""
    counts = np.diff(np.searchsorted(np.sort(x), edges), prepend=0, append=len(x))
    expected = len(x) * np.diff(below, prepend=0.0, append=1.0)
    rare = np.append(expected[:-1] <= 20, True)            # these count as one, with the last
    counts, expected = (np.append(values[~rare], values[rare].sum()) for values in (counts, expected))
    return stats.chi2.sf(((counts - expected)**2 / expected).sum(), len(counts) - 1)


def fits(x, law):
    """Whether x follows a law of scipy.stats, with bins that reach into both tails."""
    tails = 30 / len(x) * 2.0**np.arange(12)
    edges = np.unique(law.ppf(np.unique(np.concatenate([tails, np.linspace(0.01, 0.99, 99), 1 - tails]))))
    if law.support() == (0, 1):                            # numbers near 1 are far apart, and those near 0 end
        edges = edges[(edges > 1e-300) & (edges < 1 - 1e-12)]
    return chance(x, edges, law.cdf(edges)) > RISK


@pytest.mark.slow
@pytest.mark.parametrize("a, b", SHAPES)
def test_a_beta_follows_its_law(a, b):
    x, law = betas(a, b, KEY, 0, N // 64).ravel(), stats.beta(a, b)
    assert x.min() >= 0.0 and x.max() <= 1.0
    assert fits(x, law)
    # The normal law's approximation is good for a million numbers of [0, 1]; 6 sd have probability 2e-9.
    mean, square = law.moment(1), law.moment(2)
    assert abs(x.mean() - mean) <= 6 * (law.var() / N)**0.5 + 1e-15
    assert abs((x**2).mean() - square) <= 6 * ((law.moment(4) - square**2) / N)**0.5 + 1e-15


@pytest.mark.parametrize("a", [5e-324, 1e-310, 1e-250, 1e-201, 0.3e-200, 0.99e-200, 1.01e-200, 1e-21])
def test_a_beta_with_tiny_shapes_is_a_coin(a):
    x = betas(a, 2 * a, KEY, 0, 1024).ravel()
    assert set(x) == {0.0, 1.0}
    assert abs(x.mean() - 1 / 3) < 6 * (2 / 9 / len(x))**0.5     # 6 sd have probability 2e-9


def test_a_beta_with_huge_shapes_is_its_mean():
    np.testing.assert_allclose(betas(1e308, 1.5e308, KEY, 0, 1), 0.4, rtol=1e-15)
    assert (betas(1e-310, 1e308, KEY, 0, 1) == 0.0).all() and (betas(1.7e308, 0.01, KEY, 0, 1) == 1.0).all()


def together(x, y):
    """p-value for the independence of pairs of uniform numbers, from how many lie in which of 256 cells."""
    i, j = (np.minimum((16 * values.ravel()).astype(int), 15) for values in (x, y))
    return stats.chisquare(np.bincount(16 * i + j, minlength=256)).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("a, b", [(0.3, 2.0), (0.5, 0.5), (1.0, 1.0), (2.0, 5.0)])
def test_successive_betas_and_those_of_two_streams_are_independent(a, b):
    x, y = (stats.beta(a, b).cdf(betas(a, b, KEY, stream, N // 64)) for stream in (1, 2))
    for one, other in ((x, y), (x[:, ::2], x[:, 1::2]), (x[:, :32], x[:, 32:]), (x[::2], x[1::2])):
        assert together(one, other) > RISK / 4
        assert together(abs(2 * one - 1), abs(2 * other - 1)) > RISK / 4      # how far from the median


def test_the_squeeze_is_a_bound():
    # For small w what is refused, 0.75 d w^4, is less than the rounding of log_kept.
    for d in (2 / 3, 0.7, 0.8, 1.0, 1.5, 3.0, 10.0, 100.0):
        for w in (*(np.logspace(-12, -0.005, 1000) - 1), *np.linspace(0.01, 3 / d**0.5, 1000)):
            assert refused(d, w) >= -expm1(log_kept(d, w)) - 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("draw, law, ends", [(normals, stats.norm(), continuous.X),
                                             (exponentials, stats.expon(), continuous.EXP_X)])
def test_a_ziggurat_follows_its_law_to_the_tails(draw, law, ends):
    x, strip = draw(KEY, 10**7), ends[1]
    assert fits(x, law)
    layers = np.unique(np.concatenate([ends[1:], -ends[1:] if law.support()[0] < 0 else []]))
    assert chance(x, layers, law.cdf(layers)) > RISK
    # Of the normal law 633 are expected beyond 4 sd, 2580 beyond the strip; of the exponential 4540 beyond it.
    for far in (4.0, 4.5, strip, strip + 0.2, strip + 0.5, strip + 1.0):
        for count, expected in ((np.sum(x > far), 1e7 * law.sf(far)), (np.sum(x < -far), 1e7 * law.cdf(-far))):
            assert min(stats.poisson.cdf(count, expected), stats.poisson.sf(count - 1, expected)) > RISK / 24


def test_the_tail_of_the_normal_law_follows_its_law():
    # By itself: of ten million normal numbers only 2600 come from it.
    edges = continuous.START + np.linspace(0, 2, 60)[1:]
    assert chance(tails(KEY, N), edges, 1 - stats.norm.sf(edges) / stats.norm.sf(continuous.START)) > RISK


@pytest.mark.parametrize("x, y, density", [
    (continuous.X, continuous.DENSITY, lambda x: mpmath.exp(-x**2 / 2)),
    (continuous.EXP_X, continuous.EXP_DENSITY, lambda x: mpmath.exp(-x))])
def test_all_layers_of_a_ziggurat_have_the_same_area(x, y, density):
    area = x[0] * y[1]
    np.testing.assert_allclose(x[1:-1] * np.diff(y[1:]), area, rtol=1e-12)
    assert float(mpmath.quad(density, [x[1], 20, 60])) + x[1] * y[1] == pytest.approx(area, rel=1e-13)


def test_the_quantile_is_scipys():
    small = 10.0**-np.linspace(0, 307.6, 100_001)[1:]
    p = np.concatenate([small, 1 - small[small > 1e-16], 0.5 + small[small < 0.4], 0.5 - small[small < 0.4],
                        np.linspace(0, 1, 100_001)[1:-1], [0.075, 0.925, exp(-25.0), 5e-324, 1e-320]])
    np.testing.assert_allclose([quantile(x) for x in p], ndtri(p), rtol=1e-14, atol=0)
    assert (quantile(0.0), quantile(1.0), quantile(0.5)) == (-inf, inf, 0.0)


@pytest.mark.parametrize("z", [-37.5, -20.0, -7.1, -6.9, -3.0, -1.45, -1.43, -0.5, -1e-3, 0.3, 1.0, 1.44])
def test_the_quantile_inverts_the_cdf(z):
    with mpmath.workdps(40):
        p = float(mpmath.ncdf(z))
        exact = float(z - (mpmath.ncdf(z) - p) / mpmath.npdf(z))     # the rounding of p moves z
    assert quantile(p) == pytest.approx(exact, rel=2e-15)


@pytest.mark.slow
@pytest.mark.parametrize("args", [(0, 1, -1, 3), (15, 7.5**0.5, 0, 30), (0, 1, 5, 9), (0, 1, -9, -5), (0.5, 0.1, 0, 1),
                                  (0, 1, 36.5, 37), (3, 2, -71, -70.5), (0, 1, -50, 50), (0, 1e-3, 0.01, 1),
                                  (1, 1e5, 0, 1)])
def test_a_truncated_normal_follows_its_law(args):
    mean, sd, low, high = args
    law = cb.TruncatedNormal(*args)
    x, uniforms = ours(law, *args)
    begin, end = law._ends
    assert x.min() >= low and x.max() <= high
    expected = np.clip(mean + sd * law._side * ndtri(begin + (end - begin) * uniforms), low, high)
    np.testing.assert_allclose(x, expected, rtol=1e-13, atol=1e-14 * sd)
    assert fits(x, stats.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd))


@pytest.mark.parametrize("args", [(0, 1, 36.9, 38), (0, 1, -38, -36.9), (0, 1, 37, 1e9)])
def test_a_truncated_normal_holds_in_the_far_tails(args):
    law = cb.TruncatedNormal(*args)
    assert law._ends[1] < 1e-297
    x = abs(ours(law, *args)[0])
    near, far = sorted(abs(end) for end in args[2:])
    assert near <= x.min() and x.max() <= far
    edges = near + np.linspace(0, 0.2, 30)[1:]
    assert chance(x, edges, -np.expm1(stats.norm.logsf(edges) - stats.norm.logsf(near))) > RISK


def test_a_truncated_normal_stays_in_its_interval_whatever_rounding_does():
    x, _ = truncated_normals((0.0, 1.0, -1.0, 0.5, 0.0, 1.0, 1.0), KEY, 1000)      # the ends of another interval
    assert (x.min(), x.max()) == (-1.0, 0.5)


def test_a_clipped_log_normal_follows_its_law_and_stands_at_its_ends():
    law = cb.ClippedLogNormal(0.5, 1.2, 0.4, 6.0)
    x = Stacks(cb.Bandit([law], [cb.Constant(1.0)]), 0, 0, [0]).pairs(0, N // 8)[:, 0]
    z = stats.norm(0.5, 1.2)
    assert (x.min(), x.max()) == (0.4, 6.0)
    edges = np.linspace(0.41, 5.9, 40)
    assert chance(x, edges, z.cdf(np.log(edges))) > RISK


def test_a_strided_view_is_filled_with_the_same_bits():
    pairs, whole, state = np.full((64, 2), -9.0), np.empty(64), np.empty(4, np.uint64)
    ends = cb.TruncatedNormal(0, 1, -1, 3)._ends
    for draw, args in ((beta, (0.3, 2.0)), (truncated_normal, ((0.0, 1.0, -1.0, 3.0, *ends, 1.0),))):
        for out in (whole, pairs[:, 1]):
            start(state, KEY, 0, 0, 7)
            draw(state, *args, out)
        assert (pairs[:, 1] == whole).all() and (pairs[:, 0] == -9.0).all()


# The samplers, and all that they call, as plain Python.
PLAIN = {**vars(keyed), **vars(continuous)}
PLAIN |= {name: FunctionType(value.py_func.__code__, PLAIN) for name, value in PLAIN.items()
          if hasattr(value, "py_func")}
ENDS = cb.TruncatedNormal(0, 1, 1, 3)._ends


@pytest.mark.parametrize("name, args", [
    *(("beta", shapes) for shapes in [(1e-3, 1e-3), (5e-324, 1e-310), (0.5, 0.5), (0.3, 2.0), (1.0, 1.0), (2.0, 5.0),
                                      (50.0, 1e4), (1e-310, 1e308)]),
    ("clipped_log_normal", ((0.5, 1.2, 0.1, 4.0, log(4.0)),)),
    ("clipped_log_normal", ((0.0, 900.0, 0.0, 9.0, log(9.0)),)),
    ("truncated_normal", ((0.0, 1.0, 1.0, 3.0, *ENDS, -1.0),)),
    ("truncated_normal", ((0.0, 1.0, -60.0, 1.0, 0.0, 0.9, 1.0),))])
def test_without_compilation_the_same_bits_come_out(name, args):
    states, outs = np.empty((2, 4), np.uint64), np.empty((2, 64))
    for key in range(20):
        for state, out, draw in zip(states, outs, (getattr(continuous, name), PLAIN[name]), strict=True):
            start(state, np.uint64(key), 0, 0, 0)
            with np.errstate(over="ignore"):
                draw(state, *args, out)
        np.testing.assert_array_equal(*outs.view(np.int64))
        np.testing.assert_array_equal(*states)


@pytest.mark.slow
@pytest.mark.parametrize("name, compiled", [("normal", normals), ("exponential", exponentials), ("tail", tails)])
def test_without_compilation_the_ziggurats_give_the_same_bits(name, compiled):
    state, size = np.empty(4, np.uint64), 30_000            # some of them in the tail
    start(state, KEY, 0, 0, 0)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal([PLAIN[name](state) for _ in range(size)], compiled(KEY, size))


def test_without_compilation_the_quantile_gives_the_same_bits():
    for p in (0.0, 5e-324, 1e-300, 1e-9, 0.01, 0.3, 0.5, 0.99, 1.0):
        assert PLAIN["quantile"](p) == quantile(p)
