"""The picture of the rooms in ARCHITECTURE.md is that of the imports, and every room is named there."""

import ast
import graphlib
import json
import re
from pathlib import Path

import pytest

from compendium import project

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "lib"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGES = ("costbandits", "compendium", "benchmarks", "notebooks")
MODULES = [path for path in sorted(LIB.rglob("*.py")) if path.stem != "__init__" and path.parent.name != "skeleton"]


def drawn():
    picture = re.search(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)[1]
    arrows = re.findall(r"^ *(\w+) --> (\w+)$", picture, re.MULTILINE)
    assert len(arrows) == len(set(arrows)) == picture.count("-->")
    return set(arrows)


def targets(tree, package):
    """All that a module imports, in full; `package` is the list of names of the package that it is in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) + 1 - node.level] if node.level else []
            # What is imported from a package may be a module of it.
            yield from ([*above, *(node.module or "").split("."), alias.name] for alias in node.names)


def room(names):
    """The room of costbandits, or the package, that a module belongs to."""
    names = [name for name in names if name]
    if names[0] != "costbandits" or len(names) == 1:
        return names[0]
    return names[1] if (LIB / "costbandits" / names[1]).is_dir() or names[1] == "checks" else "costbandits"


def sources():
    """(names of the package, names of the module, syntax tree) of every module, benchmark and notebook."""
    for path in sorted((*LIB.rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"))):
        names = path.relative_to(LIB if path.is_relative_to(LIB) else ROOT).with_suffix("").parts
        yield list(names[:-1]), list(names), ast.parse(path.read_text())
    for name in project.notebooks(ROOT):
        cells = json.loads((ROOT / f"notebooks/{name}.ipynb").read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        yield ["notebooks"], ["notebooks", name], ast.parse(code)


def imported():
    """Arrows from room to room of costbandits, and from package to package."""
    for package, names, tree in sources():
        here = room(names)
        for target in targets(tree, package):
            there = room(target)
            inside = package[0] == target[0] == "costbandits"
            if target[0] in PACKAGES and package[0] != target[0]:
                yield package[0], target[0]
            elif inside and "costbandits" not in (here, there) and here != there:      # the front door gathers all
                yield here, there


@pytest.mark.slow
def test_the_picture_is_that_of_the_imports():
    assert drawn() == set(imported())


def test_no_room_needs_itself_and_the_science_needs_no_book():
    graph = {}
    for here, there in drawn():
        graph.setdefault(here, set()).add(there)
    assert len([*graphlib.TopologicalSorter(graph).static_order()]) == 8 + len(PACKAGES)
    assert "costbandits" not in graph


def modules_of(names):
    """The modules of ours that an import with this full name needs: `a.b.c` may be module c, or a thing in module b."""
    path = LIB.joinpath(*filter(None, names))
    if path.with_suffix(".py").exists():
        return [path.with_suffix(".py")]
    return [] if path.is_dir() or not path.parent.with_suffix(".py").exists() else [path.parent.with_suffix(".py")]


def test_no_module_needs_itself():
    """Whatever stands where: an import inside a function counts, too. The front doors gather, and are left out."""
    graph = {}
    for path in MODULES:
        package = list(path.relative_to(LIB).parts[:-1])
        found = (modules_of(names) for names in targets(ast.parse(path.read_text()), package))
        graph[path] = {module for modules in found for module in modules if module != path}
    assert sum(map(len, graph.values())) > 200
    assert len([*graphlib.TopologicalSorter(graph).static_order()]) >= len(MODULES)


def test_the_site_is_made_from_the_book_and_the_book_needs_no_site():
    needs = {path.name for path in (LIB / "compendium").glob("*.py")
             for names in targets(ast.parse(path.read_text()), ["compendium"]) if names[1:2] == ["site"]}
    assert needs == set()


def test_each_room_is_named_and_each_module_says_what_is_in_it():
    rooms = {path.name for path in (LIB / "costbandits").iterdir() if (path / "__init__.py").exists()} | {"checks"}
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.partition("## The book")[0], re.MULTILINE)) == rooms
    for path in MODULES:
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
        assert 10 < len(first) < 118, path


def test_an_import_inside_a_function_counts():
    tree = ast.parse("def f():\n    from ..studies import store\n    import compendium.preparation")
    assert {room(names) for names in targets(tree, ["costbandits", "engine"])} == {"studies", "compendium"}


def test_the_tests_of_a_policy_are_found_by_the_name_of_its_module():
    modules = {path.stem for path in (ROOT / "lib/costbandits/policies").glob("[a-z]*.py")} - {"base", "rules"}
    assert len(modules) >= 13
    assert [name for name in modules if not (ROOT / f"tests/policies/test_{name}.py").is_file()] == []
