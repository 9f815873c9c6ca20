"""The shared part of the commands that compare peers."""

import collections
import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import pathlib
import platform

import click
from workers import processors


@dataclasses.dataclass(frozen=True)
class Peer:
    """Where an implementation is, which package it needs, and how to get it.

    Args:
        module: Its module beside the script.
        package: The package.
        install: Command that installs it.
        options: Other fields of the order that its `make` gets.
        files: Pairs of a kind and a quantisation: what is written for it before it starts.
    """

    module: str
    package: str
    install: str
    options: dict = dataclasses.field(default_factory=dict)
    files: tuple = ()


def names(valid):
    """A click callback that splits an option at its commas and checks every part."""

    def split(context, parameter, value):
        chosen = [name.strip() for name in value.split(",")]
        unknown = [name for name in chosen if name not in valid]
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(valid)}.")
        return list(dict.fromkeys(chosen))

    return split


def look_for(chosen, peers):
    """Returns those of the chosen whose package is there, and a list of lines about the others."""
    installed, skipped = [], []
    for name in chosen:
        if importlib.util.find_spec(peers[name].package) is None:
            skipped.append(
                f"{name} is left out: {peers[name].package} is missing, "
                f"`{peers[name].install}` installs it."
            )
        else:
            installed.append(name)
    for line in skipped:
        print(line)
    return installed, skipped


def interleave(workers, steps, repeats, limits):
    """Runs everything `repeats` times in turn; each repeat begins with another peer.

    Args:
        workers: Dictionary of the `Worker`s by name.
        steps: How many steps of each are a repeat.
        repeats: Number of repeats.
        limits: Names of those that are not peers: they begin every repeat.

    Returns:
        The answers of each, by name.
    """
    runs = collections.defaultdict(list)
    ring = collections.deque(name for name in workers if name not in limits)
    for repeat in range(repeats):
        print(f"  repeat {repeat + 1} of {repeats}", flush=True)
        for name in (*limits, *ring):
            runs[name].append(workers[name].run(steps[name]))
        ring.rotate(-1)
    return runs


def describe_machine(cores):
    """Returns what the figures depend on."""
    return {
        "processor": processor_name(),
        "pinned_to": processors(cores),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def processor_name():
    """Returns the model name that Linux gives, or what Python knows."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def versions(packages):
    """Returns the versions of the packages that are there."""
    installed = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed
