"""What a bandit is filed under."""

import costbandits as cb
from costbandits.studies import keys


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
