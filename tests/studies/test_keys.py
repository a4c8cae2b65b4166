"""What a bandit is filed under."""

from fractions import Fraction

import numpy as np
import pytest

import costbandits as cb
from costbandits.engine.fingerprint import digest
from costbandits.studies import keys
from costbandits.studies.study import Study


def test_instances_by_their_laws():
    class Law(cb.Bernoulli):
        def sample(self, rng, size):
            return 1.0 - super().sample(rng, size)

    half, third = cb.Bernoulli(0.5), cb.Bernoulli(1 / 3)
    arms = (([half], [third]), ([third], [half]), ([half], [Law(1 / 3)]), ([half], [Law(0.5)]),
            ([half] * 2, [third] * 2), ([half], [cb.Constant(0.5)]), ([cb.Constant(0.5)], [half]))
    bandits = [cb.Bandit(*each) for each in arms]
    assert len({keys.instance(bandit) for bandit in bandits}) == len(bandits)
    again = cb.Bandit([cb.Bernoulli(0.5)], [Law(1 / 3)])
    assert keys.instance(bandits[2]) == keys.instance(again)


def test_the_number_of_results_and_the_versions_decide(monkeypatch):
    """A store must not hand out what an older library, or another NumPy, has played."""
    known = [keys.common.__wrapped__()]
    with monkeypatch.context() as patch:
        patch.setattr(keys, "RESULTS", keys.RESULTS + 1)
        known.append(keys.common.__wrapped__())
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0")
    known.append(keys.common.__wrapped__())
    assert len(set(known)) == 3


def test_a_definition_is_filed_apart_where_it_draws_other_random_numbers():
    """What has the very pulls of its kernel is found by either; so is what has no kernel."""
    def key(policy, fast):
        study = Study({"p": policy}, cb.instances.bernoulli(3), cb.Budget(20), 0, np.array([1.0]), 1000, fast=fast)
        return study.keys(0)["p"]

    mine = cb.ChoosePolicy(cb.BGreedy.rule)
    same = [policy for policy in (cb.BTS(), cb.BTS(naive=True), cb.OmegaUCB(), cb.BGreedy(), mine)
            if key(policy, True) == key(policy, False)]
    assert [type(policy).__name__ for policy in same] == ["BTS", "OmegaUCB", "ChoosePolicy"] and same[0].naive


def test_a_store_gives_a_definition_its_own_results(tmp_path):
    def played(fast):
        return cb.simulate({"b": cb.BGreedy()}, cb.instances.bernoulli(3), cb.Budget(20), 5, store=tmp_path / "store",
                           fast=fast)

    first, second = played(True), played(False)
    assert first != second and played(True) == first and played(False) == second


SAME = [(cb.Budget(35), cb.Budget(35.0), cb.Budget(np.int64(35)), cb.Budget(np.float32(35)), cb.Budget(Fraction(35))),
        (cb.HardBudget(8), cb.HardBudget(np.float64(8))), (cb.Horizon(12), cb.Horizon(np.uint8(12))),
        (cb.AnytimeBudget(1, 30), cb.AnytimeBudget(np.float64(1), np.int32(30))),
        (cb.OmegaUCB(2), cb.OmegaUCB(2.0), cb.OmegaUCB(np.float16(2))),
        (cb.EpsilonGreedy(3, 1), cb.EpsilonGreedy(3.0, 1.0)), (cb.BudgetCB(ridge=1), cb.BudgetCB()),
        (cb.BudgetUCB(None, 1), cb.BudgetUCB()), (cb.CSETC(0, np.int16(4)), cb.CSETC(0.0, 4)),
        (cb.PDBwK(2), cb.PDBwK(np.float64(2))), (cb.SUAK(margin=7, width=np.int64(3)), cb.SUAK()),
        (cb.KLUCBSC(False, 1), cb.KLUCBSC())]


@pytest.mark.parametrize("values", SAME, ids=lambda values: type(values[0]).__name__)
def test_equal_values_are_equal(values):
    assert len({digest(value) for value in values}) == len(set(values)) == 1
    assert all("np." not in repr(value) for value in values)


def test_flags_and_other_values_are_not():
    others = [cb.BTS(True), cb.BTS(False), cb.Budget(35), cb.Budget(36), cb.HardBudget(35), cb.Horizon(35),
              cb.OnePhaseSkip(time_row=False), cb.OnePhaseSkip(), cb.KLUCBSC(True), cb.KLUCBSC(False)]
    assert len(set(map(digest, others))) == len(others)
    assert digest(cb.BTS(np.True_)) == digest(cb.BTS(True)) and repr(cb.BTS(np.False_)) == "BTS(naive=False)"
    with pytest.raises(ValueError, match="must be True or False"):
        cb.BTS(1)


LAWS = [(cb.Constant(1), cb.Constant(np.int8(1)), cb.Constant(1.0)), (cb.Bernoulli(1), cb.Bernoulli(np.float32(1))),
        (cb.Beta(2, np.float64(3)), cb.Beta(2.0, 3)),
        (cb.Discrete([0, 1], [0.5, 0.5]), cb.Discrete((0.0, 1), np.full(2, 0.5))),
        (cb.TruncatedNormal(0, 1, -1, np.int64(1)), cb.TruncatedNormal(0.0, 1.0, -1.0, 1.0))]


@pytest.mark.parametrize("laws", LAWS, ids=lambda laws: type(laws[0]).__name__)
def test_bandits_of_equal_laws_are_one_instance(laws):
    bandits = [cb.Bandit([law, cb.Beta(1, 1)], [law, cb.Constant(0.5)]) for law in laws]
    assert len({keys.instance(bandit) for bandit in bandits}) == len({repr(bandit) for bandit in bandits}) == 1


def test_a_study_with_equal_values_is_found_in_the_store_and_can_be_joined(tmp_path, monkeypatch):
    def played(cost, total, rho, label="p", **more):
        bandit = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.25)], [cb.Constant(cost)] * 2)
        return cb.simulate({label: cb.OmegaUCB(rho)}, bandit, cb.Budget(total), 2, store=tmp_path / "store", **more)

    first = played(1, 9, 1)
    with monkeypatch.context() as patch:
        patch.delattr(Study, "play")
        assert played(1.0, np.float64(9), 1.0) == first == played(np.int64(1), 9.0, np.float32(1))
    assert cb.join(first, played(1.0, 9.0, 0.5, "q")).policies == ["p", "q"]
    keep = {"reduce": lambda runs: {"spent": runs.spent}}
    assert cb.join(played(1, 9, 1, **keep), played(np.float64(1), 9.0, 0.5, "q", **keep)).policies == ["p", "q"]
