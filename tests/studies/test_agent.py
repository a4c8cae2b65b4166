"""An agent makes the pulls of a simulation, whatever is told when; and its files are whole or refused."""

import inspect

import numpy as np
import pytest

import costbandits as cb
from costbandits import fast
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
         cb.BGreedy(), cb.EpsilonGreedy(5, 0.25), cb.IndexPolicy(my_index, (0.25,)),
         cb.ChoosePolicy(my_choice, memory=lambda K: 1)]
GAMES = [*((policy, bandit, BUDGET) for policy in PLAIN for bandit in (COINS, BETA)),
         *((policy, PRICED, HARD) for policy in (
             cb.KUBE(), cb.FractionalKUBE(), cb.KLUCB(), cb.KnownCostTS(), cb.KnownCostTS(naive=True),
             cb.EpsilonFirst(0.1), cb.UCB1(), cb.UCBB2())),
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


@pytest.mark.parametrize(("policy", "bandit", "stop"), GAMES, ids=lambda part: None if isinstance(part, Policy) else "")
def test_an_agent_makes_the_pulls_of_a_simulation(policy, bandit, stop, tmp_path):
    def keep(agent, rounds):
        if rounds % 97 == 0:
            with pytest.raises(ValueError, match="was never asked for"):
                agent.tell(10**6, 0.5, 0.5)
            agent.save(tmp_path / "agent")
            agent = cb.Agent.load(tmp_path / "agent", policy, stop)
        return agent

    pulled, agent = played(cb.Agent(policy, arms_of(bandit), stop, seed=3), bandit, 3)
    assert pulled == simulated(policy, bandit, stop, 3, len(pulled))
    kernel = fast.kernel_of(policy)
    runs = cb.simulate({"x": policy}, bandit, stop, seed=3, checkpoints=1, shuffle=False,
                       fast=kernel is not None and kernel.same == "pulls")
    assert agent.table()["pulls"].tolist() == runs.pulls[0, 0, 0].tolist() and agent.spent == runs.spent[0, 0, 0]
    assert played(cb.Agent(policy, arms_of(bandit), stop, seed=3), bandit, 3, keep=keep)[0] == pulled
