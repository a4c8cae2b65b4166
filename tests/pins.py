"""What every policy, stop rule, law and regret gives on small problems, pinned.

    PYTHONPATH=lib python tests/pins.py        # writes tests/pins.json anew, once RESULTS has been raised

`costbandits.studies.keys.RESULTS` is the number of the results: stores keep finished replications under it. Whoever
changes what anything here gives, raises it; tests/studies/test_pins.py fails until then. Decisions alone would not
show a change in the last bit of a formula, so the bits of indices, bounds and other working arrays are pinned, too.
"""

import hashlib
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

import numpy as np

import costbandits as cb
from costbandits import fast
from costbandits.engine.driver import DONE
from costbandits.engine.run import Run
from costbandits.engine.stacks import POLICY, Stacks, stream
from costbandits.policies.base import Problem
from costbandits.studies.keys import RESULTS

PINS = Path(__file__).with_name("pins.json")


@cb.index
def my_index(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return reward / n + params[0] * (t / n) ** 0.5


@cb.choose
def my_choice(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    memory[0] += rng.normal()
    return -1 if memory[0] > 2.0 * t**0.5 else -2 if t % 7 == 0 else int(rng.integers(0, len(n)))


def share_of_budget(bandit):
    return cb.Budget(600 * float(bandit.cost_means.min()))


def linear(rng):
    return cb.LinearBandit(cb.polytopes.simplex(4), *rng.uniform(0.1, 0.9, (2, 4)), noise_sd=0.1)


THREE = cb.Bandit([cb.Beta(2, 3), cb.Beta(3, 2), cb.Beta(4, 1)], [cb.Beta(1, 4), cb.Beta(2, 2), cb.Beta(5, 2)])
PRICED = cb.Bandit([cb.Bernoulli(p) for p in (0.4, 0.5, 0.47, 0.2)], [cb.Constant(c) for c in (0.2, 1.0, 0.6, 0.1)])
SMALL = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.4)], [cb.Constant(0.3), cb.Constant(0.1)])
MONEY = cb.Bandit([cb.Discrete([0, m, 40], [0.5, 0.49, 0.01]) for m in (1, 2, 3)], [cb.Beta(2, 2), cb.Constant(0.5),
                                                                                    cb.Discrete([0, 3], [0.5, 0.5])])
FEW = cb.Bandit(outcomes=[cb.Pairs([0, 0, share, 1], [0.1, 0.75, 0.75, 1.0], [0.3, 0.4 - p, p, 0.3])
                          for share, p in ((0.5, 0.1), (0.75, 0.3), (0.25, 0.2))])
MANY = cb.Bandit(outcomes=[cb.Pairs(np.arange(50) / 50, 1 - (np.arange(50) * skip % 50) / 60) for skip in (1, 7, 49)])
CHARGED = cb.Bandit([cb.Bernoulli(p) for p in (0.4, 0.5, 0.47)], [cb.Bernoulli(c) for c in (0.2, 0.9, 0.6)])
INDICES = {"omega 1/4": cb.OmegaUCB(0.25), "omega 1": cb.OmegaUCB(1.0), "omega* 1/4": cb.OmegaStarUCB(0.25),
           "m": cb.MUCB(), "c": cb.CUCB(), "i": cb.IUCB(), "Budget-UCB": cb.BudgetUCB(), "UCB-BV1": cb.UCBBV1(),
           "Budget-UCB, told 0.01": cb.BudgetUCB(0.01, 0.5), "vUCB-BV1": cb.VUCBBV1(), "UCB1": cb.UCB1(),
           "UCB-SC+": cb.UCBSCPlus(), "UCB-B2": cb.UCBB2(), "KL-UCB-SC": cb.KLUCBSC(),
           "KL-UCB-SC+": cb.KLUCBSC(plus=True, exploration=0.25), "omega KL 1": cb.OmegaKLUCB(),
           "omega KL 1/4": cb.OmegaKLUCB(0.25),
           "PD-BwK": cb.PDBwK(0.5), "PD-BwK, log TK": cb.PDBwK(), "mine": cb.IndexPolicy(my_index, (0.1,)),
           "mine, monotone": cb.IndexPolicy(my_index, (0.1,), monotone=True)}
EMPIRICAL = {"IMED": cb.IMED(), **{f"moment IMED {how}": cb.MomentIMED(0.5, dependence=how)
                                   for how in ("independent", "any", "sample")}}
# name of a study -> policies, bandits, stop, regrets
STUDIES = {
    **{family: ({**INDICES, **EMPIRICAL, "b-greedy": cb.BGreedy(), "eps-greedy": cb.EpsilonGreedy(1, 0.1),
                 "BTS": cb.BTS(), "BTS naive": cb.BTS(naive=True),
                 "my choice": cb.ChoosePolicy(my_choice, memory=lambda K: 1)},
                make, share_of_budget, [cb.regret.budgeted, lambda runs: cb.regret.budgeted(runs, "budget")])
       for family, make in (("bernoulli", cb.instances.bernoulli(6)), ("beta", cb.instances.beta(6)),
                            ("discrete", cb.instances.generalized_bernoulli(6)))},
    "linear": ({"Budget-CB": cb.BudgetCB(), "printed": cb.BudgetCB(0.05, 0.5, 0.1, radius="printed"), "CB": cb.CB(),
                "determinant": cb.BudgetCB(0.05, 0.5, 0.1, radius="determinant")},
               linear, cb.Budget(60.0), [cb.regret.budgeted]),
    "known costs": ({"KUBE": cb.KUBE(), "KUBE 1/40": cb.KUBE(40.0), "fractional": cb.FractionalKUBE(40.0),
                     "eps-first": cb.EpsilonFirst(0.1)},
                    cb.instances.knapsack(6), cb.HardBudget(2000.5), [cb.regret.knapsack]),
    "known costs, rewards of 0 and 1": ({"KL-UCB": cb.KLUCB(), "TS": cb.KnownCostTS(),
                                         "TS naive": cb.KnownCostTS(naive=True), **EMPIRICAL},
                                        PRICED, cb.HardBudget(700.5), [cb.regret.knapsack]),
    "known costs, scaled": ({"KL-UCB": cb.KLUCB(40.0), "TS": cb.KnownCostTS(40.0)}, cb.instances.knapsack(6),
                            cb.HardBudget(2000.5), [cb.regret.knapsack]),
    # After half a million pulls the running sum of such costs is off by more than the stop rules allow for.
    "small costs": ({"BTS naive": cb.BTS(naive=True), "mine": cb.IndexPolicy(my_index, (0.1,)), "m": cb.MUCB(),
                     "my choice": cb.ChoosePolicy(my_choice, memory=lambda K: 1),
                     "eps-greedy": cb.EpsilonGreedy(1, 0.1)},
                    SMALL, cb.Budget(60_000.0), [cb.regret.budgeted]),
    "money": ({"moment IMED": cb.MomentIMED(0.25, 40.0), "any": cb.MomentIMED(1.0, 40.0, "any")}, MONEY,
              cb.Budget(4000.0), [cb.regret.budgeted]),
    "small known costs": ({"KUBE": cb.KUBE(), "eps-first": cb.EpsilonFirst(0.1), "TS": cb.KnownCostTS(),
                           "mine": cb.IndexPolicy(my_index, (0.1,))},
                          SMALL, cb.HardBudget(60_000.0), [cb.regret.knapsack]),
    "anytime": ({**{f"SUAK, {reading}": cb.SUAK(counting=reading) for reading in ("skips", "coming", "needed")},
                 "SUAK, first": cb.SUAK(0.0, "T", order="first"), "SUAK, printed": cb.SUAK(counting="printed"),
                 **{f"OPS {radius}": cb.OnePhaseSkip(radius) for radius in ("3logT", "3logt", "2.5logT", "2logT")},
                 "OPS, no row": cb.OnePhaseSkip(time_row=False), "PDS": cb.PrimalDualSkip(), "USS": cb.UCBSimplexSkip(),
                 "USS 1": cb.UCBSimplexSkip(1.0), "known": cb.KnownMeans(), "known, drawn": cb.KnownMeans(None),
                 "control": cb.ControlBudget(), "SUAK, 8 omega": cb.SUAK(reserve="log t / 8 omega"),
                 "SUAK-2": cb.SUAK2()},
                THREE, cb.AnytimeBudget(0.4, 12_000), [cb.regret.anytime]),
    "subsidy": ({"CS-UCB": cb.CSUCB(0.1), "CS-UCB 0": cb.CSUCB(0.0), "CS-TS": cb.CSTS(0.1), "CS-ETC": cb.CSETC(0.1),
                 "CS-TS, Gaussian": cb.CSTS(0.1, "gaussian"), "CS-ETC 9": cb.CSETC(0.1, 9),
                 "PE": cb.PairwiseElimination(0.1), "once": cb.CommitOnce(0.1), "blind": cb.BlindETC(),
                 "elimination": cb.CSElimination(0.1), "elimination, told": cb.CSElimination(0.1, 0.5),
                 "VOI": cb.CSVOI(0.1)},
                PRICED, cb.Horizon(5000),
                [lambda runs: cb.regret.quality(runs, 0.1), lambda runs: cb.regret.cost(runs, 0.1)]),
    "subsidy, unknown costs": ({"CS-UCB": cb.CSUCB(0.1, "unknown"), "CS-TS": cb.CSTS(0.1, costs="unknown"),
                                "CS-ETC": cb.CSETC(0.1, costs="unknown")}, CHARGED, cb.Horizon(3000), []),
    **{name: ({"omega": cb.OmegaUCB(0.25), "BTS": cb.BTS(), "eps-greedy": cb.EpsilonGreedy(1, 0.1)}, bandit,
              cb.Budget(300.0), [cb.regret.budgeted]) for name, bandit in (("few pairs", FEW), ("many pairs", MANY))},
}
LAWS = [cb.Bernoulli(0.3), cb.Beta(0.4, 2.5), cb.Discrete([0, 0.5, 1], [0.2, 0.3, 0.5]), cb.Constant(0.7),
        cb.TruncatedNormal(0.3, 0.2, 0.0, 1.0), cb.Discrete(np.arange(20.0), [0.05] * 20),
        cb.Empirical([0.5, 0, 3, 0.5]), cb.ClippedLogNormal(0.5, 1.2, 0.1, 4.0)]


def bits(*arrays):
    """Digest of the bits of arrays of numbers, zeros of either sign alike."""
    joined = b"".join(np.ascontiguousarray(np.asarray(array, float) + 0.0).tobytes() for array in arrays)
    return hashlib.blake2b(joined, digest_size=8).hexdigest()


def states(number=300):
    """Arguments (t, n, sums, constant) of an index: what 1 to 400 pulls of an arm may have brought, or many more."""
    rng = np.random.default_rng(7)
    for i in range(number):
        n = int(rng.integers(1, 400) if i % 5 else rng.integers(10_000, 40_000))
        x, y = rng.random(n), rng.random(n) * rng.uniform(0.3, 1)
        yield n + int(rng.integers(1, 5000)), n, x.sum(), y.sum(), (x * x).sum(), (y * y).sum(), 0.05


def numbers(thing):
    """All numbers in nested tuples of arrays, records and numbers, as arrays.

    What a kernel calls `local` decides only how far it looks ahead, and is not pinned.
    """
    if isinstance(thing, np.record):
        yield from thing.tolist()
    elif isinstance(thing, tuple):
        names = getattr(thing, "_fields", [""] * len(thing))
        for name, part in zip(names, thing, strict=True):
            yield from numbers(part) if name != "local" else ()
    elif isinstance(thing, np.ndarray) and thing.dtype.names:
        yield from (thing[name] for name in thing.dtype.names)
    elif isinstance(thing, np.ndarray | float | int):
        yield thing


def as_pinned(own, horizon):
    """What a kernel works on, in the order and with the fields that it had when its numbers were pinned."""
    kind = f"{type(own).__module__.rpartition('.')[2]}.{type(own).__name__}"
    if kind == "subsidy.Bounds":
        return own.told, (own.pessimistic, False, False), own.upper, own.lower, own.price, np.zeros((3, own.price.size))
    if kind == "subsidy.Spells":
        return own.told, (False, own.once, False), own.notes
    if kind == "plain.Ruled" and own.params[-2:] == (7.0, 3.0):      # of SUAK, which did not write down the paper's
        return own._replace(params=own.params[:-2])
    if kind == "greedy.Exploring":
        return own.often, own.least, own.clock
    if kind == "kube.Filling":
        return own[3:]
    if kind == "subsidy_thompson.Bells":        # an arm was a row of one table, told what all policies were
        table = np.column_stack([*own.scores[:6], own.leaf, own.at_leaf, own.member, *own.scores[6:]])
        told = own.alpha, 1, own.width, horizon, own.unknown, False, False, own.gaussian
        return told, own.tuning, table, own.trees, own.race
    return own


def working(policy, bandit, stop):
    """Digest of what a policy's loop worked on, as a run has left it: bounds, estimates, posteriors, sums."""
    order = np.arange(bandit.K)
    max_cost, *limits = stop.limits(bandit)
    fractions = np.array([1.0])
    run = Run(Stacks(bandit, 5, 0, order), stop.due(fractions), 10**6, max_cost, *limits, stop.ends(fractions))
    problem = Problem.of(bandit, stop, order)
    assert fast.play(policy, run, problem, stream(5, 0, POLICY)) == DONE
    return bits(*map(np.ravel, numbers((run.state, *(as_pinned(own, problem.horizon) for own in run.worked_on)))))


def played(name):
    """What the policies of a study do: pulls at its end in words, the rest as digests."""
    policies, bandits, stop, regrets = STUDIES[name]
    runs = cb.simulate(policies, bandits, stop, replications=2, seed=5, checkpoints=3)
    for p, (label, policy) in enumerate(policies.items()):
        yield f"{name}: {label}", {
            "pulls": [" ".join(map(str, row)) for row in runs.pulls[p, :, -1].tolist()],
            "skips": runs.skips[p, :, -1].tolist(),
            "checkpoints": bits(runs.pulls[p], runs.rounds[p]),
            "money": bits(runs.spent[p], runs.reward[p]),
            "regret": [bits(regret(runs)[p]) for regret in regrets],
            "working": working(policy, runs.bandits[0], runs.stops[0])}


def everything():
    """All pins, name -> what it gives."""
    pins = {key: value for name in STUDIES for key, value in played(name)}
    with np.errstate(all="ignore"):
        pins |= {f"index: {label}": bits([policy.rule(*state, policy.parameters) for state in states()])
                 for label, policy in INDICES.items()}
    for law in LAWS:
        drawn = law.sample(np.random.default_rng(3), 200)
        pins[f"law: {law!r}"] = bits(drawn, [law.mean, law.variance, *law.support])
    return pins


def versions():
    """What the last bit of a logarithm, a root or a sum of products may hang on."""
    wide = "X86_V4" in np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return [platform.machine(), sys.platform, *(f"{name} {metadata.version(name)}" for name in ("numba", "numpy")),
            "AVX-512" if wide else "no AVX-512"]


def decisions(pins):
    """The pins without those of bits that decide nothing yet: the same on other machines and with other versions."""
    return {name: {part: value for part, value in pin.items() if part not in ("working", "regret")}
            for name, pin in pins.items() if isinstance(pin, dict)}


def summary(pins):
    """One digest of all pins."""
    return hashlib.blake2b(json.dumps(pins, sort_keys=True).encode(), digest_size=8).hexdigest()


def renew(path, found, results):
    """Write the pins anew. New ones may come; where one changes or goes, the number of results must be a new one.

    Under the same number, other versions than the file's only add to it. The file keeps a digest of all pins for each
    number that there ever was.
    """
    before = json.loads(path.read_text()) if path.exists() else {"history": {}, "pins": {}}
    alike = before.get("versions", versions()) == versions()     # bits found with other versions prove no change
    then, now = (each if alike else decisions(each) for each in (before["pins"], found))
    changed = [name for name, pin in then.items() if now.get(name) != pin]
    if changed and str(results) in before["history"]:
        raise SystemExit(f"RESULTS = {results} stands for other pins: raise it in studies/keys.py first. Changed: "
                         + "; ".join(changed))
    used = versions()
    if not alike and str(results) in before["history"]:
        new = "; ".join(sorted(found.keys() - before["pins"].keys())) or "none"
        print(f"Old pins stay as they were found with {before['versions']}; new, with {used}: {new}")
        found, used = {**found, **before["pins"]}, before["versions"]
    history = {**before["history"], str(results): summary(found)}
    made = {"history": history, "pins": found, "versions": used}
    path.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    renew(PINS, everything(), RESULTS)
