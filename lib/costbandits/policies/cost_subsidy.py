"""Cost subsidy: the cheapest arm that is good enough.

Sinha, Sankararaman, Kazerouni and Avadhanula, "Multi-Armed Bandits with Cost Subsidy" (2021). An arm is good enough if
its expected reward is at least 1 - alpha times the largest. A policy scores the arms and pulls the cheapest of the
feasible ones, whose score is at least 1 - alpha times the largest. What the paper leaves open is read so:

* a score that misses this by rounding alone, 1e-12 of it, is feasible (Algorithm 3 asks for more than it, not as much);
* if no arm is feasible, as when all scores are negative, the one with the best score is pulled;
* among equal costs, or equal bounds on them, the lowest position wins.

`PairwiseElimination` is of a later paper. `fast.subsidy` makes many of these pulls at once.
"""

from dataclasses import dataclass
from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import ROUNDING, count, flag, require, share
from ..engine.state import new_record
from .base import NamedRule, Problem, checked, require_known_costs, rule

# An arm that is pulled without asking again, and the last round in which it is.
SPELL = np.dtype([("arm", "i8"), ("until", "i8")])

ACTIVE, BEATEN, POOR = range(3)
COSTS = ("known", "unknown")


class Told(NamedTuple):
    """What a rule is told. Over n, `width` is a squared confidence radius."""
    alpha: float
    sweeps: int             # how often all arms are pulled in turn to begin with
    width: float
    horizon: int
    unknown: bool           # costs are not known


class Notes(NamedTuple):
    """What a rule keeps of the arms, each of shape (K,), and its spell."""
    upper: np.ndarray       # upper bound of the mean reward, or a draw
    lower: np.ndarray       # lower bound of the mean reward
    price: np.ndarray       # the cost, or a lower bound of its mean
    won: np.ndarray         # successes of Bernoulli trials
    omega: np.ndarray       # rounds of pairwise elimination
    standing: np.ndarray    # ACTIVE, BEATEN or POOR
    spell: np.record


@nb.njit(inline="always", error_model="numpy")
def cheapest(alpha, standard, upper, price):
    """The cheapest arm with an upper score of at least 1 - alpha times the largest `standard`; else that one's arm."""
    best, arm = 0, -1
    for k in range(1, upper.size):
        if standard[k] > standard[best]:
            best = k
    bar = (1.0 - alpha) * standard[best]
    bar -= ROUNDING * abs(bar)
    for k in range(upper.size):
        if upper[k] >= bar and (arm < 0 or price[k] < price[arm]):
            arm = k
    return arm if arm >= 0 else best


@nb.njit(inline="always", error_model="numpy")
def lowest_price(k, arms, width):
    """Lower bound of an arm's mean cost."""
    return max(arms.cost[k] / arms.n[k] - sqrt(width / arms.n[k]), 0.0)


@nb.njit(inline="always", error_model="numpy")
def reward_bounds(k, arms, width):
    """Bounds of an arm's mean reward: its mean, plus and minus beta, within [0, 1]."""
    mean, beta = arms.reward[k] / arms.n[k], sqrt(width / arms.n[k])
    return min(mean + beta, 1.0), max(mean - beta, 0.0)


@nb.njit(error_model="numpy")
def bound_all(arms, told, notes):
    """Bounds of all mean rewards, and of mean costs that are not known."""
    for k in range(arms.n.size):
        notes.upper[k], notes.lower[k] = reward_bounds(k, arms, told.width)
        if told.unknown:
            notes.price[k] = lowest_price(k, arms, told.width)


def exploration(horizon: int, K: int) -> int:
    """Pulls of each arm to explore with (tau): (T/K)^(2/3) to the nearest integer, if there are so many rounds.

    >>> exploration(5000, 10), exploration(19, 10)      # 2 pulls of each of 10 arms are more than 19
    (63, 1)
    """
    return min(round((horizon / K) ** (2 / 3)), horizon // K)


class _Subsidy(NamedRule):
    """A policy that knows T and looks for the cheapest arm that is good enough."""
    support = (0.0, 1.0)
    spell = SPELL
    costs, exploration_pulls = "known", 1       # unless there are fields of these names

    def check(self, problem: Problem) -> None:
        label, K, rounds, pulls = type(self).__name__, problem.K, problem.horizon, self.exploration_pulls
        require(rounds is not None, "stop", "no horizon", f"{label} needs Horizon(rounds)")
        require(rounds >= K, "stop", f"{rounds} rounds", f"{label} needs {K} or more, one for each arm")
        require((pulls or 1) * K <= rounds, "exploration_pulls", pulls,
                f"must be at most {rounds // K}, with {K} arms and {rounds} rounds")
        if self.costs == "known":
            require_known_costs(self, problem)

    def tau(self, problem: Problem) -> int:
        """How often all arms are pulled in turn to begin with."""
        return self.exploration_pulls or exploration(problem.horizon, problem.K)

    def told(self, problem: Problem) -> Told:
        T = int(problem.horizon)
        return Told(float(self.alpha), int(self.tau(problem)), 2.0 * log(T), T, self.costs == "unknown")

    def remember(self, problem: Problem) -> Notes:
        notes = Notes(*np.zeros((6, problem.K)), new_record(self.spell))
        if self.costs == "known":
            notes.price[:] = problem.cost_means
        return notes


# ---- CS-UCB and CS-TS (Sinha et al., Algorithm 1) ---------------------------------------------------

@rule
def cs_ucb(t, spent, arms, told, p, memory, rng):
    """CS-UCB (Algorithm 1), as in `CSUCB`."""
    if t <= arms.n.size:
        return t - 1
    bound_all(arms, told, memory)
    return cheapest(told.alpha, memory.upper, memory.upper, memory.price)


@dataclass(frozen=True)
class CSUCB(_Subsidy):
    """CS-UCB (Algorithm 1): each arm once, then scores min(mean + beta, 1), beta = sqrt(2 log T / n).

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1): the share of the largest expected reward that may be given up. Good enough is
        1 - alpha times the best.
    costs : {"known", "unknown"}
        If unknown, the arm with the smallest max(mean cost - beta, 0) of the feasible ones is pulled (section 5.2).

    Examples
    --------
    >>> cb.CSUCB(0.1)
    CSUCB(alpha=0.1, costs='known')
    """
    alpha: float = checked(share)
    costs: str = checked(COSTS, "known")
    rule = staticmethod(cs_ucb)


@rule
def cs_ts(t, spent, arms, told, p, memory, rng):
    """CS-TS (Algorithm 1), as in `CSTS`."""
    n, won, drawn, (gaussian,) = arms.n, memory.won, memory.upper, p
    if t <= n.size:
        return t - 1
    for k in range(n.size):
        if gaussian:
            drawn[k] = arms.reward[k] / n[k] + rng.standard_normal() / sqrt(n[k])
        else:
            drawn[k] = rng.beta(won[k] + 1.0, n[k] - won[k] + 1.0)
    return cheapest(told.alpha, drawn, drawn, memory.price)


@rule
def cs_ts_learns(t, arm, outcome, arms, told, p, memory, rng):
    """A fractional reward becomes a Bernoulli trial; an unknown price is bounded anew."""
    (gaussian,) = p
    if not gaussian:
        memory.won[arm] += rng.random() < outcome.reward
    if told.unknown:
        memory.price[arm] = lowest_price(arm, arms, told.width)


@dataclass(frozen=True)
class CSTS(_Subsidy):
    """CS-TS (Algorithm 1): each arm once, then scores drawn from the posteriors of the mean rewards.

    Parameters
    ----------
    alpha, costs
        As in `CSUCB`; the paper has no unknown costs for CS-TS.
    posterior : {"beta", "gaussian"}
        Beta(1, 1) priors, where a fractional reward x becomes a Bernoulli trial with probability x; or a normal law
        around the mean with variance 1/n (Theorem 1).
    naive : bool
        Draw every arm in every round, as in `BTS`. By default (`fast.subsidy_thompson`) an arm that is far enough ahead
        is pulled many times at once; while several contend every round is played, for any draw could change the choice.

    Examples
    --------
    >>> cb.CSTS(0.1, posterior="gaussian")
    CSTS(alpha=0.1, posterior='gaussian', costs='known', naive=False)
    """
    alpha: float = checked(share)
    posterior: str = checked(("beta", "gaussian"), "beta")
    costs: str = checked(COSTS, "known")
    naive: bool = checked(flag, False)
    rule = staticmethod(cs_ts)
    learn = staticmethod(cs_ts_learns)

    @property
    def p(self) -> tuple:
        return (self.posterior == "gaussian",)


# ---- CS-ETC (Sinha et al., Algorithms 2 and 3) ------------------------------------------------------

@rule
def cs_etc(t, spent, arms, told, p, memory, rng):
    """CS-ETC (Algorithms 2 and 3), as in `CSETC`."""
    if t <= arms.n.size * told.sweeps:
        return (t - 1) % arms.n.size
    bound_all(arms, told, memory)
    return cheapest(told.alpha, memory.lower, memory.upper, memory.price)


@dataclass(frozen=True)
class CSETC(_Subsidy):
    """CS-ETC (Algorithms 2 and 3): all arms in turn, tau times; then the cheapest that may be good enough.

    Bounds are mean +- beta within [0, 1], beta = sqrt(2 log T / n), and an arm is feasible if its upper bound is at
    least 1 - alpha times the largest lower bound. Despite its name it looks anew in every round.

    Parameters
    ----------
    alpha, costs
        As in `CSUCB`; unknown costs are Algorithm 3.
    exploration_pulls : int, optional
        tau; by default (T/K)^(2/3) to the nearest integer (`exploration`).

    Examples
    --------
    >>> cb.CSETC(0.1, exploration_pulls=50)
    CSETC(alpha=0.1, exploration_pulls=50, costs='known')
    """
    alpha: float = checked(share)
    exploration_pulls: int | None = checked(count, None)
    costs: str = checked(COSTS, "known")
    rule = staticmethod(cs_etc)


@rule
def commit_once(t, spent, arms, told, p, memory, rng):
    """CS-ETC that is asked only once after exploring, as in `CommitOnce`."""
    spell, explored = memory.spell, arms.n.size * told.sweeps
    if t > spell.until:
        spell.arm = cs_etc(t, spent, arms, told, p, memory, rng)
        spell.until = told.horizon if t > explored else t
    return spell.arm


@dataclass(frozen=True)
class CommitOnce(_Subsidy):
    """CS-ETC that looks at the bounds only once, after exploring, and pulls the arm it finds then to the end.

    Named after Theorem 3: the same bound holds for it, and the paper found it to be worse. Parameters as in `CSETC`.

    >>> cb.CommitOnce(0.1)
    CommitOnce(alpha=0.1, exploration_pulls=None)
    """
    alpha: float = checked(share)
    exploration_pulls: int | None = checked(count, None)
    rule = staticmethod(commit_once)


@rule
def blind(t, spent, arms, told, p, memory, rng):
    """All arms in turn, then the cheapest, as in `BlindETC`."""
    K, (tau,) = arms.n.size, told
    return (t - 1) % K if t <= K * tau else memory.price.argmin()


@dataclass(frozen=True)
class BlindETC(_Subsidy):
    """For comparison: explores as `CSETC` does, and then pulls the cheapest arm, whatever was seen.

    >>> cb.BlindETC(exploration_pulls=20)
    BlindETC(exploration_pulls=20)
    """
    exploration_pulls: int | None = checked(count, None)
    rule = staticmethod(blind)

    def told(self, problem: Problem) -> tuple:
        return (self.tau(problem),)


# ---- PE-CS (Juneja, Joe-Wong and Yagan) -------------------------------------------------------------

@nb.njit(error_model="numpy")
def batch(m, horizon):
    """How many pulls an arm has after round m (tau_m), and the radius then (b_m).

    T 4^-m never falls to 1: before round m + 1 two arms have tau_m pulls each, more than T once T 4^-m is below 8.6.
    """
    squared_gap = 0.25**m
    known = log(horizon * squared_gap)
    tau = ceil(2.0 * known / squared_gap)
    return tau, sqrt(known / (2.0 * tau))


@nb.njit(error_model="numpy")
def next_of(standing, tau, arms, notes):
    """The cheapest of the arms of a standing that have fewer than tau pulls; -1 if there is none."""
    price = np.where((notes.standing == standing) & (arms.n < tau), notes.price, inf)
    arm = np.argmin(price)
    return arm if price[arm] < inf else -1


@nb.njit(error_model="numpy")
def eliminate(t, arms, told, notes):
    """Stage 1, improved UCB: the next arm to pull and until when; -1 at the end of a round, when arms were dropped."""
    tau, b = batch(notes.omega.max(), told.horizon)
    arm = next_of(ACTIVE, tau, arms, notes)
    if arm >= 0:
        return arm, t + tau - arms.n[arm] - 1
    active, mean = notes.standing == ACTIVE, arms.reward / arms.n
    stays = active & (mean + b >= (mean[active] - b).max())
    notes.omega[stays] += 1.0
    notes.standing[active & ~stays] = BEATEN
    return -1, 0


@nb.njit(error_model="numpy")
def compare(champion, t, arms, told, notes):
    """Stage 2: the cheapest arm left against the best; what to pull and until when, -1 if that was decided just now."""
    part, end, n, omega, price = 1.0 - told.alpha, told.horizon, arms.n, notes.omega, notes.price
    rival = next_of(BEATEN, inf, arms, notes)
    if rival < 0 or price[champion] < price[rival] or (price[champion] == price[rival] and champion < rival):
        return champion, end
    tau, b = batch(omega[rival], end)
    tau_best, b_best = batch(min(omega[champion], omega[rival] + 5.0), end)
    if n[rival] < tau:
        return rival, t + tau - n[rival] - 1
    if n[champion] < tau_best:
        return champion, t + tau_best - n[champion] - 1
    mean, best = arms.reward[rival] / n[rival], arms.reward[champion] / n[champion]
    if part * (best + b) < mean - b:
        return rival, end
    if mean + b < part * (best - b_best):
        notes.standing[rival] = POOR
    else:
        omega[rival] += 1.0
        omega[champion] = max(omega[champion], omega[rival])
    return -1, 0


@rule
def pairwise(t, spent, arms, told, p, memory, rng):
    """Stage 1 while several arms are active, then stage 2, as in `PairwiseElimination`."""
    spell = memory.spell
    while t > spell.until:
        active = np.flatnonzero(memory.standing == ACTIVE)
        spell.arm, spell.until = (eliminate(t, arms, told, memory) if active.size > 1
                                  else compare(active[0], t, arms, told, memory))
    return spell.arm


@dataclass(frozen=True)
class PairwiseElimination(_Subsidy):
    """Pairwise elimination (PE-CS; Juneja, Joe-Wong and Yagan, 2025), as the authors' released code has it.

    Stage 1 finds the best arm by improved UCB: after round m each active arm has tau_m = ceil(2 log(T D^2) / D^2)
    pulls, D = 2^-m, and those are dropped whose upper bound, with b_m = sqrt(log(T D^2) / (2 tau_m)), is below the
    largest lower bound. Stage 2 compares the cheaper arms with it, the cheapest first: one is pulled to the end if its
    lower bound exceeds 1 - alpha times the best arm's upper bound, and passed over if its upper bound is below
    1 - alpha times the best arm's lower bound; until then both are pulled for further rounds, the best arm for no more
    than five ahead. If the best arm is the cheapest it is pulled to the end, where the released code stays with the arm
    that it sampled last. alpha is the subsidy factor, in [0, 1).

    >>> cb.PairwiseElimination(0.1)
    PairwiseElimination(alpha=0.1)
    """
    alpha: float = checked(share)
    rule = staticmethod(pairwise)
