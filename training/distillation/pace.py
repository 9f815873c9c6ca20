"""Progress of the teachers: sentences done, speed and time left."""

import time

import rich.progress

from keras_transformer.training.loop.messages import duration, say

OVERHEAD = 20  # constant cost of a sentence, in characters


class Pace:
    """Context manager that shows the progress of the teachers.

    On a terminal it is a bar; in a file or a CI log, a line every `seconds`. Long sentences come
    first, so that the time left is estimated from characters, not from sentences.

    Args:
        sentences: All sentences.
        console: The `rich.console.Console`.
        seconds: Time between two lines.
        verb: What the teachers do with the sentences, in the past tense.
    """

    def __init__(self, sentences, console, seconds, verb="generated"):
        self._verb = verb
        self._total, self._cost = len(sentences), _cost(sentences)
        self._console, self._seconds = console, seconds
        self._count = self._spent = self._fresh = self._work = 0
        self._begin = self._last = time.monotonic()
        self._bar = None

    def __enter__(self) -> "Pace":
        if self._console.is_terminal:
            columns = [rich.progress.BarColumn(), rich.progress.TextColumn("{task.description}")]
            self._bar = rich.progress.Progress(*columns, console=self._console)
            self._task = self._bar.add_task("starting", total=self._cost)
            self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def count(self) -> int:
        """Number of sentences done."""
        return self._count

    def skip(self, batch) -> None:
        """Counts sentences that an earlier call or another shard generates."""
        self._count += len(batch)
        self._spent += _cost(batch)

    def done(self, batch) -> None:
        """Counts sentences as done and shows the progress."""
        self.skip(batch)
        self._fresh += len(batch)
        self._work += _cost(batch)
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._spent, description=self._text(now))
        elif now - self._last >= self._seconds or self._count == self._total:
            self._last = now
            say(self._console, self._text(now))

    def _text(self, now):
        seconds = max(now - self._begin, 1e-9)
        left = duration((self._cost - self._spent) * seconds / self._work)
        rate = f"{self._fresh / seconds:,.1f} sentences/s"
        return f"{self._verb} {self._count:,} of {self._total:,}  {rate}  {left} left"


def _cost(sentences):
    return sum(map(len, sentences)) + OVERHEAD * len(sentences)
