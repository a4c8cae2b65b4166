"""What runs on other machines and before a commit are commands that the project has."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
JOB, PROOF = WORKFLOW["jobs"]["make"], WORKFLOW["jobs"]["proof"]
MATRIX = JOB["strategy"]["matrix"]["include"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def filled(text, values):
    return re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found: values[found[1]], text)


@pytest.mark.parametrize("values", MATRIX, ids=lambda values: f"{values['command']}-{values['python']}")
def test_each_job_calls_a_target_of_the_makefile(values):
    *before, last = [filled(step["run"], values) for step in JOB["steps"] if "run" in step]
    assert last.removeprefix("make ") in TARGETS
    assert not before


def test_each_supported_python_and_each_kind_of_test_has_a_job():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = {text.rpartition(" ")[2] for text in project["classifiers"] if " Python :: " in text}
    assert supported == {each["python"] for each in MATRIX if each["command"] == "test" and not each.get("may_fail")}
    assert {each["command"] for each in MATRIX} == {"test", "lowest", "wheel", "coverage", "audits"}
    assert set(WORKFLOW[True]) == {"push", "pull_request", "schedule"}      # YAML 1.1 reads the key `on` as a truth


def test_each_night_all_is_run_that_a_push_does_not_run():
    assert (JOB["if"], PROOF["if"]) == ("github.event_name != 'schedule'", "github.event_name == 'schedule'")
    assert [step["run"] for step in PROOF["steps"] if "run" in step] == ["make ${{ matrix.command }}"]
    assert set(PROOF["strategy"]["matrix"]["command"]) == {"proof", "newest"} <= TARGETS
    assert [set(each) for each in WORKFLOW[True]["schedule"]] == [{"cron"}]


def test_the_site_is_built_by_make_and_published_from_main_alone():
    site = yaml.safe_load((ROOT / ".github/workflows/site.yml").read_text())
    build, publish = site["jobs"]["build"], site["jobs"]["publish"]
    made, tested = (step["run"] for step in build["steps"] if "run" in step)
    assert (made, tested) == ("make site", "make pages") and {"site", "pages"} <= TARGETS
    assert build["steps"][-1]["with"]["path"] == "build/site"
    assert publish["if"] == "github.ref == 'refs/heads/main' && github.event_name == 'push'"
    assert publish["needs"] == "build" and site["permissions"] == {"contents": "read"}


def test_hooks_before_a_commit_are_local():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local" and {hook["language"] for hook in repository["hooks"]} == {"system"}
    commands = [hook["entry"].split() for hook in repository["hooks"]]
    assert [command[1] for command in commands if command[0] == "make"] == ["check"]
    assert all(command[0] in ("make", ".venv/bin/python") for command in commands)
