"""Budget-CB and CB without looking at every arm: the very pulls of the definition, to the last bit.

Only the contenders, who may be pulled next, are evaluated and updated. A survey finds them, and an upper bound for all
other arms. The bound holds while today's balls are within larger ones around the parameters that were estimated then,
since the norms ||x|| never grow. An arm that becomes a contender is brought up to date by the operations that it
missed: so nothing depends on who was looked at when.
"""

from math import inf, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..engine.driver import loop, one, step
from ..engine.run import Run
from ..engine.state import Outcome, new_record
from ..policies import linear as defined
from ..policies.base import Problem
from ..policies.linear import CB, BudgetCB, Estimates, optimism, pull_of, radius, renew, shrink, update
from . import kernel

# All arms are looked at in every round if there are few, or where x' A^-1 x begins so large that roundings could
# exceed the room that bounds leave them.
FEW, MOST = 32, 1e6
CLEAR = 1e-7            # this room, in units of reward and cost; estimates are off by less than 1e-9 (tested)
LONGEST = 2**16         # how many pulls are remembered for the arms that are not looked at

# Contenders; pulls remembered; evaluations since the last survey; the radius that the bounds of all other arms are made
# for, and the largest of these bounds; by which share the radius exceeds eps at a survey; the arm that is pulled, as a
# place among the contenders.
RACE = np.dtype([("contenders", "i8"), ("pulls", "i8"), ("work", "i8"), ("radius", "f8"), ("rest", "f8"),
                 ("spread", "f8"), ("place", "i8")])


class Contest(NamedTuple):
    """The contenders, the pulls that other arms have missed, and room for a survey.

    The arrays of contenders have room for all arms; `positions` are in order.
    """

    race: np.record
    positions: np.ndarray       # (K,)
    coordinates: np.ndarray     # (d, K)        of the contenders
    estimates: Estimates        #               of the contenders
    known: np.ndarray           # (K,)          how many of the pulls remembered the `Estimates` of an arm know of
    u: np.ndarray               # (d, LONGEST)  of these pulls: A^-1 x of the arm,
    missed: np.ndarray          # (3, LONGEST)  what the estimates missed of reward and cost, and 1 + x' A^-1 x
    drift: np.ndarray           # (4, d)        since the survey: change of both estimated parameters; A times it
    seen: Estimates             #               at the survey,
    value: np.ndarray           # (K,)          the values then,
    bound: np.ndarray           # (K,)          and what these are at most

    @classmethod
    def of(cls, coordinates: np.ndarray, squared_norm: np.ndarray) -> "Contest":
        """Before the first pull: all arms are contenders."""
        (d, K), race = coordinates.shape, new_record(RACE)
        near, seen = Estimates(*np.zeros((4, K))), Estimates(*np.zeros((4, K)))
        race.contenders, race.radius, race.rest, race.spread, near.squared_norm[:] = K, inf, -inf, 0.1, squared_norm
        return cls(race, np.arange(K), coordinates.copy(), near, np.zeros(K, np.int64), np.zeros((d, LONGEST)),
                   np.zeros((3, LONGEST)), np.zeros((4, d)), seen, *np.zeros((2, K)))


class Contested(NamedTuple):
    """What the kernel works on: what the definition does, and the contest."""

    told: defined.Told
    memory: defined.Memory
    contest: Contest


@step
def reach(eps, drift):
    """The radius, around the estimates at the survey, of a ball that holds today's ball: for rewards and for costs."""
    square_r, square_c = 0.0, 0.0
    for i in range(drift.shape[1]):
        square_r += drift[0, i] * drift[2, i]
        square_c += drift[1, i] * drift[3, i]
    return eps + sqrt(max(square_r, square_c, 0.0))


@nb.njit(error_model="numpy")
def largest(number, eps, told, estimates, value):
    """The first of the contenders with the largest value, and that value."""
    ratio, smallest = told.ratio, told.smallest
    p, q, w, _ = estimates
    for i in range(number):
        value[i] = optimism(p[i], q[i], eps * sqrt(w[i]), ratio, smallest)
    first, best = 0, -inf
    for i in range(number):
        if value[i] > best:
            first, best = i, value[i]
    return first, best


@step
def remember(x, pull, contest):
    """Note a pull of an arm x."""
    race, drift, u, s, h, d = contest.race, contest.drift, pull.u, pull.s, contest.race.pulls, x.size
    us, missed = contest.u, contest.missed
    missed[0, h], missed[1, h], missed[2, h] = pull.reward, pull.cost, s
    for i in range(d):
        us[i, h] = u[i]
    for j in range(2):
        along = missed[j, h]
        for i in range(d):
            along += x[i] * drift[j, i]
        for i in range(d):
            drift[j, i] += u[i] * missed[j, h] / s
            drift[2 + j, i] += x[i] * along
    race.pulls = h + 1


@nb.njit(error_model="numpy")
def catch_up(k, coordinates, estimates, contest):
    """Bring an arm up to date: by the operations of `update`, from the pulls that its estimates do not know of."""
    (p, q, w, _), known, u, missed, pulls = estimates, contest.known, contest.u, contest.missed, contest.race.pulls
    r, c, _, z = contest.seen
    reward, cost, square = p[k], q[k], w[k]
    for start in range(known[k], pulls, z.size):
        number = min(z.size, pulls - start)
        for m in range(number):
            z[m] = 0.0
        for i in range(u.shape[0]):
            for m in range(number):
                z[m] += coordinates[i, k] * u[i, start + m]
        for m in range(number):
            s = missed[2, start + m]
            r[m], c[m], z[m] = z[m] * missed[0, start + m] / s, z[m] * missed[1, start + m] / s, z[m] * z[m] / s
        for m in range(number):
            reward, cost, square = reward + r[m], cost + c[m], max(square - z[m], 0.0)
    p[k], q[k], w[k], known[k] = reward, cost, square, pulls


@nb.njit(error_model="numpy")
def put_back(estimates, contest):
    """Write the contenders' estimates back to where those of all arms are."""
    race, near, known = contest.race, contest.estimates, contest.known
    for i in range(race.contenders):
        k = contest.positions[i]
        estimates.reward[k], estimates.cost[k] = near.reward[i], near.cost[i]
        estimates.squared_norm[k], known[k] = near.squared_norm[i], race.pulls


@nb.njit(error_model="numpy")
def take_out(coordinates, estimates, contest):
    """Bring the contenders up to date, and put what is known of them where they are updated together."""
    race, positions, near = contest.race, contest.positions, contest.estimates
    for i in range(race.contenders):
        k = positions[i]
        if contest.known[k] < race.pulls:
            catch_up(k, coordinates, estimates, contest)
        near.reward[i], near.cost[i] = estimates.reward[k], estimates.cost[k]
        near.squared_norm[i] = estimates.squared_norm[k]
    for j in range(coordinates.shape[0]):
        for i in range(race.contenders):
            contest.coordinates[j, i] = coordinates[j, positions[i]]


@nb.njit(error_model="numpy")
def look(coordinates, inverse, arms, estimates):
    """The estimates of all arms, up to rounding, from scratch."""
    (d, K), (p, q, w, z) = coordinates.shape, estimates
    parameters, seen = np.zeros((2, d)), np.zeros((2, d))
    for k in range(K):
        for i in range(d if arms.n[k] > 0 else 0):
            seen[0, i] += coordinates[i, k] * arms.reward[k]
            seen[1, i] += coordinates[i, k] * arms.cost[k]
    p[:], q[:], w[:] = 0.0, 0.0, 0.0
    for i in range(d):
        for j in range(d):
            parameters[0, i] += inverse[i, j] * seen[0, j]
            parameters[1, i] += inverse[i, j] * seen[1, j]
        z[:] = 0.0
        for j in range(i + 1):                              # the inverse is symmetric
            entry = inverse[i, j] if i == j else 2.0 * inverse[i, j]
            for k in range(K):
                z[k] += coordinates[j, k] * entry
        for k in range(K):
            p[k] += coordinates[i, k] * parameters[0, i]
            q[k] += coordinates[i, k] * parameters[1, i]
            w[k] += coordinates[i, k] * z[k]


@nb.njit(error_model="numpy")
def new_contest(tries, eps, own, arms):
    """A survey: those arms become contenders whose bound comes near to the largest value; after some failures all arms
    do.

    A bound is the value of an arm for a larger radius. The wider that is, the more contenders and the fewer surveys,
    one of which costs as much as to evaluate and update eight times as many contenders as there are arms. No ratio is
    above 1 / smallest; if arms have that value, the first few are enough, for the lowest position wins: all other arms
    that may have it stand behind all contenders.
    """
    (told, memory, contest), K = own, arms.n.size
    race, value, bound, (p, q, w, _) = contest.race, contest.value, contest.bound, contest.seen
    ratio, smallest = told.ratio, told.smallest
    put_back(memory.estimates, contest)
    factor = min(max(sqrt(8.0 * K / (race.work + 1.0)), 0.5), 2.0)
    race.spread, race.work = min(max(race.spread * factor, 1e-4), 4.0), 0
    race.radius = eps * (1.0 + race.spread)
    look(told.coordinates, memory.inverse, arms, contest.seen)
    best, at_best, number, rest, leaders = -inf, 0.0, 0, -inf, 0
    for k in range(w.size):
        root = sqrt(max(w[k], 0.0))
        value[k] = optimism(p[k], q[k], eps * root, ratio, smallest)
        bound[k] = optimism(p[k], q[k], race.radius * root * (1.0 + CLEAR) + CLEAR, ratio, smallest)
        if ratio:
            bound[k] = max(bound[k], 0.0)
        if value[k] > best:
            best, at_best = value[k], bound[k]
    floor = best - 0.5 * (at_best - best)
    for k in range(w.size):
        if bound[k] >= floor and leaders < 8:
            contest.positions[number] = k
            number += 1
            leaders += ratio and value[k] >= 1.0 / smallest
        else:
            rest = max(rest, bound[k])
    race.contenders, race.rest = number, rest
    if tries == 3:      # pragma: no cover - in compiled runs of thousands of arms
        contest.positions[:] = np.arange(K)
        race.contenders, race.radius, race.rest = K, inf, -inf
    take_out(told.coordinates, memory.estimates, contest)
    contest.drift[:] = 0.0


@nb.njit(error_model="numpy")
def forget(anew, own, arms):
    """Bring all arms up to date, so that no pull need be remembered; or work everything out anew."""
    told, memory, contest = own
    put_back(memory.estimates, contest)
    if anew:
        renew(arms, told, memory)
        contest.race.radius = 0.0           # a survey is due
    else:               # pragma: no cover - in compiled runs of thousands of pulls
        for k in range(arms.n.size):
            catch_up(k, told.coordinates, memory.estimates, contest)
    contest.known[:], contest.race.pulls = 0, 0
    take_out(told.coordinates, memory.estimates, contest)


@step
def choose(t, money, own, arms, limits, rng):
    """The best of the contenders, once it is certain that no other arm is better."""
    told, memory, contest = own
    race, K = contest.race, arms.n.size
    eps = radius(t + 1, told, memory.volume)
    place, best, tries = int(rng.random() * K) if t == 0 else -1, inf, 0
    while place < 0:
        if reach(eps, contest.drift) <= race.radius and (race.work < 16 * K or tries > 0 or race.rest == -inf):
            place, best = largest(race.contenders, eps, told, contest.estimates, contest.value)
            race.work += race.contenders
        if place < 0 or not (best > race.rest or (told.ratio and best == 1.0 / told.smallest) or tries >= 3):
            place, tries = -1, tries + 1
            new_contest(tries, eps, own, arms)
    race.place = place
    return contest.positions[place], 1


@step
def learn(arm, m, t, own, arms, outcomes, rng):
    """As `rank_one` does, but of the contenders; for the others the pull is remembered."""
    told, memory, contest = own
    race, row, x = contest.race, outcomes.at[arm] + arms.n[arm] - 1, told.vertices[arm]
    outcome = Outcome(outcomes.pool[row, 0], outcomes.pool[row, 1])
    pull = pull_of(race.place, outcome, contest.estimates, memory.local)
    shrink(x, pull, memory)
    update(race.contenders, pull, contest.coordinates, contest.estimates)
    remember(x, pull, contest)
    if t & (t - 1) == 0 or race.pulls == contest.u.shape[1]:
        forget(t & (t - 1) == 0, own, arms)


contest_of_balls = loop(choose, one, learn)


@kernel(BudgetCB, blocks=lambda policy: False)
@kernel(CB, blocks=lambda policy: False)
def play(policy: CB, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """A contest, where there are many arms."""
    told, memory = policy.told(problem), policy.remember(problem)
    squared_norm = memory.estimates.squared_norm
    if problem.K <= FEW or squared_norm.max() > MOST:
        return policy.play(run, problem, rng)
    return run.play(contest_of_balls, Contested(told, memory, Contest.of(told.coordinates, squared_norm)), rng)
