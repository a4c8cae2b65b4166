"""Versions: the lock, and all that must agree with it; and what the package needs, and what it does without."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "lib/costbandits"
PROJECT, TOOLS = map(tomllib.loads((ROOT / "pyproject.toml").read_text()).get, ("project", "tool"))
PYTHONS = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if " Python :: " in text]


def lock():
    """The entries of the lock: (name, version, marker or None, number of hashes)."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    for entry in re.split(r"\n(?=\S)", text.replace("\\\n", " ").strip()):
        found = re.match(r"([\w.-]+)(?:\[[^]]*\])?==([^\s;]+)\s*(?:;\s*(.*?))?\s*(--hash=.*)$", entry, re.DOTALL)
        assert found, f"not a pinned requirement with hashes: {entry[:80]!r}"
        name, version, marker, hashes = found.groups()
        number = len(re.findall("sha256:[0-9a-f]{64}", hashes))
        yield canonicalize_name(name), version, Marker(marker) if marker else None, number


def direct():
    lines = ((ROOT / "requirements.in").read_text()).splitlines()
    texts = (line.partition("#")[0].strip() for line in lines)
    return [Requirement(text) for text in texts if text]


def test_every_entry_of_the_lock_has_hashes():
    entries = list(lock())
    assert len(entries) > 50 and all(hashes > 0 for *_, hashes in entries)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_the_lock_pins_each_direct_requirement_once(python, platform):
    environment = {"python_version": python, "python_full_version": f"{python}.5", "sys_platform": platform,
                   "platform_system": {"linux": "Linux", "darwin": "Darwin"}[platform], "os_name": "posix",
                   "platform_python_implementation": "CPython", "implementation_name": "cpython"}
    pinned = {}
    for name, version, marker, _ in lock():
        if marker is None or marker.evaluate(environment):
            assert name not in pinned, f"{name} is pinned to {version} and {pinned[name]}"
            pinned[name] = version
    for requirement in direct():
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])


def test_the_package_and_its_extras_need_what_is_locked():
    named = [*PROJECT["dependencies"], *(text for extra in PROJECT["optional-dependencies"].values() for text in extra)]
    known = {canonicalize_name(requirement.name) for requirement in direct()}
    assert {canonicalize_name(Requirement(text).name) for text in named} <= known
    # JupyterLab brings its kernel along, and setuptools is what the package is built with.
    assert known - {canonicalize_name(Requirement(text).name) for text in named} == {"ipykernel", "setuptools"}


def test_environment_yml_names_nothing_that_the_lock_does_not():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    packages = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == ["-r requirements.lock"]
    locked = {name for name, *_ in lock()}
    assert {re.split("[=<> ]", entry)[0] for entry in packages} <= {"python", "pip", "make"} | locked
    (python,) = [entry.partition("=")[2] for entry in packages if entry.startswith("python=")]
    assert python in PYTHONS


def test_binder_installs_the_library_as_make_does():
    script = ROOT / "postBuild"
    (command,) = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert os.access(script, os.X_OK) and command.startswith("python -m pip install ")
    assert command.endswith(re.search(r"\$\(1\) (--no-deps .*)", (ROOT / "Makefile").read_text())[1])
    assert "setuptools" in {name for name, *_ in lock()}      # nothing is downloaded to build it with


def test_one_version_read_without_an_import():
    (named,) = [ast.literal_eval(node.value) for node in ast.parse((LIBRARY / "__init__.py").read_text()).body
                if isinstance(node, ast.Assign) and node.targets[0].id == "__version__"]
    assert "version" in PROJECT["dynamic"]
    assert TOOLS["setuptools"]["dynamic"]["version"] == {"attr": "costbandits.__version__"}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == named
    assert re.search(r"^## \[?([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == named


def test_authors_and_licence_are_said_once_for_all():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["authors"] == cited["authors"] and PROJECT["license"] == cited["license"]
    assert cited["authors"][0]["name"] in (ROOT / "LICENSE").read_text()


def imported(folder):
    """The packages, other than Python's own, that any line of a folder's modules imports."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            yield from (name.partition(".")[0] for name in names)


def test_the_package_needs_what_its_modules_import():
    requirements = {requirement.name: requirement for requirement in map(Requirement, PROJECT["dependencies"])}
    assert {*imported(LIBRARY)} - sys.stdlib_module_names <= requirements.keys()
    for requirement in requirements.values():      # `make lowest` installs what stands there
        assert [bound.operator for bound in requirement.specifier] == [">="]


# All that the notebooks and the book are made with, and what is optional.
AROUND = ("compendium", "IPython", "ipykernel", "ipywidgets", "jupyter_client", "jupyter_core", "jupyterlab",
          "nbclient", "nbconvert", "nbformat", "papermill", "sympy", "math_core", "dask", "distributed")
ALONE = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))     # None: to import it is an error
import importlib, pkgutil
import costbandits as cb
for module in pkgutil.walk_packages(cb.__path__, "costbandits."):
    importlib.import_module(module.name)
runs = cb.simulate({"omega": cb.OmegaUCB(0.25), "UCB1": cb.UCB1()}, cb.instances.bernoulli(3), cb.Budget(20),
                   replications=3, n_jobs=1)
print(cb.regret.budgeted(runs).shape, cb.paired(runs, "omega", "UCB1").ratio.low > 0)
from costbandits import *
"""


@pytest.mark.slow
def test_the_package_works_without_jupyter_and_without_the_compendium():
    path = os.pathsep.join([str(LIBRARY.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", ALONE, *AROUND], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})
    assert (done.stdout.splitlines(), done.returncode) == ([
        "(2, 3, 50) True"], 0), done.stderr


def test_python_range():
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert all(allowed.contains(f"{python}.0") for python in PYTHONS) and not allowed.contains("3.10.14")
