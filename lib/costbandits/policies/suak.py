"""SUAK and its rivals: never more than c per round on average, and rounds that may be skipped.

Elumar, Tekin and Yagan, "Bandits with Anytime Knapsacks". A round costs nothing if no arm is pulled. Two ways to that:
a *skip*, because a pull might break the constraint, and a *pass*, because the mixture of arms that is played has a
share for the null arm, which costs 0 and pays 0.

The best mixture is a linear program with two rows, so two arms are enough (a base), which `bridge` finds.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf, log, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import ROUNDING, flag, number, positive, require
from ..engine.driver import NULL_ARM, SKIP, jit
from ..engine.state import new_record
from ..environments.hull import bridge
from .base import NamedRule, Problem, checked


class Told(NamedTuple):
    """What a rule is told of the problem."""
    rate: float
    horizon: int


@nb.njit(error_model="numpy")
def worth(mu, rho, rate):
    """The reward of the best mixture; -inf if there is none, for want of the null arm."""
    low, high = bridge(mu, rho, rate)
    if mu[low] == -inf:
        return -inf
    return mu[low] if high < 0 else mu[low] + (rate - rho[low]) * (mu[high] - mu[low]) / (rho[high] - rho[low])


@nb.njit(error_model="numpy")
def bounds(arms, width, upper, lower):
    """Upper bounds of rewards and lower bounds of costs, within [0, 1] (Eq. 8, 9); radius sqrt(width / n)."""
    for k in range(arms.n.size):
        radius = sqrt(width / arms.n[k])
        upper[k], lower[k] = min(arms.reward[k] / arms.n[k] + radius, 1.0), max(arms.cost[k] / arms.n[k] - radius, 0.0)


# ---- SUAK -------------------------------------------------------------------------------------------

# What N_p counts besides the pulls of unsure arms; see `SUAK`.
READINGS = ("skips", "coming", "needed", "printed", "two accounts")
SKIPS, COMING, NEEDED, PRINTED = range(4)

# S_p and N_p of the paper; the spending before a pull that is to be added to S_p, else -1; skips of lines 5 and 16, and
# of line 18; the round in which phase 2 began, 0 before; extremes of omega.
ACCOUNT = np.dtype([(name, "f8") for name in ("S_p", "N_p", "pending", "skips_unsure", "skips_anytime", "phase_2",
                                             "least_omega", "most_omega")])


class Reading(NamedTuple):
    """The fields of `SUAK`, as its rule takes them."""
    under_use: float
    knows_T: bool
    counting: int
    least: bool
    divisor: float | None
    margin: float
    width: float


class Phases(NamedTuple):
    """SUAK's own: bounds, how often each arm was pulled because it was unsure, and its account."""
    upper: np.ndarray
    lower: np.ndarray
    unsure: np.ndarray
    account: np.record


# What is held back, and the number in it, if any; see `SUAK`.
RESERVES = {"log t / omega^2": None, "log t / 8 omega": 8.0, "log t / 4 omega": 4.0}
MARGIN = partial(number, low=2.0, allowed="must be a number, 2 or more")
WIDTH = partial(number, above=0.0, high=3.0, allowed="must be a number in (0, 3]")


@nb.njit(error_model="numpy")
def held_back(under_use, divisor, log_t, omega):
    """The part of the budget that is not to be spent yet."""
    if divisor is None:
        return under_use * log_t / (omega * omega)
    return under_use * log_t / (divisor * omega)


@nb.njit(error_model="numpy")
def mixed(k, j, cost_k, cost_j, b, omega, rng):
    """Lines 27 to 35: j with the chance that spends b in the mean, from omega to 1 - omega; else k."""
    p = min(max((b - cost_k) / (cost_j - cost_k), omega), 1.0 - omega)
    return j if rng.random() < p else k


@nb.njit(inline="always", error_model="numpy")
def questions(t, arms, c, p, delta):
    """The unsure arm to pull, with c within its wide interval (4), (5), -1 if none is; and the least gap (7)."""
    log_t, unsure = log(t), -1
    for k in range(arms.n.size):
        radius, gap = inf, 0.0
        if arms.n[k] > 0:
            radius, gap = sqrt(1.5 * log_t / arms.n[k]), abs(arms.cost[k] / arms.n[k] - c)
        delta = min(delta, gap - radius)
        if gap <= p.margin * radius and (unsure < 0 or (p.least and arms.n[k] < arms.n[unsure])):
            unsure = k
    return unsure, delta


@nb.njit(inline="always", error_model="numpy")
def charge(spent, account):
    """What the last pull of an unsure arm cost goes to S_p."""
    if account.pending >= 0.0:
        account.S_p += spent - account.pending
        account.pending = -1.0


@nb.njit(inline="always", error_model="numpy")
def ask(arm, spent, memory):
    """Pull an unsure arm (lines 19 and 20)."""
    memory.account.N_p += 1.0
    memory.account.pending = spent
    memory.unsure[arm] += 1.0
    return arm


@nb.njit(inline="always", error_model="numpy")
def base(t, left, delta, arms, told, p, memory, rng):
    """An arm of the optimistic base (lines 22 to 35), where `left` may be spent."""
    c, log_t, account = told.rate, log(t), memory.account
    if account.phase_2 == 0.0:
        account.phase_2 = t
    omega = delta / (2.0 + delta - c)                             # (6)
    account.least_omega, account.most_omega = min(account.least_omega, omega), max(account.most_omega, omega)
    bounds(arms, p.width * (log(told.horizon) if p.knows_T else log_t), memory.upper, memory.lower)
    k, j = bridge(memory.upper, memory.lower, c)
    if j >= 0:
        # No arm is unsure, so j costs more than c by its mean, too, and k costs less.
        cost_j, cost_k = arms.cost[j] / arms.n[j], arms.cost[k] / arms.n[k] if k < arms.n.size else 0.0
        k = mixed(k, j, cost_k, cost_j, left - held_back(p.under_use, p.divisor, log_t, omega), omega, rng)
    return k if k < arms.n.size else NULL_ARM


@jit
def suak(t, spent, arms, told, p, memory, rng):
    """SUAK (Elumar et al., Algorithm 2); comments name its lines and equations."""
    c, account = told.rate, memory.account
    charge(spent, account)
    unsure, delta = questions(t, arms, c, p, inf)
    full = account.S_p + 1.0 > c * (account.N_p + (p.counting == COMING))
    if full and (unsure >= 0 or p.counting != NEEDED):            # line 15
        account.N_p += p.counting != PRINTED                      # departs from the paper: as printed nothing is pulled
        account.skips_unsure += 1.0
        return SKIP
    if spent + 1.0 > c * t:                                       # line 17
        account.skips_anytime += 1.0
        return SKIP
    return ask(unsure, spent, memory) if unsure >= 0 else base(t, c * t - spent, delta, arms, told, p, memory, rng)


@jit
def suak_2(t, spent, arms, told, p, memory, rng):
    """SUAK-2, ours: pulls of unsure arms have an account of their own; (7) knows the null arm, whose gap is c."""
    c, account, apart = told.rate, memory.account, 0.0
    charge(spent, account)
    unsure, delta = questions(t, arms, c, p, c)
    if unsure >= 0 and account.S_p + 1.0 > c * (account.N_p + 1.0):
        account.N_p += 1.0
        account.skips_unsure += 1.0
        return SKIP
    if unsure < 0:                                                # the questions keep 1 - c at most; bases the rest
        account.S_p = max(account.S_p, c * (account.N_p + 1.0) - 1.0)
        apart = max(c * account.N_p - account.S_p, 0.0)
    if spent + (1.0 + apart) > c * t:
        account.skips_anytime += 1.0
        return SKIP
    return ask(unsure, spent, memory) if unsure >= 0 else base(t, c * t - spent - apart, delta, arms, told, p, memory,
                                                               rng)


# ---- Its rivals -------------------------------------------------------------------------------------

# The pair of arms that UCB-Simplex played last, -1 for none, and what was spent before.
LAST = np.dtype([("pair", "i8"), ("spent_before", "f8")])


@nb.njit(error_model="numpy")
def first_pull(t, spent, arms, c):
    """An arm that was not pulled yet, SKIP if a pull might cost too much, else NULL_ARM."""
    if spent + 1.0 > c * t:
        return SKIP
    for k in range(arms.n.size):
        if arms.n[k] == 0:
            return k
    return NULL_ARM


@nb.njit(error_model="numpy")
def adaptive(t, spent, told, upper, lower, rng):
    """An arm drawn from the best mixture for what is left per round; the null arm has no share in the draw."""
    rate = (told.rate * told.horizon - spent) / (told.horizon - t + 1.0)
    low, high = bridge(upper, lower, rate)
    if low == upper.size - 1:
        return high if high >= 0 else NULL_ARM
    if high < 0:
        return low
    return high if rng.random() < (rate - lower[low]) / (lower[high] - lower[low]) else low


@jit
def one_phase(t, spent, arms, told, p, memory, rng):
    """One Phase with skips (Li, Sun and Ye, Algorithm 1), as in `OnePhaseSkip`."""
    (width, knows_T, time_row), (upper, lower) = p, memory
    arm = first_pull(t, spent, arms, told.rate)
    if arm == NULL_ARM:
        bounds(arms, width * log(told.horizon if knows_T else t), upper, lower)
        if time_row:
            return adaptive(t, spent, told, upper, lower, rng)
        arm = 0                                                   # one row, one arm: the best ratio
        for k in range(1, arms.n.size):
            if upper[k] * lower[arm] > upper[arm] * lower[k]:
                arm = k
    return arm


@jit
def primal_dual(t, spent, arms, told, p, memory, rng):
    """Primal-Dual with skips (Li, Sun and Ye), as in `PrimalDualSkip`."""
    c, T, K, (upper, lower, member) = told.rate, told.horizon, arms.n.size, memory
    if spent + 1.0 > c * t:
        return SKIP
    if member.sum() < 2.0:
        for k in range(1, K):                                     # the sweep under way
            if arms.n[k] < arms.n[k - 1]:
                return k
        if arms.n[0] == 0:
            return 0
        width = 2.0 * log(T) / arms.n[0]
        for k in range(K):                                        # pessimistic, for a moment
            upper[k] = max(arms.reward[k] / arms.n[k] - sqrt(width), 0.0)
            lower[k] = min(arms.cost[k] / arms.n[k] + sqrt(width), 1.0)
        sure = worth(upper, lower, c)
        bounds(arms, 2.0 * log(T), upper, lower)
        for k in range(K + 1):
            reward, upper[k] = upper[k], -inf
            if worth(upper, lower, c) < sure:
                member[k] = 1.0
            upper[k] = reward
        if member.sum() < 2.0:
            return 0
    bounds(arms, 2.0 * log(T), upper, lower)
    for k in range(K):
        if member[k] == 0.0:        # pragma: no cover - in compiled runs of three arms
            upper[k] = -inf
    return adaptive(t, spent, told, upper, lower, rng)


@jit
def ucb_simplex(t, spent, arms, told, p, memory, rng):
    """UCB-Simplex with skips (Flajolet and Jaillet), as in `UCBSimplexSkip`."""
    c, K, (lam,), (upper, cost, charged, chosen, last) = told.rate, arms.n.size, p, memory
    if last.pair >= 0:
        charged[last.pair] += spent - last.spent_before
        last.pair = -1
    arm = first_pull(t, spent, arms, c)
    if arm == NULL_ARM:
        for k in range(K):
            upper[k] = arms.reward[k] / arms.n[k] + lam * sqrt(2.0 * log(t) / arms.n[k])
            cost[k] = arms.cost[k] / arms.n[k]
        arm, high = bridge(upper, cost, c)
        if high >= 0:
            pair = arm * K + high
            arm = high if charged[pair] <= c * chosen[pair] else arm
            chosen[pair] += 1.0
            last.pair, last.spent_before = pair, spent
    return arm if arm < K else NULL_ARM


@jit
def knowing(t, spent, arms, told, p, memory, rng):
    """The best base from known means, as in `KnownMeans`."""
    c, K, (threshold,), (mu, rho) = told.rate, arms.n.size, p, memory
    if spent + 1.0 > c * t:
        return SKIP
    low, high = bridge(mu, rho, c)
    if high >= 0:
        share = (c - rho[low]) / (rho[high] - rho[low])
        enough = spent + threshold <= c * t if threshold > 0.0 else rng.random() < share
        low = high if enough else low
    return low if low < K else NULL_ARM


@jit
def control_budget(t, spent, arms, told, p, memory, rng):
    """ControlBudget (Kumar and Kleinberg, 2022) of the best base, as in `ControlBudget`."""
    c, T, K, (mu, rho) = told.rate, told.horizon, arms.n.size, memory
    B = c * t - spent
    if B < 1.0:
        return SKIP
    arm, high = bridge(mu, rho, c)
    if high >= 0:
        delta = min(rho[high] - c, c - rho[arm])
        arm = high if B >= 6.0 / (delta * delta) * log(max(T - t, 1)) else arm
    return arm if arm < K else NULL_ARM


class _Anytime(NamedRule):
    """A policy of rounds under an anytime budget."""
    skips = True
    support = (0.0, 1.0)
    rows = 2

    def check(self, problem: Problem) -> None:
        require(problem.rate is not None, "stop", "no anytime budget",
                f"{type(self).__name__} needs AnytimeBudget(rate, horizon)")

    def told(self, problem: Problem) -> Told:
        return Told(float(problem.rate), int(problem.horizon))

    def remember(self, problem: Problem) -> tuple:
        """First upper bounds of rewards and lower bounds of costs, the null arm last, whose means are known to be 0."""
        return tuple(np.zeros((self.rows, problem.K + 1)))


@dataclass(frozen=True)
class SUAK(_Anytime):
    """SUAK (Algorithm 2): every arm until its cost is known to be above or below c, then the optimistic base.

    As printed it never pulls an arm: N_p must also count the rounds skipped at lines 5 and 16. The least pulled of the
    unsure arms is pulled. An arm that costs exactly c stays unsure for good; that is warned of.

    Rounds cannot be skipped in the simulation: an optimal mixture has two arms, drawn anew in every round with chances
    of the same order, so there is no rare event to wait for. The same holds for the other policies of this module.

    Parameters
    ----------
    under_use : float
        Multiplies the reserve, the part of the budget that is held back.
    log : {"t", "T"}
        What stands in the radii of the bounds (8), (9): SUAK is not to know T, but there the paper prints log T.
    counting : {"skips", "coming", "needed", "printed", "two accounts"}
        What N_p counts besides the pulls of unsure arms: skips at lines 5 and 16; also the coming round; as "skips",
        but line 15 is asked only while an arm is unsure; nothing, as printed. "two accounts" is the older name of the
        rule of `SUAK2`.
    order : {"least", "first"}
        Which unsure arm is pulled: the least pulled, or the first.
    reserve : {"log t / omega^2", "log t / 8 omega", "log t / 4 omega"}
        The paper's; or the one that is nearly best for a known pair of arms, as an exact computation shows
        (`cb.bounds.suak.slack_law`); or the one with a proof.
    margin : float
        An arm is unsure while its mean cost is within `margin` times sqrt(1.5 log t / n) of c; 2 or more, the paper's
        is 7.
    width : float
        The radius of the bounds (8), (9) is the square root of `width` log t / n; in (0, 3], in the paper 3.

    Examples
    --------
    >>> cb.SUAK(log="T").order
    'least'
    """
    under_use: float = checked(partial(number, low=0.0, allowed="must be a number, 0 or more"), 1.0)
    log: str = checked(("t", "T"), "t")
    counting: str = checked(READINGS, "skips")
    order: str = checked(("least", "first"), "least")
    reserve: str = checked(tuple(RESERVES), "log t / omega^2")
    margin: float = checked(MARGIN, 7.0)
    width: float = checked(WIDTH, 3.0)

    @property
    def rule(self) -> Callable:
        """`suak`, or with two accounts `suak_2`."""
        return suak_2 if self.counting == "two accounts" else suak

    @property
    def p(self) -> Reading:
        return Reading(float(self.under_use), self.log == "T", READINGS.index(self.counting), self.order == "least",
                       RESERVES[self.reserve], float(self.margin), float(self.width))

    def rehearse(self, name: str, problem: Problem) -> None:
        super().rehearse(name, problem)
        if np.isclose(problem.cost_means, problem.rate, rtol=ROUNDING, atol=0).any():
            warnings.warn(f"an arm costs c = {problem.rate} in expectation: SUAK can never tell on which side it is",
                          stacklevel=2)

    def remember(self, problem: Problem) -> Phases:
        account = new_record(ACCOUNT)
        account.pending, account.least_omega = -1.0, inf
        return Phases(*np.zeros((3, problem.K + 1)), account)


@dataclass(frozen=True)
class SUAK2(SUAK):
    """SUAK-2, ours: the policy of the theorem `cb.bounds.suak.two_accounts`.

    Pulls of unsure arms (*questions*) have an account of their own, c N_p - S_p; other pulls may spend only what is not
    in it. The coming round counts in N_p, and line 15 is asked only while an arm is unsure. When no arm is unsure, what
    the account holds above 1 - c is handed over. The null arm, of cost 0, counts in (7). Fields as in `SUAK`.

    >>> cb.SUAK2().reserve
    'log t / 4 omega'
    """
    counting: str = field(default="two accounts", init=False)
    reserve: str = checked(tuple(RESERVES), "log t / 4 omega")
    margin: float = checked(MARGIN, 3.0)
    width: float = checked(WIDTH, 1.5)


@dataclass(frozen=True)
class OnePhaseSkip(_Anytime):
    """The One Phase algorithm of Li, Sun and Ye with skips (Algorithm 1, "OPS").

    In every round in which no pull can break the constraint, an arm from the optimistic mixture for what is left.

    Parameters
    ----------
    radius : {"3logT", "3logt", "2.5logT", "2logT"}
        Confidence radii are the square root of this over n. 2.5 stands in no paper; it lies between two that do.
    time_row : bool
        Whether the program knows that shares cannot exceed the rounds left. Algorithm 1 prints no such row; without it
        the best ratio is always best alone, and while some cost is bounded by 0 only, the first such arm is pulled.

    Examples
    --------
    >>> cb.OnePhaseSkip(radius="2logT")
    OnePhaseSkip(radius='2logT', time_row=True)
    """
    radius: str = checked(("3logT", "3logt", "2.5logT", "2logT"), "3logT")
    time_row: bool = checked(flag, True)
    rule = staticmethod(one_phase)

    @property
    def p(self) -> tuple:
        return float(self.radius[:-4]), self.radius[-1] == "T", self.time_row


@dataclass(frozen=True)
class PrimalDualSkip(_Anytime):
    """The Primal-Dual algorithm of Li, Sun and Ye with skips ("PDS"), as we read it.

    All arms in turn; after each sweep an arm (or the null arm) without which even optimistic bounds promise less than
    pessimistic ones with it is found to be needed. Two such make the base; then `OnePhaseSkip` on it. Where one arm is
    best alone the sweeps never end.

    >>> cb.PrimalDualSkip()
    PrimalDualSkip()
    """
    rule = staticmethod(primal_dual)
    rows = 3        # also which arms, or the null arm, were found to be needed


@dataclass(frozen=True)
class UCBSimplexSkip(_Anytime):
    """UCB-Simplex of Flajolet and Jaillet with skips ("USS"), as we read it.

    Each arm once; then the base that is best for mean rewards plus lam sqrt(2 log t / n) and mean costs. Its costly arm
    is pulled if what the base has been charged so far is at most c times the rounds it was chosen in. lam is
    lambda = 1 + 2 kappa, above 0; 9 in the paper.

    >>> cb.UCBSimplexSkip()
    UCBSimplexSkip(lam=9.0)
    """
    lam: float = checked(positive, 9.0)
    rule = staticmethod(ucb_simplex)

    @property
    def p(self) -> tuple:
        return (float(self.lam),)

    def remember(self, problem: Problem) -> tuple:
        """Bounds of rewards, mean costs; what each base was charged, and how often it was chosen; the last one."""
        K, last = problem.K, new_record(LAST)
        last.pair = -1
        return *np.zeros((2, K + 1)), *np.zeros((2, K * (K + 1))), last


class _KnowsMeans(_Anytime):
    """For comparison: an agent who knows all means."""
    all_knowing = True

    def remember(self, problem: Problem) -> tuple:
        return np.append(problem.reward_means, 0.0), np.append(problem.cost_means, 0.0)


@dataclass(frozen=True)
class KnownMeans(_KnowsMeans):
    """For comparison: the best base, by an agent who knows all means.

    The costly arm is pulled when at least `threshold` may be spent, the cheap one else. With None the arms are drawn
    from the best mixture, independently: the spending wanders, so that more and more rounds must be skipped.

    >>> cb.KnownMeans(threshold=None)
    KnownMeans(threshold=None)
    """
    threshold: float | None = checked(positive, 2.0)
    rule = staticmethod(knowing)

    @property
    def p(self) -> tuple:
        return (float(self.threshold or 0.0),)


@dataclass(frozen=True)
class ControlBudget(_KnowsMeans):
    """ControlBudget of Kumar and Kleinberg (2022), by an agent who knows all means and the horizon T.

    The spare budget is B = c t - S, what may be spent in round t after a spending of S; a round adds c less what its
    arm costs, the drift. If B is below 1, the round is skipped; below (6/delta^2) log(T - t) the arm of the best base
    that saves is pulled (or the null arm, if it is that), and the one that spends else. delta is the smaller of the
    two drifts of the base, without signs. An arm that is best alone is pulled whenever B allows it.

    "Non-monotonic Resource Utilization in the Bandits with Knapsacks Problem": constant regret for known means. There
    the null arm, which costs nothing, is pulled where a round is skipped here. The threshold is as we know it; the
    paper's text was not at hand. Near the threshold the arms alternate.

    >>> cb.ControlBudget()
    ControlBudget()
    """
    rule = staticmethod(control_budget)
