"""Finished replications on disk, so that nothing is ever computed twice.

One SQLite file: killed at any moment it holds complete results only, and its rows carry a checksum of their own.
Rows are found by what decides them (`fingerprint.digest`), so one file serves any number of studies.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import numpy as np

APPLICATION = 0x636F7374    # "cost": tells our files from any other SQLite file
FORMAT = 1
NEARLY_FULL = 2**20       # bytes
LARGEST = 10**9           # bytes of one result: SQLite's own limit


class StoreError(RuntimeError):
    """The store cannot be used; the message says why and what to do.

    >>> issubclass(cb.StoreError, RuntimeError)
    True
    """


class Store(contextlib.AbstractContextManager):
    """A mapping from a digest to a dict of arrays, in the file `path`, which is made with its folder if absent.

    Raises StoreError if the file is damaged, is not a store or cannot be written. Nothing is overwritten. One on
    read-only media is read, and refuses what is new.

    >>> with Store(":memory:") as store:
    ...     store.put([(b"key", {"regret": np.arange(3)})])
    ...     store.get(b"key"), store.get(b"another"), len(store)
    ({'regret': array([0, 1, 2])}, None, 1)
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        with self._clear_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Where SQLite cannot make the log beside it, it must know that nobody else changes the file.
            fixed = self.path.is_file() and not all(os.access(each, os.W_OK) for each in (self.path, self.path.parent))
            place = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1" if fixed else self.path
            self._db = sqlite3.connect(place, timeout=60, isolation_level=None, check_same_thread=False, uri=fixed)
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise

    def _open(self):
        pages, owner, form = (self._db.execute(f"PRAGMA {name}").fetchone()[0]
                              for name in ("page_count", "application_id", "user_version"))
        if pages and (owner, form) != (APPLICATION, FORMAT):
            raise StoreError(f"store {self.path}: belongs to something else (application {owner:#x}, format {form}; "
                             f"wanted {APPLICATION:#x}, {FORMAT}). Give another path, or move the file away.")
        # WAL with synchronous=NORMAL: a kill loses at most what is being put, never the file.
        self._db.execute("PRAGMA synchronous=NORMAL")
        if not pages:
            # A file of ours says so from its first page on: one that is empty and has pages is another program's.
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute(f"PRAGMA application_id={APPLICATION}")
                self._db.execute(f"PRAGMA user_version={FORMAT}")
                self._db.execute("CREATE TABLE IF NOT EXISTS results "
                                 "(key BLOB PRIMARY KEY, payload BLOB, checksum BLOB) WITHOUT ROWID")
        # Of two processes that make the file at once one is refused this; it finds what the other has set.
        with contextlib.suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=WAL")

    @contextlib.contextmanager
    def _clear_errors(self):
        try:
            yield
        except sqlite3.OperationalError as error:
            # SQLite calls it an I/O error when its index of the log finds no room.
            if "full" in str(error) or (
                    "disk I/O" in str(error) and shutil.disk_usage(self.path.parent).free < NEARLY_FULL):
                raise OSError(errno.ENOSPC, f"no space left to store finished replications ({error}); those stored "
                                            "before are safe, free some space and run again", str(self.path)) from error
            raise StoreError(f"store {self.path}: cannot be used ({error})") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"store {self.path}: damaged, or not a store at all ({error}). "
                             "Move it away to compute its results anew.") from error
        except OSError as error:
            raise StoreError(f"store {self.path}: cannot be written ({error.strerror})") from error

    def get(self, key: bytes) -> dict[str, np.ndarray] | None:
        """The arrays filed under `key`, or None."""
        with self._clear_errors():
            row = self._db.execute("SELECT payload, checksum FROM results WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if not isinstance(row[0], bytes) or _checksum(key, row[0]) != row[1]:
            raise StoreError(f"store {self.path}: damaged (a result does not match its checksum). "
                             "Move it away to compute its results anew.")
        return _unpack(row[0])

    def put(self, items: Iterable[tuple[bytes, dict[str, np.ndarray]]]) -> None:
        """File results, all or none: pairs (key, dict of arrays)."""
        packed = [(key, _pack(arrays)) for key, arrays in items]
        size = max((len(payload) for _, payload in packed), default=0)
        if size > LARGEST:
            raise StoreError(f"store {self.path}: a result of {size / 1e9:.1f} GB is too large, at most 1 GB can be "
                             "kept of each replication: ask for fewer checkpoints, or reduce=, or store=None")
        rows = [(key, payload, _checksum(key, payload)) for key, payload in packed]
        with self._clear_errors(), self._db:        # all that follows is rolled back if one of it fails
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)

    def __len__(self):
        with self._clear_errors():
            return self._db.execute("SELECT count(*) FROM results").fetchone()[0]

    def close(self) -> None:
        """Close the file; everything that was put is in it."""
        self._db.close()

    def __exit__(self, *_):
        self.close()


def _checksum(key, payload):
    return hashlib.blake2b(key + payload, digest_size=8).digest()


def _pack(arrays):
    arrays = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    header = json.dumps([[name, value.dtype.str, value.shape] for name, value in arrays.items()])
    return b"\n".join([header.encode(), b"".join(value.tobytes() for value in arrays.values())])


def _unpack(payload):
    header, _, data = payload.partition(b"\n")
    arrays, start = {}, 0
    for name, dtype, shape in json.loads(header):
        size = math.prod(shape)
        arrays[name] = np.frombuffer(data, dtype, size, start).reshape(shape)
        start += arrays[name].nbytes
    return arrays
