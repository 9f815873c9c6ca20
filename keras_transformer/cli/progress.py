"""Progress on stderr, because stdout is for reports and answers."""

import contextlib
import re
import time
from collections.abc import Callable, Generator

SECONDS = 5.0  # between two lines that differ only in a count
COUNT = re.compile(r": \d+ of \d+ \w+$")


class _Lines:
    """Progress as one line per stage.

    Args:
        console: The `rich.console.Console`.
        clock: Function that returns the time in seconds.
    """

    def __init__(self, console, clock):
        self._console, self._clock, self._last = console, clock, clock()

    def show(self, stage):
        """Prints a stage. A stage with a count is printed only every few seconds."""
        now = self._clock()
        if COUNT.search(stage) and now - self._last < SECONDS:
            return
        self._last = now
        self._console.print(f"{stage} ...", soft_wrap=True, markup=False)


@contextlib.contextmanager
def shown_progress(console=None, clock=time.monotonic) -> Generator[Callable[[str], None]]:
    """Shows the stages of an export while the block works.

    A terminal shows a spinner and the elapsed time. A file or a CI log gets a line for each stage,
    and every few seconds a line for a count, such as "translating: 64 of 200 texts".

    Args:
        console: The `rich.console.Console`. `None`: stderr.
        clock: Function that returns the time in seconds.

    Yields:
        Function to call with the name of each stage when it begins.
    """
    import rich.console  # late: most commands show no progress
    import rich.progress

    console = console or rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console, clock).show
        return
    columns = [
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.TimeElapsedColumn(),
    ]
    with rich.progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda stage: bar.update(task, description=stage)


@contextlib.contextmanager
def counted_lines(total=None, console=None) -> Generator[Callable[[int], None]]:
    """Shows on a terminal how many lines are answered while the block works.

    Args:
        total: Number of all lines. `None`: unknown.
        console: The `rich.console.Console`. `None`: stderr.

    Yields:
        Function to call with the number of answered lines. If stderr is not a terminal, it does
        nothing.
    """
    import rich.console  # late: most commands show no progress
    import rich.progress

    console = console or rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield lambda count: None
        return
    counts = "{task.completed} lines" if total is None else "{task.completed} of {task.total} lines"
    columns = [
        rich.progress.SpinnerColumn(),
        rich.progress.BarColumn(),
        rich.progress.TextColumn(counts, markup=False),
        rich.progress.TimeElapsedColumn(),
    ]
    with rich.progress.Progress(
        *columns, console=console, transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.update(task, completed=count)
