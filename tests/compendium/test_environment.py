"""Versions: the lock, and all that must agree with it."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


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


def test_python_range():
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert all(allowed.contains(f"{python}.0") for python in PYTHONS) and not allowed.contains("3.10.14")
