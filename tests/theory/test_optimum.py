"""The unbounded knapsack: exact, greedy and fractional."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from costbandits.checks import ROUNDING
from costbandits.theory import optimum


def dynamic_programming(values, costs, budget):
    """Largest value within a whole budget, for whole costs."""
    worth = [0] * (budget + 1)
    for b in range(1, budget + 1):
        worth[b] = max([worth[b - 1]] + [worth[b - w] + v for v, w in zip(values, costs, strict=True) if w <= b])
    return worth[budget]


def reference(values, costs, budget):
    """Largest value by a general solver, for real costs."""
    solution = milp(-np.array(values), constraints=LinearConstraint(costs, ub=budget), bounds=Bounds(0, np.inf),
                    integrality=np.ones(len(costs)), options={"mip_rel_gap": 0})
    return -solution.fun


def paid(plan, costs):
    """Cost of a plan in exact arithmetic."""
    return sum(int(n) * Fraction(w) for n, w in zip(plan.counts, costs, strict=True))


def check(plan, values, costs, budget):
    assert plan.counts.shape == np.shape(costs) and plan.counts.dtype == np.int64 and plan.counts.min() >= 0
    assert plan.value == (plan.counts * np.array(values, float)).sum()
    assert paid(plan, costs) <= Fraction(budget) * Fraction(1 + ROUNDING + optimum.SLACK)


def whole_instances(low, high, most=8):
    arm = st.tuples(st.integers(0, 30), st.integers(low, high))
    return st.lists(arm, min_size=1, max_size=most).map(lambda arms: tuple(zip(*arms, strict=True)))


real_arms = st.lists(st.tuples(st.floats(0, 20), st.floats(0.5, 20)), min_size=1, max_size=6)
real_instances = real_arms.map(lambda arms: tuple(np.array(arms).T.copy()))


# ---- by hand ----------------------------------------------------------------------------------------

def test_greedy_is_not_optimal():
    # Densities 2, 1.9, 1: greedy takes 6 + 1 and leaves no room for the second; two of the second are worth 7.6.
    values, costs = [6.0, 3.8, 1.0], [3.0, 2.0, 1.0]
    assert optimum.greedy(values, costs, 4).value == 7.0
    np.testing.assert_array_equal(optimum.greedy(values, costs, 4).counts, [1, 0, 1])
    assert optimum.knapsack(values, costs, 4).value == 7.6
    np.testing.assert_array_equal(optimum.knapsack(values, costs, 4).counts, [0, 2, 0])
    assert optimum.fractional(values, costs, 4) == 8.0
    assert optimum.rounded(values, costs, 4).value == 6.0
    np.testing.assert_array_equal(optimum.rounded(values, costs, 4).counts, [1, 0, 0])


def test_of_two_equal_arms_one_is_as_good_as_the_other():
    plan = optimum.knapsack([6.0, 3.8, 3.8, 1.0], [3.0, 2.0, 2.0, 1.0], 4)
    assert plan.value == 7.6 and plan.counts[1] + plan.counts[2] == 2


def test_greedy_passes_over_arms_that_do_not_fit():
    plan = optimum.greedy([30, 20, 6, 1], [3, 5, 2, 1], 7)        # 2 of the first, then 1 left: only the last fits
    np.testing.assert_array_equal(plan.counts, [2, 0, 0, 1])


def test_the_densest_arm_may_not_fit():
    values, costs = [100.0, 1.0, 3.0], [10.0, 1.0, 2.0]
    np.testing.assert_array_equal(optimum.knapsack(values, costs, 9).counts, [0, 1, 4])
    np.testing.assert_array_equal(optimum.rounded(values, costs, 9).counts, [0, 0, 0])
    assert optimum.fractional(values, costs, 9) == 90.0


@pytest.mark.parametrize("solve", [optimum.knapsack, optimum.greedy, optimum.rounded])
@pytest.mark.parametrize("budget", [0, 0.0, 1.999])
def test_a_budget_below_every_cost_affords_no_pull(solve, budget):
    plan = solve([3.0, 4.0], [2.0, 5.0], budget)
    assert plan.value == 0.0
    np.testing.assert_array_equal(plan.counts, [0, 0])


def test_a_single_arm():
    plan = optimum.knapsack([2.5], [3], np.int64(100))
    assert plan.value == 82.5 and plan.counts.tolist() == [33]


def test_arms_without_value():
    assert optimum.knapsack([0, 0], [1, 2], 5).value == 0.0
    plan = optimum.knapsack([0, 7], [1, 2], 5)
    assert plan.value == 14.0 and plan.counts[1] == 2


def test_equal_densities_go_to_the_lowest_position():
    for solve in (optimum.knapsack, optimum.greedy, optimum.rounded):
        np.testing.assert_array_equal(solve([4, 2, 6], [2, 1, 3], 12).counts, [6, 0, 0])
        np.testing.assert_array_equal(solve([5, 5, 5], [2, 2, 2], 7).counts, [3, 0, 0])


def test_equal_densities_that_need_a_mixture():
    values = costs = [5, 3, 7]
    assert optimum.greedy(values, costs, 11).value == 10              # 5 + 5, nothing fits
    assert optimum.knapsack(values, costs, 11).value == 11            # 5 + 3 + 3


# ---- rounding ---------------------------------------------------------------------------------------

def test_decimal_costs_fill_a_decimal_budget():
    assert 0.1 * 3 > 0.3                                              # the trap
    assert optimum.knapsack([1.0], [0.1], 0.3).counts.tolist() == [3]
    assert optimum.knapsack([1.0], [0.1], 100_000.0).counts.tolist() == [1_000_000]
    assert optimum.knapsack([7.0, 11.0], [0.7, 1.1], 2.5).counts.tolist() == [2, 1]
    assert optimum.greedy([1.0, 0.5], [0.1, 0.2], 0.5).counts.tolist() == [5, 0]
    assert optimum.rounded([1.0], [0.1], 0.7).counts.tolist() == [7]


@given(whole_instances(1, 60), st.integers(0, 400), st.sampled_from([0.1, 0.01, 0.3, 1 / 7]))
def test_costs_in_units_that_floating_point_lacks(arms, budget, unit):
    values, costs = arms
    plan = optimum.knapsack(values, np.array(costs) * unit, budget * unit)
    assert plan.value == dynamic_programming(values, costs, budget)
    assert plan.counts @ costs <= budget                              # in whole units


def test_a_budget_short_of_a_pull_by_more_than_rounding_does_not_afford_it():
    assert optimum.knapsack([1.0], [0.1], 0.3 * (1 - 1.1e-12)).counts.tolist() == [2]
    assert optimum.knapsack([1], [3], 299_999_999).counts.tolist() == [99_999_999]


# ---- against other methods --------------------------------------------------------------------------

@given(whole_instances(1, 30), st.integers(0, 300))
def test_against_dynamic_programming(arms, budget):
    values, costs = arms
    plan = optimum.knapsack(values, costs, budget)
    check(plan, values, costs, budget)
    assert plan.value == dynamic_programming(values, costs, budget)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(0, 2000))
def test_against_dynamic_programming_with_many_arms_and_real_values(seed, budget):
    rng = np.random.default_rng(seed)
    costs, values = rng.integers(20, 100, 30), rng.uniform(10, 20, 30) * rng.choice([1, 5])
    best = dynamic_programming(values.tolist(), costs.tolist(), budget)
    assert optimum.knapsack(values, costs, budget).value == pytest.approx(best, rel=1e-12)


def test_against_a_general_solver():
    rng = np.random.default_rng(0)
    better = 0
    for case in range(60):
        K, (low, high) = rng.integers(1, 30), [(5, 10), (1, 10), (1, 20)][case % 3]
        values, costs, budget = rng.uniform(10, 20, K), rng.uniform(low, high, K), rng.uniform(1, 300)
        plan = optimum.knapsack(values, costs, budget)
        check(plan, values, costs, budget)
        assert plan.value == pytest.approx(reference(values, costs, budget), rel=1e-9)
        better += plan.value > optimum.greedy(values, costs, budget).value
    assert better >= 15                                               # or greedy would have passed


def test_against_all_plans():
    rng = np.random.default_rng(1)
    for _ in range(200):
        values, costs, budget = rng.uniform(0, 1, 3), rng.uniform(0.1, 1, 3), rng.uniform(0, 2)
        plans = np.array(list(product(*(range(int(budget // w) + 1) for w in costs))))
        best = (plans @ values)[plans @ costs <= budget].max()
        assert optimum.knapsack(values, costs, budget).value == pytest.approx(best, rel=1e-12)


# ---- properties -------------------------------------------------------------------------------------

@given(real_instances, st.floats(0, 500))
def test_rounded_greedy_exact_fractional(arms, budget):
    values, costs = arms
    plans = [solve(values, costs, budget) for solve in (optimum.rounded, optimum.greedy, optimum.knapsack)]
    for plan in plans:
        check(plan, values, costs, budget)
    assert plans[0].value <= plans[1].value * (1 + 1e-15) and plans[1].value <= plans[2].value
    least = np.nextafter(0, 1) * budget      # the smallest ratio that is not 0, for the whole budget
    assert plans[2].value <= optimum.fractional(values, costs, budget) * (1 + ROUNDING + optimum.SLACK) + least
    # What greedy forgoes is less than one pull of the densest arm, if that fits.
    best = np.argmax(values / costs)
    if costs[best] <= budget:
        assert plans[1].value >= optimum.fractional(values, costs, budget) - values[best] - 1e-9


@given(real_instances, st.floats(0, 500), st.integers(-20, 20), st.integers(-20, 20))
def test_units_do_not_matter(arms, budget, i, j):
    values, costs = arms
    plan = optimum.knapsack(values, costs, budget)
    scaled = optimum.knapsack(values * 2.0**i, costs * 2.0**j, budget * 2.0**j)   # by powers of 2, hence exactly
    np.testing.assert_array_equal(scaled.counts, plan.counts)
    assert scaled.value == plan.value * 2.0**i


@pytest.mark.parametrize("solve", [optimum.knapsack, optimum.greedy, optimum.rounded])
def test_order_of_arms_does_not_matter_where_the_plan_is_unique(solve):
    rng = np.random.default_rng(2)                                    # continuous values: ties have probability 0
    for _ in range(100):
        values, costs, order = rng.uniform(10, 20, 20), rng.uniform(1, 20, 20), rng.permutation(20)
        plan = solve(values, costs, 1000.0)
        np.testing.assert_array_equal(solve(values[order], costs[order], 1000.0).counts, plan.counts[order])


@pytest.mark.slow
@given(whole_instances(1, 30), st.integers(0, 300), st.randoms())
def test_order_of_arms_does_not_change_the_value(arms, budget, random):
    shuffled = list(zip(*arms, strict=True))
    random.shuffle(shuffled)
    assert optimum.knapsack(*zip(*shuffled, strict=True), budget).value == optimum.knapsack(*arms, budget).value


@given(real_instances, st.floats(0, 200), st.floats(0, 50))
def test_more_budget_is_worth_no_less(arms, budget, more):
    less, enough = (optimum.knapsack(*arms, b).value for b in (budget, budget + more))
    assert less <= enough * (1 + 4 * optimum.SLACK)


def test_values_near_the_smallest_number():
    assert optimum.knapsack([5e-324], [1.5], 2.0) == (5e-324, [1])
    assert optimum.knapsack([1e-310, 3e-310], [1.0, 2.0], 5.0).counts.tolist() == [1, 2]


def test_large_instances_repeat_in_steps_of_the_densest_arm():
    rng = np.random.default_rng(3)
    for low, high in ((5, 10), (1, 10), (1, 20)):
        values, costs = rng.uniform(10, 20, 100), rng.uniform(low, high, 100)
        best = np.argmax(values / costs)
        small = optimum.knapsack(values, costs, 1e3)
        large = optimum.knapsack(values, costs, 1e3 + 100_000 * costs[best])
        small.counts[best] += 100_000
        np.testing.assert_array_equal(large.counts, small.counts)


# ---- hard instances ---------------------------------------------------------------------------------

def subset_sum(seed=4):
    """Real costs and one density: no bundle forgoes anything, and no sum of costs is exactly the budget."""
    costs = np.random.default_rng(seed).uniform(1, 20, 100)
    return costs, costs, 1e4


def test_the_search_gives_up_aloud(monkeypatch):
    monkeypatch.setattr(optimum, "NODES", 10_000)
    with pytest.raises(RuntimeError, match=r"no plan is proved to be optimal within 10000 nodes: .* a tolerance may"):
        optimum.knapsack(*subset_sum())


def test_a_tolerance_is_kept():
    values, costs, budget = subset_sum()
    for tolerance in (1e-3, 1e-5, 1e-7):
        plan = optimum.knapsack(values, costs, budget, tolerance)
        check(plan, values, costs, budget)
        assert plan.value >= budget * (1 - tolerance)
    assert optimum.knapsack(values, costs, budget, 1.0).value == optimum.greedy(values, costs, budget).value


@settings(max_examples=30)
@given(real_instances, st.floats(0, 200), st.sampled_from([1e-4, 1e-2, 0.1]))
def test_a_tolerance_costs_no_more_than_it_says(arms, budget, tolerance):
    exact, near = optimum.knapsack(*arms, budget), optimum.knapsack(*arms, budget, tolerance)
    assert near.value >= exact.value - (tolerance + 4 * optimum.SLACK) * optimum.fractional(*arms, budget)


@given(whole_instances(1, 12), st.integers(0, 1000))
def test_whole_costs_by_table(arms, budget):
    values, costs = arms
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "NODES", 0)                            # the search gives up at once
        plan = optimum.knapsack(values, costs, budget)
    check(plan, values, costs, budget)
    assert plan.value == dynamic_programming(values, costs, budget)


def test_whole_costs_are_never_hard():
    # Even costs, one density and an odd budget: the search would go through all bundles in vain.
    costs = 2 * np.random.default_rng(5).integers(50, 100, 60)
    assert optimum.knapsack(costs, costs, 1_000_001).value == 1_000_000


# ---- bad input --------------------------------------------------------------------------------------

@pytest.mark.parametrize("solve", [optimum.knapsack, optimum.greedy, optimum.fractional, optimum.rounded])
@pytest.mark.parametrize(("arguments", "message"), [
    (([1, 2], [1, 0], 5), r"costs\[1\] = 0.0: must be finite numbers above 0"),
    (([1, 2], [-1, 1], 5), r"costs\[0\] = -1.0"),
    (([1, 2], [1, np.nan], 5), r"costs\[1\] = nan"),
    (([1, 2], [1, np.inf], 5), r"costs\[1\] = inf"),
    (([1, -2], [1, 1], 5), r"values\[1\] = -2.0: must be finite numbers, 0 or more"),
    (([np.nan, 2], [1, 1], 5), r"values\[0\] = nan"),
    (([1, 2], [1], 5), r"costs = \[1\]: .* of shape \(2,\)"),
    (([], [], 5), r"values = \[\]: must be finite numbers, 0 or more, of shape \(K,\)"),
    ((1, 1, 5), "values = 1: must be finite numbers"),
    (([1], ["x"], 5), r"costs = \['x'\]: must be finite numbers above 0"),
    (([[1]], [[1]], 5), "values = "),
    (([1], [1], -1), "budget = -1: must be a finite number, 0 or more"),
    (([1], [1], np.inf), "budget = inf"),
    (([1], [1], np.nan), "budget = nan"),
    (([1], [1], "5"), "budget = '5'"),
    (([1], [1], 1e300), r"budget = 1e\+300: must be at most 2\*\*50 times the smallest cost"),
])
def test_bad_input_is_named(solve, arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(*arguments)


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, np.nan, True])
def test_a_bad_tolerance_is_named(tolerance):
    with pytest.raises(ValueError, match=f"tolerance = {tolerance}"):
        optimum.knapsack([1], [1], 5, tolerance)
