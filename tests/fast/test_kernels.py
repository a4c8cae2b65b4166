"""Every kernel plays what its policy's definition says: the same pulls, or the same law."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pins
import pytest
from reference import in_plain_python
from scipy.stats import ks_2samp

import costbandits as cb
from costbandits import fast
from costbandits.policies.base import IndexRule

LIBRARY = Path(cb.__file__).parent
RUNS, ERROR = 300, 1e-5     # of each sample; the chance that all tests of laws together find what is not there
SHORT = {"known costs": cb.HardBudget(300.5), "known costs, scaled": cb.HardBudget(300.5),
         "known costs, rewards of 0 and 1": cb.HardBudget(60.5), "small known costs": cb.HardBudget(25.0),
         "small costs": cb.Budget(25.0), "subsidy": cb.Horizon(400), "subsidy, unknown costs": cb.Horizon(400)}


def specimens(same, *rare):
    """The policies that tests/pins.py pins and a kernel plays; those of the `rare` studies only in `make proof`."""
    for study, (policies, bandits, stop, _) in pins.STUDIES.items():
        for label, policy in policies.items():
            kernel = fast.kernel_of(policy)
            if kernel is not None and kernel.same == same:
                yield pytest.param(policy, bandits, stop, id=f"{study}: {label}",
                                   marks=pytest.mark.proof if study in rare else ())


def test_every_kernel_has_a_specimen():
    played = {fast.kernel_of(policy) for study in pins.STUDIES.values() for policy in study[0].values()}
    unplayed = [cls.__name__ for cls, kernel in fast.KERNELS.items() if kernel not in played]
    assert unplayed == [], "pin a policy that each of them plays: book/contributing/kernel.md, What must hold"


def played(study, label, fast_too):
    """What is known of two runs, by name."""
    policies, bandits, stop, _ = pins.STUDIES[study]
    runs = cb.simulate({"p": policies[label]}, bandits, stop, 2, seed=8, checkpoints=7, fast=fast_too)
    return {name: getattr(runs, name).tolist() for name in ("pulls", "rounds", "skips", "spent", "reward")}


@pytest.mark.parametrize("policy, bandits, stop", list(specimens("pulls")))
def test_the_pulls_are_those_of_the_definition(policy, bandits, stop, request):
    """Definitions that are no index are not compiled, which would take longer than so few pulls."""
    study, _, label = request.node.callspec.id.partition(": ")
    quick, compiled = played(study, label, True), isinstance(policy, IndexRule) or study.startswith("small")
    given = study, label, False
    slow = played(*given) if compiled else in_plain_python("test_kernels", f"m.played{given}")
    for name in quick:
        differ = np.argwhere(np.array(quick[name]) != slow[name])
        assert not differ.size, f"{name} differ first at {differ[0]}: policy, replication, checkpoint, and of pulls arm"


def samples(policy, other, bandits, study, runs=RUNS):
    """Of two samples of runs on one bandit the pulls of each arm, halfway and at the end: pairs of columns."""
    bandit = bandits if isinstance(bandits, cb.Bandit) else bandits(np.random.default_rng(1))
    stop = SHORT.get(study) or cb.Budget(40 * float(bandit.cost_means.mean()))
    found = [cb.simulate({"p": one}, bandit, stop, runs, seed=seed, checkpoints=[0.5, 1.0], fast=seed == 1).pulls[0]
             for seed, one in ((1, policy), (2, other))]
    return zip(*(pulls.reshape(runs, -1).T for pulls in found), strict=True)


LAWS = list(specimens("law", "beta", "discrete", "small costs", "known costs, scaled", "many pairs"))


@pytest.mark.parametrize("policy, bandits, stop", LAWS)
def test_the_law_is_that_of_the_definition(policy, bandits, stop, request):
    study = request.node.callspec.id.partition(": ")[0]
    values = [ks_2samp(*pair).pvalue for pair in samples(policy, policy, bandits, study)]
    assert min(values) * len(values) * len(LAWS) > ERROR


@pytest.mark.parametrize("policy, other, study", [
    (cb.EpsilonGreedy(1, 0.1), cb.EpsilonGreedy(1, 0.5), "bernoulli"), (cb.KUBE(), cb.KUBE(3.0), "small known costs"),
    (cb.KnownCostTS(), cb.KnownCostTS(1.5), "known costs, rewards of 0 and 1"), (cb.BTS(), cb.BGreedy(), "bernoulli"),
    (cb.CSTS(0.1), cb.CSTS(0.3), "subsidy"), (cb.CSTS(0.1), cb.CSTS(0.1, "gaussian"), "subsidy")],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__)
def test_another_law_is_told_apart(policy, other, study):
    values = [ks_2samp(*pair).pvalue for pair in samples(policy, other, pins.STUDIES[study][1], study)]
    assert min(values) * len(values) * len(LAWS) < ERROR


def coupled(sign):
    """Three arms whose rewards and costs rise together, or one with the fall of the other; all outcomes are counted."""
    x = np.array([0.0, 0.25, 1.0])
    return cb.Bandit(outcomes=[cb.Pairs(scale * x, 0.5 + sign * 0.9 * (x - 0.5), [0.3, 0.4, 0.3])
                               for scale in (0.95, 0.6, 0.3)])


ON_PAIRS = {"bernoulli": cb.Budget(400), "subsidy, unknown costs": cb.Horizon(2000),
            "anytime": cb.AnytimeBudget(0.3, 1500)}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("study", ON_PAIRS)
def test_of_pairs_too_the_pulls_are_those_of_the_definition(study, sign):
    policies = {label: policy for label, policy in pins.STUDIES[study][0].items()
                if getattr(fast.kernel_of(policy), "same", "pulls") == "pulls"}
    quick, slow = (cb.simulate(policies, coupled(sign), ON_PAIRS[study], 2, seed=8, checkpoints=5, fast=fast_too)
                   for fast_too in (True, False))
    assert quick == slow


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("policy, stop", [(cb.BTS(), cb.Budget(250)), (cb.BGreedy(), cb.Budget(250)),
                                          (cb.EpsilonGreedy(1, 0.3), cb.Budget(250)),
                                          (cb.CSTS(0.1, "gaussian", costs="unknown"), cb.Horizon(500))],
                         ids=lambda part: type(part).__name__)
def test_of_pairs_too_the_law_is_that_of_the_definition(policy, stop, sign):
    """In runs in which the leader is pulled by blocks of pairs."""
    quick, slow = (cb.simulate({"p": policy}, coupled(sign), stop, RUNS, seed, [0.5, 1.0], fast=fast_too)
                   for seed, fast_too in ((1, True), (2, False)))
    columns = [np.hstack([runs.pulls[0].reshape(RUNS, -1), runs.reward[0], runs.spent[0]]).T for runs in (quick, slow)]
    values = [ks_2samp(*pair).pvalue for pair in zip(*columns, strict=True)]
    assert min(values) * len(values) * 8 > ERROR


def test_a_kernel_serves_what_leaves_the_definition_as_it_is():
    class Mine(cb.BTS):
        """A name of one's own changes nothing."""

    assert fast.kernel_of(Mine()).cls is cb.BTS
    for name in ["rule", "learn", "prepare", "parameters", "params", "memory", "p", "told", "remember", "play"]:
        assert fast.kernel_of(type("Other", (Mine,), {name: None})()) is None, name
    own = cb.BTS()
    object.__setattr__(own, "learn", None)      # of the instance alone
    assert fast.kernel_of(own) is None
    assert fast.kernel_of(cb.ChoosePolicy(cb.BGreedy.rule)) is None
    rising, any_ = (cb.IndexPolicy(cb.UCB1.rule, monotone=monotone) for monotone in (True, False))
    assert fast.kernel_of(rising) is not None and fast.kernel_of(any_) is None
    played = type("Played", (cb.IndexPolicy,), {"play": None})      # the kernel of indices serves any rule, but no loop
    assert fast.kernel_of(played(cb.UCB1.rule, monotone=True)) is None


def test_a_kernel_registers_once_and_says_what_it_keeps():
    with pytest.raises(ValueError, match=r"BTS has a kernel already, costbandits\.fast\.thompson"):
        fast.kernel(cb.BTS)(print)
    with pytest.raises(ValueError, match=r"same = 'speed': must be 'pulls' or 'law'"):
        fast.kernel(cb.UCB1, same="speed")(print)
    assert cb.UCB1 not in fast.KERNELS


PLAYED = """
import sys

def found(folder):
    for name in [name for name in sys.modules if name == "pins" or name.partition(".")[0] == "costbandits"]:
        del sys.modules[name]
    sys.path[0] = folder
    import pins
    import costbandits as cb
    from costbandits import fast
    assert cb.__file__.startswith(folder)
    for study, (policies, bandits, stop, _) in pins.STUDIES.items():
        for label, policy in policies.items():
            kernel = fast.kernel_of(policy)
            print(folder, f"{study}: {label}", kernel and kernel.play.__module__.rpartition(".")[2], sep="|")
    bandit = cb.Bandit([cb.Bernoulli(0.75), cb.Bernoulli(0.5)], [cb.Constant(0.5)] * 2)
    for stop, policies in ((cb.HardBudget(20), [cb.OmegaUCB(), cb.KUBE(), cb.EpsilonFirst(0.25), cb.KnownCostTS()]),
                           (cb.Budget(20), [cb.BTS(), cb.BGreedy(), cb.OmegaStarUCB()]),
                           (cb.Horizon(40), [cb.CSUCB(0.1), cb.CSTS(0.1), cb.CSElimination(0.1)])):
        runs = cb.simulate({type(policy).__name__: policy for policy in policies}, bandit, stop)
        assert (runs.pulls[:, 0, -1].sum(axis=1) == 40).all()

for folder in sys.argv[1:]:
    found(folder)
"""


def kernels_in(*folders):
    """Which module plays what in libraries in these folders, which then play, all in one process; None: definition."""
    done = subprocess.run([sys.executable, "-c", PLAYED, *map(str, folders)], capture_output=True, text=True,
                          env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(pins.__file__).parent)})
    assert done.returncode == 0, done.stderr[-2000:]
    found = {str(folder): {} for folder in folders}
    for line in done.stdout.splitlines():
        folder, name, module = line.split("|")
        found[folder][name] = module
    return list(found.values())


MODULES = sorted(path.name for path in (LIBRARY / "fast").glob("*.py") if path.name != "__init__.py")


@pytest.mark.slow
def test_what_is_missing_elsewhere_is_no_deleted_kernel():
    code = "import sys; sys.modules['costbandits.engine.thinning'] = None; import costbandits"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(LIBRARY.parent)})
    assert done.returncode == 1 and "ModuleNotFoundError" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_without_a_kernel_the_definition_is_played(tmp_path):
    for deleted in MODULES:
        shutil.copytree(LIBRARY, tmp_path / deleted / "costbandits", ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / deleted / "costbandits" / "fast" / deleted).unlink()
    before, *rest = kernels_in(LIBRARY.parent, *(tmp_path / deleted for deleted in MODULES))
    for deleted, after in zip(MODULES, rest, strict=True):
        gone = {name for name in before if before[name] != after[name]}
        assert {after[name] for name in gone} <= {"None"}, deleted
        assert {before[name] for name in before if before[name] == deleted[:-3]} <= {before[name] for name in gone}
