"""The samples of the pages for contributors run, each in the place that it is written for; what they name is there."""

import importlib
import re
import sys
import textwrap
import types
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_docs import faults

import costbandits as cb
from compendium import ledger
from costbandits import fast

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book/contributing").glob("*.md"))]
PAGE = "\n".join(path.read_text() for path in PAGES)
SAMPLES = list(map(textwrap.dedent, re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)))


def placed(sample, folder, monkeypatch):
    """Run a sample that begins with the name of a file: in that module if it is there, else as a new one."""
    path = Path(sample.partition("\n")[0].removeprefix("# "))
    name = ".".join(path.with_suffix("").parts[1:]) if path.parts[0] == "lib" else path.stem
    package, _, last = name.rpartition(".")
    if (ROOT / path).exists():
        module = importlib.import_module(name)
    else:
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        if package:
            module.__package__ = package
            monkeypatch.setattr(importlib.import_module(package), last, module, raising=False)
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(sample)           # compiled code is kept beside its file
    names = dict(vars(module)) | {"__file__": str(file)}
    before = set(names)
    exec(compile(sample, str(file), "exec"), names)
    for each in set(names) - before:
        monkeypatch.setattr(module, each, names[each], raising=False)
    assert path.parts[0] != "lib" or faults(module) == []
    return module


@pytest.mark.slow
def test_a_policy_from_its_rule_to_its_transcription(tmp_path, monkeypatch):
    rule, by_hand, literal = (sample for sample in SAMPLES if "toy" in sample)
    toy = placed(rule, tmp_path, monkeypatch)
    tests = placed(by_hand, tmp_path, monkeypatch)
    tests.test_by_hand()
    tests.test_what_is_refused()
    reference = placed(literal, tmp_path, monkeypatch)
    bandit = cb.instances.beta(4)(reference.stream(1, 0, reference.INSTANCE))
    expected = reference.literal_trajectory(reference.Index(reference.toy), bandit, 30.0, 1, 0)
    found = reference.trajectory(toy.Toy(), bandit, 30.0, 1, 0, len(expected))
    assert len(expected) > 30 and found.tolist() == expected.tolist()


@pytest.mark.slow
def test_a_kernel_and_its_definition(tmp_path, monkeypatch):
    definition, kernel = (sample for sample in SAMPLES if "commit" in sample.partition("\n")[0])
    commit = placed(definition, tmp_path, monkeypatch)
    monkeypatch.setattr(fast, "KERNELS", dict(fast.KERNELS))
    placed(kernel, tmp_path, monkeypatch)
    bandit, policies = cb.instances.bernoulli(4), {"commit": commit.Commit(30)}
    quick, slow = (cb.simulate(policies, bandit, cb.Horizon(1000), 5, checkpoints=9, fast=fast_too)
                   for fast_too in (True, False))
    assert np.array_equal(quick.pulls, slow.pulls) and (quick.pulls[0, :, -1].max(axis=1) == 1000 - 3 * 30).all()
    longest = cb.simulate(policies, bandit, cb.Horizon(10**12)).pulls[0, 0, -1]
    assert sorted(longest) == [30, 30, 30, 10**12 - 90]
    with pytest.raises(ValueError, match="stop = 'a hard budget'"):      # `many` would overspend it
        cb.simulate(policies, cb.instances.knapsack(2), cb.HardBudget(50.05))


def test_there_is_one_page_to_begin_with():
    assert len(PAGES[0].read_text().split()) < 700
    assert all(f"book/contributing/{path.name}" in PAGES[0].read_text() for path in PAGES[1:])


def test_a_law(tmp_path, monkeypatch):
    (sample,) = (sample for sample in SAMPLES if "class Uniform" in sample)
    law = placed(sample, tmp_path, monkeypatch).Uniform(0.9)
    cb.check_sampler(law)
    with pytest.raises(ValueError, match="Uniform high = 0"):
        type(law)(0)


def test_a_bound(tmp_path, monkeypatch):
    (sample,) = (sample for sample in SAMPLES if "Theorem 9" in sample)
    assert placed(sample, tmp_path, monkeypatch).first_pulls(5, 2.0) == 10.0


def test_a_claim_is_one(tmp_path):
    (sample,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "claims.yaml").write_text(sample)
    (claim,) = ledger.load(tmp_path / "claims.yaml").values()
    assert claim.id not in ledger.load(ROOT / sample.partition("\n")[0].removeprefix("# "))


@pytest.mark.slow
@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample.startswith("import")])
def test_what_a_notebook_does(sample, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    with plt.rc_context():
        exec(compile(sample, "sample", "exec"), {"__name__": "sample"})
    plt.close("all")
    assert "judge" not in sample or capsys.readouterr().out.strip() in ledger.VERDICTS


def test_the_files_that_it_names_are_there():
    named = re.findall(r"`((?:lib|tests|claims)/[\w/]+\.\w+|[A-Z]\w+\.(?:md|cff))`", PAGE)
    assert len(named) > 10 and [name for name in named if not (ROOT / name).exists()] == []
