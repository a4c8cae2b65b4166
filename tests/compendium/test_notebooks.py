"""Guards: what every committed notebook must be like, and that each guard notices when it is not."""

import ast
import io
import re
import symtable
import tokenize
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from compendium import lab, preparation, project, sections

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = project.notebooks(ROOT)
FILE = (ROOT / "notebooks/{}.ipynb").as_posix().format
LONGEST_CELL, LONGEST_LINE, LARGEST_FILE = 15, 110, 500_000


def code(notebook):
    """The code cells with anything in them, numbered by their place in the notebook."""
    return [(number, cell) for number, cell in enumerate(notebook.cells, 1)
            if cell.cell_type == "code" and cell.source.strip()]


def live(notebook):
    skipped = {"skip-execution", "nbval-skip"}
    return [(number, cell) for number, cell in code(notebook) if not skipped & set(cell.metadata.get("tags", []))]


def outputs(notebook):
    return [(number, cell, output) for number, cell in code(notebook) for output in cell.outputs]


# Each guard takes a notebook and yields what is wrong with it.


def is_valid(notebook):
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        yield str(error)


def has_literal_parameters_with_comments(notebook):
    try:
        preparation.parameters(notebook)
    except ValueError as error:
        yield str(error)
        return
    (source,) = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    commented = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    for line in ast.parse(source).body:
        if not commented & set(range(line.lineno, line.end_lineno + 1)):
            yield f"parameter without comment: {ast.unparse(line)}"


def is_executed(notebook):
    yield from (f"cell {number} has not run" for number, cell in live(notebook) if cell.execution_count is None)


def is_executed_from_top_to_bottom(notebook):
    for expected, (number, cell) in enumerate(live(notebook), 1):
        if cell.execution_count != expected:
            yield f"cell {number} ran as number {cell.execution_count}, not {expected}: run all cells from the top"
            return


def has_no_error(notebook):
    yield from (f"cell {number}: {output.ename}" for number, _, output in outputs(notebook)
                if output.output_type == "error")


def has_no_stderr(notebook):
    yield from (f"cell {number}: {output.text}" for number, _, output in outputs(notebook)
                if output.get("name") == "stderr")


def has_short_cells(notebook):
    lengths = ((number, cell.source.count("\n") + 1) for number, cell in code(notebook))
    yield from (f"cell {number} has {length} lines" for number, length in lengths if length > LONGEST_CELL)


def has_short_lines(notebook):
    yield from (f"cell {number}: {line}" for number, cell in code(notebook) for line in cell.source.splitlines()
                if len(line) > LONGEST_LINE)


def hides_no_result_by_semicolon(notebook):
    """nbval sees what a semicolon hides elsewhere: assign the result to `_`."""
    yield from (f"cell {number} ends with a semicolon" for number, cell in code(notebook)
                if cell.source.rstrip().endswith(";"))


def has_alternative_texts(notebook):
    pictures = [(number, cell) for number, cell, output in outputs(notebook)
                if any(kind.startswith("image/") for kind in output.get("data", {}))]
    yield from (f"cell {number} shows a picture without alternative text" for number, cell in pictures
                if not cell.metadata.get("alt", "").strip())


def names_no_place_on_a_machine(notebook):
    text = nbformat.writes(notebook)
    yield from re.findall(r"(?<![\w.:/])/(?:home|root|tmp|Users|work|mnt)/[^\s\"']*", text)


def has_the_metadata_that_is_kept(notebook):
    """What editors and kernels write besides changes with each of them."""
    kept = deepcopy(notebook)
    lab.quieten(kept)
    for where, there, right in [("the notebook", notebook.metadata, kept.metadata), *(
            (f"cell {number}", cell.metadata, other.metadata)
            for number, (cell, other) in enumerate(zip(notebook.cells, kept.cells, strict=True), 1))]:
        if there != right:
            yield f"{where} has the metadata {there}, not {right}: make refresh"


def refers_to_sections_that_it_has(notebook):
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    have = sections.numbers(texts)
    yield from (f"there is no section {number}" for text in texts for number in sections.named(text)
                if number not in have)


def numbers_its_sections_without_gaps(notebook):
    counts = {}
    for cell in notebook.cells:
        for number in sections.HEADING.findall(cell.source) if cell.cell_type == "markdown" else ():
            parent, _, last = number.rpartition(".")
            counts[parent] = counts.get(parent, 0) + 1
            if int(last) != counts[parent]:
                yield f"section {number} is number {counts[parent]} of section {parent or 'none'}"


def tagged(notebook, tag):
    return [(number, cell) for number, cell in code(notebook) if tag in cell.metadata.get("tags", [])]


def names(table, wanted):
    """The names of a cell that are `wanted`, in the functions that it defines, too."""
    return {symbol.get_name() for symbol in table.get_symbols() if wanted(symbol)}.union(
        *(names(child, wanted) for child in table.get_children()))


def has_sliders_that_work(notebook):
    """A slider moves when all cells have run: what it calls must be what it was, and its picture must be shown."""
    cells = {number: symtable.symtable(cell.source, "cell", "exec") for number, cell in code(notebook)}
    source = {number: cell.source for number, cell in code(notebook)}
    for number, _ in tagged(notebook, "skip-execution"):
        for name in names(cells[number], lambda symbol: symbol.is_global() and not symbol.is_assigned()):
            binding = [other for other, table in cells.items() if name in table.get_identifiers()
                       and table.lookup(name).is_assigned()]
            if len(binding) > 1:
                yield f"cell {number} uses {name}, which cells {binding} bind"
            if any("plt.subplots" in source[other] and "plt.show()" not in source[other] + source[number]
                   for other in binding):
                yield f"cell {number} draws with {name}, and nothing shows the picture: plt.show()"


def has_solutions_after_what_it_files(notebook):
    """No solution can change a result, so an edit of one asks for no new run."""
    filing = [number for number, cell in code(notebook) if re.search(r"\b(gallery|ledger)\.", cell.source)]
    yield from (f"cell {number} is a solution, and cell {filing[-1]} files results"
                for number, _ in tagged(notebook, "solution") if filing and number <= filing[-1])


def has_solutions_that_hide_themselves(notebook):
    """JupyterLab shows the first line of what is folded."""
    yield from (f"cell {number} gives its solution away" for number, cell in tagged(notebook, "solution")
                if not re.match(r"# Solution \d+(, \w+)?$", cell.source.partition("\n")[0]))


GUARDS = [is_valid, has_literal_parameters_with_comments, is_executed, is_executed_from_top_to_bottom, has_no_error,
          has_no_stderr, has_short_cells, has_short_lines, hides_no_result_by_semicolon, has_alternative_texts,
          names_no_place_on_a_machine, has_the_metadata_that_is_kept, refers_to_sections_that_it_has,
          numbers_its_sections_without_gaps, has_sliders_that_work, has_solutions_after_what_it_files,
          has_solutions_that_hide_themselves]


def wrong_profiles(defaults, quick, paper):
    """What is wrong with the profiles of a notebook: unknown parameters, a quick profile that is not the default."""
    for profile, values in (("quick", quick), ("paper", paper)):
        yield from (f"{profile}: unknown parameter {name}" for name in set(values) - set(defaults))
    yield from (f"quick: {name} = {value!r} is not the default {defaults[name]!r}" for name, value in quick.items()
                if name in defaults and value != defaults[name])


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
def test_a_committed_notebook(name, guard):
    assert list(guard(nbformat.read(FILE(name), as_version=4))) == []


def test_the_list_of_chapters_names_each_notebook_once():
    assert sorted(project.chapters(ROOT)) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_size_of_a_committed_notebook(name):
    assert Path(FILE(name)).stat().st_size < LARGEST_FILE


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_profiles_of_a_committed_notebook(name):
    defaults = preparation.parameters(nbformat.read(FILE(name), as_version=4))
    quick, paper = (yaml.safe_load((ROOT / "params" / profile / f"{name}.yaml").read_text()) or {}
                    for profile in ("quick", "paper"))
    assert list(wrong_profiles(defaults, quick, paper)) == []
    preparation.check(ROOT, name, defaults)


# The guards' own tests: a notebook as it should be, and one fault at a time.


@pytest.fixture
def good():
    picture = new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})
    return new_notebook(metadata=deepcopy(lab.METADATA), cells=[
        new_markdown_cell("# Title\n## 1. One\n### 1.1 Its part\n## 2. Two\nSee section 1.1."),
        new_code_cell("seed = 1    # of all streams\nsizes = [   # of the settings\n    1, 2]", execution_count=1,
                      metadata={"tags": ["parameters"]}),
        new_code_cell("print(1)", execution_count=2, outputs=[new_output("stream", name="stdout", text="1\n")]),
        new_code_cell("plt.show()", execution_count=3, outputs=[picture], metadata={"alt": "A line"}),
        new_code_cell("interact(f)", metadata={"tags": ["skip-execution", "nbval-skip"]}),
        new_code_cell("")])


def cell(number, **changes):
    """The fault of replacing these fields of a cell."""
    return lambda notebook: notebook.cells[number].update(changes)


def metadata(number, **changes):
    return lambda notebook: notebook.cells[number].metadata.update(changes)


def output(number, *arguments, **fields):
    return lambda notebook: notebook.cells[number].outputs.append(new_output(*arguments, **fields))


def more(*sources, tags=()):
    return lambda notebook: notebook.cells.extend(new_code_cell(text, metadata={"tags": [*tags]}) for text in sources)


DRAWING = "def f():\n    plt.subplots()"
PARAMETERS, PRINTING, PICTURE = 1, 2, 3
FAULTS = [
    (is_valid, cell(PRINTING, execution_count="two")),
    (is_valid, cell(PRINTING, source=None)),
    (has_literal_parameters_with_comments, cell(PARAMETERS, source="seed = 1")),
    (has_literal_parameters_with_comments, cell(PARAMETERS, source="seed = 1  # commented\nsize = 2")),
    (has_literal_parameters_with_comments, cell(PARAMETERS, source="seed = len('a')  # computed")),
    (has_literal_parameters_with_comments, cell(PARAMETERS, source="import os  # no parameter")),
    (has_literal_parameters_with_comments, cell(PARAMETERS, source="a = b = 1  # two at once")),
    (has_literal_parameters_with_comments, metadata(PARAMETERS, tags=[])),
    (has_literal_parameters_with_comments, metadata(PRINTING, tags=["parameters"])),
    (is_executed, cell(PRINTING, execution_count=None)),
    (is_executed_from_top_to_bottom, cell(PRINTING, execution_count=5)),
    (is_executed_from_top_to_bottom, cell(PARAMETERS, execution_count=0)),
    (is_executed_from_top_to_bottom, cell(PICTURE, execution_count=2)),
    (has_no_error, output(PRINTING, "error", ename="KeyError", evalue="", traceback=[])),
    (has_no_stderr, output(PRINTING, "stream", name="stderr", text="careful")),
    (has_short_cells, cell(PRINTING, source="\n".join(["x = 1"] * (LONGEST_CELL + 1)))),
    (has_short_lines, cell(PRINTING, source="x" * (LONGEST_LINE + 1))),
    (hides_no_result_by_semicolon, cell(PRINTING, source="len('a');\n")),
    (has_alternative_texts, metadata(PICTURE, alt="")),
    (has_alternative_texts, metadata(PICTURE, alt=" ")),
    (names_no_place_on_a_machine, output(PRINTING, "stream", name="stdout", text="saved /Users/me/figures/a.svg")),
    (has_the_metadata_that_is_kept, metadata(PRINTING, ExecuteTime={"end_time": "2026-01-01"})),
    (has_the_metadata_that_is_kept, metadata(0, vscode={"languageId": "markdown"})),
    (has_the_metadata_that_is_kept, metadata(PRINTING, tags=["hide-input"])),
    (has_the_metadata_that_is_kept, lambda notebook: notebook.metadata.update(colab={"provenance": []})),
    (has_the_metadata_that_is_kept, lambda notebook: notebook.metadata.language_info.pop("file_extension")),
    (refers_to_sections_that_it_has, cell(0, source="# Title\n## 1. One\nSee section 1.1.")),
    (numbers_its_sections_without_gaps, cell(0, source="# Title\n## 1. One\n## 3. Three")),
    (numbers_its_sections_without_gaps, cell(0, source="# Title\n## 1. One\n### 1.2 Its part")),
    (has_sliders_that_work, more("def f():\n    pass", "f, g = 1, 2")),
    (has_sliders_that_work, more("def f():\n    pass", "for f in range(3):\n    pass")),
    (has_sliders_that_work, more(DRAWING)),
    (has_sliders_that_work, more("def g():\n    plt.subplots()", "@interact(n=(1, 9))\ndef move(n=2):\n    g()",
                                 tags=["skip-execution"])),
    (has_solutions_after_what_it_files, more("gallery.add('regret', fig)", tags=["solution"])),
    (has_solutions_that_hide_themselves, more("# Solution 1: 42 it is", tags=["solution"]))]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
def test_a_good_notebook_passes(good, guard):
    assert list(guard(good)) == []


@pytest.mark.parametrize(("guard", "fault"), FAULTS, ids=[guard.__name__ for guard, _ in FAULTS])
def test_a_guard_notices_a_fault(good, guard, fault):
    fault(good)
    assert list(guard(good)) != []


def test_every_guard_has_a_fault():
    assert {guard for guard, _ in FAULTS} == set(GUARDS)


@pytest.mark.parametrize(("quick", "paper"), [({"seed": 2}, {}), ({"sed": 1}, {}), ({}, {"sed": 1})])
def test_wrong_profiles_are_noticed(quick, paper):
    assert list(wrong_profiles({"seed": 1}, {"seed": 1}, {"seed": 5})) == []
    assert list(wrong_profiles({"seed": 1}, quick, paper)) != []


# What a reader finds in the chapter of a paper.

# A chapter is held to it once its results are published, and not while it is being written. Lessons: test_lessons.py
PAPERS = [name for name in project.chapters(ROOT) if not name.startswith(project.AUDIT)
          and project.claims_file(ROOT, name) and (ROOT / f"figures/{name}/manifest.json").exists()]
PARTS = ["In brief", "1. The problem", "2. The policies", "3. The theory", "4. The experiments",
         "5. What the paper leaves open", "6. The ledger", "7. Your turn"]


@pytest.mark.parametrize("name", PAPERS)
def test_a_chapter_teaches(name):
    notebook = nbformat.read(FILE(name), as_version=4)
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [part for part in parts if part in PARTS] == PARTS and 6000 <= len(text.split()) <= 9000
    assert any("gallery.brief()" in cell.source for cell in notebook.cells[:8])
    assert re.search(r"^> \*\*(Theorem|Lemma)", text, re.MULTILINE)
    assert any("skip-execution" in cell.metadata.get("tags", []) for cell in notebook.cells)


@pytest.mark.parametrize("name", PAPERS)
def test_each_exercise_has_a_solution(name):
    cells = nbformat.read(FILE(name), as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    exercises = set(re.findall(r"^\*\*Exercise (\d)", text, re.MULTILINE))
    run = {number for cell in cells if "solution" in cell.metadata.get("tags", [])
           for number in re.findall(r"^# Solution (\d)", cell.source)}
    told = {part[0] for part in re.split(r"^\*\*Exercise ", text, flags=re.MULTILINE)[1:]
            if "<summary>Solution" in part}
    assert 3 <= len(exercises) <= 5 and exercises == run | told


@pytest.mark.parametrize("name", PAPERS)
def test_ten_questions_on_a_chapter_have_answers(name):
    text = (ROOT / f"book/questions/{name}.md").read_text(encoding="utf-8")
    assert text.count("<details>") == text.count("</details>") == 10
