"""Options and functions of the benchmarks that compare peers, the implementations to measure."""

import collections
import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import pathlib
import platform

import click
from workers import processors

# Options that several benchmarks have.
PEERS_PYTHON = click.option(
    "--peers-python",
    envvar="KERAS_TRANSFORMER_PEERS_PYTHON",
    help="Python in which the other libraries are installed. Default: this one.",
)
KEPT_FILES = click.option(
    "--folder",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    help="Folder to keep the files in; existing ones are reused. Default: none is kept.",
)
RESULTS = click.option(
    "--json",
    "output",
    type=click.Path(path_type=pathlib.Path, dir_okay=False),
    help="File for all results.",
)


@dataclasses.dataclass(frozen=True)
class Peer:
    """An implementation to measure.

    Args:
        module: Name of its module in the folder of the script.
        package: Name of the Python package it needs.
        install: Command that installs the package.
        options: Further fields of the order that its `make` gets.
        files: Exports that must be written before it starts: pairs of a kind and a quantisation.
    """

    module: str
    package: str
    install: str
    options: dict = dataclasses.field(default_factory=dict)
    files: tuple = ()


def names(valid):
    """Returns a click callback that splits an option at commas and checks each name."""

    def split(context, parameter, value):
        chosen = [name.strip() for name in value.split(",")]
        unknown = [name for name in chosen if name not in valid]
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(valid)}.")
        return list(dict.fromkeys(chosen))

    return split


def look_for(chosen, peers):
    """Returns the chosen peers whose package is installed, and messages about the others."""
    installed, skipped = [], []
    for name in chosen:
        if importlib.util.find_spec(peers[name].package) is None:
            skipped.append(
                f"{name} is skipped: {peers[name].package} is missing, "
                f"`{peers[name].install}` installs it."
            )
        else:
            installed.append(name)
    for line in skipped:
        print(line)
    return installed, skipped


def interleave(workers, steps, repeats, limits):
    """Runs all workers in turn, `repeats` times; each repeat begins with another peer.

    Args:
        workers: Dictionary of the `Worker`s by name.
        steps: Number of steps per repeat, by name.
        repeats: Number of repeats.
        limits: Names of workers that measure a limit of the machine; every repeat begins with them.

    Returns:
        A list of answers for each worker, by name.
    """
    runs = collections.defaultdict(list)
    ring = collections.deque(name for name in workers if name not in limits)
    for repeat in range(repeats):
        print(f"  repeat {repeat + 1} of {repeats}", flush=True)
        for name in (*limits, *ring):
            runs[name].append(workers[name].run(steps[name]))
        ring.rotate(-1)
    return runs


def seconds_per_call(runs, calls, cores):
    """Returns the seconds of a call in each repeat, by name.

    With one processor, they are processor times of the process: other programs on the machine
    affect them less than wall-clock times. With several processors, which they would add up, they
    are wall-clock times.

    Args:
        runs: Result of `interleave`.
        calls: Number of calls per repeat, by name.
        cores: Number of processors.
    """
    clock = "processor_seconds" if cores == 1 else "seconds"
    return {name: [run[clock] / calls[name] for run in runs[name]] for name in runs}


def describe_machine(cores):
    """Returns a description of the machine, on which the results depend."""
    return {
        "processor": processor_name(),
        "pinned_to": processors(cores),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def processor_name():
    """Returns the name of the processor from Linux, otherwise from Python."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def versions(packages):
    """Returns the versions of the installed packages."""
    installed = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed
