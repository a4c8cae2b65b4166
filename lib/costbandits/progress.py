"""How far a study is, for a person at a terminal.

In a terminal a bar is drawn; headless nothing is printed. When the environment names a file in
COSTBANDITS_PROGRESS, each step is also written there: that is how a notebook that runs in another process
shows its progress in the terminal from which it was started.
"""

import json
import os
import time
from pathlib import Path

VARIABLE = "COSTBANDITS_PROGRESS"


def announce(weights):
    """Tell the watcher what will be simulated: dict label -> share of the work (any unit)."""
    _write({"plan": {label: float(weight) for label, weight in weights.items()}})


def _write(message):
    path = os.environ.get(VARIABLE)
    if path:
        # One short append is atomic; the watcher reads whole lines only.
        with open(path, "a") as file:
            file.write(json.dumps(message) + "\n")


class Steps:
    """Count finished replications of one study; `label` None is silent."""

    def __init__(self, label, total):
        self.label, self.total, self.done, self._shown = label, total, 0, 0.0
        self._bar = None

    def __enter__(self):
        if self.label is not None:
            from tqdm import tqdm
            self._bar = tqdm(total=self.total, desc=self.label, disable=None, unit="rep")
            self._tell()
        return self

    def step(self, number=1):
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


class Watcher:
    """Reads the file and says what runs, how far everything is and how long it may still take."""

    def __init__(self, path):
        self.path, self.start = Path(path), time.monotonic()
        self.plan, self.done, self.label = {}, {}, None

    def line(self):
        """One line for the terminal, or an empty text before the first message."""
        for text in self.path.read_text().splitlines() if self.path.exists() else []:
            message = json.loads(text)
            if "plan" in message:
                self.plan = message["plan"]
            else:
                self.label = message["label"]
                self.done[self.label] = (message["done"], message["total"])
        if self.label is None:
            return ""
        done, total = self.done[self.label]
        text, share = f"{self.label} {done}/{total}", self.share()
        if share is None:
            return text
        left = (time.monotonic() - self.start) * (1 - share) / share if share > 0 else None
        return f"{text} · {share:4.0%} of all" + (f" · about {clock(left)} left" if left is not None else "")

    def share(self):
        """Share of the announced work that is done, or None if nothing was announced."""
        work = sum(self.plan.values())
        if not work:
            return None
        return sum(self.plan.get(label, 0) * done / total for label, (done, total) in self.done.items()) / work


def clock(seconds):
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
