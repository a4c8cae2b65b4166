"""A checkout is what was committed, whatever the user's git is set to, and says so where it may not be written."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from compendium import publication

ROOT = Path(__file__).resolve().parents[2]
# What has a digest, and what shells, make and pip read.
PARTS = (".gitattributes", ".ci", "claims", "data", "figures", "notebooks", "paper", "params", "tests/pins.json",
         "book/references.bib", "lib/compendium", "Makefile", "postBuild", "requirements.lock", "README.md")
# A user's settings, and attributes for all of a user's repositories.
SETTINGS = {
    "Windows": ("[core]\n autocrlf = true", ""), "line ends by hand": ("[core]\n eol = crlf", ""),
    "one way": ("[core]\n autocrlf = input", ""), "all is text": ("", "* text eol=crlf\n"),
    "nbstripout": ('[filter "strip"]\n clean = "echo {}"\n smudge = "echo {}"', "* filter=strip\n"),
    "keywords": ("", "* ident\n")}


COMMANDS = ("all", "quick", "test", "check", "deep", "site", "paper", "refresh", "bench", "lock", "lowest", "mutants")


@pytest.fixture
def locked():
    """A folder with the Makefile that this test's `make` may read and not write; and who that is, if not we."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notebooks").mkdir()
        (folder / "notebooks/chapters.txt").write_text("one\n")
        (folder / "requirements.lock").touch()
        shutil.copy(ROOT / "Makefile", folder)
        folder.chmod(0o555)
        yield folder, {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        folder.chmod(0o755)


@pytest.mark.parametrize("python", ["", "PY=python3"])
@pytest.mark.parametrize("command", COMMANDS)
def test_make_says_in_a_sentence_that_its_folder_cannot_be_written(locked, command, python):
    folder, who = locked
    ours = ("MAKEFLAGS", "MFLAGS", "PY", "PYTHON")
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    done = subprocess.run(["make", command, *[python] * bool(python)], cwd=folder, env=environment, capture_output=True,
                          text=True, **who)
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("make")]
    assert said == [f"Nothing can be written to {folder}, where make puts what it makes: copy this folder to a place "
                    "of your own, and run make there"] and done.returncode == 2


def test_make_says_so_too_where_a_file_is_in_the_way(tmp_path):
    for name in ("notebooks/chapters.txt", "build", "requirements.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(["make", "check", "PY=python3"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and f"Nothing can be written to {tmp_path}, where" in done.stderr


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(folder).parts[:1]}


@pytest.mark.slow
@pytest.mark.parametrize("user", SETTINGS)
def test_a_clone_has_the_bytes_that_were_committed(tmp_path, user):
    """Committed and cloned with the user's settings: every digest of what is published is that of the clone."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    first, clone = tmp_path / "first", tmp_path / "clone"
    for part in PARTS:
        (first / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, first / part, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_*"))
        else:
            shutil.copy(ROOT / part, first / part)
    (first / "figures/of_bytes.csv").write_bytes(b"a\r\n1\n$Id$\r\n")      # a published file may have any line ends
    settings, attributes = SETTINGS[user]
    (tmp_path / "attributes").write_text(attributes)
    (tmp_path / "config").write_text(f"{settings}\n[core]\n attributesFile = {tmp_path / 'attributes'}\n"
                                     "[user]\n name = A\n email = a@b.c\n")
    # A hook of git, such as pre-commit's, runs tests with variables that name its own repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": str(tmp_path / "config"), "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (["init", "-q", first], ["-C", first, "add", "-A"], ["-C", first, "commit", "-qm", "all"],
                    ["clone", "-q", first, clone]):
        subprocess.run(["git", *map(str, command)], env=environment, check=True, capture_output=True)
    before, after = contents(first), contents(clone)
    assert [name for name in before if after.get(name) != before[name]] == [] and len(after) == len(before) > 300
    assert [fault for manifest in clone.glob("figures/**/manifest.json")
            for fault in publication.audit(manifest.parent)] == []
