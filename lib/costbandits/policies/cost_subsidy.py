"""Cost subsidy: the cheapest arm that is good enough.

Sinha, Sankararaman, Kazerouni and Avadhanula, "Multi-Armed Bandits with Cost Subsidy" (2021). An arm is good enough if
its expected reward is at least 1 - alpha times the largest. A policy scores the arms and pulls the cheapest of the
feasible ones, whose score is at least 1 - alpha times the largest. What the paper leaves open is read so:

* a score that misses this by rounding alone, 1e-12 of it, is feasible (Algorithm 3 asks for more than it, not as much);
* if no arm is feasible, as when all scores are negative, the one with the best score is pulled;
* among equal costs, or equal bounds on them, the lowest position wins.

`PairwiseElimination` is of a later paper.
"""

from dataclasses import dataclass, field
from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import ROUNDING, count, require, share
from ..engine.compilation import compiled_for
from ..engine.loops import FAR, RUNNING, SHORTEST, Run, checkpoint, goes_on, pull, pull_many
from ..engine.search import SLACK
from ..engine.state import new_record
from ..engine.trees import KIND, LEAF, TYPED, block, read_on, settle, skip, total
from .base import Policy, Problem, require_known_costs


class Terms(NamedTuple):
    """What a loop is told. Over n, `width` is a squared confidence radius."""

    alpha: float
    sweeps: int             # how often all arms are pulled in turn to begin with
    width: float
    horizon: int
    unknown: bool           # costs are not known
    pessimistic: bool       # arms compare with the largest lower bound
    once: bool              # bounds are looked at once
    gaussian: bool


class Arms(NamedTuple):
    """What a loop keeps of the arms, each of shape (K,)."""

    upper: np.ndarray       # upper bound of the mean reward, or a draw
    lower: np.ndarray       # lower bound of the mean reward
    price: np.ndarray       # the cost, or a lower bound of its mean
    won: np.ndarray         # successes of Bernoulli trials
    omega: np.ndarray       # rounds of pairwise elimination
    standing: np.ndarray    # ACTIVE, BEATEN or POOR


ACTIVE, BEATEN, POOR = range(3)


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
def lowest_price(k, n, sums, width):
    """Lower bound of an arm's mean cost."""
    return max(sums[1, k] / n[k] - sqrt(width / n[k]), 0.0)


@nb.njit(inline="always", error_model="numpy")
def reward_bounds(k, n, sums, width):
    """Bounds of an arm's mean reward: its mean, plus and minus beta, within [0, 1]."""
    mean, beta = sums[0, k] / n[k], sqrt(width / n[k])
    return min(mean + beta, 1.0), max(mean - beta, 0.0)


@nb.njit(error_model="numpy")
def room(arm, n, sums, terms, arms):
    """How often an arm can be pulled, about, until it may not be the cheapest feasible one any more."""
    standard, part, worst = arms.lower if terms.pessimistic else arms.upper, 1.0 - terms.alpha, 0.0
    for k in range(n.size):
        worst = worst if k == arm else max(worst, standard[k])
    gap = arms.upper[arm] - part * worst
    for k in range(n.size):
        cheaper = arms.price[k] < arms.price[arm] or (arms.price[k] == arms.price[arm] and k < arm)
        if cheaper and arms.upper[k] >= part * worst:
            gap = min(gap, standard[arm] - arms.upper[k] / part)
        elif terms.unknown and arms.price[k] > arms.price[arm] and k != arm:
            gap = min(gap, arms.price[k] - arms.price[arm])
    lost = max(1.0 - sums[0, arm] / n[arm], 1.0 / n[arm])       # of a reward of 1, per pull
    return 0.8 * n[arm] * gap / (arms.upper[arm] * lost)


@nb.njit(error_model="numpy")
def stays(arm, m, rewards, costs, n, sums, terms, arms):
    """Whether an arm stays the cheapest feasible one while it is pulled m times, with these rewards and costs in all.

    Bounds of all others rest. Its own mean reward is lowest if the pulls without a reward come first, for no reward
    exceeds 1; its mean cost is at most all costs over n. A narrow miss by rounding must not decide.
    """
    i, width, part, worst = n[arm], terms.width, 1.0 - terms.alpha, 0.0
    low = sums[0, arm] / (i + (m - rewards))
    upper, standard = min(low + sqrt(width / (i + m)), 1.0), low + sqrt(width / (i + m))
    price = arms.price[arm]
    if terms.unknown:
        price = max((sums[1, arm] + costs) / i - sqrt(width / (i + m)), 0.0)
    if terms.pessimistic:
        standard = max(low - sqrt(width / i), 0.0)
    for k in range(n.size):
        if k != arm:
            worst = max(worst, arms.lower[k] if terms.pessimistic else arms.upper[k])
    if not upper > part * worst * (1.0 + SLACK):
        return False
    bar = part * max(min(standard, 1.0), worst) * (1.0 - SLACK)
    for k in range(n.size):
        if k != arm and arms.upper[k] >= bar:
            equal = arms.price[k] == price and k > arm and (price == 0.0 or not terms.unknown)
            if not (arms.price[k] > price or equal):
                return False
    return True


@nb.njit(error_model="numpy")
def pull_block(arm, m, n, sums, terms, arms, outcomes):
    """Pull an arm up to m times at once if it stays the choice: how often, what is spent and collected."""
    i, pool, row = n[arm], outcomes.pool, outcomes.at[arm] + n[arm]
    if i == outcomes.filled[arm]:
        size = block(arm, i, m, outcomes)
        reward, cost = total(arm, 0, outcomes), total(arm, 1, outcomes)
        if not stays(arm, size, reward, cost, n, sums, terms, arms):
            return 0, 0.0, 0.0
        skip(arm, n, sums, outcomes)
        return size, cost, reward
    size, reward, cost = min(m, outcomes.filled[arm] - i), 0.0, 0.0
    for j in range(row, row + size):
        reward, cost = reward + pool[j, 0], cost + pool[j, 1]
    if not stays(arm, size, reward, cost, n, sums, terms, arms):
        return 0, 0.0, 0.0
    for _ in range(size):
        pull(arm, n, sums, pool, outcomes.at)
    return size, cost, reward


@nb.njit(error_model="numpy")
def sweep(t, end, n, sums, outcomes):
    """Pull all arms in turn from round t on, but arm by arm, until a turn would pass round `end`; the round reached."""
    K, turns = n.size, (end - t) // n.size
    typed = False
    for k in range(K):
        typed = typed or outcomes.arms[k, KIND] == TYPED or outcomes.arms[k, KIND + 1] == TYPED
    if t % K > 0 or turns < SHORTEST or typed:          # what is sampled in Python may run out halfway
        return t
    for k in range(K):
        pull_many(k, turns, 0.0, 0.0, inf, n, sums, outcomes)
    return t + turns * K


@compiled_for()
def by_bounds(terms, arms, outcomes, state, record, limits):
    """Pull all arms in turn, then the cheapest one by the bounds of the round.

    An arm that is pulled again is tried for as many pulls at once as it has `room` for, and gets them if it `stays`.
    """
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    upper, lower, price = arms.upper, arms.lower, arms.price
    standard = lower if terms.pessimistic else upper
    alpha, width, unknown = terms.alpha, terms.width, terms.unknown
    K, status, last = n.size, RUNNING, limits.last_round
    explored, spell, patience = K * terms.sweeps, 0, SHORTEST
    kinds = outcomes.arms
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        due, arm, begun = record.due[now.checkpoint], 0, t
        t = sweep(t, min(explored, last), n, sums, outcomes)
        going = t < last
        for k in range(K if t > begun else 0):
            upper[k], lower[k] = reward_bounds(k, n, sums, width)
            if unknown:
                price[k] = lowest_price(k, n, sums, width)
        while going:
            before, done = arm, 0
            arm = t % K if t < explored else cheapest(alpha, standard, upper, price)
            m, spell = 0, spell + 1 if arm == before and t > explored else 0
            if spell >= patience:
                m = min(np.int64(min(max(room(arm, n, sums, terms, arms), 0.0), FAR)), last - t)
                patience = SHORTEST if m >= SHORTEST else min(2 * patience, LEAF)       # it takes as long as the choice
                spell = spell if m >= SHORTEST else 0
            if m >= SHORTEST and (n[arm] < filled[arm] or (m >= LEAF and goes_on(arm, n, filled, kinds))):
                done, cost, reward = pull_block(arm, m, n, sums, terms, arms, outcomes)
            if done == 0:
                if n[arm] == filled[arm]:
                    read_on(arm, n, sums, outcomes)
                reward, cost = pull(arm, n, sums, pool, at)
                done = 1
            t, spent, collected = t + done, spent + cost, collected + reward
            if n[arm] == filled[arm]:
                settle(arm, sums, outcomes.arms, outcomes.laws, outcomes.counts)
            going = spent < due and t < last and goes_on(arm, n, filled, kinds)
            upper[arm], lower[arm] = reward_bounds(arm, n, sums, width)
            if unknown:
                price[arm] = lowest_price(arm, n, sums, width)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
    return status


@compiled_for()
def by_draws(terms, arms, rng, outcomes, state, record, limits):
    """Pull each arm once, then the cheapest one by a draw of each from its posterior."""
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    drawn, price, won = arms.upper, arms.price, arms.won
    alpha, width, unknown, gaussian = terms.alpha, terms.width, terms.unknown, terms.gaussian
    K, status, last = n.size, RUNNING, limits.last_round
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        while going:
            for k in range(K if t >= K else 0):
                if gaussian:
                    drawn[k] = sums[0, k] / n[k] + rng.standard_normal() / sqrt(n[k])
                else:
                    drawn[k] = rng.beta(won[k] + 1.0, n[k] - won[k] + 1.0)
            arm = t if t < K else cheapest(alpha, drawn, drawn, price)
            reward, cost = pull(arm, n, sums, pool, at)
            t, spent, collected = t + 1, spent + cost, collected + reward
            going = spent < due and t < last and n[arm] < filled[arm]
            if not gaussian:
                won[arm] += rng.random() < reward          # a fractional reward becomes a trial
            if unknown:
                price[arm] = lowest_price(arm, n, sums, width)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
    return status


# ---- policies that pull an arm many times in a row --------------------------------------------------

@nb.njit(error_model="numpy")
def commit(n, sums, terms, arms):
    """The cheapest arm by the bounds of this moment."""
    for k in range(n.size):
        arms.upper[k], arms.lower[k] = reward_bounds(k, n, sums, terms.width)
    return cheapest(terms.alpha, arms.lower, arms.upper, arms.price)


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
def next_of(standing, tau, n, arms):
    """The cheapest of the arms of a standing that have fewer than tau pulls; -1 if there is none."""
    arm = -1
    for k in range(n.size):
        if arms.standing[k] == standing and n[k] < tau and (arm < 0 or arms.price[k] < arms.price[arm]):
            arm = k
    return arm


@nb.njit(error_model="numpy")
def eliminate(t, n, sums, terms, arms):
    """Stage 1, improved UCB: the next arm to pull and until when; -1 at the end of a round, when arms were dropped."""
    tau, b = batch(arms.omega.max(), terms.horizon)
    arm = next_of(ACTIVE, tau, n, arms)
    if arm >= 0:
        return arm, t + tau - n[arm] - 1
    bar = -inf
    for k in range(n.size):
        if arms.standing[k] == ACTIVE:
            bar = max(bar, sums[0, k] / n[k] - b)
    for k in range(n.size):
        if arms.standing[k] == ACTIVE:
            if sums[0, k] / n[k] + b >= bar:
                arms.omega[k] += 1.0
            else:
                arms.standing[k] = BEATEN
    return -1, 0


@nb.njit(error_model="numpy")
def compare(champion, t, n, sums, terms, arms):
    """Stage 2: the cheapest arm left against the best; what to pull and until when, -1 if that was decided just now."""
    part, end, omega, price = 1.0 - terms.alpha, terms.horizon, arms.omega, arms.price
    rival = next_of(BEATEN, inf, n, arms)
    if rival < 0 or price[champion] < price[rival] or (price[champion] == price[rival] and champion < rival):
        return champion, end
    tau, b = batch(omega[rival], terms.horizon)
    tau_best, b_best = batch(min(omega[champion], omega[rival] + 5.0), terms.horizon)
    if n[rival] < tau:
        return rival, t + tau - n[rival] - 1
    if n[champion] < tau_best:
        return champion, t + tau_best - n[champion] - 1
    mean, best = sums[0, rival] / n[rival], sums[0, champion] / n[champion]
    if part * (best + b) < mean - b:
        return rival, end
    if mean + b < part * (best - b_best):
        arms.standing[rival] = POOR
    else:
        omega[rival] += 1.0
        omega[champion] = max(omega[champion], omega[rival])
    return -1, 0


@nb.njit(error_model="numpy")
def pairwise(t, n, sums, terms, arms):
    """Pairwise elimination: stage 1 while several arms are active, then stage 2."""
    while True:
        champion, active = 0, 0
        for k in range(n.size):
            if arms.standing[k] == ACTIVE:
                champion, active = k, active + 1
        arm, until = (eliminate(t, n, sums, terms, arms) if active > 1
                      else compare(champion, t, n, sums, terms, arms))
        if arm >= 0:
            return arm, until


# A spell: the arm that is pulled without asking again, and the last round of it.
SPELL = np.dtype([("arm", "i8"), ("until", "i8")])


@compiled_for()
def by_spells(terms, arms, spell, outcomes, state, record, limits):
    """Pull an arm until some round without asking again."""
    n, sums, now = state
    status, last, arm, until = RUNNING, limits.last_round, spell.arm, spell.until
    explored = n.size * terms.sweeps if terms.once else 0
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due = True, record.due[now.checkpoint]
        while going:
            if t == until:
                t = sweep(t, min(explored, last), n, sums, outcomes)
                if t < explored:                         # all arms in turn
                    arm, until = t % n.size, t + 1
                elif terms.once:
                    arm, until = commit(n, sums, terms, arms), terms.horizon
                else:
                    arm, until = pairwise(t + 1, n, sums, terms, arms)
            before = n[arm]
            spent, collected = pull_many(arm, min(until, last) - t, spent, collected, due, n, sums, outcomes)
            t += n[arm] - before
            going = spent < due and t < last and n[arm] > before
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
    spell.arm, spell.until = arm, until
    return status


# ---- policies ---------------------------------------------------------------------------------------

def exploration(horizon: int, K: int) -> int:
    """Pulls of each arm to explore with (tau): (T/K)^(2/3) to the nearest integer, if there are so many rounds.

    >>> exploration(5000, 10), exploration(19, 10)      # 2 pulls of each of 10 arms are more than 19
    (63, 1)
    """
    return min(round((horizon / K) ** (2 / 3)), horizon // K)


def _one_of(*allowed):
    return lambda name, value: require(value in allowed, name, value, f"must be one of {allowed}")


_CHECKS = {"alpha": share, "costs": _one_of("known", "unknown"), "posterior": _one_of("beta", "gaussian"),
           "exploration_pulls": lambda name, value: value is None or count(name, value),
           "naive": lambda name, value: require(isinstance(value, bool), name, value, "must be True or False")}


class _Subsidy(Policy):
    """A policy that knows T and looks for the cheapest arm that is good enough."""

    support = (0.0, 1.0)
    in_blocks = True
    # Of a policy without such a field: every arm is good enough, one sweep, known costs. A class that has one without a
    # default says field().
    alpha, exploration_pulls, costs, posterior = 1.0, 1, "known", None
    pessimistic = once = False

    def __post_init__(self):
        for name, value in vars(self).items():
            _CHECKS[name](name, value)

    def check(self, problem: Problem) -> None:
        label, K, rounds = type(self).__name__, problem.K, problem.horizon
        require(rounds is not None, "stop", "no horizon", f"{label} needs Horizon(rounds)")
        require(rounds >= K, "stop", f"{rounds} rounds", f"{label} needs {K} or more, one for each arm")
        require((self.exploration_pulls or 1) * K <= rounds, "exploration_pulls", self.exploration_pulls,
                f"must be at most {rounds // K}, with {K} arms and {rounds} rounds")
        if self.costs == "known":
            require_known_costs(self, problem)

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        T, arms = problem.horizon, Arms(*np.zeros((6, problem.K)))
        sweeps = self.exploration_pulls or exploration(T, problem.K)
        terms = Terms(float(self.alpha), int(sweeps), 2.0 * log(T), int(T), self.costs == "unknown", self.pessimistic,
                      self.once, self.posterior == "gaussian")
        if self.costs == "known":
            arms.price[:] = problem.cost_means
        return self.pull_all(run, terms, arms, rng)

    def pull_all(self, run: Run, terms: Terms, arms: Arms, rng: np.random.Generator) -> int:
        """Play the run with the kernel of the policy."""
        return run.play(by_bounds, terms, arms)


@dataclass(frozen=True)
class CSUCB(_Subsidy):
    """CS-UCB (Algorithm 1): each arm once, then scores min(mean + beta, 1), beta = sqrt(2 log T / n).

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1): the share of the largest expected reward that may be given up.
    costs : {"known", "unknown"}
        If unknown, the arm with the smallest max(mean cost - beta, 0) of the feasible ones is pulled (section 5.2).

    Examples
    --------
    >>> cb.CSUCB(0.1)
    CSUCB(alpha=0.1, costs='known')
    """

    alpha: float = field()
    costs: str = "known"


@dataclass(frozen=True)
class CSTS(_Subsidy):
    """CS-TS (Algorithm 1): each arm once, then scores drawn from the posteriors of the mean rewards.

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1): good enough is 1 - alpha times the best.
    posterior : {"beta", "gaussian"}
        Beta(1, 1) priors, where a fractional reward x becomes a Bernoulli trial with probability x; or a normal law
        around the mean with variance 1/n (Theorem 1).
    costs : {"known", "unknown"}
        Unknown costs as in `CSUCB`; the paper has none for CS-TS.
    naive : bool
        Draw every arm in every round, as the definition says. By default the same law is played with few draws
        (`subsidy_thompson`); the two use their random numbers differently, so runs agree in distribution and not one
        by one. While one arm is far enough ahead its pulls are made many at a time; while several contend every round
        is played, for a draw of each could change the choice.

    Examples
    --------
    >>> cb.CSTS(0.1, posterior="gaussian")
    CSTS(alpha=0.1, posterior='gaussian', costs='known', naive=False)
    """

    alpha: float = field()
    posterior: str = "beta"
    costs: str = "known"
    naive: bool = False

    @property
    def in_blocks(self) -> bool:
        return not self.naive

    def pull_all(self, run: Run, terms: Terms, arms: Arms, rng: np.random.Generator) -> int:
        # Imported here, as it builds on this module.
        from .subsidy_thompson import Tuning, bells, sampler

        if self.naive:
            return run.play(by_draws, terms, arms, rng)
        return run.play(bells, terms, Tuning(), *sampler(arms.price), rng)


@dataclass(frozen=True)
class CSETC(_Subsidy):
    """CS-ETC (Algorithms 2 and 3): all arms in turn, tau times; then the cheapest that may be good enough.

    Bounds are mean +- beta within [0, 1], beta = sqrt(2 log T / n), and an arm is feasible if its upper bound is at
    least 1 - alpha times the largest lower bound. Despite its name it looks anew in every round.

    Parameters
    ----------
    alpha : float
        The subsidy factor, in [0, 1): good enough is 1 - alpha times the best.
    exploration_pulls : int, optional
        tau; by default (T/K)^(2/3) to the nearest integer (`exploration`).
    costs : {"known", "unknown"}
        Algorithm 3, with unknown costs, takes the smallest max(mean cost - beta, 0).

    Examples
    --------
    >>> cb.CSETC(0.1, exploration_pulls=50)
    CSETC(alpha=0.1, exploration_pulls=50, costs='known')
    """

    alpha: float = field()
    exploration_pulls: int | None = None
    costs: str = "known"
    pessimistic = True


class _InSpells(_Subsidy):
    """A policy that pulls an arm many times in a row."""

    def pull_all(self, run: Run, terms: Terms, arms: Arms, rng: np.random.Generator) -> int:
        return run.play(by_spells, terms, arms, new_record(SPELL))


@dataclass(frozen=True)
class CommitOnce(_InSpells):
    """CS-ETC that looks at the bounds only once, after exploring, and pulls the arm it finds then to the end.

    Named after Theorem 3: the same bound holds for it, and the paper found it to be worse. Parameters as in `CSETC`.

    >>> cb.CommitOnce(0.1)
    CommitOnce(alpha=0.1, exploration_pulls=None)
    """

    alpha: float = field()
    exploration_pulls: int | None = None
    once = True


@dataclass(frozen=True)
class BlindETC(_InSpells):
    """For comparison: explores as `CSETC` does, and then pulls the cheapest arm, whatever was seen.

    >>> cb.BlindETC(exploration_pulls=20)
    BlindETC(exploration_pulls=20)
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
    that it sampled last. alpha is the subsidy factor, in [0, 1).

    >>> cb.PairwiseElimination(0.1)
    PairwiseElimination(alpha=0.1)
    """

    alpha: float = field()
