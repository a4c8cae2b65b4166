"""Publication: what a run has staged becomes the content of a folder.

Killed at any moment every file is the old or the new one, whole, and the next publication finishes what this one began:
everything is written next to its goal as `.part`, a journal last of all; up to here, full disks included, nothing that
anyone reads has changed. Then all is renamed, the manifest last, files that the run no longer makes are removed, and
the journal goes.

The manifest says of each file what it holds (SHA-256) and which run made it, without dates or places: the same run
makes the same bytes. A run without the real data makes `<name>_standin.<suffix>` where it would have made
`<name>.<suffix>`, and nothing instead of some other files. So the real files of an older run stay where they are, and
in the manifest, which names no stand-in: like git, it does not know them.
"""

import contextlib
import errno
import hashlib
import json
import os
from pathlib import Path

from costbandits.checks import require

MANIFEST = "manifest.json"
PART = ".part"
JOURNAL = "journal" + PART
STANDIN = "_standin"


class Unfinished(OSError):
    """A publication stopped among its renames: every file is the old or the new one, and the next one completes it."""


def publish(stage, folder, run, only=("*",)):
    """Make `folder` hold the files of `stage` with names like `only`, and a manifest; which are new or changed.

    `run` says what made them, as JSON. ValueError says if nothing is staged, or anything but files; OSError if the disk
    is full or the folder cannot be written, and nothing is overwritten; `Unfinished` if that happens among the renames.
    """
    stage, folder = Path(stage), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    complete(folder)
    paths = sorted({path for pattern in only for path in stage.glob(pattern) if path.suffix != PART})
    odd = [path.name for path in paths if not path.is_file() or path.name == MANIFEST]
    require(not odd, "output", odd, f"may hold plain files only, none of them called {MANIFEST}")
    require(paths, "output", str(stage),
            f"holds nothing to publish ({', '.join(only)}): the notebook has filed no such figure or table")
    staged = {path.name: _sha256(path) for path in paths}
    before = manifest(folder)
    after = _manifest(staged, before, folder, run)
    changed = [name for name in staged if _sha256(folder / name) != staged[name]]
    # A run without the real data removes stand-ins only: what was edited stays, though the manifest names it no more.
    obsolete = [path.name for path in folder.iterdir() if path.name not in staged and _is_standin(path.name)]
    if not any(map(_is_standin, staged)):
        obsolete += sorted(set(before["files"]) - set(after["files"]) - set(obsolete))
    try:
        for name in changed:
            _write(_part(folder / name), (stage / name).read_bytes())
        _write(_part(folder / MANIFEST), _json(after))
        _write(_part(folder / JOURNAL), _json({"rename": [*changed, MANIFEST], "remove": obsolete}))
        _sync(folder)
        os.replace(_part(folder / JOURNAL), folder / JOURNAL)
    except OSError:
        _discard(folder)
        raise
    complete(folder)
    return changed


def replace(path, text, time=None):
    """Write one file, as old as `time` (in nanoseconds): whatever interrupts it, the file is the old or the new one."""
    part = _part(Path(path))
    part.write_text(text, encoding="utf-8")
    if time is not None:
        os.utime(part, ns=(time, time))
    os.replace(part, path)


def stale(root, texts):
    """Which of these files, path -> text, do not have their text."""
    return [name for name, text in texts.items()
            if not (path := Path(root) / name).exists() or path.read_text(encoding="utf-8") != text]


def write_stale(texts):
    """Write these files of the current folder, path -> text, if they do not have their text, and say so."""
    for name in stale(".", texts):
        replace(name, texts[name])
        print(f"{name}: written")


def complete(folder):
    """Finish the publication into `folder` that was interrupted; whether there was one."""
    folder = Path(folder)
    if not (folder / JOURNAL).exists():
        _discard(folder)
        return False
    try:
        _sync(folder)
        journal = json.loads((folder / JOURNAL).read_text(encoding="utf-8"))
        for name in journal["rename"]:
            if _part(folder / name).exists():     # else renamed before the interruption
                os.replace(_part(folder / name), folder / name)
        for name in journal["remove"]:
            (folder / name).unlink(missing_ok=True)
        (folder / JOURNAL).unlink()
        return True
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not (folder / JOURNAL).exists():    # another run has finished it
            return True
        raise Unfinished(f"{error.strerror}: {error.filename}. Some files of {folder} are new, some are old, each is "
                         "whole; the next run completes the publication") from error


def manifest(folder):
    """What the manifest of `folder` says: files (name -> sha256, run) and runs; both empty if there is none."""
    path = Path(folder) / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        owners = {entry["run"] for entry in found["files"].values()}
        require(owners == set(found["runs"]), "runs", sorted(found["runs"]), f"must be {sorted(owners)}")
        return found
    except FileNotFoundError:
        return {"files": {}, "runs": {}}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: damaged ({error}); restore it, or remove the folder") from error


def audit(folder):
    """Names of the files in `folder` that are not as its manifest says: changed, missing or not listed."""
    folder = Path(folder)
    told = {name: entry["sha256"] for name, entry in manifest(folder)["files"].items()}
    there = {path.name for path in folder.iterdir() if not _is_standin(path.name)} - {MANIFEST}
    return sorted(name for name in there | set(told) if told.get(name) != _sha256(folder / name))


def _manifest(staged, before, folder, run):
    """The manifest to come: the staged files, and the real ones that a run without the real data cannot make."""
    label = hashlib.sha256(_json(run)).hexdigest()[:12]
    files = {name: {"sha256": sha256, "run": label} for name, sha256 in staged.items() if not _is_standin(name)}
    if any(map(_is_standin, staged)):
        # Some real files have no stand-in, so every one is kept that is whole.
        files |= {name: entry for name, entry in before["files"].items()
                  if name not in files and entry["sha256"] == _sha256(folder / name)}
    runs = {**before["runs"], label: run}
    return {"files": files, "runs": {label: runs[label] for label in {entry["run"] for entry in files.values()}}}


def _is_standin(name):
    return name.partition(".")[0].endswith(STANDIN)      # of a picture that moves the name has two endings


def _part(path):
    return path.with_name(path.name + PART)


def _json(thing):
    return (json.dumps(thing, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _sha256(path):
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        return None


def _write(path, content):
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder):
    """Flush the names in `folder` to the disk; a file system that cannot do this for folders is no error."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _discard(folder):
    for path in folder.glob("*" + PART):
        with contextlib.suppress(OSError):
            path.unlink()
