"""A trace is the very run of `cb.simulate`, round by round."""

import numpy as np
import pins
import pytest

import costbandits as cb
from costbandits.policies.base import IndexRule

ROUNDS = 160        # some blocks are pulled by then: leaves have 64 outcomes
# Fractions that are counted: there a block draws other random numbers than its pulls one by one.
TENTHS = cb.Bandit(outcomes=[(cb.Discrete([0.1, p], [0.5, 0.5]), cb.Discrete([0.3, 0.9], [0.5, 0.5]))
                             for p in (0.2, 0.95, 0.3)])


def specimens():
    for study, (policies, bandits, stop, _) in pins.STUDIES.items():
        for label, policy in policies.items():
            if study not in ("beta", "discrete", "small costs", "small known costs"):       # the same policies
                yield pytest.param(policy, bandits, stop, id=f"{study}: {label}")
    yield pytest.param(cb.BTS(), TENTHS, cb.Budget(90), id="tenths: BTS")
    yield pytest.param(cb.CSTS(0.1, "gaussian", costs="unknown"), TENTHS, cb.Horizon(200), id="tenths: CSTS")


@pytest.mark.parametrize("policy, bandits, stop", list(specimens()))
def test_a_trace_is_the_run_of_simulate(policy, bandits, stop):
    seen = cb.trace(policy, bandits, stop, seed=5, rounds=ROUNDS, replication=1)
    runs = cb.simulate({"p": policy}, bandits, stop, [1], seed=5, checkpoints=50)
    K = runs.bandits[0].K
    chosen, pulls = (seen[name].to_numpy().reshape(-1, K) for name in ("chosen", "pulls"))
    T = min(ROUNDS, int(runs.rounds[0, 0, -1]))
    assert len(chosen) == T and (chosen.sum(axis=1) <= 1).all()
    after = chosen.cumsum(axis=0)
    assert np.array_equal(pulls, after - chosen)
    paid = [seen[name].fillna(0).to_numpy().reshape(-1, K).sum(axis=1).cumsum() for name in ("reward", "cost")]
    at = runs.rounds[0, 0]
    for c in np.flatnonzero((at > 0) & (at <= T)).tolist():
        t = at[c] - 1
        assert np.array_equal(after[t], runs.pulls[0, 0, c])
        assert [paid[0][t], paid[1][t]] == pytest.approx([runs.reward[0, 0, c], runs.spent[0, 0, c]])
    assert seen["spent"].to_numpy()[K::K] == pytest.approx(paid[1][:-1])
    assert np.array_equal(seen["index"].notna(), (seen["pulls"] > 0) & isinstance(policy, IndexRule))


def test_the_largest_index_is_chosen_and_means_are_those_of_what_was_paid():
    bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.2, 0.5, 0.8)], [cb.Beta(2, 1)] * 3, names=["a", "b", "c"])
    seen = cb.trace(cb.OmegaUCB(0.25), bandit, cb.Horizon(100))
    assert seen["round"].tolist() == np.repeat(np.arange(1, 101), 3).tolist() and seen["arm"].tolist() == [*"abc"] * 100
    for name, part in seen.groupby("arm"):
        for what in ("reward", "cost"):
            before = part[what].fillna(0).cumsum().shift(fill_value=0) / part["pulls"]
            assert part[f"mean_{what}"].to_numpy() == pytest.approx(before.to_numpy(), nan_ok=True), name
    late = seen[seen["round"] > 3]
    assert (late.groupby("round")["index"].max().to_numpy() == late[late["chosen"]]["index"].to_numpy()).all()


def test_an_index_is_that_of_its_round():
    bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.2, 0.5)], [cb.Beta(2, 1)] * 2)
    seen = cb.trace(cb.UCB1(), bandit, cb.Horizon(40)).query("round > 2")
    by_hand = seen["mean_reward"] + np.sqrt(2 * np.log(seen["round"] - 1) / seen["pulls"])
    assert seen["index"].to_numpy() == pytest.approx(by_hand.to_numpy(), rel=1e-12)


def test_a_definition_is_traced_where_it_is_asked_for():
    """Of a policy whose kernel has the same law, and not the same pulls."""
    bandit, stop = cb.Bandit([cb.Bernoulli(p) for p in (0.5, 0.5)], [cb.Constant(1.0)] * 2), cb.Budget(60)
    policy, found = cb.EpsilonGreedy(2, 1), []
    for fast in (True, False):
        seen = cb.trace(policy, bandit, stop, seed=1, rounds=60, fast=fast)
        found.append(seen["chosen"].to_numpy().reshape(-1, 2).sum(axis=0).tolist())
        assert found[-1] == cb.simulate({"p": policy}, bandit, stop, seed=1, fast=fast).pulls[0, 0, -1].tolist()
    assert found[0] != found[1]


def test_a_trace_ends_with_its_run_and_has_no_more_than_that():
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)])
    assert len(cb.trace(cb.MUCB(), bandit, cb.Budget(5))) == 5
    nothing, something = (cb.trace(cb.UCB1(), bandit, cb.HardBudget(total)) for total in (0.5, 5))
    assert len(nothing) == len(nothing[nothing["chosen"]]) == 0
    assert nothing.dtypes.drop("arm").to_dict() == something.dtypes.drop("arm").to_dict()
    for wrong, said in (({"rounds": 0}, "rounds = 0: must be a whole"), ({"rounds": 10**5}, "must be at most 10,000"),
                        ({"policy": cb.MUCB}, "call the class"), ({"bandit": 5}, "bandits = 5: must be a Bandit")):
        with pytest.raises(ValueError, match=said):
            cb.trace(**{"policy": cb.MUCB(), "bandit": bandit, "stop": cb.Budget(5), **wrong})
