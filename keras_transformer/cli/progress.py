"""Progress of an export, on stderr: stdout is for the report."""

import contextlib

import rich.console
import rich.progress


@contextlib.contextmanager
def shown_progress(console=None):
    """Shows the stages of an export while the block works.

    A spinner and the time where somebody watches; in a file or a CI log a line for each stage.

    Args:
        console: The `rich.console.Console`. `None`: stderr.

    Yields:
        Function of a stage, a string, to be called when it begins.
    """
    console = console or rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: console.print(f"{stage} ...", soft_wrap=True, markup=False)
        return
    columns = [
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.TimeElapsedColumn(),
    ]
    with rich.progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda stage: bar.update(task, description=stage)
