"""How far a study is, for a person at a terminal.

In a terminal a bar is drawn; headless nothing is printed. When the environment names a file in
COSTBANDITS_PROGRESS, each step is also written there: that is how a notebook that runs in another process
shows its progress in the terminal from which it was started.
"""

import contextlib
import json
import os
import time

VARIABLE = "COSTBANDITS_PROGRESS"


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


class Steps:
    """Count finished replications of one study; `label` None is silent.

    >>> with Steps(None, total=3) as steps:
    ...     steps.step(2)
    >>> steps.done
    2
    """

    def __init__(self, label: str | None, total: int):
        self.label, self.total, self.done, self._shown = label, total, 0, 0.0
        self._bar = None

    def __enter__(self):
        if self.label is not None:
            from tqdm import tqdm
            self._bar = tqdm(total=self.total, desc=self.label, disable=None, unit="rep")
            self._tell()
        return self

    def step(self, number: int = 1) -> None:
        """`number` more replications are finished."""
        self.done += number
        if self._bar is not None:
            self._bar.update(number)
            if time.monotonic() - self._shown > 0.2 or self.done == self.total:
                self._tell()

    def _tell(self):
        self._shown = time.monotonic()
        _write({"label": self.label, "done": self.done, "total": self.total})

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()
