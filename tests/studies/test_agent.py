"""An agent makes the pulls of a simulation, whatever is told when; and its files are whole or refused."""

import copy
import errno
import json
import os
import secrets
import threading
from decimal import Decimal

import numpy as np
import pytest

import costbandits as cb
from costbandits import fast
from costbandits.engine.driver import END
from costbandits.engine.run import Run
from costbandits.engine.stacks import POLICY, Stacks, stream
from costbandits.policies.base import Policy, Problem

CHANCES, SHARES = (0.3, 0.5, 0.45, 0.2), (0.4, 0.5, 0.3, 0.6)
COINS = cb.Bandit([cb.Bernoulli(p) for p in CHANCES], [cb.Bernoulli(c) for c in SHARES])
BETA = cb.Bandit([cb.Beta(a, 2) for a in (1, 2, 1.5)], [cb.Beta(1, b) for b in (1, 2, 1.2)])
PRICED = cb.Bandit(COINS.rewards, [cb.Constant(c) for c in (0.5, 1.0, 0.75, 0.25)])
BUDGET, HARD, ANYTIME, HORIZON = cb.Budget(60), cb.HardBudget(150), cb.AnytimeBudget(0.35, 900), cb.Horizon(400)


@cb.index
def my_index(t, arm, p):
    return arm.reward / arm.cost + p[0] * np.sqrt(np.log(t) / arm.n) if arm.cost > 0 else np.inf


@cb.choose
def my_choice(t, spent, arms, told, p, memory, rng):
    memory[0] += rng.normal()
    return -1 if memory[0] > 2.0 * t**0.5 else -2 if t % 7 == 0 else int(rng.integers(0, arms.n.size))


PLAIN = [cb.MUCB(), cb.CUCB(), cb.IUCB(), cb.UCBSCPlus(), cb.UCB1(), cb.BudgetUCB(0.2), cb.UCBBV1(0.2), cb.VUCBBV1(0.2),
         cb.OmegaUCB(), cb.OmegaStarUCB(), cb.PDBwK(0.5), cb.KLUCBSC(), cb.OmegaKLUCB(), cb.BTS(), cb.BTS(naive=True),
         cb.IMED(), cb.MomentIMED(), cb.MomentIMED(0.25, dependence="sample"),
         cb.BGreedy(), cb.EpsilonGreedy(5, 0.25), cb.IndexPolicy(my_index, (0.25,)),
         cb.ChoosePolicy(my_choice, memory=lambda K: 1)]
GAMES = [*((policy, bandit, BUDGET) for policy in PLAIN for bandit in (COINS, BETA)),
         *((policy, PRICED, HARD) for policy in (
             cb.KUBE(), cb.FractionalKUBE(), cb.KLUCB(), cb.KnownCostTS(), cb.KnownCostTS(naive=True),
             cb.EpsilonFirst(0.1), cb.UCB1(), cb.UCBB2(), cb.MomentIMED(0.5))),
         *((policy, bandit, ANYTIME) for bandit in (COINS, BETA) for policy in (
             cb.SUAK(), cb.SUAK2(), cb.OnePhaseSkip(), cb.PrimalDualSkip(), cb.UCBSimplexSkip(1.0))),
         *((policy, PRICED, HORIZON) for policy in (
             cb.CSUCB(0.1), cb.CSTS(0.1), cb.CSTS(0.1, "gaussian"), cb.CSTS(0.1, naive=True), cb.CSETC(0.1),
             cb.CommitOnce(0.1), cb.PairwiseElimination(0.1), cb.CSElimination(0.1), cb.CSVOI(0.1), cb.BlindETC())),
         *((policy, bandit, HORIZON) for bandit in (COINS, BETA) for policy in (
             cb.CSUCB(0.1, "unknown"), cb.CSTS(0.1, costs="unknown"), cb.OmegaUCB()))]
REFUSED = [(cb.KnownMeans(), ANYTIME), (cb.ControlBudget(), ANYTIME), (cb.BudgetUCB(), BUDGET), (cb.UCBBV1(), BUDGET),
           (cb.UCBB2(), BUDGET), (cb.KLUCB(), BUDGET), (cb.KnownCostTS(), BUDGET), (cb.PDBwK(), BUDGET),
           (cb.CSUCB(0.1), HORIZON), (cb.CB(), BUDGET), (cb.BudgetCB(), BUDGET), (cb.OmegaUCB(), ANYTIME)]


def arms_of(bandit):
    """Names, with prices where they are known."""
    names = [f"arm {k}" for k in range(bandit.K)]
    return dict(zip(names, bandit.cost_means, strict=True)) if bandit is PRICED else names


def played(agent, bandit, seed, batch=1, keep=None):
    """Ask and tell to the end, in batches; the arms pulled, -1 for none, and the agent. `keep` may put another in its
    place after each pull."""
    pairs = [Stacks(bandit, seed, 0, range(bandit.K)).pairs(k, 3000) for k in range(bandit.K)]
    pulled, under_way = [], []
    while not agent.over:
        pull = agent.ask()
        pulled.append(-1 if pull.arm is None else int(pull.arm[4:]))
        under_way += [(pull, *pairs[pulled[-1]][pulled.count(pulled[-1]) - 1])] * (pull.arm is not None)
        if len(under_way) >= batch:
            for each in under_way:
                assert agent.tell(*each)
            under_way = []
        agent = keep(agent, len(pulled)) if keep else agent
    return pulled, agent


def simulated(policy, bandit, stop, seed, rounds):
    """The arms that the policy's definition pulls in so many rounds, -1 for none."""
    order, (most, *limits) = np.arange(bandit.K), stop.limits(bandit)
    run = Run(Stacks(bandit, seed, 0, order), np.full(rounds, np.inf), rounds, most, *limits, np.arange(1, rounds + 1))
    policy.play(run, Problem.of(bandit, stop, order), stream(seed, 0, POLICY))
    steps = np.diff(run.record.pulls, axis=0, prepend=0)
    return np.where(steps.any(axis=1), steps.argmax(axis=1), -1).tolist()


def by_policy(part):
    return type(part).__name__ if isinstance(part, Policy) else ""


@pytest.mark.parametrize(("policy", "bandit", "stop"), [
    pytest.param(*game, marks=pytest.mark.proof if game[1] is BETA else ()) for game in GAMES], ids=by_policy)
def test_an_agent_makes_the_pulls_of_a_simulation(policy, bandit, stop, tmp_path):
    def keep(agent, rounds):
        if rounds % 97 == 0:
            with pytest.raises(ValueError, match="was never asked for"):
                agent.tell(10**18, 0.5, 0.5)
            agent.save(tmp_path / "agent")
            agent = cb.Agent.load(tmp_path / "agent", copy.copy(policy), stop)       # as after a restart
        return agent

    pulled, agent = played(cb.Agent(policy, arms_of(bandit), stop, seed=3), bandit, 3)
    assert pulled == simulated(policy, bandit, stop, 3, len(pulled))
    kernel = fast.kernel_of(policy)
    runs = cb.simulate({"x": policy}, bandit, stop, seed=3, checkpoints=1, shuffle=False,
                       fast=kernel is not None and kernel.same == "pulls")
    assert agent.table()["pulls"].tolist() == runs.pulls[0, 0, 0].tolist()
    assert agent.spent == pytest.approx(runs.spent[0, 0, 0], rel=1e-12)
    assert played(cb.Agent(policy, arms_of(bandit), stop, seed=3), bandit, 3, keep=keep)[0] == pulled


def test_every_policy_is_played_or_refused():
    there = {cls for cls in vars(cb).values() if isinstance(cls, type) and issubclass(cls, Policy)}
    missing = there - {type(policy) for policy, *_ in [*GAMES, *REFUSED]}
    assert not missing, "add them to PLAIN or another part of GAMES, or to REFUSED"


@pytest.mark.parametrize(("policy", "stop"), REFUSED, ids=by_policy)
def test_what_must_know_more_is_refused(policy, stop):
    with pytest.raises(ValueError, match=r"must (be known|know every cost|be able to skip)|needs a LinearBandit"):
        cb.Agent(policy, ["red", "blue"], stop)


# ---- pulls under way ---------------------------------------------------------------------------------

CERTAIN = cb.Bandit([cb.Constant(r) for r in (0.5, 0.75, 0.25, 0.5)], PRICED.costs)


@pytest.mark.parametrize(("policy", "stop"), [
    (policy, stop) for policy, bandit, stop in GAMES if bandit is not BETA and stop is not ANYTIME],
    ids=by_policy)
def test_outcomes_that_are_as_imagined_may_come_late(policy, stop):
    def pulled(batch):
        names = arms_of(PRICED)
        agent = cb.Agent(policy, names if policy.__class__ in NEED_PRICES or stop is HARD else [*names], stop, seed=1)
        for k, name in enumerate(names):
            agent.attach(name, CERTAIN.rewards[k].value, names[name])
        return played(agent, CERTAIN, 1, batch)[0]

    assert pulled(60) == pulled(1)


PRICES = arms_of(PRICED)
NEED_PRICES = {type(policy) for policy, bandit, stop in GAMES if bandit is PRICED}


def test_an_index_sees_pulls_under_way_at_their_arms_mean():
    agent, policy = cb.Agent(cb.OmegaUCB(), ["a", "b", "c"], cb.Budget(99), max_reward=2, max_cost=4), cb.OmegaUCB()
    assert [agent.ask().arm for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]     # in turn: nobody knows
    for pull, reward, cost in ((0, 2.0, 1.0), (3, 0.0, 2.0), (1, 1.0, 4.0)):
        agent.tell(pull, reward, cost)
    # a: one more beside two of mean 1/2 and 3/8; b: one more of 1/2 and 1; c: two of the mean over all.
    states = [(3, 1.5, 1.125, 1.5, 0.46875), (2, 1.0, 2.0, 0.5, 2.0), (2, 1.0, 7 / 6, 5 / 6, 0.875)]
    want = [policy.rule(8, *state, 0.0, policy.parameters) for state in states]
    table = agent.table()
    assert table["index"].tolist() == pytest.approx(want, rel=1e-12)
    assert table["pending"].tolist() == [1, 1, 2] and table["pulls"].tolist() == [2, 1, 0]
    assert table.loc["a", ["reward", "cost", "ratio"]].tolist() == [1.0, 1.5, 1 / 1.5]
    assert agent.ask().arm == "abc"[int(np.argmax(want))]
    assert agent.reserved == pytest.approx(4 * np.array([3 / 8, 1, 7 / 12]) @ agent.table()["pending"])
    assert agent.left == pytest.approx(99 - 7 - agent.reserved)


@pytest.mark.parametrize("policy", [cb.KUBE(), cb.EpsilonFirst(0.3), cb.KnownCostTS(), cb.FractionalKUBE(),
                                    cb.ChoosePolicy(my_choice, memory=lambda K: 1)],
                         ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_a_hard_budget_is_never_exceeded_whatever_is_under_way(policy, seed):
    rng, prices = np.random.default_rng(seed), {"a": 0.3, "b": 1.0, "c": 0.7}
    agent, under_way, paid = cb.Agent(policy, prices, cb.HardBudget(30.05), seed=seed), [], 0.0
    while not agent.over:
        pull = agent.ask()
        if pull.arm is not None:
            under_way.append(pull)
            paid += prices[pull.arm]
        assert paid <= 30.05 + 1e-9
        if len(under_way) == 25:
            for pull in rng.permutation(25)[:20]:
                agent.tell(under_way[pull], float(rng.random() < 0.5))
            under_way = [pull for pull in under_way if pull.id in agent._pending]
    assert paid > 30.05 - 0.3 and agent.left == pytest.approx(30.05 - paid)


@pytest.mark.parametrize("policy", [cb.SUAK2(), cb.UCBSimplexSkip(1.0), cb.OnePhaseSkip()], ids=repr)
def test_an_anytime_budget_is_kept_and_allows_one_pull_at_a_time(policy):
    agent, rng = cb.Agent(policy, ["a", "b"], cb.AnytimeBudget(0.3, 800), max_cost=2.0), np.random.default_rng(0)
    spent = 0.0
    for _ in range(50):
        agent.attach("a", 1.0, 0.0)         # what was spared elsewhere cannot be spent here
    for t in range(1, 801):
        pull = agent.ask()
        if pull.arm is not None:
            with pytest.raises(ValueError, match="one at a time"):
                agent.ask()
            if t % 5 == 0:
                assert agent.cancel(pull)
                continue
            cost = 2.0 * float(rng.random() < {"a": 0.2, "b": 0.5, "c": 0.9}[pull.arm])
            spent += cost
            assert agent.tell(pull, 0.5 * float(rng.random() < 0.5), cost)
        assert spent <= 2.0 * 0.3 * agent._rounds
        if t in (300, 500):
            agent.add("c") if t == 300 else agent.retire("a")
    assert spent > 100 and agent.left == pytest.approx(480 - spent)


# ---- what is told ------------------------------------------------------------------------------------

@pytest.mark.parametrize("policy", [cb.OmegaUCB(), cb.SUAK()], ids=repr)
def test_outcomes_are_divided_and_not_shifted(policy):
    def pulled(unit):
        rng, stop = np.random.default_rng(4), ANYTIME if policy.skips else cb.Budget(99 * unit)
        agent = cb.Agent(policy, list("abc"), stop, max_reward=8 * unit, max_cost=unit)
        for _ in range(60):
            pull = agent.ask()
            if pull.arm is not None:
                agent.tell(pull, 8 * unit * rng.random(), unit * rng.random())
            yield pull.arm

    assert list(pulled(1.0)) == list(pulled(4.0))


@pytest.mark.parametrize("scaled", [cb.KUBE, lambda scale: cb.MomentIMED(0.25, scale)], ids=["KUBE", "MomentIMED"])
def test_a_reward_scale_makes_no_difference(scaled):
    def pulled(scale):
        agent, rng = cb.Agent(scaled(scale), PRICES, HARD, max_reward=8, seed=2), np.random.default_rng(2)
        for _ in range(80):
            pull = agent.ask()
            agent.tell(pull, 8 * rng.random())
            yield pull.arm

    assert list(pulled(1.0)) == list(pulled(8.0))


AGENT = {"policy": cb.BTS(), "arms": ["red", "blue"], "stop": cb.Budget(9), "max_reward": 40, "max_cost": 2.5}


@pytest.mark.parametrize(("ask", "words"), [
    (lambda agent: agent.tell(7, 1, 1), "pull = 7: was never asked for"),
    (lambda agent: agent.tell(-1, 1, 1), "pull = -1: must be a whole number"),
    (lambda agent: agent.tell("0", 1, 1), "pull = '0': must be"),
    (lambda agent: agent.tell(0, 41, 1), r"reward = 41.0: must be in \[0, 40\]"),
    (lambda agent: agent.tell(0, -1, 1), "reward = -1.0: must be in"),
    (lambda agent: agent.tell(0, 1, 2.6), r"cost = 2.6: must be in \[0, 2.5\]"),
    (lambda agent: agent.tell(0, float("nan"), 1), "reward = nan: must be a finite"),
    (lambda agent: agent.tell(0, 1, float("inf")), "cost = inf: must be a finite"),
    (lambda agent: agent.tell(0, 1), "cost = None: must be told"),
    (lambda agent: agent.tell(cb.Agent(**AGENT | {"arms": ["x", "y"]}).ask(), 1, 1), "is of another agent"),
    (lambda agent: agent.attach("green", 1, 1), "arm = 'green': must be one of"),
    (lambda agent: agent.attach("red", 50, 1), "reward = 50.0: must be in"),
    (lambda agent: agent.add("red"), "is there already"), (lambda agent: agent.add("gold", price=1), "have none"),
    (lambda agent: agent.add(None), "must be a name"),
    (lambda agent: agent.add("red "), "is there already, but for blanks at its ends"),
    (lambda agent: agent.retire("green"), "must be one of"),
    (lambda agent: cb.Agent(**AGENT | {"policy": cb.BTS}), r"policy = .*; call the class: BTS\(\.\.\.\)"),
    (lambda agent: cb.Agent(**AGENT | {"stop": cb.Budget}), r"stop = .*: must be Budget\(total\)"),
    (lambda agent: cb.Agent(**AGENT | {"stop": cb.HardBudget(9)}), r"arms=\{name: price\}"),
    (lambda agent: cb.Agent(**AGENT | {"arms": "red"}), "must be a list of names, or a dict"),
    (lambda agent: cb.Agent(**AGENT | {"arms": []}), "one or more, all different"),
    (lambda agent: cb.Agent(**AGENT | {"arms": ["red", "red"]}), "one or more, all different"),
    (lambda agent: cb.Agent(**AGENT | {"arms": ["red", "red "]}), "all different, by more than blanks"),
    (lambda agent: agent.tell(0, "1.50", 1), "reward = '1.50': must be a finite number, and no text"),
    (lambda agent: cb.Agent(**AGENT | {"arms": [True]}), "must be a name"),
    (lambda agent: cb.Agent(**AGENT | {"arms": {"red": 0}}), "price of arm 'red' = 0: must be a finite number above 0"),
    (lambda agent: cb.Agent(**AGENT | {"arms": {"red": 3}}), r"at most max_cost \(2.5\)"),
    (lambda agent: cb.Agent(cb.KnownCostTS(), {"red": 3}, cb.HardBudget(9)).ask().nothing, "nothing"),
    (lambda agent: cb.Agent(cb.UCBBV1(), {"red": 3}, cb.HardBudget(9)), "give max_cost"),
    (lambda agent: cb.Agent(**AGENT | {"max_reward": 0}), "max_reward = 0: must be"),
    (lambda agent: cb.Agent(**AGENT | {"clip": 1}), "clip = 1: must be True or False")])
def test_what_is_refused_changes_nothing(ask, words):
    agent = cb.Agent(**AGENT)
    pull = agent.ask()
    before = agent._state()
    with pytest.raises((ValueError, AttributeError), match=words):
        ask(agent)
    assert agent._state() == before
    assert agent.tell(pull, 1, 1) and not agent.tell(pull, 1, 1) and not agent.cancel(pull)


@pytest.mark.parametrize("change", [lambda agent: agent.add("green"), lambda agent: agent.retire("red")])
def test_arms_stay_as_they_were_whatever_fails(change, monkeypatch):
    agent = cb.Agent(**AGENT)
    agent.tell(agent.ask(), 1, 1)
    before, player = agent._state(), agent._plays()
    with monkeypatch.context() as patch:
        patch.setattr("costbandits.studies.agent.player", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            change(agent)
    assert agent._state() == before and agent._plays() is player


def test_where_the_run_is_over_nothing_is_asked_for():
    agent = cb.Agent(**AGENT | {"stop": cb.Budget(2.5)})
    agent.tell(agent.ask(), 1, 1)
    late = agent.ask()
    agent.ask()                                             # expected to cost 1 each, like the one that is known
    assert agent.over and agent.left == -0.5
    with pytest.raises(ValueError, match="the run is over"):
        agent.ask()
    assert agent.cancel(late) and not agent.cancel(late) and not agent.tell(late, 1, 1)
    assert not agent.over and agent.left == 0.5


def test_a_budget_is_spent_to_the_last_pull_whatever_the_rounding():
    hard, soft = cb.Agent(cb.UCB1(), {"a": 0.1, "b": 0.1}, cb.HardBudget(0.3)), cb.Agent(cb.UCB1(), ["a"], cb.Budget(1))
    for agent, pulls, paid in ((hard, 3, None), (soft, 10, 0.1)):       # 3 * 0.1 > 0.3, and 0.1 + ... + 0.1 < 1
        for _ in range(pulls):
            assert not agent.over
            agent.tell(agent.ask(), 1, paid)
        assert agent.over


@cb.choose
def the_first(t, spent, arms, told, p, memory, rng):
    return 0


def test_what_does_not_fit_beside_pulls_under_way_gives_way_to_the_best_ratio():
    agent = cb.Agent(cb.ChoosePolicy(the_first), {"big": 1, "mid": 0.5, "small": 0.1}, cb.HardBudget(1.6))
    for arm, reward in (("big", 1), ("mid", 0.4), ("small", 0.2)):
        agent.attach(arm, reward)
    assert [agent.ask().arm for _ in range(3)] == ["big", "small", "small"]


@cb.choose
def astray(t, spent, arms, told, p, memory, rng):
    return int(p[0])


@pytest.mark.parametrize("word", [-9, END])
def test_a_word_that_no_policy_may_say_is_refused(word):
    """END is said by rules of the library alone."""
    with pytest.raises(RuntimeError, match=rf"round 1: the policy returned an arm out of range \({word}\)"):
        cb.Agent(cb.ChoosePolicy(astray, params=[word]), ["a", "b"], cb.Horizon(9)).ask()


def test_a_cancelled_pull_takes_no_round_and_one_under_way_may_cost_the_most():
    agent = cb.Agent(cb.MUCB(), ["a", "b"], cb.Horizon(2))
    agent.cancel(agent.ask())
    for over in (False, False, True):
        assert agent.over is over
        over or agent.ask()
    anytime = cb.Agent(cb.SUAK2(), ["a", "b"], cb.AnytimeBudget(0.5, 900), max_cost=4)
    while anytime.ask().arm is None:
        pass
    assert anytime.reserved == 4


def test_what_was_paid_is_divided_by_the_largest_cost():
    """Also the prices of pulls under way, and what arms have cost that are retired."""
    def pulled(unit):
        agent = cb.Agent(cb.OmegaUCB(), {"a": unit, "b": unit / 2, "c": unit / 4}, cb.HardBudget(40 * unit),
                         max_cost=unit)
        rng, asked = np.random.default_rng(3), []
        for _ in range(15):
            asked.append([agent.ask() for _ in range(3)])
            for pull in asked[-1]:
                agent.tell(pull, rng.random())
        agent.retire("b")
        return [pull.arm for pulls in asked for pull in pulls], agent._problem().budget, agent.spent / unit

    arms, budget, spent = pulled(8.0)
    assert pulled(1.0) == (arms, budget, spent) and budget == 40 - 0.5 * arms.count("b") and 0 < arms.count("b") < 45


def test_a_known_price_need_not_be_told():
    agent = cb.Agent(cb.KUBE(), {"small": 0.25, "large": 1}, cb.HardBudget(500))
    for tell in (lambda pull: agent.tell(pull, 1), lambda pull: agent.tell(pull.id, 1, agent._prices[0])):
        assert tell(agent.ask())
        agent.retire("large")
    with pytest.raises(ValueError, match=r"every pull of arm 'small' costs 0\.25"):
        agent.tell(agent.ask(), 1, 1)


def test_clipped_outcomes_are_counted():
    agent = cb.Agent(**AGENT, clip=True)
    agent.tell(agent.ask(), 50, -1)
    assert agent.clipped == 2 and agent.table()[["reward", "cost"]].max().tolist() == [40, 0]


@pytest.mark.parametrize("policy", [cb.OmegaUCB(), cb.BTS()], ids=repr)
def test_the_budget_pays_what_was_told_also_if_the_policy_is_told_less(policy, tmp_path):
    agent = cb.Agent(policy, ["red", "blue"], cb.Budget(500), max_cost=3, clip=True)
    agent.tell(agent.ask(), 1, 75)
    agent.tell(agent.ask(), 1, -75)      # a slip makes nobody richer
    agent.attach("red", 1, 9)
    agent.save(tmp_path / "agent")
    for same in (agent, cb.Agent.load(tmp_path / "agent", policy, cb.Budget(500))):
        told = (same.table().cost * same.table().pulls).sum()
        assert (same.clipped, same.spent, same.left, told) == (3, 75, 425, 6)
        known = same._problem()     # of which the policy knows two costs of 3
        assert known.budget * 3 - 2 * 3 == pytest.approx(425)


@pytest.mark.parametrize("policy", [cb.OmegaUCB(), cb.BTS(), cb.EpsilonGreedy(5, 0.25)], ids=repr)
def test_arms_come_and_go(policy):
    agent, rng, pulled = cb.Agent(policy, ["a", "b"], cb.Horizon(900)), np.random.default_rng(0), []
    for _ in range(900):
        if len(pulled) == 300:
            agent.add("gold")
        if len(pulled) == 600:
            agent.retire("gold")
        pull = agent.ask()
        pulled.append(pull.arm)
        agent.tell(pull, float(rng.random() < {"a": 0.3, "b": 0.4, "gold": 0.9}[pull.arm]), 0.5)
    assert agent.over and "gold" not in pulled[600:] and pulled[300:600].count("gold") > 200
    assert agent.table()["active"].to_dict() == {"a": True, "b": True, "gold": False}
    with pytest.raises(ValueError, match="is the last one"):
        [agent.retire(arm) for arm in "ab"]
    agent.add("gold")
    assert agent.table().loc["gold", "pulls"] == pulled.count("gold")


@pytest.mark.parametrize("policy", [cb.FractionalKUBE(), cb.KLUCB(), cb.UCBB2(), cb.MUCB(), cb.KUBE()], ids=repr)
def test_to_the_others_an_arm_that_was_retired_never_was(policy):
    """Neither its price, nor its rounds, is told of any other."""
    found = []
    for gone in ({}, {"gone": 0.125}):
        agent, rng = cb.Agent(policy, gone | {"a": 0.5, "b": 1.0, "c": 0.25}, HARD, seed=1), np.random.default_rng(1)
        for arm in gone:
            for reward in (1, 0, 1):
                agent.attach(arm, reward)
            agent.retire(arm)
        pulled = []
        for _ in range(60):
            pull = agent.ask()
            pulled.append(pull.arm)
            agent.tell(pull, float(rng.random() < {"a": 0.4, "b": 0.6, "c": 0.25}[pull.arm]))
        found.append((pulled, agent.table()["index"].dropna().tolist(), set(agent.table().index[agent.table().active])))
    assert found[0] == found[1]


def test_what_a_retired_arm_costs_late_is_told_to_the_policy(tmp_path):
    """As to one that is loaded then, so that it does not matter whether it was."""
    policy, stop = cb.EpsilonFirst(0.75), cb.HardBudget(40)
    agent = cb.Agent(policy, {"big": 10, "x": 1, "y": 2}, stop)
    late = agent.ask()
    for reward in (1, 0):
        agent.tell(agent.ask(), reward)
    agent.retire("big")
    agent.tell(agent.ask(), 1)
    assert late.arm == "big" and agent.tell(late, 1)
    agent.save(tmp_path / "agent")
    pulled = [[], []]
    for each, arms in zip((agent, cb.Agent.load(tmp_path / "agent", policy, stop)), pulled, strict=True):
        while not each.over:
            arms.append((pull := each.ask()).arm)
            each.tell(pull, float(pull.arm == "x"))
    assert pulled[0] == pulled[1] and pulled[0].count("y") > 3


def test_what_is_loaded_is_checked_with_the_arms_in_use(tmp_path):
    policy = cb.CSETC(0.1, exploration_pulls=20, costs="unknown")
    agent = cb.Agent(policy, ["a", "b"], cb.Horizon(50))
    agent.retire("a")
    agent.add("c")
    agent.save(tmp_path / "agent")
    assert cb.Agent.load(tmp_path / "agent", policy, cb.Horizon(50)).ask().arm in "bc"


def test_outcomes_from_elsewhere_count_for_the_policy_alone():
    agent = cb.Agent(cb.MUCB(), ["a", "b"], cb.Budget(9), max_cost=2)
    for _ in range(30):
        agent.attach("a", 1, 2)
        agent.attach("b", 0, 2)
    assert agent.left == 9 and [agent.ask().arm for _ in range(5)] == ["a"] * 5 and agent.over


@pytest.mark.parametrize("policy", [cb.BTS(), cb.EpsilonGreedy(5, 0.25)], ids=repr)
def test_what_is_cancelled_is_asked_for_again(policy):
    agent = cb.Agent(policy, ["a", "b", "c"], cb.Horizon(90))
    agent.tell(agent.ask(), 0.5, 0.5)
    _, *asked = (agent.ask() for _ in range(20))
    for pull in asked:
        agent.cancel(pull)
    assert [agent.ask().arm for _ in asked] == [pull.arm for pull in asked]


def test_the_horizon_that_is_told_counts_what_was_pulled_elsewhere_and_what_was_retired():
    pulled = []
    for asked_before in (False, True):
        agent = cb.Agent(cb.CSETC(0.1, costs="unknown"), ["a", "b"], cb.Horizon(90))
        if asked_before:
            agent.cancel(agent.ask())
        for _ in range(30):
            agent.attach("a", 0.5, 0.5)
        pulled.append([])
        for _ in range(40):
            pulled[-1].append(agent.ask().arm)
            agent.tell(len(pulled[-1]) - 1 + asked_before, 0.5, 0.5)
    agent.retire("a")
    assert pulled[0] == pulled[1] and agent._problem().horizon == 90 - pulled[1].count("a")


def test_threads_lose_nothing():
    agent, told = cb.Agent(cb.OmegaUCB(), ["a", "b", "c"], cb.Budget(1e5)), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(1000):
            told.append(agent.tell(agent.ask(), float(rng.random() < 0.4), float(rng.random() < 0.5)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(told) and len(told) == agent.table()["pulls"].sum() == 4000 and agent.reserved == 0


# ---- files -------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("change", "other", "words"), [
    (lambda text: text[:-9], {}, "is not the file of an agent, or is damaged"),
    (lambda text: "", {}, "is not the file"), (lambda text: "\udcff", {}, "is not the file"),
    (lambda text: '{"a": 1}', {}, "is not the file"), (lambda text: "[]", {}, "is not the file"),
    (lambda text: text.replace("2.5", "2.6"), {}, "its checksum is wrong"),
    (lambda text: text.replace('"version": 2', '"version": 3'), {}, "is of version"),
    (str, {"policy": cb.BTS(naive=True)}, r"policy = .* is of another: BTS\(naive=False\)"),
    (str, {"policy": cb.BTS}, "call the class"), (str, {"stop": cb.Budget(8)}, r"stop = .* is of another: Budget")])
def test_a_file_that_is_not_the_agents_is_refused_and_left_alone(tmp_path, change, other, words):
    path, agent = tmp_path / "agent.json", cb.Agent(**AGENT)
    agent.ask()
    agent.save(path)
    assert json.loads(path.read_text())["agent"]["arms"] == ["red", "blue"]
    path.write_text(change(path.read_text()), errors="surrogateescape")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=words):
        cb.Agent.load(path, **{name: AGENT[name] for name in ("policy", "stop")} | other)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["agent.json"]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path, agent = tmp_path / "agent.json", cb.Agent(**AGENT)
    agent.save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    agent.ask()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*agent\.json'$"):
        agent.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["agent.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match=r"must be a file, or not there yet$"):
            cb.Agent(**AGENT).save(path)
    assert os.listdir(tmp_path) == ["pipe"] and (tmp_path / "pipe").is_fifo()


def test_the_number_of_a_pull_that_a_crash_has_lost_is_not_given_again(tmp_path):
    path, agent = tmp_path / "agent.json", cb.Agent(**AGENT)
    kept = agent.ask()
    agent.save(path)
    lost = [agent.ask() for _ in range(3)]
    known = {name: AGENT[name] for name in ("policy", "stop")}
    for _ in range(2):      # the file is loaded, the process dies once more, and so on
        agent = cb.Agent.load(path, **known)
        assert agent.pending == [kept]
        for pull in lost:
            # The second load may begin at a smaller number than the first one: both are drawn at random.
            with pytest.raises(ValueError, match="asked for"):
                agent.tell(pull.id, 1, 1)
        lost += [agent.ask() for _ in range(3)]
        assert agent.pending == [kept, *lost[-3:]] and agent.tell(lost[-1], 1, 1) and not agent.tell(lost[-1].id, 1, 1)
    assert len({pull.id for pull in lost}) == 9
    agent.save(path)
    agent = cb.Agent.load(path, **known)
    with pytest.raises(ValueError, match="unknown"):
        agent.tell(lost[0], 1, 1)
    assert agent.tell(kept, 1, 1) and agent.tell(lost[-2], 1, 1) and not agent.tell(lost[-1], 1, 1)


def test_a_lost_pull_beyond_the_new_numbers_is_told_what_it_may_be(tmp_path, monkeypatch):
    def loaded(drawn):
        monkeypatch.setattr(secrets, "randbits", lambda bits: drawn)
        return cb.Agent.load(path, AGENT["policy"], AGENT["stop"])

    path = tmp_path / "agent.json"
    cb.Agent(**AGENT).save(path)
    lost = loaded(10**9).ask()
    with pytest.raises(ValueError, match="was never asked for, or only by a process that crashed before it saved"):
        loaded(7).tell(lost, 1, 1)
    with pytest.raises(ValueError, match=r"was never asked for$"):       # one that was never loaded has lost nothing
        cb.Agent(**AGENT).tell(lost, 1, 1)


def test_a_reward_may_be_true_or_false():
    agents = [cb.Agent(**AGENT) for _ in range(2)]
    for agent, sold in zip(agents, (np.True_, 1.0), strict=True):
        agent.tell(agent.ask(), sold, 0.5)
        agent.tell(agent.ask(), bool(not sold), 0.5)
    assert agents[0]._state() == agents[1]._state()


def test_amounts_may_be_decimals():
    agents = [cb.Agent(**AGENT) for _ in range(2)]
    for agent, amount in zip(agents, (float, Decimal), strict=True):
        assert agent.tell(agent.ask(), reward=amount("12.50"), cost=amount("0.75"))
    assert agents[0]._state() == agents[1]._state()


def test_nothing_is_lost_in_a_file(tmp_path):
    agent = cb.Agent(**AGENT, seed=5, clip=True)
    for arm, outcome in zip(["red", "blue"] * 5, np.random.default_rng(0).random((10, 2)), strict=True):
        agent.attach(arm, *outcome)
    agent.tell(agent.ask(), 99, 1 / 3)
    agent.ask()
    agent.add("gold")
    agent.retire("red")
    agent.save(tmp_path / "agent")
    again = cb.Agent.load(tmp_path / "agent", AGENT["policy"], AGENT["stop"])
    told = [each._state() for each in (agent, again)]
    numbers = [(state["counts"].pop(), state.pop("lost")) for state in told]
    assert told[0] == told[1] and numbers == [(2, []), (again._next, [[2, again._next]])]
    assert [again.ask().arm for _ in range(9)] == [agent.ask().arm for _ in range(9)]
    anytime = cb.Agent(cb.SUAK2(), ["a"], ANYTIME)
    while anytime.spent < 1:
        if (pull := anytime.ask()).arm is not None:
            anytime.tell(pull, 1, 1)
    anytime.save(tmp_path / "anytime")
    assert cb.Agent.load(tmp_path / "anytime", cb.SUAK2(), ANYTIME)._state()["running"] == anytime.spent == 1
    cb.Agent(cb.KUBE(), {"dear": 2}, HARD).save(tmp_path / "agent")         # without a largest cost
    assert cb.Agent.load(tmp_path / "agent", cb.KUBE(), HARD).ask().arm == "dear"


class Unbounded:
    mean, variance, support = 0.5, 0.25, (0.0, np.inf)

    def sample(self, rng, size):
        return rng.exponential(0.5, size)


def test_what_is_almost_right_is_told():
    with pytest.raises(AttributeError, match="no attribute 'OmegaUBC'; did you mean OmegaUCB"):
        cb.OmegaUBC  # noqa: B018
    with pytest.raises(ValueError, match=r"must be a non-empty dict label -> policy: \{'any label': policy\}"):
        cb.simulate(cb.BTS(), COINS, BUDGET)
    with pytest.raises(ValueError, match=r"of a dict of arms, list\(arms.values\(\)\)"):
        cb.Bandit({"red": cb.Bernoulli(0.5)}, {"red": cb.Bernoulli(0.5)})
    with pytest.raises(ValueError, match=r"reward support = \(0.0, inf\): .*; cut off what has no bound"):
        cb.simulate({"UCB1": cb.UCB1()}, cb.Bandit([Unbounded()], [cb.Constant(1)]), BUDGET)
