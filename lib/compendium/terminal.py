"""What a person at a terminal sees of a run: one line, rewritten in place."""

import contextlib
import fcntl
import json
import math
import os
import shutil
import sys
import time
from pathlib import Path

REPORT = 15.0     # seconds between two lines where a line cannot be rewritten
WINDOW = 20.0     # seconds, the least over which a speed is measured


def text_of(error):
    """An error in words, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


class Watcher:
    """Reads a file of progress messages as it grows; says what runs, how far it is and how long it may still take."""

    def __init__(self, path, clock=time.monotonic):
        self.path, self._clock, self._read = Path(path), clock, 0
        self.announced, self.done, self.label = {}, {}, None
        self._seen = [(clock(), 0.0)]     # (time, share) at every look

    def line(self):
        """What runs, the share of everything announced that is done, time left; empty while no study runs."""
        self._look()
        (start, _), (now, share) = self._seen[0], self._seen[-1]
        done, total = self.done.get(self.label, (0, 0))
        parts = [f"{self.label} {done}/{total}"] if done < total else []
        # The share says nothing of a study that was not announced.
        if share and (done >= total or self.label in self.announced):
            parts.append(f"{math.floor(100 * share)}% of all")
            # At the speed of the last third of the time: replications that are in the store have passed at once.
            since = now - max(WINDOW, (now - start) / 3)
            then, before = max((look for look in self._seen if look[0] <= since), default=self._seen[0])
            if before < share < 1 and now > then:
                parts.append(f"about {minutes((1 - share) * (now - then) / (share - before))} left")
        return " · ".join(parts)

    def running(self):
        """The label of the study that runs, or None."""
        done, total = self.done.get(self.label, (0, 0))
        return self.label if done < total else None

    def _look(self):
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self._read)
                text, newline, _ = file.read().rpartition(b"\n")
            self._read += len(text) + len(newline)
            for line in text.splitlines():
                # Written in part, to a full disk: a study is worth more.
                with contextlib.suppress(ValueError, KeyError, AttributeError, TypeError):
                    message = json.loads(line)
                    self.announced = message.get("announced", self.announced)
                    if "label" in message:
                        self.label = message["label"]
                        self.done[self.label] = (message["done"], message["total"])
        work = sum(self.announced.values())
        done = sum(self.announced.get(each, 0) * done / total for each, (done, total) in self.done.items())
        self._seen.append((self._clock(), done / work if work else 0.0))


def say(text, stream):
    """Print a line, also where another run's progress line stands."""
    print(f"\r{text}\x1b[K" if stream.isatty() else text, file=stream, flush=True)


def minutes(seconds):
    """Minutes and seconds, as 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Line:
    """The progress line: rewritten in place in a terminal, elsewhere a line now and then.

    Of several runs in one terminal one rewrites its line, the last one on the screen; the others put lines above it.
    """

    def __init__(self, name, stream=None):
        self.name, self.stream, self.start = name, stream or sys.stderr, time.monotonic()
        self._topic, self._shown = None, self.start - REPORT
        self._place = None     # the terminal, while its last line is ours

    def show(self, text, topic=None):
        """Say `text`; where the line cannot be rewritten only when its topic is new or the last one is old."""
        now = time.monotonic()
        text = f"{self.name} · {minutes(self.seconds())} · {text}"
        if self._rewritten():
            width = shutil.get_terminal_size().columns - 1
            self._put(f"\r{text[:width]}\x1b[K")
        elif topic != self._topic or now - self._shown >= REPORT:
            self._topic, self._shown = topic, now
            with contextlib.suppress(OSError):     # nobody reads it any more: no reason to stop
                say(text, self.stream)

    def _rewritten(self):
        """Whether the last line of the terminal is ours: it is free, or we have reserved it."""
        if self._place is None and self.stream.isatty():
            with contextlib.suppress(OSError):
                # Opened anew: runs that make has started share the handle of stderr, and a lock on it would be common.
                handle = os.open(os.ttyname(self.stream.fileno()), os.O_RDONLY | os.O_NOCTTY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._place = handle
                except OSError:
                    os.close(handle)
        return self._place is not None

    def seconds(self):
        return time.monotonic() - self.start

    def clear(self):
        """Take the line away, and let another run have its place."""
        if self._place is not None:
            self._put("\r\x1b[K")
            os.close(self._place)
            self._place = None

    def _put(self, text):
        with contextlib.suppress(OSError):
            self.stream.write(text)
            self.stream.flush()
