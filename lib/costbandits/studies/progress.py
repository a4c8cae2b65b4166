"""How far a study is, for a person at a terminal or in JupyterLab.

There a bar is drawn; where nobody looks, as in a notebook that a program executes, nothing is printed. When the
environment names a file in COSTBANDITS_PROGRESS, steps are also written there: that is how a notebook that runs in
another process shows its progress in the terminal from which it was started.
"""

import contextlib
import json
import os
import sys
import threading
import time

from ..engine.compilation import compiling

VARIABLE = "COSTBANDITS_PROGRESS"
LAB = "JPY_SESSION_NAME"        # in the environment of a kernel whose notebook is open in JupyterLab, and of no other


def announce(weights: dict[str, float]) -> None:
    """Tell the watcher what will be simulated: dict label -> share of the work (any unit).

    >>> cb.progress.announce({"ten arms": 10, "a hundred arms": 100})
    """
    _write({"announced": {label: float(weight) for label, weight in weights.items()}})


def _write(message):
    path = os.environ.get(VARIABLE)
    if path:
        # One short append is atomic; the watcher reads whole lines only. A study is worth more than its progress line.
        with contextlib.suppress(OSError), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")


def _bar(label, total):
    if LAB in os.environ and "ipykernel" in sys.modules:
        from tqdm.auto import tqdm
        return tqdm(total=total, desc=label, unit="rep")
    from tqdm import tqdm
    return tqdm(total=total, desc=label, disable=None, unit="rep")


class Steps:
    """Count finished replications of one study; `label` None is silent.

    `kept` of them are in a store. While no replication is finished, which may take half a minute when their loops are
    compiled for the first time, the bar shows that time passes, and what takes it.

    >>> with Steps(None, total=3) as steps:
    ...     steps.step(2)
    >>> steps.done
    2
    """
    PATIENCE = 1.0      # seconds

    def __init__(self, label: str | None, total: int):
        self.label, self.total, self.done, self.kept, self._shown = label, total, 0, 0, 0.0
        self._bar, self._end = None, threading.Event()

    def __enter__(self):
        if self.label is not None:
            self._bar = _bar(self.label, self.total)
            if not self._bar.disable:
                threading.Thread(target=self._wait, daemon=True).start()
            self._tell()
        return self

    def step(self, number: int = 1) -> None:
        """`number` more replications are finished."""
        self.done += number
        if self._bar is not None:
            self._bar.set_postfix_str("", refresh=False)
            self._bar.update(number)
            if time.monotonic() - self._shown > 0.2 or self.done == self.total:
                self._tell()

    def _wait(self):
        before = 0
        while not self._end.wait(self.PATIENCE):
            if self.done == before:
                self._bar.set_postfix_str("compiling, once" if compiling() else "")
            before = self.done

    def _tell(self):
        self._shown = time.monotonic()
        _write({"label": self.label, "done": self.done, "total": self.total})

    def __exit__(self, *_):
        self._end.set()
        if self._bar is not None:
            self._bar.close()
