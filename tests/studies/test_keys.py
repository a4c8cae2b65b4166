"""What a bandit is filed under."""

import numpy as np

import costbandits as cb
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
