"""The rules and kernels are plain Python too: not compiled they play the identical trajectories."""

import pytest
from pins import my_choice, my_index
from reference import POLICIES, bits, digest, in_plain_python, proving, small_study

import costbandits as cb


def everything():
    mine = {"my index": cb.IndexPolicy(my_index, (0.1,)), "my choice": cb.ChoosePolicy(my_choice, memory=lambda K: 1),
            "my lazy index": cb.IndexPolicy(my_index, (0.1,), monotone=True)}
    return bits(small_study({**POLICIES, **mine}), "pulls", "rounds", "skips", "spent", "reward")


@pytest.mark.slow
def test_compiled_and_plain_python_agree_bit_by_bit():
    assert in_plain_python("test_jit", "m.everything()") == everything()


class Own:
    """A law that the engine does not know: uniform on [0.8, 1]."""

    mean, variance, support = 0.9, 0.04 / 12, (0.8, 1.0)

    def sample(self, rng, size):
        return 0.8 + 0.2 * rng.random(size)


def long_runs(long):
    """Digests of runs in which a clear leader is pulled by blocks: of whole outcomes, fractions, a law of one's own.

    And of short ones by the definitions. Plain Python takes ten seconds for them if they are really `long`.
    """
    size = 4000 if long else 500
    some, coins = cb.Discrete((0, 0.5, 1), (0.05, 0.1, 0.85)), [cb.Bernoulli(0.9), cb.Bernoulli(0.2)]
    known, random = [cb.Constant(1.0)] * 2, [cb.Discrete((0.5, 1), (0.5, 0.5))] * 2
    apart = [cb.Bernoulli(0.9), cb.Bernoulli(0.1)]
    greedy, first = cb.EpsilonGreedy(5, 0.1), cb.EpsilonFirst(0.1)
    games = {cb.HardBudget(size): (known, [cb.KnownCostTS(), cb.KLUCB(), cb.KUBE(), first]),
             cb.HardBudget(5 * size): (known, [cb.KnownCostTS()]),
             cb.Budget(5 * size): (random, [cb.BTS(), cb.KLUCBSC()]),
             cb.Budget(size): (random, [cb.BGreedy(), greedy, cb.OmegaUCB(0.25), cb.MUCB()]),
             cb.AnytimeBudget(0.5, 3000): (apart, [
                 cb.SUAK(margin=2.0, width=0.1), cb.SUAK(reserve="log t / 8 omega", margin=2.0),
                 cb.SUAK(counting="two accounts", reserve="log t / 4 omega", margin=3.0, width=1.5),
                 cb.OnePhaseSkip()]),
             cb.Horizon(500): (random, [cb.CSTS(0.2, costs="unknown", naive=True), cb.CSUCB(0.2, "unknown")]),
             cb.Horizon(size): (known, [cb.CSTS(0.2), cb.CSTS(0.2, "gaussian"), cb.CSUCB(0.2), cb.CSElimination(0.2)])}
    by_definition = {cb.HardBudget(40): (known, [first, cb.KUBE(), cb.KnownCostTS()]),
                     cb.Budget(40): (random, [cb.BGreedy(), greedy, cb.BTS()]),
                     cb.Horizon(40): (known, [cb.CSTS(0.2), cb.CSTS(0.2, "gaussian")])}
    runs = [cb.simulate({"p": policy}, cb.Bandit([best, coins[1]], costs), stop, 1, seed=3, checkpoints=2, fast=fast)
            for fast, games in ((True, games), (False, by_definition))
            for stop, (costs, policies) in games.items() for policy in policies for best in (coins[0], some, Own())]
    return [digest(each.pulls, each.rounds, each.spent, each.reward) for each in runs]


@pytest.mark.slow
@pytest.mark.parametrize("long", proving([False, True], True))
def test_blocks_are_the_same_bits_in_plain_python(long):
    assert in_plain_python("test_jit", f"m.long_runs({long})") == long_runs(long)
