"""Cost subsidy: the cheapest arm that is good enough.

Sinha, Sankararaman, Kazerouni and Avadhanula, "Multi-Armed Bandits with Cost Subsidy" (2021). An arm is good enough if
its expected reward is at least 1 - alpha times the largest. A policy scores the arms and pulls the cheapest of the
feasible ones, whose score is at least 1 - alpha times the largest. What the paper leaves open is read so:

* a score that misses this by rounding alone, 1e-12 of it, is feasible (Algorithm 3 asks for more than it, not as much);
* if no arm is feasible, as when all scores are negative, the one with the best score is pulled;
* among equal costs, or equal bounds on them, the lowest position wins.

`PairwiseElimination` is of a later paper.
"""

from dataclasses import dataclass
from math import ceil, inf, log, sqrt

import numba as nb
import numpy as np
from numba import types as T

from ..checks import ROUNDING, count, require, share
from ..engine.loops import RUNNING, kernel, pull, settle
from .base import Policy, require_known_costs

_floats, _ints, _table = T.float64[::1], T.int64[::1], T.float64[:, ::1]

# What a kernel is told. WIDTH over n is a squared radius; SWEEPS is how often all arms are pulled in turn.
ALPHA, SWEEPS, WIDTH, HORIZON, UNKNOWN, PESSIMISTIC, ONCE, GAUSSIAN = range(8)
# Rows of its table, a column per arm: bounds of the mean reward (or a draw, in UPPER), the cost or a lower bound of it;
# successes of Bernoulli trials; for pairwise elimination omega and where the arm stands.
UPPER, LOWER, PRICE, WON, OMEGA, STATE = range(6)
ACTIVE, BEATEN, POOR = range(3)


@nb.njit(inline="always", error_model="numpy")
def cheapest(alpha, standard, arms):
    """The cheapest arm with an upper score of at least 1 - alpha times the largest in a row; else that one's arm."""
    best, arm = 0, -1
    for k in range(1, arms.shape[1]):
        if arms[standard, k] > arms[standard, best]:
            best = k
    bar = (1.0 - alpha) * arms[standard, best]
    bar -= ROUNDING * abs(bar)
    for k in range(arms.shape[1]):
        if arms[UPPER, k] >= bar and (arm < 0 or arms[PRICE, k] < arms[PRICE, arm]):
            arm = k
    return arm if arm >= 0 else best


@nb.njit(inline="always", error_model="numpy")
def appraise(k, n, sums, params, arms):
    """Lower bound of an arm's mean cost, where it is not known."""
    if params[UNKNOWN]:
        arms[PRICE, k] = max(sums[1, k] / n[k] - sqrt(params[WIDTH] / n[k]), 0.0)


@nb.njit(inline="always", error_model="numpy")
def renew(k, n, sums, params, arms):
    """All bounds of an arm: its mean, plus and minus beta, within [0, 1]."""
    mean, beta = sums[0, k] / n[k], sqrt(params[WIDTH] / n[k])
    arms[UPPER, k], arms[LOWER, k] = min(mean + beta, 1.0), max(mean - beta, 0.0)
    appraise(k, n, sums, params, arms)


@kernel(_floats, _table)
def by_bounds(params, arms, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """Pull all arms in turn, then the cheapest one by the bounds of the round."""
    K, status, alpha, standard = n.size, RUNNING, params[ALPHA], LOWER if params[PESSIMISTIC] else UPPER
    explored = K * int(params[SWEEPS])
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        going, due, arm = True, marks[clock[2]], 0
        while going:
            arm = t % K if t < explored else cheapest(alpha, standard, arms)
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
            renew(arm, n, sums, params, arms)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


@kernel(_floats, _table, T.npy_rng)
def by_draws(params, arms, rng, pool, table, filled, shift, n, sums, clock, purse,
             marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """Pull each arm once, then the cheapest one by a draw of each from its posterior."""
    K, status, alpha, gaussian = n.size, RUNNING, params[ALPHA], params[GAUSSIAN] == 1.0
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        going, due, arm = True, marks[clock[2]], 0
        while going:
            for k in range(K if t >= K else 0):
                if gaussian:
                    arms[UPPER, k] = sums[0, k] / n[k] + rng.standard_normal() / sqrt(n[k])
                else:
                    arms[UPPER, k] = rng.beta(arms[WON, k] + 1.0, n[k] - arms[WON, k] + 1.0)
            arm = t if t < K else cheapest(alpha, UPPER, arms)
            before = sums[0, arm]
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
            if not gaussian:
                arms[WON, arm] += rng.random() < sums[0, arm] - before     # a fractional reward becomes a trial
            appraise(arm, n, sums, params, arms)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


# ---- policies that pull an arm many times in a row --------------------------------------------------

@nb.njit(error_model="numpy")
def commit(t, n, sums, params, arms):
    """All arms in turn, then the cheapest one by the bounds of that moment, to the end."""
    K = n.size
    if t <= K * params[SWEEPS]:
        return (t - 1) % K, t
    for k in range(K):
        renew(k, n, sums, params, arms)
    return cheapest(params[ALPHA], LOWER, arms), int(params[HORIZON])


@nb.njit(error_model="numpy")
def batch(m, horizon):
    """How many pulls an arm has after round m (tau_m), and the radius then (b_m).

    T 4^-m never falls to 1: before m + 1 is asked for two arms have tau_m pulls each, which are more than T together
    once T 4^-m is below 8.6.
    """
    squared_gap = 0.25**m
    known = log(horizon * squared_gap)
    tau = ceil(2.0 * known / squared_gap)
    return tau, sqrt(known / (2.0 * tau))


@nb.njit(error_model="numpy")
def next_of(state, tau, n, arms):
    """The cheapest of the arms in a state that have fewer than tau pulls; -1 if there is none."""
    arm = -1
    for k in range(n.size):
        if arms[STATE, k] == state and n[k] < tau and (arm < 0 or arms[PRICE, k] < arms[PRICE, arm]):
            arm = k
    return arm


@nb.njit(error_model="numpy")
def eliminate(t, n, sums, params, arms):
    """Stage 1, improved UCB: the next arm to pull and until when; -1 at the end of a round, when arms were dropped."""
    tau, b = batch(arms[OMEGA].max(), params[HORIZON])
    arm = next_of(ACTIVE, tau, n, arms)
    if arm >= 0:
        return arm, t + tau - n[arm] - 1
    bar = -inf
    for k in range(n.size):
        if arms[STATE, k] == ACTIVE:
            bar = max(bar, sums[0, k] / n[k] - b)
    for k in range(n.size):
        if arms[STATE, k] == ACTIVE:
            if sums[0, k] / n[k] + b >= bar:
                arms[OMEGA, k] += 1.0
            else:
                arms[STATE, k] = BEATEN
    return -1, 0


@nb.njit(error_model="numpy")
def compare(champion, t, n, sums, params, arms):
    """Stage 2: the cheapest arm left against the best; what to pull and until when, -1 if that was decided just now."""
    part, end, omega, price = 1.0 - params[ALPHA], int(params[HORIZON]), arms[OMEGA], arms[PRICE]
    rival = next_of(BEATEN, inf, n, arms)
    if rival < 0 or price[champion] < price[rival] or (price[champion] == price[rival] and champion < rival):
        return champion, end
    tau, b = batch(omega[rival], params[HORIZON])
    tau_best, b_best = batch(min(omega[champion], omega[rival] + 5.0), params[HORIZON])
    if n[rival] < tau:
        return rival, t + tau - n[rival] - 1
    if n[champion] < tau_best:
        return champion, t + tau_best - n[champion] - 1
    mean, best = sums[0, rival] / n[rival], sums[0, champion] / n[champion]
    if part * (best + b) < mean - b:
        return rival, end
    if mean + b < part * (best - b_best):
        arms[STATE, rival] = POOR
    else:
        omega[rival] += 1.0
        omega[champion] = max(omega[champion], omega[rival])
    return -1, 0


@nb.njit(error_model="numpy")
def pairwise(t, n, sums, params, arms):
    """Pairwise elimination: stage 1 while several arms are active, then stage 2."""
    while True:
        champion, active = 0, 0
        for k in range(n.size):
            if arms[STATE, k] == ACTIVE:
                champion, active = k, active + 1
        arm, until = (eliminate(t, n, sums, params, arms) if active > 1
                      else compare(champion, t, n, sums, params, arms))
        if arm >= 0:
            return arm, until


@kernel(_floats, _table, _ints)
def by_spells(params, arms, spell, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """Pull an arm until some round without asking again; `spell` is the arm and the last such round."""
    status, arm, until = RUNNING, spell[0], spell[1]
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        going, due = True, marks[clock[2]]
        while going:
            if t == until:
                arm, until = (commit(t + 1, n, sums, params, arms) if params[ONCE]
                              else pairwise(t + 1, n, sums, params, arms))
            going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                              max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    spell[0], spell[1] = arm, until
    return status


# ---- policies ---------------------------------------------------------------------------------------

def exploration(horizon, K):
    """Pulls of each arm to explore with (tau): (T/K)^(2/3) to the nearest integer, if there are so many rounds.

    There are not where T/K is just below 2, as for T = 19 and K = 10.
    """
    return min(round((horizon / K) ** (2 / 3)), horizon // K)


def _one_of(*allowed):
    return lambda name, value: require(value in allowed, name, value, f"must be one of {allowed}")


_CHECKS = {"alpha": share, "costs": _one_of("known", "unknown"), "posterior": _one_of("beta", "gaussian"),
           "exploration_pulls": lambda name, value: value is None or count(name, value)}


class _Subsidy(Policy):
    """A policy that knows T and looks for the cheapest arm that is good enough."""

    support = (0.0, 1.0)
    loop = staticmethod(by_bounds)
    # Where it has no such field: every arm is good enough, one sweep, known costs.
    alpha, exploration_pulls, costs, posterior = 1.0, 1, "known", None
    pessimistic = once = False

    def __post_init__(self):
        for name, value in vars(self).items():
            _CHECKS[name](name, value)

    def check(self, problem):
        label, K, rounds = type(self).__name__, problem.K, problem.horizon
        require(rounds is not None, "stop", "no horizon", f"{label} needs Horizon(rounds)")
        require(rounds >= K, "stop", f"{rounds} rounds", f"{label} needs {K} or more, one for each arm")
        require((self.exploration_pulls or 1) * K <= rounds, "exploration_pulls", self.exploration_pulls,
                f"must be at most {rounds // K}, with {K} arms and {rounds} rounds")
        if self.costs == "known":
            require_known_costs(self, problem)

    def play(self, run, problem, rng):
        params, arms = np.zeros(8), np.zeros((6, problem.K))
        params[ALPHA], params[WIDTH], params[HORIZON] = self.alpha, 2.0 * log(problem.horizon), problem.horizon
        params[SWEEPS] = self.exploration_pulls or exploration(problem.horizon, problem.K)
        params[UNKNOWN], params[GAUSSIAN] = self.costs == "unknown", self.posterior == "gaussian"
        params[PESSIMISTIC], params[ONCE] = self.pessimistic, self.once
        if self.costs == "known":
            arms[PRICE] = problem.cost_means
        return run.play(self.loop, params, arms, *self.extra(rng))

    def extra(self, rng):
        """What else the kernel takes."""
        return ()

    def identity(self):
        return (type(self).__name__, self.loop, self.pessimistic, self.once)


@dataclass(frozen=True)
class CSUCB(_Subsidy):
    """CS-UCB (Algorithm 1): each arm once, then scores min(mean + beta, 1), beta = sqrt(2 log T / n).

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1): the share of the largest expected reward that may be given up.
    costs : {"known", "unknown"}
        If unknown, the arm with the smallest max(mean cost - beta, 0) of the feasible ones is pulled (section 5.2).
    """

    alpha: float
    costs: str = "known"


@dataclass(frozen=True)
class CSTS(_Subsidy):
    """CS-TS (Algorithm 1): each arm once, then scores drawn from the posteriors of the mean rewards.

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1).
    posterior : {"beta", "gaussian"}
        Beta(1, 1) priors, where a fractional reward x becomes a Bernoulli trial with probability x; or a normal law
        around the mean with variance 1/n (Theorem 1).
    costs : {"known", "unknown"}
        Unknown costs as in `CSUCB`; the paper has none for CS-TS.
    """

    alpha: float
    posterior: str = "beta"
    costs: str = "known"
    loop = staticmethod(by_draws)

    def extra(self, rng):
        return (rng,)


@dataclass(frozen=True)
class CSETC(_Subsidy):
    """CS-ETC (Algorithms 2 and 3): all arms in turn, tau times; then the cheapest that may be good enough.

    Bounds are mean +- beta within [0, 1], beta = sqrt(2 log T / n), and an arm is feasible if its upper bound is at
    least 1 - alpha times the largest lower bound. Despite its name it looks anew in every round.

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1).
    exploration_pulls : int, optional
        tau; by default (T/K)^(2/3) to the nearest integer (`exploration`).
    costs : {"known", "unknown"}
        Algorithm 3, with unknown costs, takes the smallest max(mean cost - beta, 0).
    """

    alpha: float
    exploration_pulls: int | None = None
    costs: str = "known"
    pessimistic = True


class _InSpells(_Subsidy):
    """A policy that pulls an arm many times in a row."""

    loop = staticmethod(by_spells)

    def extra(self, rng):
        return (np.zeros(2, np.int64),)


@dataclass(frozen=True)
class CommitOnce(_InSpells):
    """CS-ETC that looks at the bounds only once, after exploring, and pulls the arm it finds then to the end.

    Named after Theorem 3: the same bound holds for it, and the paper found it to be worse.

    Parameters
    ----------
    alpha, exploration_pulls
        As in `CSETC`.
    """

    alpha: float
    exploration_pulls: int | None = None
    once = True


@dataclass(frozen=True)
class BlindETC(_InSpells):
    """For comparison: explores as CS-ETC does, and then pulls the cheapest arm, whatever was seen.

    Parameters
    ----------
    exploration_pulls : int, optional
        As in `CSETC`.
    """

    exploration_pulls: int | None = None
    once = True


@dataclass(frozen=True)
class PairwiseElimination(_InSpells):
    """Pairwise elimination (PE-CS; Juneja, Joe-Wong and Yagan, 2025), as the authors' released code has it.

    Stage 1 finds the best arm by improved UCB: after round m each active arm has tau_m = ceil(2 log(T D^2) / D^2)
    pulls, D = 2^-m, and those are dropped whose upper bound, with b_m = sqrt(log(T D^2) / (2 tau_m)), is below the
    largest lower bound. Stage 2 compares the cheaper arms with it, the cheapest first: one is pulled to the end if its
    lower bound exceeds 1 - alpha times the best arm's upper bound, and passed over if its upper bound is below
    1 - alpha times the best arm's lower bound; until then both are pulled for further rounds, the best arm for no more
    than five ahead. If the best arm is the cheapest it is pulled to the end, where the released code stays with the arm
    that it sampled last.

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1).
    """

    alpha: float
