"""The samples of CONTRIBUTING.md run, each in the place that it is written for, and what it names is there."""

import importlib
import re
import sys
import types
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import costbandits as cb

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
SAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


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
    (claim,) = cb.ledger.load(tmp_path / "claims.yaml").values()
    assert claim.id not in cb.ledger.load(ROOT / sample.partition("\n")[0].removeprefix("# "))


@pytest.mark.slow
@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample.startswith("import")])
def test_what_a_notebook_does(sample, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    with plt.rc_context():
        exec(compile(sample, "sample", "exec"), {"__name__": "sample"})
    plt.close("all")
    assert "judge" not in sample or capsys.readouterr().out.strip() in cb.ledger.VERDICTS


def test_the_files_that_it_names_are_there():
    named = re.findall(r"`((?:lib|tests|claims)/[\w/]+\.\w+|[A-Z]\w+\.(?:md|cff))`", PAGE)
    assert len(named) > 10 and [name for name in named if not (ROOT / name).exists()] == []
