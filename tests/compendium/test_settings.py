"""What a user has set for other programs decides no byte of what is published."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from reference import proving

from compendium import publication, settings

ROOT = Path(__file__).resolve().parents[2]
CELLS = [
    """
seed = 1            # of nothing
name = "ω"          # of the policy
output = ""         # folder for figures and tables
store = ""          # file of finished replications""",
    """
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from compendium import ledger
from compendium.gallery import Gallery, house_style, number
house_style()
gallery = Gallery("toy", output, "paper", seed)""",
    """
for place in ("first", "second"):
    fig, ax = plt.subplots()
    ax.plot([0, 1, 3], [0.1, -2, 1])
    ax.set(title=rf"$\\hat\\mu$ of one policy", xlabel="größer ω")
    table = pd.DataFrame({"größe": [1 / 3, 12345.678], "名前": [name, "é"]})
    gallery.add(place, fig, table, says=f"It grows: {name}.")
    plt.show()
table""",
    """
gallery.finding(f"**{name}** wins by {number(1 / 3)}.")
claim = ledger.Claim("X1", f"{name} wins", "§ 1", "ratio", (0.0, 1.0), "means", {})
book = ledger.Ledger({"X1": claim}, "paper")
print(book.judge("X1", "größer", 0.5, 10), np.array([1 / 3, 2 / 3]))
assert np.get_printoptions()["precision"] == 8
if output:
    book.frame().to_csv(f"{output}/ledger.csv", index=False)"""]
RC = """
backend: nothing
text.usetex: True
font.size: 31
font.family: Nowhere
axes.prop_cycle: cycler(color=["k"])
axes.unicode_minus: False
figure.figsize: 2, 2
figure.max_open_warning: 1
savefig.dpi: 30
savefig.transparent: True
svg.fonttype: path
"""


def make_project(folder):
    for name in ("notebooks", "params/paper", "home"):
        (folder / name).mkdir(parents=True)
    (folder / "params/paper/toy.yaml").write_text("name: ω größer, 予算", encoding="utf-8")
    cells = [new_code_cell(source.strip(), id=f"c{k}", metadata={"alt": "ä"}) for k, source in enumerate(CELLS)]
    cells[0].metadata = {"tags": ["parameters"]}
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Toy", id="head"), *cells]), folder / "notebooks/toy.ipynb")
    return folder


def write(folder, texts):
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def with_a_full_home(folder):
    """Settings in the home, and in the environment."""
    home = folder / "home"
    write(home, {
        ".config/matplotlib/matplotlibrc": RC, ".matplotlib/matplotlibrc": RC, "startup.py": "raise SystemExit(1)",
        ".ipython/profile_default/startup/00.py": "import numpy\nnumpy.set_printoptions(1)\nprint('started')",
        ".ipython/profile_default/ipython_config.py": "c.InteractiveShellApp.exec_lines = ['import pandas as np']\n"
                                                      "c.InlineBackend.figure_formats = {'svg'}",
        ".ipython/profile_default/ipython_kernel_config.py": "1/0",
        ".jupyter/jupyter_config.py": "1/0", ".jupyter/jupyter_nbconvert_config.py": "1/0",
        ".local/share/jupyter/kernels/python3/kernel.json": '{"argv": ["false"], "display_name": "x", "language": "R"}',
        ".local/share/jupyter/nbconvert/templates/lab/index.html.j2": "nothing",
        ".local/share/jupyter/nbconvert/templates/lab/conf.json": "{}"})
    return {"HOME": str(home), "MATPLOTLIBRC": str(home / ".config/matplotlib/matplotlibrc"), "MPLBACKEND": "nothing",
            "MPLCONFIGDIR": str(home / ".config/matplotlib"), "PYTHONSTARTUP": str(home / "startup.py"),
            "IPYTHONDIR": str(home / ".ipython"), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "latin-1",
            "JUPYTER_PATH": str(home / ".local/share/jupyter"), "JUPYTER_CONFIG_DIR": str(home / ".jupyter"),
            "PYTHONHASHSEED": "7", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}


def in_japan(folder):
    """Settings in the folders that are worked in, and a locale in which Python's files are not of UTF-8."""
    write(folder, {"matplotlibrc": RC, "notebooks/matplotlibrc": RC.replace("backend: nothing", "backend: svg"),
                   "notebooks/ipython_config.py": "1/0", "notebooks/jupyter_config.py": "1/0"})
    made = subprocess.run(["localedef", "-i", "ja_JP", "-f", "EUC-JP", folder / "home/ja_JP.eucJP"],
                          capture_output=True).returncode < 2 if shutil.which("localedef") else False
    return {"LOCPATH": str(folder / "home"), "LC_ALL": "ja_JP.eucJP" if made else "C", "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0", "HOME": str(folder / "home")}


def without_a_home(folder):
    """No place of one's own, and the plainest of terminals."""
    return {"HOME": "/dev/null/home", "XDG_CONFIG_HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x", "LC_ALL": "C",
            "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": "dumb", "COLUMNS": "20"}


def played(folder, user):
    """All that is committed of a project of such a user: what a run publishes, and the notebook, refreshed."""
    environment = {key: value for key, value in os.environ.items()
                   if key not in (*settings.DROPPED, *settings.FIXED, *settings.PLACES)}
    environment |= {"PYTHONPATH": str(ROOT / "lib"), **user(make_project(folder))}
    for arguments in (["run", "toy", "--profile", "paper"], ["refresh"]):
        done = subprocess.run([sys.executable, "-m", "compendium", *arguments], cwd=folder, env=environment,
                              capture_output=True)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert publication.audit(folder / "figures/toy") == []
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in (*folder.glob("figures/**/*.*"), folder / "notebooks/toy.ipynb")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return played(tmp_path_factory.mktemp("nobody"), lambda folder: {"HOME": str(folder / "home")})


@pytest.mark.proof
@pytest.mark.parametrize("user", [with_a_full_home, in_japan, without_a_home])
def test_a_user_s_own_settings_decide_no_byte(tmp_path, expected, user):
    found = played(tmp_path / "project", user)
    assert [name for name in expected | found if found.get(name) != expected.get(name)] == []
    assert {path.rpartition("/")[2] for path in expected} == {
        "first.png", "first.svg", "first.csv", "second.png", "second.svg", "second.csv", "story.json", "ledger.csv",
        "manifest.json", "toy.ipynb"}
    assert "ω größer, 予算".encode() in expected["figures/toy/manifest.json"]


COMMANDS = [("1", "compendium"), ("2", "compendium.report"), ("1", "compendium.paper"), ("2", "compendium.site")]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "command"), proving(COMMANDS, *COMMANDS[1:]))
def test_a_python_without_docstrings_and_asserts_is_refused_in_a_sentence(tmp_path, level, command):
    environment = {**os.environ, "PYTHONOPTIMIZE": level, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run([sys.executable, "-m", command, *["refresh"] * (command == "compendium")], cwd=tmp_path,
                          env=environment, text=True, capture_output=True)
    (said,) = done.stderr.splitlines()
    assert done.returncode == 2 and said.startswith(f"costbandits: PYTHONOPTIMIZE = {level}: must be unset, for")
    assert list(tmp_path.iterdir()) == []


def test_make_drops_and_fixes_what_the_commands_do():
    text = (ROOT / "Makefile").read_text()
    dropped = set(" ".join(re.findall(r"^unexport (.*)$", text, re.MULTILINE)).split())
    assert set(settings.DROPPED) - dropped == {"JUPYTER_PATH"} and "JUPYTER_PATH= $(PY) -m pytest" in text
    assert all(f"export {name} = {value}\n" in text for name, value in settings.FIXED.items())
    assert f"export MPLCONFIGDIR = $(CURDIR)/$(BUILD)/{settings.PLACES['MPLCONFIGDIR']}\n" in text


def unsure(path):
    """The calls of a module that open a file of text in whatever encoding the user's locale has."""
    opens = {"open", "read_text", "write_text", "fdopen", "NamedTemporaryFile", "TextIOWrapper"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        modes = [value.value for value in [*node.args, *given.values()] if isinstance(value, ast.Constant)]
        binary = any(isinstance(mode, str) and re.fullmatch("[rwax+]*b[rwax+]*", mode) for mode in modes)
        other = ast.unparse(node.func) in ("Image.open", "os.open", "webbrowser.open")
        of_text = name in ("run", "check_output", "Popen", "check_call") and {"text", "universal_newlines"} & set(given)
        if ((name in opens and not binary and not other) or of_text) and "encoding" not in given:
            yield f"{path.name}, line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("folder", ["lib", "benchmarks", "book"])
def test_texts_are_read_and_written_in_utf_8(folder):
    assert [call for path in sorted((ROOT / folder).rglob("*.py")) for call in unsure(path)] == []


def test_a_file_in_the_locale_s_encoding_is_noticed(tmp_path):
    bad = ["open(path)", "open(path, 'w')", "path.read_text()", "path.write_text(t)", "os.fdopen(2, 'a')",
           "path.open('r+')", "subprocess.run(x, text=True)"]
    good = ["open(path, 'rb')", "open(path, mode='wb')", "open(path, encoding='utf-8')",
            "path.write_text(t, encoding='utf-8')", "Image.open(path)", "subprocess.run(x)", "store.run(path)"]
    (tmp_path / "module.py").write_text("\n".join(bad + good))
    assert len(list(unsure(tmp_path / "module.py"))) == len(bad)
