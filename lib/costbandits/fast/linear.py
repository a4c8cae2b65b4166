"""Budget-CB and CB without looking at every arm: the very pulls of the definition, to the last bit.

Only the contenders, who may be pulled next, are evaluated and updated. A survey finds them, and an upper bound for all
other arms, which holds while today's balls are within larger ones around the parameters that were estimated then, since
the norms ||x|| never grow. An arm that becomes a contender is brought up to date by the operations that it missed: so
nothing depends on who was looked at when.
"""

from math import inf, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..engine.driver import jit, last_outcome, loop, one, step
from ..engine.run import Run
from ..engine.state import new_record
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
    """The contenders, the pulls that other arms have missed, and room for a survey."""
    race: np.record
    positions: np.ndarray       # (K,)          of the contenders, in order; there is room for all arms
    coordinates: np.ndarray     # (d, K)        of the contenders
    estimates: Estimates        #               of the contenders
    known: np.ndarray           # (K,)          how many of the pulls remembered the `Estimates` of an arm know of
    u: np.ndarray               # (LONGEST, d)  of these pulls: A^-1 x of the arm,
    missed: np.ndarray          # (LONGEST, 3)  what the estimates missed of reward and cost, and 1 + x' A^-1 x
    drift: np.ndarray           # (4, d)        since the survey: change of both estimated parameters; A times it
    value: np.ndarray           # (K,)          the values of those that were looked at last

    @classmethod
    def of(cls, coordinates: np.ndarray, squared_norm: np.ndarray) -> "Contest":
        """Before the first pull: all arms are contenders."""
        (d, K), race = coordinates.shape, new_record(RACE)
        near = Estimates(*np.zeros((4, K)))
        race.contenders, race.radius, race.rest, race.spread, near.squared_norm[:] = K, inf, -inf, 0.1, squared_norm
        return cls(race, np.arange(K), coordinates.copy(), near, np.zeros(K, np.int64), np.zeros((LONGEST, d)),
                   np.zeros((LONGEST, 3)), np.zeros((4, d)), np.zeros(K))


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


@jit
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
    drift, u, s, h, d = contest.drift, pull.u, pull.s, contest.race.pulls, x.size
    missed, us = contest.missed[h], contest.u[h]
    missed[0], missed[1], missed[2] = pull.reward, pull.cost, s
    for i in range(d):
        us[i] = u[i]
    for j in range(2):
        along = missed[j]
        for i in range(d):
            along += x[i] * drift[j, i]
        for i in range(d):
            drift[j, i] += u[i] * missed[j] / s
            drift[2 + j, i] += x[i] * along
    contest.race.pulls = h + 1


@jit
def catch_up(k, x, estimates, contest):
    """Bring arm k, which is x, up to date: by the operations of `update`, from the pulls that it does not know of."""
    (p, q, w, _), u, missed, pulls = estimates, contest.u, contest.missed, contest.race.pulls
    for h in range(contest.known[k], pulls):
        z, s = 0.0, missed[h, 2]
        for i in range(u.shape[1]):
            z += x[i] * u[h, i]
        p[k] += z * missed[h, 0] / s
        q[k] += z * missed[h, 1] / s
        w[k] = max(w[k] - z * z / s, 0.0)
    contest.known[k] = pulls


@jit
def put_back(estimates, contest):
    """Write the contenders' estimates back to where those of all arms are."""
    race, near, known = contest.race, contest.estimates, contest.known
    for i in range(race.contenders):
        k = contest.positions[i]
        estimates.reward[k], estimates.cost[k] = near.reward[i], near.cost[i]
        estimates.squared_norm[k], known[k] = near.squared_norm[i], race.pulls


@jit
def take_out(told, estimates, contest):
    """Bring the contenders up to date, and put what is known of them where they are updated together."""
    race, positions, near = contest.race, contest.positions, contest.estimates
    for i in range(race.contenders):
        k = positions[i]
        catch_up(k, told.vertices[k], estimates, contest)
        near.reward[i], near.cost[i] = estimates.reward[k], estimates.cost[k]
        near.squared_norm[i] = estimates.squared_norm[k]
    for j in range(len(told.coordinates)):
        for i in range(race.contenders):
            contest.coordinates[j, i] = told.coordinates[j, positions[i]]


@nb.njit(error_model="numpy")       # makes arrays
def look(coordinates, inverse, arms):
    """The estimated rewards and costs of all arms, and their norms, up to rounding, from scratch."""
    product, squared = inverse @ coordinates, np.zeros(arms.n.size)
    for i in range(coordinates.shape[0]):
        squared += coordinates[i] * product[i]
    return ((coordinates @ arms.reward) @ product, (coordinates @ arms.cost) @ product,
            np.sqrt(np.maximum(squared, 0.0)))


@nb.njit(error_model="numpy")
def new_contest(tries, eps, own, arms):
    """A survey: those arms become contenders whose bound comes near to the largest value, or after some failures all.

    A bound is the value of an arm for a larger radius. The wider that is, the more contenders and the fewer surveys,
    one of which costs as much as to evaluate and update eight times as many contenders as there are arms. No ratio is
    above 1 / smallest; of arms that may have that value the first few are enough, for the lowest position wins.
    """
    (told, memory, contest), K = own, arms.n.size
    race, value, bound, ratio, smallest = contest.race, contest.value, np.empty(K), told.ratio, told.smallest
    put_back(memory.estimates, contest)
    factor = min(max(sqrt(8.0 * K / (race.work + 1.0)), 0.5), 2.0)
    race.spread, race.work = min(max(race.spread * factor, 1e-4), 4.0), 0
    race.radius = eps * (1.0 + race.spread)
    p, q, norm = look(told.coordinates, memory.inverse, arms)
    best, at_best, number, rest, leaders = -inf, 0.0, 0, -inf, 0
    for k in range(K):
        value[k] = optimism(p[k], q[k], eps * norm[k], ratio, smallest)
        bound[k] = optimism(p[k], q[k], race.radius * norm[k] * (1.0 + CLEAR) + CLEAR, ratio, smallest)
        if ratio:
            bound[k] = max(bound[k], 0.0)
        if value[k] > best:
            best, at_best = value[k], bound[k]
    floor = best - 0.5 * (at_best - best)
    for k in range(K):
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
    take_out(told, memory.estimates, contest)
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
            catch_up(k, told.vertices[k], memory.estimates, contest)
    contest.known[:], contest.race.pulls = 0, 0
    take_out(told, memory.estimates, contest)


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
    race, x = contest.race, told.vertices[arm]
    pull = pull_of(race.place, last_outcome(arm, arms, outcomes), contest.estimates, memory.local)
    shrink(x, pull, memory)
    update(race.contenders, pull, contest.coordinates, contest.estimates)
    remember(x, pull, contest)
    if t & (t - 1) == 0 or race.pulls == len(contest.u):
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
