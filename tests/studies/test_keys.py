"""What a replication, a bandit and a library are filed under: all that decides, and nothing else."""

import copy
import dataclasses
import importlib.metadata
import platform
from fractions import Fraction

import numpy as np
import pytest
from components import unnoticed

import costbandits as cb
from costbandits.checks import ours
from costbandits.engine.fingerprint import PACKAGES, digest
from costbandits.environments.distributions import Distribution
from costbandits.studies import cluster, keys, study
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


# Two of each law, of which all fields differ.
LAWS = {cb.Bernoulli: [(0.25,), (0.75,)], cb.Beta: [(1.0, 2.0), (3.0, 4.0)], cb.Constant: [(0.25,), (0.75,)],
        cb.Discrete: [((0.0, 1.0), (0.25, 0.75)), ((0.0, 2.0), (0.5, 0.5))],
        cb.TruncatedNormal: [(0.0, 1.0, 0.0, 3.0), (0.5, 2.0, 0.25, 4.0)], cb.Empirical: [([0.0, 1.0],), ([0.0, 2.0],)],
        cb.ClippedLogNormal: [(0.0, 1.0, 0.0, 3.0), (0.5, 2.0, 0.25, 4.0)]}


class Strange(cb.Constant):
    """A law of the reader's own: bandits that have it are described as they are."""


def with_field(thing, name, value):
    """A copy with another value of one field, unchecked."""
    made = copy.copy(thing)
    object.__setattr__(made, name, value)
    return made


def laws(whole=float):
    """Pairs of laws that differ in one field."""
    for kind, (first, second) in LAWS.items():
        one, two = kind(*first), kind(*second)
        for field in dataclasses.fields(kind):
            values = [getattr(law, field.name) for law in (one, two)]
            values = [value if np.ndim(value) else whole(value) for value in values]
            assert not np.array_equal(*values)
            yield tuple(with_field(one, field.name, value) for value in values)


def bandits():
    """Pairs of bandits that differ in one thing."""
    half, cost = cb.Bernoulli(0.5), cb.Constant(1.0)
    for whole in (float, np.float64):       # plain numbers are written down in another way
        for one, two in laws(whole):
            yield cb.Bandit([half, one], [cost] * 2), cb.Bandit([half, two], [cost] * 2)
            yield cb.Bandit([half] * 2, [cost, one]), cb.Bandit([half] * 2, [cost, two])
    low = cb.Constant(0.5)
    yield cb.Bandit([low], [half]), cb.Bandit([half], [low])
    yield cb.Bandit([low], [low]), cb.Bandit([half], [half])
    pairs = cb.Pairs([0, 1], [0.5, 1])
    yield cb.Bandit(outcomes=[pairs] * 2), cb.Bandit([pairs.rewards] * 2, [pairs.costs] * 2)
    yield cb.Bandit(outcomes=[pairs] * 2), cb.Bandit(outcomes=[pairs, (pairs.rewards, pairs.costs)])
    for mixed in (cb.Bandit(outcomes=[(half, law), pairs]) for law in (cost, Strange(1.0))):
        yield mixed, cb.Bandit(mixed.rewards, mixed.costs)
    linear = cb.LinearBandit([[0.5, 0.1], [0.0, 1.0]], reward=[0.6, 0.8], cost=[0.3, 0.4], noise_sd=0.1)
    known = linear.linear
    for name in known._fields:
        yield linear, with_field(linear, "linear", known._replace(**{name: 2 * getattr(known, name)}))
    yield linear, with_field(linear, "linear", None)


def same_bandits(module):
    yield from ((one, two) for one, two in bandits() if module.instance(one) == module.instance(two))
    first, second = (cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)]) for _ in range(2))
    if module.instance(first) != module.instance(second) or first.reward_means.size != 1:
        yield first, second


def test_each_component_of_a_bandit_decides():
    """Each field of each law, on either side, and all that a policy may know of a linear bandit."""
    assert set(LAWS) == {kind for kind in Distribution.__subclasses__() if ours(kind)}
    # Where laws are described as they are, their kinds are told once more.
    assert unnoticed(keys, ["instance"], same_bandits) == ["instance: kinds"]


def commons(module):
    """What does not change the digest of what all results rest on, and should; or the other way round."""
    def found():
        return getattr(module.common, "__wrapped__", module.common)()

    before, version, python = found(), importlib.metadata.version, platform.python_version_tuple()
    changes = [(module, "RESULTS", module.RESULTS + 1)]
    changes += [(importlib.metadata, "version", lambda name, own=own: "0.1" if name == own else version(name))
                for own in PACKAGES]
    changes += [(platform, "python_version_tuple", lambda at=at: (*python[:at], "99", *python[at + 1:]))
                for at in range(3)]
    for change in changes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*change)
            if (found() == before) != (change is changes[-1]):       # Python's own third number changes nothing
                yield change


def test_the_number_of_results_and_each_version_decide():
    """A store must not hand out what an older library, or another NumPy, has played."""
    assert set(PACKAGES) == {"numba", "numpy", "scipy"}
    # Versions stand in the order of the packages.
    assert unnoticed(keys, ["common"], commons) == ["common: {name}"]


def test_each_file_its_name_and_what_all_rests_on_decide_who_may_work_with_whom(tmp_path, monkeypatch):
    """Workers of a cluster have the very library of the client, and its versions."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "studies").mkdir()
    (tmp_path / "engine/a.py").write_text("a = 1")

    def unseen(module):
        def found():
            return getattr(module.library, "__wrapped__", module.library)()

        module.__file__ = str(tmp_path / "studies/cluster.py")
        file, before = tmp_path / "engine/a.py", found()
        if found() != before:
            yield "the same"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "common", lambda: b"other versions")
            if found() == before:
                yield "versions"
        for text in ("a = 2", "a = 1  # a comment"):
            file.write_text(text)
            if found() == before:
                yield text
        file.write_text("a = 1")
        moved = file.rename(tmp_path / "studies/a.py")
        if found() == before:
            yield "another place"
        moved.rename(file)
        (tmp_path / "new.py").write_text("")
        if found() == before:
            yield "a new file"
        (tmp_path / "new.py").unlink()
        (tmp_path / "notes.txt").write_text("decides nothing")
        if found() != before:
            yield "no code"

    monkeypatch.setattr(cluster, "__file__", cluster.__file__)
    assert unnoticed(cluster, ["library"], unseen) == []


# Of each field of a study: another value, and whether that decides.
BANDIT = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0)] * 2)
BASE = {"policies": {"p": cb.BTS()}, "bandits": BANDIT, "stop": cb.Budget(20), "seed": 0,
        "fractions": np.array([0.5, 1.0]), "max_rounds": 1000, "reduce": None, "shuffle": True, "fast": True,
        "first": 0, "arms": 2, "checked": set(), "given_up": []}
FIELDS = {"policies": ({"p": cb.BTS(naive=True)}, True), "stop": (cb.Budget(21), True), "seed": (1, True),
          "bandits": (cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.5)] * 2), True),
          "fractions": (np.array([0.25, 1.0]), True), "max_rounds": (2000, True), "shuffle": (False, True),
          "reduce": (lambda runs: {"x": runs.spent}, True), "fast": (False, True), "first": (1, False),
          "arms": (None, False), "checked": ({cb.Beta}, False), "given_up": ([True], False)}


class Told(cb.Bandit):
    """What it adds is known to a regret alone."""


def studies():
    """Pairs of changes of a study, of which only one thing differs that decides."""
    yield from (({}, {name: value}) for name, (value, decides) in FIELDS.items() if decides)
    yield tuple({"reduce": reduce} for reduce in (FIELDS["reduce"][0], lambda runs: {"x": runs.reward}))
    yield tuple({"fast": False, "policies": {"p": cb.EpsilonGreedy(c, 0.5)}} for c in (1.0, 2.0))
    # Makers that make the same in replication 0, and others later.
    first = study.stream(0, 0, study.INSTANCE).random()
    yield tuple({"bandits": lambda rng, p=p: cb.Bandit([cb.Bernoulli(0.5 if rng.random() == first else p)] * 2,
                                                       [cb.Constant(1.0)] * 2)} for p in (0.25, 0.75))
    yield tuple({"stop": lambda bandit, total=total: cb.Budget(20 if bandit.reward_means[0] == 0.5 else total)}
                for total in (30, 40))
    named = [with_field(BANDIT, "names", names) for names in (None, ("a", "b"), ("b", "a"))]
    named += [with_field(BANDIT, "units", BANDIT.units._replace(cost=cost)) for cost in (2.0, 3.0)]
    yield from (tuple({"bandits": each, "reduce": FIELDS["reduce"][0]} for each in two)
                for two in ((named[0], named[1]), (named[1], named[2]), (named[0], named[3]), named[3:]))
    yield tuple({"bandits": kind(BANDIT.rewards, BANDIT.costs), "reduce": FIELDS["reduce"][0]}
                for kind in (cb.Bandit, Told))


def same_studies(module):
    def key(change, replication=0):
        (found,) = module.Study(**{**BASE, **change}).keys(replication).values()
        return found

    yield from ((one, two) for one, two in studies() if key(one) == key(two))
    yield from (name for name, (value, decides) in FIELDS.items() if not decides and key({name: value}) != key({}))
    if key({}) == key({}, 1) or key({}) != key({"policies": {"other": cb.BTS()}}):
        yield "replication and label"
    with pytest.MonkeyPatch.context() as patch:
        before = key({})
        patch.setattr(keys, "common", lambda: b"an older library")
        if key({}) == before:
            yield "an older library"


def test_each_component_of_a_study_decides():
    assert set(FIELDS) == set(BASE) == {field.name for field in dataclasses.fields(Study)}
    assert unnoticed(study, ["keys", "_parts", "_digest"], same_studies) == []


def test_each_component_of_the_origin_of_reduced_results_decides():
    """Two parts of a study are joined if seed, and bandit and stop rule of replication 0, are the same."""
    def same(module):
        def origin(**change):
            return module.Study(**{**BASE, **change}).origin

        yield from (name for name in ("seed", "stop", "bandits") if origin(**{name: FIELDS[name][0]}) == origin())
        yield from (name for name, (value, _) in FIELDS.items() if name not in ("seed", "stop", "bandits")
                    and origin(**{name: value}) != origin())

    assert unnoticed(study, ["origin"], same) == []


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


def test_each_stream_of_a_study_is_of_its_seed_its_replication_and_a_purpose_of_its_own(monkeypatch):
    """Instances, the order of arms, and what each policy draws, which is the same whoever else plays."""
    made, stream = [], study.stream
    monkeypatch.setattr(study, "stream", lambda *key: (made.append(key), stream(*key))[1])
    policies = {"e": cb.EpsilonGreedy(1.0, 0.5), "m": cb.MUCB(), "b": cb.BGreedy()}
    one = Study(policies, cb.instances.bernoulli(3), cb.Budget(5), 7, np.array([1.0]), 1000)
    one.play(11, policies)
    assert made == [(7, 11, study.INSTANCE), (7, 11, study.ORDER), *[(7, 11, study.POLICY)] * 3]
    assert len({study.INSTANCE, study.ORDER, study.POLICY}) == 3


def test_what_is_drawn_differs_between_seeds_and_replications():
    sure = cb.Bandit([cb.Constant(0.5)] * 6, [cb.Constant(1.0)] * 6)

    def differ(found):
        return len({array.tobytes() for runs in found for array in runs}) == 4

    # What EpsilonGreedy draws, with nothing else left to chance; which of equal arms comes first; instances.
    drawn = [cb.simulate({"e": cb.EpsilonGreedy(9.0, 1.0)}, sure, cb.Budget(60), 2, seed, 10, shuffle=False)
             for seed in (0, 1)]
    assert differ(runs.pulls[0] for runs in drawn)
    orders = [cb.simulate({"m": cb.MUCB()}, sure, cb.Budget(5), 2, seed, checkpoints=5) for seed in (0, 2)]
    assert differ(runs.pulls[0] for runs in orders)
    made = [cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(1), 2, seed) for seed in (0, 1)]
    assert differ([bandit.reward_means for bandit in runs.bandits] for runs in made)


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


EQUAL_LAWS = [(cb.Constant(1), cb.Constant(np.int8(1)), cb.Constant(1.0)),
              (cb.Bernoulli(1), cb.Bernoulli(np.float32(1))), (cb.Beta(2, np.float64(3)), cb.Beta(2.0, 3)),
              (cb.Discrete([0, 1], [0.5, 0.5]), cb.Discrete((0.0, 1), np.full(2, 0.5))),
              (cb.Empirical([0, 1, 5]), cb.Empirical(np.array([-0.0, 1.0, 5.0]))),
              (cb.ClippedLogNormal(0, 1, 0, 5), cb.ClippedLogNormal(0.0, np.int8(1), 0.0, 5.0)),
              (cb.TruncatedNormal(0, 1, -1, np.int64(1)), cb.TruncatedNormal(0.0, 1.0, -1.0, 1.0))]


@pytest.mark.parametrize("laws", EQUAL_LAWS, ids=lambda laws: type(laws[0]).__name__)
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
