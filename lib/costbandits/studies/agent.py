"""A policy at work on your own problem: it is asked for an arm, and told what came of it.

To a policy, a pull under way is one at its arm's mean: an index sees it in the counts, any other rule plays on by it
from where the outcomes told end.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import threading
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..checks import bare, count, flag, frozen, number, ours, positive, require, rounding
from ..engine.driver import END
from ..engine.fingerprint import digest
from ..engine.stacks import POLICY, stream
from ..engine.stops import StopRule
from ..policies.base import IndexRule, Policy, require_policy
from .live import Index, Unknown, compile_steps, player

if TYPE_CHECKING:
    import pandas as pd

FORMAT, VERSION = "costbandits agent", 2
KEPT = ("_n", "_attached", "_open", "_sums", "_paid", "_own", "_prices", "_use")       # arrays of one column per arm


class Pull(NamedTuple):
    """What to pull, and the number to tell its outcome by; -1 and no arm for a round without a pull."""
    id: int
    arm: str | int | None


class Agent:
    """A policy that is asked for one arm after the other and told the outcomes, in your own units and in any order.

    Until its outcome is told, a pull counts as one at its arm's mean; of an arm without outcomes, at the mean over all.
    Before any outcome is known, arms are pulled in turn. Asked and told by turns, an agent makes the very pulls of
    `cb.simulate(..., shuffle=False, fast=False)` with the same outcomes and seed. Every argument that is wrong, and
    whatever cannot be done now, raises ValueError and changes nothing.

    An agent may be used by several threads, but by one process only. One of an index policy needs the same memory and
    the same time for each pull for ever. Any other policy keeps 16 bytes for each outcome, and files them: a choice
    takes as long as ever, but the first one after `load`, `add`, `retire` or `attach`, or the outcome of a retired arm,
    plays all outcomes again, which takes some 20 microseconds each; and the first after a `tell` or a `cancel` all
    pulls under way.

    Parameters
    ----------
    policy : Policy
        Any that need not know the arms' means. One that must know their costs takes `arms` with prices.
    arms : sequence of names, or dict name -> price
        A price is what every pull of the arm costs. Names are texts or whole numbers.
    stop : Budget, HardBudget, AnytimeBudget or Horizon
        Totals are in units of cost; an anytime budget's rate is a share of `max_cost`. A hard budget needs prices, and
        is never exceeded. Under an anytime budget only one pull can be under way.
    max_reward, max_cost : float
        The largest reward and cost that can occur, by which they are divided: policies are made for 0 to 1. The
        smallest is 0. With prices costs are divided only by a `max_cost` that is given. A policy's `reward_scale` or
        `max_reward` need not be set; if it is, that makes no difference.
    seed : int
    clip : bool
        Whether outcomes out of range are clipped; else they are refused. All of a cost above `max_cost` is paid for.

    Attributes
    ----------
    clipped : int
        How many outcomes were clipped.

    Examples
    --------
    >>> agent = cb.Agent(cb.OmegaUCB(), ["red", "blue"], cb.Budget(5_000), max_reward=40, max_cost=2.5)
    >>> pull = agent.ask()
    >>> pull, agent.reserved
    (Pull(id=0, arm='red'), 1.25)
    >>> agent.tell(pull, reward=12.0, cost=1.75), agent.tell(pull, reward=12.0, cost=1.75), agent.left
    (True, False, 4998.25)
    """

    def __init__(self, policy: Policy, arms: Iterable[str] | dict[str, float], stop: StopRule, max_reward: float = 1.0,
                 max_cost: float | None = None, seed: int = 0, clip: bool = False):
        self._set_up(policy, arms, stop, max_reward, max_cost, seed, clip)
        compile_steps(policy, self._problem())

    def _set_up(self, policy, arms, stop, max_reward, max_cost, seed, clip):
        require_policy("policy", policy)
        require(isinstance(stop, StopRule) and ours(type(stop)), "stop", stop,
                "must be Budget(total), HardBudget(total), AnytimeBudget(rate, horizon) or Horizon(rounds)")
        require(isinstance(arms, dict | list | tuple) or hasattr(arms, "__array__"), "arms", arms,
                "must be a list of names, or a dict name -> price")
        self.policy, self.stop, self.clip, self.clipped = policy, stop, flag("clip", clip), 0
        self._seed, self._max_reward = count("seed", seed, low=0), positive("max_reward", max_reward)
        self._max_cost = 1.0 if max_cost is None else positive("max_cost", max_cost)
        # Some policies are made for other rewards than 0 to 1.
        self._reward_unit = self._max_reward / getattr(policy, "reward_scale", getattr(policy, "max_reward", 1.0))
        self._priced, self._bounded = isinstance(arms, dict), max_cost is not None or stop.rate is not None
        self._lock, self._saving, self._names, self._history = threading.RLock(), threading.Lock(), [], []
        self._rounds = self._nulls = self._next = 0         # rounds asked for, those without a pull among them; next id
        self._pending, self._running = {}, 0.0              # id -> arm; what was spent, in the order told, scaled
        self._lost = []                                     # at each load, [first, end) of the ids that are not given
        # Of each arm: outcomes told, those from elsewhere among them, pulls under way; sums of scaled rewards, costs
        # and squares; of rewards and costs in their own units; costs that count against the budget; prices; if in use.
        self._n, self._attached, self._open = np.zeros((3, 0), np.int64)
        self._sums, self._paid, self._own, self._prices = np.zeros((4, 0)), np.zeros((2, 0)), *np.zeros((2, 0))
        self._use = np.zeros(0, bool)
        self._player = self._guess = self._means = None
        names = [_name(name) for name in arms]
        require(0 < len(names) == len(set(map(bare, names))), "arms", arms,
                "must be one or more, all different, by more than blanks at their ends")
        self._append(dict(zip(names, arms.values(), strict=True)) if self._priced else dict.fromkeys(names))
        require(policy.skips or stop.rate is None, "policy", policy,
                "must be able to skip rounds under an anytime budget (SUAK, ..., your own by cb.choose)")
        require(self._priced or not stop.hard, "stop", stop, "needs what each arm costs: arms={name: price}")

    # ---- what is known -------------------------------------------------------------------------------

    @property
    def spent(self) -> float:
        """What the pulls told have cost, in units of cost."""
        return sum(self._own.tolist())

    @property
    def reserved(self) -> float:
        """What the pulls under way are expected to cost; under an anytime budget, the most they can."""
        with self._lock:
            if not self._pending:
                return 0.0
            if self.stop.rate is not None:
                return len(self._pending) * self._max_cost
            costs = self._prices if self._priced else self._imagined()[1] * self._max_cost
            return float((self._open * costs).sum())

    @property
    def pending(self) -> list[Pull]:
        """The pulls under way, as `ask` returned them, the oldest first: tell each, or cancel it."""
        with self._lock:
            return [Pull(id, self._names[k]) for id, k in self._pending.items()]

    @property
    def left(self) -> float:
        """The budget less what is spent and reserved, below 0 if they exceed it; infinite under a horizon."""
        with self._lock:
            return self._total - self.spent - self.reserved

    @property
    def over(self) -> bool:
        """Whether nothing can be asked for; outcomes that are told, or pulls cancelled, may set budget free again."""
        with self._lock:
            if self.stop.horizon is not None:
                return self._rounds >= self.stop.horizon
            return not self._fits().any() if self.stop.hard else self.left <= rounding(self._total)

    @property
    def _total(self):
        return self.stop.total * (self._max_cost if self.stop.rate is not None else 1.0)

    def _fits(self):
        """Which arms can be asked for."""
        return self._use & (self._prices <= self.left + rounding(self._total)) if self.stop.hard else self._use

    def _imagined(self):
        """What counts for a pull under way: each arm's scaled mean reward, cost and squares, shape (4, K); of an arm
        without an outcome, over all arms; a half of everything before any outcome."""
        if self._means is None:
            told = self._n.sum()
            self._means = self._sums / np.maximum(self._n, 1)
            self._means[:, self._n == 0] = (self._sums.sum(axis=1) / told)[:, None] if told else 0.5
            if self._priced:
                self._means[1] = self._prices / self._max_cost
        return self._means

    def _indices(self, plays):
        """The coming round, and pulls and index of each arm in use."""
        n, sums, use = self._n, self._sums, self._use
        if self._pending:
            n, sums = n + self._open, sums + self._open * self._imagined()
        if not use.all():       # the policy is told of no others
            n, sums = n[use], np.ascontiguousarray(sums[:, use])
        t = int(n.sum()) + 1
        return t, n, plays.values(t, n, sums)

    # ---- what the policy is told ---------------------------------------------------------------------

    def _problem(self):
        """What is told of the arms in use; what was spent, or pulled, elsewhere or on others, counts as well."""
        use, unit = self._use, 1.0 if self.stop.rate is not None else self._max_cost
        cost = (self._paid[1] - self._own)[use].sum() - self._own[~use].sum()
        pulls = int(self._attached[use].sum() - (self._n - self._attached)[~use].sum())
        prices = frozen(self._prices[use] / self._max_cost) if self._priced else None
        name, (low, high) = type(self.policy).__name__, self.policy.support or (-math.inf, math.inf)
        require(prices is None or low <= prices.min() <= prices.max() <= high, "prices", prices,
                f"{name} is made for costs in [{low:g}, {high:g}]: give max_cost, by which they are divided")
        return Unknown(name, int(use.sum()), prices, self.stop.total / unit + cost / self._max_cost, self.stop.hard,
                       self.stop.rate, self.stop.horizon and self.stop.horizon + pulls)

    def _plays(self):
        """What plays the policy; it begins anew where what it is told has changed."""
        if self._player is None:
            self._player = player(self.policy, self._problem(), stream(self._seed, 0, POLICY))
            self._guess = self._means = None
        return self._player

    # ---- ask -----------------------------------------------------------------------------------------

    def ask(self) -> Pull:
        """What to pull next. The pull is under way until it is told or cancelled.

        ValueError if the run is `over`, RuntimeError if the policy returns no number, or no arm that there is.
        """
        # Without compilation NumPy warns of what is infinite on purpose.
        with self._lock, np.errstate(all="ignore"):
            if self.over:
                require(False, "left", round(self.left, 9), "the run is over, as Agent.over says beforehand; pulls "
                        "under way can be told still")
            require(self.stop.rate is None or not self._pending, "pulls under way", len(self._pending),
                    "an anytime budget allows one at a time: tell its outcome, or cancel it")
            k = self._choice()
            self._rounds += 1
            if k is None:
                self._nulls += 1
                return Pull(-1, None)
            pull = Pull(self._next, self._names[k])
            self._pending[pull.id], self._next = k, self._next + 1
            self._open[k] += 1
            return pull

    def _choice(self):
        """The arm to pull, None for none."""
        fits, nobody_knows = self._fits(), not self._n.any()
        arms = np.flatnonzero(fits)
        if nobody_knows and self._pending:
            return int(arms[self._open[arms].argmin()])
        plays = self._plays()
        if isinstance(plays, Index):
            return self._largest(plays, fits)
        k = self._play_on(plays)
        if self._pending:
            self._guess = self._guess or plays.copy()
            k = self._play_on(self._guess)
        if k is not None and self.stop.rate is not None:
            most = self._prices[k] / self._max_cost if self._priced else 1.0
            return k if k >= 0 and self._running + most <= self.stop.rate * (self._rounds + 1) else None
        if k is None or (k >= 0 and fits[k]):
            return k
        # What the policy wants does not fit beside the pulls under way: the best ratio that does.
        reward, cost = self._imagined()[:2, arms]
        return int(arms[(reward / cost).argmax()])

    def _largest(self, plays, fits):
        use, (t, n, values) = np.flatnonzero(self._use), self._indices(plays)
        at = np.flatnonzero(fits[use])
        at = at if n[at].all() else at[n[at] == 0]        # each arm once to begin with
        arms, values = use[at], values[at]
        if np.isnan(values).any():
            raise RuntimeError(f"round {t}: the index of arm {self._names[arms[np.isnan(values).argmax()]]!r} is not a "
                               "number; return np.inf where it is undefined, such as at a cost of 0")
        return int(arms[values.argmax()])

    def _play_on(self, steps):
        """Let a run go on as far as outcomes are known, in a guess also by means: the arm that it waits for, None for a
        round without a pull, -1 if it knows no arm."""
        use, means = np.flatnonzero(self._use), self._imagined() if steps is self._guess else None
        while (position := steps.choose()) != END:
            if position < 0 and steps.nulls == self._nulls:
                return None
            if position < 0:
                steps.go_without()
                continue
            k, i = int(use[position]), int(steps.arms.n[position])
            if i < self._n[k]:
                steps.take(*self._history[k][2 * i:2 * i + 2])
            elif means is not None and i < self._n[k] + self._open[k]:
                steps.take(*means[:2, k].tolist())
            else:
                return k
        return -1

    # ---- tell ----------------------------------------------------------------------------------------

    def tell(self, pull: Pull | int, reward: float, cost: float | None = None) -> bool:
        """Count the outcome of a pull, in its own units; False if it was told, or cancelled, before: the first counts.

        With prices no cost need be told. A pull that was paid for and never answered earned 0.
        """
        with self._lock:
            name, k = self._under_way(pull)
            if k is None:
                return False
            spent, *outcome = self._outcome(k, reward, cost)
            del self._pending[name]
            self._open[k] -= 1
            self._own[k] += spent
            self._running += spent / self._max_cost
            self._count(k, *outcome)
            if not self._use[k]:        # a policy hears of other arms only by what is left, when it begins
                self._player = None
            return True

    def cancel(self, pull: Pull | int) -> bool:
        """Take a pull back that was not made, nor paid for; False if it was told, or cancelled, before."""
        with self._lock:
            name, k = self._under_way(pull)
            if k is None:
                return False
            del self._pending[name]
            self._open[k] -= 1
            self._rounds -= 1
            self._guess = None
            return True

    def attach(self, arm: str, reward: float, cost: float | None = None) -> None:
        """Count an outcome from elsewhere, that nobody asked for: it takes neither a round nor from the budget."""
        with self._lock:
            k = self._place(arm)
            _, *outcome = self._outcome(k, reward, cost)
            self._attached[k] += 1
            self._player = None
            self._count(k, *outcome)

    def _under_way(self, pull):
        """The number of a pull and its arm, None if it is under way no more; ValueError if it was never asked for."""
        if isinstance(pull, Pull) and type(pull.id) is int and (k := self._pending.get(pull.id)) is not None \
                and pull.arm == self._names[k]:
            return pull.id, k       # without the words for what is wrong, which take as long as the rest of `tell`
        require(not isinstance(pull, str), "pull", pull, "must be what `ask` returned, or its id; not the arm's name")
        name = count("pull", pull.id if isinstance(pull, Pull) else pull, low=0)
        require(name < self._next, "pull", pull, "was never asked for" + (
            ", or only by a process that crashed before it saved the agent: then `attach` counts its outcome, but no "
            "cost") * bool(self._lost))
        require(not any(first <= name < end for first, end in self._lost), "pull", pull,
                "was asked for after the agent was saved, so it is unknown: `attach` counts its outcome, but no cost")
        k = self._pending.get(name)
        require(k is None or not isinstance(pull, Pull) or pull.arm == self._names[k], "pull", pull,
                f"is of another agent; number {name} pulls another arm here")
        return name, k

    def _outcome(self, k, reward, cost):
        """What was paid; a reward and a cost that were looked at, and how many of them were clipped."""
        price = float(self._prices[k])
        require(cost is not None or self._priced, "cost", cost, "must be told, since the arms have no prices")
        given = price if cost is None else number("cost", cost)
        if self._priced:
            require(abs(given - price) <= 1e-9 * price, "cost", cost,
                    f"every pull of arm {self._names[k]!r} costs {price:g}: leave it out")
        reward, low = self._inside("reward", reward, self._max_reward)
        inside, more = (price, 0) if self._priced else self._inside("cost", given, self._max_cost)
        return price if self._priced else max(given, 0.0), reward, inside, low + more

    def _inside(self, name, value, most):
        value = number(name, float(value) if isinstance(value, bool | np.bool_) else value)     # sold, or not
        inside = min(max(value, 0.0), most)
        if inside != value:
            require(self.clip, name, value, f"must be in [0, {most:g}]: make an agent with a larger max_{name}, or "
                    "with clip=True")
        return inside, int(inside != value)

    def _count(self, k, reward, cost, clipped):
        r, c = reward / self._reward_unit, cost / self._max_cost
        self._n[k] += 1
        self._sums[:, k] += r, c, r * r, c * c
        self._paid[:, k] += reward, cost
        self.clipped += clipped
        if not isinstance(self.policy, IndexRule):
            self._history[k].extend((r, c))
        self._guess = self._means = None

    # ---- arms ----------------------------------------------------------------------------------------

    def add(self, arm: str, price: float | None = None) -> None:
        """Add an arm, with its price if arms have prices; or use one again that was retired."""
        with self._lock:
            arm = _name(arm)
            if arm in self._names:
                k = self._names.index(arm)
                require(not self._use[k], "arm", arm, "is there already")
                with self._changing():
                    self._use[k] = True
            else:
                alike = bare(arm) in map(bare, self._names)
                require(not alike, "arm", arm, "is there already, but for blanks at its ends")
                with self._changing():
                    self._append({arm: price})

    def retire(self, arm: str) -> None:
        """Ask for an arm no more. Pulls of it that are under way can be told still."""
        with self._lock:
            k = self._place(arm)
            require(self._use.sum() > self._use[k], "arm", arm, "is the last one in use")
            with self._changing():
                self._use[k] = False

    def _place(self, arm):
        arm = _name(arm)
        require(arm in self._names, "arm", arm, f"must be one of {self._names}")
        return self._names.index(arm)

    @contextlib.contextmanager
    def _changing(self):
        """What changes the arms, and is taken back if the policy refuses what it is told then, or fails."""
        before = {**vars(self), "_use": self._use.copy()}
        try:
            yield
            self._player = None
            self._plays()
        except BaseException:
            vars(self).update(before)
            raise

    def _append(self, arms):
        """Add arms from a dict name -> price, or None."""
        prices = [self._price(f"price of arm {name!r}", price) for name, price in arms.items()]
        for part in KEPT:
            kept, more = getattr(self, part), {"_prices": prices, "_use": True}.get(part, 0)
            columns = np.full((*kept.shape[:-1], len(arms)), more, kept.dtype)
            setattr(self, part, np.concatenate([kept, columns], axis=-1))
        self._names = [*self._names, *arms]
        self._history = self._history + [array("d") for _ in arms]

    def _price(self, name, price):
        if not self._priced:
            require(price is None, name, price, "the other arms have none")
            return 0.0
        free, most = self.stop.rate is not None or self.stop.total == math.inf, math.inf
        allowed = "must be a finite number, 0 or more" if free else "must be a finite number above 0"
        if self._bounded:
            most, allowed = self._max_cost, f"{allowed}, and at most max_cost ({self._max_cost:g})"
        return number(name, price, 0.0, most, allowed, -math.inf if free else 0.0)

    # ---- looking and keeping -------------------------------------------------------------------------

    def table(self) -> "pd.DataFrame":
        """A row for each arm: if in use, pulls told or attached, those under way, mean reward and cost in their
        own units, their ratio, and the index of the coming round; NaN where a policy has none, for it compares arms."""
        import pandas as pd
        with self._lock, np.errstate(all="ignore"):
            index, plays = np.full(len(self._names), np.nan), self._plays()
            if isinstance(plays, Index):
                index[self._use] = self._indices(plays)[2]
            reward, cost = self._paid / self._n
            return pd.DataFrame({
                "active": self._use, "pulls": self._n, "pending": self._open, "reward": reward, "cost": cost,
                "ratio": reward / cost, "index": index}, index=pd.Index(self._names, name="arm"))

    def _state(self):
        named = re.sub(" object at 0x\\w+", "", repr(self.policy))      # an address tells nobody anything
        return {"policy": [named, digest(self.policy).hex()], "stop": repr(self.stop),
                "arms": self._names, "max_reward": self._max_reward,
                "max_cost": self._max_cost if self._bounded else None, "seed": self._seed, "clip": self.clip,
                "clipped": self.clipped, "priced": self._priced, "counts": [self._rounds, self._nulls, self._next],
                "running": self._running, "lost": self._lost, "pending": list(self._pending.items()),
                **{part: getattr(self, part).tolist() for part in KEPT},
                "history": [outcomes.tolist() for outcomes in self._history]}

    def save(self, path: str | os.PathLike) -> None:
        """Write all to a file, which is replaced as a whole or, if that fails, not at all."""
        target = os.path.realpath(path)
        require(os.path.isfile(target) or not os.path.exists(target), "path", path,     # a device would be no more
                "must be a file, or not there yet")
        part = f"{target}.{os.getpid()}-{threading.get_ident()}.part"
        with self._saving:          # what is written last is the latest; meanwhile others may ask and tell
            with self._lock:
                text = json.dumps(self._state(), allow_nan=False)
            head = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(text.encode()).hexdigest()}
            try:
                with open(part, "w", encoding="utf-8") as file:
                    file.write(f'{json.dumps(head)[:-1]}, "agent": {text}}}\n')
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, target)
            except OSError as error:        # its user knows this file, and not the one beside it
                raise OSError(error.errno, error.strerror, target) from error
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)

    @classmethod
    def load(cls, path: str | os.PathLike, policy: Policy, stop: StopRule) -> "Agent":
        """The agent that was saved, for the same policy and stop rule.

        Raises ValueError, and leaves the file, if it is damaged, no agent, or of another policy, stop rule or version.
        """
        require_policy("policy", policy)
        state = _read(path)
        named, rules = state["policy"]
        require(rules == digest(policy).hex(), "policy", policy, f"{path} is of another: {named}")
        require(state["stop"] == repr(stop), "stop", stop, f"{path} is of another: {state['stop']}")
        arms = dict(zip(state["arms"], state["_prices"], strict=True)) if state["priced"] else state["arms"]
        agent = cls.__new__(cls)
        agent._set_up(policy, arms, stop, *(state[part] for part in ("max_reward", "max_cost", "seed", "clip")))
        agent._rounds, agent._nulls, agent._next = state["counts"]
        # Pulls that were asked for after the file was written are not in it: their numbers must not be given again.
        agent._lost = [*state.get("lost", []), [agent._next, agent._next + 1 + secrets.randbits(32)]]
        agent._next = agent._lost[-1][1]
        agent._pending, agent._running, agent.clipped = dict(state["pending"]), state["running"], state["clipped"]
        agent._history = [array("d", outcomes) for outcomes in state["history"]]
        for part in KEPT:
            setattr(agent, part, np.array(state[part], getattr(agent, part).dtype))
        compile_steps(policy, agent._problem())
        return agent


def _name(arm):
    """An arm's name, looked at."""
    name = arm.item() if isinstance(arm, np.generic) else arm
    require(isinstance(name, str | int) and not isinstance(name, bool), "arm", arm,
            "must be a name: a text or a whole number")
    return name


def _read(path):
    """What a file of an agent says, once it is found to be whole."""
    kept = None
    with open(path, "rb") as file, contextlib.suppress(ValueError, RecursionError):
        kept = json.load(file)
    require(isinstance(kept, dict) and kept.get("format") == FORMAT, "path", str(path),
            "is not the file of an agent, or is damaged")
    require(kept.get("version") == VERSION, "path", str(path),
            f"is of version {kept.get('version')}, and this release reads {VERSION}")
    whole = hashlib.sha256(json.dumps(kept.get("agent")).encode()).hexdigest()
    require(kept.get("sha256") == whole, "path", str(path), "is damaged: its checksum is wrong")
    return kept["agent"]
