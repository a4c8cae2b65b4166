"""How far a study is, for a person at a terminal.

In a terminal a bar is drawn; headless nothing is printed. When the environment names a file in
COSTBANDITS_PROGRESS, each step is also written there: that is how a notebook that runs in another process
shows its progress in the terminal from which it was started.
"""

import contextlib
import json
import math
import os
import time
from pathlib import Path

VARIABLE = "COSTBANDITS_PROGRESS"
WINDOW = 20.0    # seconds, the least over which a speed is measured


def announce(weights):
    """Tell the watcher what will be simulated: dict label -> share of the work (any unit)."""
    _write({"plan": {label: float(weight) for label, weight in weights.items()}})


def _write(message):
    path = os.environ.get(VARIABLE)
    if path:
        # One short append is atomic; the watcher reads whole lines only. A study is worth more than its progress line.
        with contextlib.suppress(OSError), open(path, "a") as file:
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
    """Reads the file as it grows; says what runs, how far everything is and how long it may still take."""

    def __init__(self, path, clock=time.monotonic):
        self.path, self._clock, self._read = Path(path), clock, 0
        self.plan, self.done, self.label = {}, {}, None
        self._seen = [(clock(), 0.0)]     # (time, share) at every look

    def line(self):
        """What runs, the share of everything announced that is done, time left; empty while no study runs."""
        self._look()
        share = self.share()
        done, total = self.done.get(self.label, (0, 0))
        parts = [f"{self.label} {done}/{total}"] if done < total else []
        if share:
            parts.append(f"{math.floor(100 * share)}% of all")
            left = self.left()
            parts += [f"about {minutes(left)} left"] if left and share < 1 else []
        return " · ".join(parts)

    def share(self):
        """Share of the announced work that is done, or None if nothing was announced."""
        work = sum(self.plan.values())
        if not work:
            return None
        return sum(self.plan.get(label, 0) * done / total for label, (done, total) in self.done.items()) / work

    def left(self):
        """Seconds to the end at the speed of the last third of the time, or None before there is a speed.

        Not of all the time: replications that the store held pass at once and would promise too much.
        """
        (start, _), (now, share) = self._seen[0], self._seen[-1]
        since = now - max(WINDOW, (now - start) / 3)
        then, before = max((look for look in self._seen if look[0] <= since), default=self._seen[0])
        return (1 - share) * (now - then) / (share - before) if share > before else None

    def _look(self):
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self._read)
                text, newline, _ = file.read().rpartition(b"\n")
            self._read += len(text) + len(newline)
            for line in text.splitlines():
                with contextlib.suppress(ValueError):       # written in part, to a full disk: a study is worth more
                    self._take(json.loads(line))
        self._seen.append((self._clock(), self.share() or 0.0))

    def _take(self, message):
        if "plan" in message:
            self.plan = message["plan"]
        else:
            self.label = message["label"]
            self.done[self.label] = (message["done"], message["total"])


def say(text, stream):
    """Print a line, also where another run's progress line stands."""
    print(f"\r{text}\x1b[K" if stream.isatty() else text, file=stream, flush=True)


def minutes(seconds):
    """Minutes and seconds, as 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
