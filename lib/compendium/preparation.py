"""What a run of a notebook needs, all of it checked before any work begins."""

import ast
import difflib
import hashlib
import importlib.metadata
import math
import numbers
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from costbandits.checks import require
from costbandits.environments import ads
from costbandits.studies.keys import RESULTS
from costbandits.studies.store import Store

from . import cells, publication
from .project import DEEP, PUBLISHED, claims_file, notebooks
from .yaml12 import read_yaml

FROM_RUN = ("output", "store", "ads_file")    # parameters that no profile sets
WORKERS = ("n_jobs", "backend")               # decide how long it takes, and no result
EXACT = 2**53                                 # below it every whole number is a floating-point number
PACKAGES = ("matplotlib", "numba", "numpy", "pandas", "scipy")


@dataclass(frozen=True)
class Job:
    """One run, checked: what is executed with which parameters, and where everything goes."""
    name: str
    profile: str
    source: Path            # the notebook
    cells: int              # how many the executed notebook will have
    parameters: dict        # the profile's, `store`, and `ads_file` if the notebook has one; not `output`
    record: dict            # what decides the results, for the manifest: no places, no dates
    home: Path              # of the executed notebook and its HTML
    folder: Path            # where all is published: figures/<name>, or build/<profile>/figures/<name>
    ledger: Path | None     # where the ledger of the deep profile is published besides: figures/deep/<name>


def prepare(root, name, profile, build="build"):
    """The `Job` of running notebooks/<name>.ipynb with params/<profile>/<name>.yaml, all of it checked.

    ValueError, OSError or StoreError tell of what is unknown, missing, altered, damaged, or cannot be written.
    """
    root = Path(root).resolve()
    notebook = read(root, name)
    defaults = parameters(notebook, f"notebooks/{name}.ipynb")
    require({"output", "store"} <= set(defaults), f"notebooks/{name}.ipynb, parameters", sorted(defaults),
            "must have output and store among them: the run sets them")
    given = _given(root, name, profile, defaults)
    home = root / build if profile == PUBLISHED else root / build / profile
    folder = (root if profile == PUBLISHED else home) / "figures" / name
    committed = root / "figures" / DEEP / name if profile == DEEP else None
    for place in filter(None, (home, folder, committed)):
        _writable(place)
        publication.manifest(place)
    store = (root / build if profile == DEEP else home) / "store.sqlite"
    if store.exists():
        Store(store).close()
    places = {"store": str(store)}
    chosen = {key: value for key, value in {**defaults, **given}.items() if key not in FROM_RUN + WORKERS}
    if "ads_file" in defaults:
        places["ads_file"] = _ads(root) if profile in (PUBLISHED, DEEP) else ""
        chosen["ads_file"] = _digest(places["ads_file"])
    source, claims = root / "notebooks" / f"{name}.ipynb", claims_file(root, name)
    # Digests of the code that decides the results; not of prose and outputs, nor of where anything is.
    code = {"notebook": cells.notebook(source), "claims": _digest(root / claims) if claims else ""}
    versions = {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in PACKAGES}}
    record = {"notebook": name, "profile": profile, "parameters": chosen, "results": RESULTS, "code": code,
              "versions": versions}
    # One cell more than the notebook has: papermill injects the parameters.
    return Job(name, profile, source, len(notebook.cells) + 1, {**given, **places}, record, home, folder, committed)


def parameters(notebook, name="notebook"):
    """The parameters of a notebook and their defaults: literals in the only cell tagged `parameters`."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    require(len(cells) == 1, f"{name}, cells tagged 'parameters'", len(cells), "must be exactly one")
    found = {}
    try:
        body = ast.parse(cells[0].source).body
    except SyntaxError as error:
        raise ValueError(f"{name}, parameters cell: {error.msg}, line {error.lineno}") from None
    for line in body:
        try:
            (target,) = line.targets
            found[target.id] = ast.literal_eval(line.value)
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"{name}, parameters cell: {ast.unparse(line)!r} must be `name = literal`") from None
    return found


def check(root, name, values):
    """Refuse a value of a notebook's parameters, as a reader has typed them, that is not like the paper profile's.

    Without params/paper/<name>.yaml all values are allowed. Others than parameters may be among them.
    """
    file = Path(root) / "params" / PUBLISHED / f"{name}.yaml"
    known = (read_yaml(file) or {}) if file.exists() else {}
    for key in known.keys() & values.keys() - {"seed"}:        # any will do, and the first study looks at it
        require(_fits(values[key], known[key]), key, values[key], _allowed(values[key], known[key]))


def read(root, name):
    """The notebook object of notebooks/<name>.ipynb."""
    import nbformat  # takes a second: not before the interrupts of the command are in place
    known = notebooks(root)
    require(name in known, "notebook", name, f"must be one of {known} (notebooks/**/*.ipynb)")
    path = root / "notebooks" / f"{name}.ipynb"
    try:
        return nbformat.read(path, as_version=4)
    except (AttributeError, ValueError, nbformat.ValidationError) as error:     # of JSON that is no dict
        raise ValueError(f"{path}: not a notebook ({error})") from error


def _given(root, name, profile, defaults):
    """The parameters of the profile, each known to the notebook, of its default's type, and such as can be played."""
    profiles = sorted(path.relative_to(root).parts[1] for path in (root / "params").glob(f"*/{name}.yaml"))
    require(profile in profiles, "profile", profile, f"must be one of {profiles} (params/*/{name}.yaml)")
    file, allowed = f"params/{profile}/{name}.yaml", sorted(set(defaults) - set(FROM_RUN))
    given = read_yaml(root / file, file) or {}
    require(isinstance(given, dict), file, given, "must map names of parameters to values")
    for key, value in given.items():
        near = "".join(f"; did you mean {name}?" for name in difflib.get_close_matches(str(key), allowed, 1))
        require(key in allowed, f"{file}, parameter", key, f"must be one of {allowed}{near}")
        given[key] = _meant(value, defaults[key])
        require(_fits(given[key], defaults[key]), f"{file}, {key}", value, _allowed(value, defaults[key]))
    if "profile" in defaults:
        given.setdefault("profile", profile)
        require(given["profile"] == profile, f"{file}, profile", given["profile"], f"must be {profile!r}")
    return given


def _meant(value, default):
    """A value from YAML, in which 1e3 and 1.0e+3 are whole numbers where the default is one."""
    if isinstance(value, list) and isinstance(default, list | tuple):
        return [_as_any(each, default) for each in value]
    if isinstance(value, dict) and isinstance(default, dict):
        return {key: _as_any(each, default.values()) for key, each in value.items()}
    whole = isinstance(value, float) and value.is_integer() and abs(value) < EXACT
    return int(value) if whole and isinstance(default, int) else value


def _as_any(value, defaults):
    if any(_fits(value, default) for default in defaults):
        return value
    return next((meant for default in defaults if _fits(meant := _meant(value, default), default)), value)


def _fits(value, default):
    """Whether a value from YAML is like the parameter's default: in type, in sign, and not empty unless it is."""
    if isinstance(default, bool | str):
        return isinstance(value, type(default))
    if isinstance(default, numbers.Real):
        return (isinstance(value, int if isinstance(default, int) else numbers.Real) and not isinstance(value, bool)
                and -math.inf < value < math.inf and (value > 0 or default <= 0) and (value >= 0 or default < 0))
    if isinstance(default, list | tuple):
        return isinstance(value, list) and (not default or (bool(value) and _all_fit(value, default)))
    if isinstance(default, dict):
        return isinstance(value, dict) and (not default or _all_fit(value.values(), default.values()))
    return True         # None may become anything


def _all_fit(values, defaults):
    return all(any(_fits(value, default) for default in defaults) for value in values)


def _allowed(value, default):
    if isinstance(default, bool):
        text = "must be True or False" + "; write true or false" * isinstance(value, str)
    elif isinstance(default, str):
        text = "must be a text" + "; write it in quotes" * (value is not None)
    elif isinstance(default, numbers.Real):
        text = f"must be a {'whole' if isinstance(default, int) else 'finite'} number"
        text += ", above 0" if default > 0 else ", 0 or more" if default == 0 else ""
        text += f", such as {default!r}"
    else:
        text = f"must be a {'dict' if isinstance(default, dict) else 'list'} with values like those of {default!r}"
        text += ", not empty" * bool(default)
    values = value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]
    if not isinstance(default, bool | str) and (texts := [each for each in values if isinstance(each, str)]):
        text += f"; {texts[0]!r} is a text in YAML 1.2, numbers are written as 1000, 0.5, 1e3 or 1.5e-4"
    if any(isinstance(each, float) and abs(each) >= EXACT and each.is_integer() for each in values):
        text += "; write a whole number of this size with all of its digits"
    return text


def _writable(folder):
    """Refuse a folder that cannot be made or written, without making it."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    require(there.is_dir(), "output folder", str(folder), f"cannot be written: {there} is a file, not a folder")
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise OSError(error.errno, f"output folder cannot be written ({error.strerror})", str(folder)) from error


def _ads(root):
    """Path of the data of ads, verified, or "" if the user has not got it."""
    place = root / "data" / ads.FILE
    if os.environ.get(ads.VARIABLE):
        place = ads.find().resolve()
    elif not place.exists():
        return ""
    ads.load(place)
    return str(place)


def _digest(file):
    return f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()}" if file else ""
