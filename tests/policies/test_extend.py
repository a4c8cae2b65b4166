"""What a reader's own policy, law or family gets wrong is said in plain words, when the cell is run."""

import dataclasses
import functools
import inspect
import random
import re

import numba
import numpy as np
import pytest
from scipy.special import ndtri

import costbandits as cb
from costbandits.engine.state import Arm
from costbandits.policies import rules
from costbandits.studies.store import Store

pytestmark = pytest.mark.slow

HALF = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Bernoulli(0.5)] * 3)
TABLE, LIST, ARRAY, STEP = {1: 2.0}, [1.0, 2.0], np.ones(3), 0.5


def double(x):
    return 2 * x


def swapped(n, t, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n


def uses_scipy(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return ndtri(reward)


def uses_a_dict(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward * TABLE[1]


def uses_a_list(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward * LIST[0]


def uses_a_plain_function(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return double(reward)


def uses_what_is_not_there(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward * alpha        # noqa: F821


def takes_a_sum_for_an_array(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward.mean()


def adds_text(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward + "a"


def opens_a_file(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    with open("file"):
        return reward


def imports(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    import math
    return math.sqrt(reward)


def draws_from_numpy(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + np.random.normal()


def draws_from_python(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + random.random()


@numba.njit
def chance():
    return np.random.random()


@numba.njit
def more_chance():
    return 1.0 + chance()


def draws_by_a_helper(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + more_chance()


def returns_nothing(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    reward / n


def returns_nothing_at_times(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    if cost > 0:
        return reward / cost


def returns_an_array(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / cost + params


def returns_two(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward, cost


def returns_a_truth(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward > cost


def chooses_a_number(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return (reward / n).max()


def draws_a_choice(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return np.random.randint(n.size)


def writes_to_params(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    params[0] *= 0.999
    return reward / n + params[0]


def writes_to_pulls(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    mine = n
    mine[0] += 1
    return 0


@numba.njit
def forget(sums):
    sums[0] = 0.0


def writes_to_all_params(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    params *= 0.999
    return 0


def sorts_its_sums(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    reward.sort()
    return 0


def writes_by_a_helper(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    forget(problem)
    return 0


@pytest.mark.parametrize(("rule", "message"), [
    (swapped, r"index = 'swapped\(n, t, .*must take \(t, n, .*in this order; out of place: n, t"),
    (uses_scipy, r"in `return ndtri\(reward\)`: ndtri is no ufunc that can be compiled; use functions of math"),
    (uses_a_dict, r"in `return reward \* TABLE\[1\]`: TABLE, which comes from outside, is of type dict; only numbers"),
    (uses_a_list, "LIST, which comes from outside, is a list; make it a tuple or an array"),
    (uses_a_plain_function, r"in `return double\(reward\)`: double is a plain .* write @numba.njit above its def"),
    (uses_what_is_not_there, "in `return reward .alpha.*: alpha is not defined"),
    (takes_a_sum_for_an_array, r"in `return reward.mean\(\)`: float64 has no mean that a rule could use"),
    (adds_text, r"in `return reward \+ \"a\"`: add\(float64, str\) is not possible in a rule"),
    (opens_a_file, "Unsupported context manager in use; a rule is compiled: it may use numbers, .* no other Python"),
    (imports, "import, global and class have to stay outside"),
    (draws_from_numpy, r"what it draws from = module numpy.random: all share it, .* its rng: rng.random\(\)"),
    (draws_from_python, "what it draws from = module random: all share it"),
    (draws_by_a_helper, "rule draws_by_a_helper, what it draws from = module numpy.random: all share it"),
    (returns_nothing, "returns nothing, for a return is missing: must return one number on every path"),
    (returns_nothing_at_times, "returns a number with decimals, or nothing where no return is reached: must"),
    (returns_an_array, r"returns an array, of which an element such as params\[0\] is a number: must"),
    (returns_two, "returns several values: must return one number"),
    (returns_a_truth, "returns True or False: must return one number"),
    (chooses_a_number, "returns a number with decimals: must return the arm as a whole number, -1 to skip"),
    (draws_a_choice, "what it draws from = module numpy.random"),
    (writes_to_params, r"in `params\[0\] \*= 0.999`: must not write to its arrays, which other runs are given, too"),
    (writes_to_pulls, r"in `mine\[0\] \+= 1`: must not write to its arrays.* belongs in memory"),
    (writes_to_all_params, "rule writes_to_all_params: must not write to its arrays, which other runs are given, too"),
    (sorts_its_sums, "rule sorts_its_sums, .*must not write to its arrays"),
    (writes_by_a_helper, "rule writes_by_a_helper, in `.*`: must not write to its arrays"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_a_rule_that_cannot_be_played(rule, message):
    maker = cb.choose if "memory" in inspect.signature(rule).parameters else cb.index
    with pytest.raises(ValueError, match=message.replace("return reward .alpha", r"return reward \* alpha")) as error:
        maker(rule)
    assert error.value.__cause__ is None and len(str(error.value)) < 400 and "\n" not in str(error.value)
    assert rule.__name__ in str(error.value) and "0x" not in str(error.value)


def test_another_numba_refuses_no_rule_for_a_wrong_reason(monkeypatch):
    def gone(self):
        raise AttributeError("define_nopython_pipeline")

    monkeypatch.setattr(rules._Typing, "define_pipelines", gone)
    assert cb.index(lambda t, arm, p: arm.reward / arm.n)(1, Arm(2, 1.0, 1.0, 1.0, 1.0, 0.0), np.zeros(1)) == 0.5
    with pytest.raises(ValueError, match="must not write to its arrays"):
        cb.choose(writes_to_all_params)


@cb.index
def fine(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + STEP * ARRAY[0]


@cb.index
def counts(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return t


def test_rules_that_may_be_played():
    """A whole number as an index, numbers and arrays from outside, a choice that draws from its own generator."""
    @cb.choose
    def at_random(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
        return rng.integers(0, n.size)

    policies = {"fine": cb.IndexPolicy(fine), "counts": cb.IndexPolicy(counts), "random": cb.ChoosePolicy(at_random)}
    assert (cb.simulate(policies, HALF, cb.Budget(10)).rounds[:, 0, -1] >= 10).all()
    assert counts(7, 1, 0.0, 0.0, 0.0, 0.0, 0.0, np.zeros(0)) == 7.0


def test_a_helper_with_a_signature_may_read():
    @numba.njit("f8(f8[::1])")
    def first(values):
        return values[0]

    @cb.choose
    def reads(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
        memory[0] += first(params)
        return t % n.size

    policy = cb.ChoosePolicy(reads, params=(1.0,), memory=int)      # of a number K; it hides what it takes
    assert cb.simulate({"reads": policy}, HALF, cb.Horizon(10)).rounds[0, 0, -1] == 10


def test_a_tally_counts_what_a_rule_does():
    @cb.index
    @cb.tally
    def asked(t, n, reward, cost, reward_sq, cost_sq, constant, params):
        params[0] += 1
        return 0.0

    policy = cb.IndexPolicy(asked, params=(0,))
    cb.simulate({"asked": policy}, HALF, cb.Horizon(10), 3)
    assert policy.parameters[0] == 3 * (10 - HALF.K) * HALF.K      # first each arm is pulled once, unasked


def test_only_a_function_can_be_a_rule():
    for wrong in (fine, cb.MUCB, 3, functools.partial(swapped, 1)):
        with pytest.raises(ValueError, match="must stand above the def of a plain function"):
            cb.index(wrong)


@pytest.mark.parametrize(("wrong", "message"), [
    (fine, r"policies\['mine'\] = function fine: must be a policy; a rule under @cb.index becomes one by"),
    (double, r"policies\['mine'\] = function double: must be a policy; a rule under @cb.index"),
    (cb.MUCB, r"must be a policy; call the class: MUCB\(\.\.\.\)"),
    (0.25, r"policies\['mine'\] = 0.25: must be a policy$")])
def test_a_rule_is_no_policy(wrong, message):
    with pytest.raises(ValueError, match=message):
        cb.simulate({"mine": wrong}, HALF, cb.Budget(10))


def test_a_function_without_the_decorator():
    with pytest.raises(ValueError, match=r"rule = function swapped: must be a function made by cb\.index; write @"):
        cb.IndexPolicy(swapped)


@pytest.mark.parametrize(("parts", "message"), [
    ({"params": ("a",)}, r"params = \('a',\): must be a sequence of numbers"),
    ({"params": {"rho": 1}}, r"params = \{'rho': 1\}: must be a sequence of numbers"),
    ({"memory": 5}, "memory = 5: must be a function"), ({"prepare": 0.1}, "prepare = 0.1: must be a function")])
def test_what_goes_with_a_rule(parts, message):
    with pytest.raises(ValueError, match=message):
        cb.ChoosePolicy(writes_memory, **parts)


@pytest.mark.parametrize("change", [{"STEP": 0.7}, {"ARRAY": np.full(3, 2.0)}])
def test_what_a_rule_reads_from_outside_must_not_change(monkeypatch, change):
    """Numba keeps the values it was compiled with: a cell that sets another one would change nothing."""
    policy = cb.IndexPolicy(fine)
    cb.simulate({"mine": policy}, HALF, cb.Budget(10))
    for name, value in change.items():
        monkeypatch.setitem(globals(), name, value)
    with pytest.raises(ValueError, match=r"policies\['mine'\] = function fine: something .* run the cell .* again"):
        cb.simulate({"mine": policy}, HALF, cb.Budget(10))


@cb.index
def reads_params(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return params[1] if t > 3 else 1.0


@cb.choose
def writes_memory(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    memory[5] = t
    return 0


@cb.index
def reads_whole_params(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return int(params[1]) if t > 3 else 1


def test_what_all_share_may_come_by_a_closure_too():
    source = np.random

    def rule(t, arm, p):
        return arm.reward + source.random()

    with pytest.raises(ValueError, match="what it draws from = module numpy"):
        cb.index(rule)


@pytest.mark.parametrize(("policy", "held"), [
    (cb.IndexPolicy(reads_params, params=(1.0,)), "3 arms and 1 params"),
    (cb.IndexPolicy(reads_whole_params, params=(1.0,)), "3 arms and 1 params"),
    (cb.IndexPolicy(reads_params, params=(1.0,), monotone=True), "3 arms and 1 params"),
    (cb.ChoosePolicy(writes_memory, memory=lambda K: 5), "3 arms and 0 params; .* memory=")])
def test_reading_beyond_the_end_is_no_rubbish(policy, held):
    message = rf"\['mine'\] = .* reads beyond the end of an array: it is given {held}"
    with pytest.raises(ValueError, match=message) as told:
        cb.simulate({"mine": policy}, HALF, cb.Budget(10))
    assert told.value.__context__ is None


@pytest.mark.parametrize(("made_by", "given_to", "goes_with"), [
    (reads_params, cb.ChoosePolicy, "cb.IndexPolicy"), (writes_memory, cb.IndexPolicy, "cb.ChoosePolicy")])
def test_a_rule_given_to_the_wrong_policy(made_by, given_to, goes_with):
    with pytest.raises(ValueError, match=rf"which goes with {re.escape(goes_with)}$"):
        given_to(made_by)


NOTHING = []


def loops_over_nothing(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    for each in NOTHING:
        reward += each
    return reward


def begins_a_list(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    found = []
    return reward + len(found)


@pytest.mark.parametrize(("rule", "said"), [
    (loops_over_nothing, "NOTHING, which comes from outside, is an empty list; make it an array, such as np.zeros(0)"),
    (begins_a_list, "found is an empty list, of which nobody can tell what will be in it; use memory or np.zeros")])
def test_an_empty_list_in_a_rule(rule, said):
    with pytest.raises(ValueError, match=f"{re.escape(said)}$"):
        cb.index(rule)


@cb.index
def undefined(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return (reward - n) / (cost - cost)


def test_an_index_that_is_not_a_number():
    with pytest.raises(RuntimeError, match=r"policy 'mine', replication 0, round 4: the index is not a .*np\.inf"):
        cb.simulate({"mine": cb.IndexPolicy(undefined)}, cb.Bandit([cb.Constant(1)] * 3, HALF.costs), cb.Budget(10))


# Laws.

class Law:
    """A law as it should be, on [0, 2]."""

    mean, variance, support = 1.0, 1 / 3, (0.0, 2.0)

    def sample(self, rng, size):
        return 2 * rng.random(size)


def changed(**parts):
    return type("Law", (Law,), parts)()


@pytest.mark.parametrize(("law", "message"), [
    (type("Half", (), {"mean": 0.5, "support": (0, 1)})(), r"costs\[0\] = Half object: .* no variance and no sample"),
    (Law, r"costs\[0\] = <class .*: must be a distribution, not its class: call it"),
    (type("Own", (cb.Bernoulli.__base__,), {"mean": 0.5, "variance": 0.1, "support": (0, 1)})(), "it has no sample"),
    (changed(mean=lambda self: 1.0), r"costs\[0\]\.mean = function <lambda>: must be a number, .* @property"),
    (changed(mean="high"), r"costs\[0\]\.mean = 'high': must be finite"),
    (changed(variance=-1.0), r"costs\[0\]\.variance = -1.0: must be a number, 0 or more"),
    (changed(support=(0.0, 0.9)), r"costs\[0\]\.support = \(0.0, 0.9\): must be \(low, high\) with the mean, 1,"),
    (changed(support=2.0), r"costs\[0\]\.support = 2.0: must be \(low, high\)")])
def test_a_law_that_lacks_something(law, message):
    with pytest.raises(ValueError, match=message):
        cb.Bandit([cb.Bernoulli(0.5)], [law])


@pytest.mark.parametrize(("parts", "message"), [
    ({"sample": lambda self, rng: 1.0}, r"Law\.sample: .*takes 2 positional arguments.*; it must take \(rng, size\)"),
    ({"sample": lambda self, rng, size: ["a"] * size}, r"must return finite numbers"),
    ({"sample": lambda self, rng, size: 2 * np.random.random(size)}, "draw from rng alone, not from np.random"),
    ({"sample": lambda self, rng, size: 3 * rng.random(size)}, r"must lie in the support, \(0, 2\)"),
    ({"mean": 1.1}, r"Law\.sample, its mean = (1\.0|0\.99).* is too far from the mean that the law states, 1.1"),
    ({"variance": 3 ** -0.5}, r"Law\.sample, its variance = 0\.3.* is too far from the variance .* states, 0.577")])
def test_a_law_that_does_not_do_what_it_says(parts, message):
    with pytest.raises(ValueError, match=message):
        cb.simulate({"b": cb.BGreedy()}, cb.Bandit([cb.Bernoulli(0.5)], [changed(**parts)]), cb.Budget(5))


@pytest.mark.parametrize("law", [
    Law(), cb.Beta(0.01, 3), cb.Bernoulli(1e-4), cb.Constant(0.3), cb.TruncatedNormal(0, 1, -9, 9),
    cb.Discrete((0, 1e6), (1 - 1e-5, 1e-5))], ids=lambda law: type(law).__name__)
def test_a_law_that_is_right(law):
    # Each seed refuses a law that is right with a probability of at most 5e-7: a false alarm once in thousands.
    for seed in range(20):
        cb.check_sampler(law, seed)


# Families.

def from_numpy(rng):
    return cb.Bandit([cb.Bernoulli(p) for p in np.random.random(3)], HALF.costs)


def returns_no_bandit(rng):
    cb.instances.bernoulli(3)(rng)


@pytest.mark.parametrize(("change", "message"), [
    ({"bandits": from_numpy}, r"bandits\(rng\) in replication 0 = function from_numpy: made twice, its arms differ"),
    ({"bandits": returns_no_bandit}, r"bandits\(rng\) in replication 0 = None: must return a Bandit; its return"),
    ({"bandits": lambda: HALF}, "bandits = function <lambda>: must take one argument, rng"),
    ({"stop": lambda: cb.Budget(10)}, "stop = function <lambda>: must take one argument, the bandit")])
def test_a_family_that_cannot_be_played(change, message):
    with pytest.raises(ValueError, match=message):
        cb.simulate(**{"policies": {"m": cb.MUCB()}, "bandits": HALF, "stop": cb.Budget(10), **change})


# The store.

def test_rules_typed_into_a_cell_are_told_apart_by_their_code(tmp_path):
    """Two cells that differ in one number: what the first has filed is not taken for the second's.

    Here __main__ is pytest's, which is installed and would be known by its name alone.
    """
    cell = re.sub(r"\n {4}", "\n", """
    import costbandits as cb
    @cb.index
    def mine(t, n, reward, cost, reward_sq, cost_sq, constant, params):
        return reward / n + WEIGHT * t / n
    """)
    ends = []
    for weight in ("0.0", "0.9", "0.0"):
        names = {"__name__": "__main__"}
        exec(compile(cell.replace("WEIGHT", weight), "<cell>", "exec"), names)
        runs = cb.simulate({"mine": cb.IndexPolicy(names["mine"])}, cb.instances.beta(3), cb.Budget(30), seed=2,
                           store=tmp_path / "store")
        ends.append(runs.pulls[0, 0, -1].tolist())
    assert ends[0] == ends[2] != ends[1]
    assert len(Store(tmp_path / "store")) == 2


@pytest.mark.parametrize("maker", ["index", "choose"])
def test_a_rule_that_raises_is_told_with_policy_replication_and_round(maker):
    if maker == "index":
        @cb.index
        def raises(t, n, reward, cost, reward_sq, cost_sq, constant, params):
            if t == 7:
                raise ValueError("no luck")
            return reward / n
        mine = cb.IndexPolicy(raises)
    else:
        @cb.choose
        def raises(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
            if t == 7:
                raise ValueError("no luck")
            return t % 3 - 1
        mine = cb.ChoosePolicy(raises)
    with pytest.raises(RuntimeError, match=r"'mine', replication 4, round 7: its rule raised ValueError: no luck$"):
        cb.simulate({"mine": mine}, HALF, cb.Horizon(10), replications=[4])


def test_a_rule_divides_as_numpy_does():
    """By 0 a fraction is infinite, and a whole number 0: as the docstring of cb.index says, with JIT and without."""
    @cb.index
    def divides(t, n, reward, cost, reward_sq, cost_sq, constant, params):
        return (n // (n - n)) + (n % (n - n)) + 1 / (n - n)

    with np.errstate(all="ignore"):
        assert divides(*[np.int64(3)] * 2, *[np.float64(1.0)] * 5, np.empty(0)) == np.inf
        assert np.int64(1) // np.int64(0) == np.int64(1) % np.int64(0) == 0


@cb.index
def weighs(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return params[0] * n


@dataclasses.dataclass
class Changeable(cb.policies.base.IndexRule):
    """A policy of one's own whose field can be changed."""

    weight: float
    rule = staticmethod(weighs)
    monotone = regular = False


class OfAList(cb.policies.base.IndexRule):
    """A policy of one's own that keeps its parameters in a list."""

    rule = staticmethod(weighs)
    monotone = regular = False

    def __init__(self, params):
        self.params = params


@pytest.mark.parametrize("make", [
    lambda weight: cb.IndexPolicy(weighs, (weight,)), Changeable, lambda weight: OfAList([weight])])
def test_a_policy_that_was_changed_plays_as_a_new_one(make, tmp_path):
    study = {"bandits": cb.instances.bernoulli(3), "stop": cb.Budget(30), "store": tmp_path / "store.sqlite"}
    changed, new = make(-5.0), make(5.0)
    before = cb.simulate({"p": changed}, **study)
    vars(changed).update({name: value for name, value in vars(new).items() if name in ("params", "weight")})
    after = cb.simulate({"p": changed}, **study)
    assert after == cb.simulate({"p": new}, **study) == cb.simulate({"p": new}, **{**study, "store": None}) != before
