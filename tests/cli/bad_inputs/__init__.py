"""Bad inputs as tables: a command, the damage to its files, and the one line it must print.

Files named in capitals are made once for all cases and copied for each case that mentions them:
RUN, a run of two updates with two checkpoints; SAVED, FILE.tflite and CT2, its exports;
CONFIG.toml, its configuration; DATA, its corpus, with training and validation data only; IN.txt
and OUT.txt, three sentences and translations; LONG.txt, four sentences; BYTES.txt, whose second
line is not UTF-8.
"""

import dataclasses
import re
import shutil
import typing
import zipfile

MATERIAL = re.compile(r"RUN|SAVED|FILE\.tflite|CT2|CONFIG\.toml|DATA|\w+\.txt")


@dataclasses.dataclass(frozen=True)
class Case:
    """A command line that must fail.

    Args:
        command: The arguments of the command.
        status: The exit status: 2 for a wrong command line, 1 for any other error.
        match: A regular expression that the printed line must match.
        changes: Changes made to the files before the command runs.
        stdin: Standard input, in bytes.
    """

    command: str
    status: int
    match: str
    changes: tuple = ()
    stdin: bytes = b"in 3 days\n"

    @property
    def id(self):
        changed = "; ".join(map(str, self.changes))
        return f"{self.command}  [{changed}]" if changed else self.command

    def materials(self):
        """The names in capitals that the case mentions."""
        return set(MATERIAL.findall(self.id))


def usage(command, match, *changes, **options):
    return Case(command, 2, match, changes, **options)


def fails(command, match, *changes, **options):
    return Case(command, 1, match, changes, **options)


@dataclasses.dataclass(frozen=True)
class Change:
    """A change to a path in the folder of the case."""

    what: str
    path: str
    do: typing.Callable = dataclasses.field(compare=False)

    def __str__(self):
        return f"{self.what} {self.path}"

    def __call__(self, folder):
        self.do(folder / self.path)


def cut(path):
    """Cuts a file in half."""
    return Change("cut", path, lambda file: file.write_bytes(halves(file)[0]))


def halves(file):
    content = file.read_bytes()
    return content[: len(content) // 2], content[len(content) // 2 :]


def emptied(path):
    return Change("empty", path, lambda file: file.write_bytes(b""))


def spoiled(path, content=b"this is something else\n", what=None):
    """Replaces or creates a file; `what` describes the new bytes in the name of the case."""

    def write(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    return Change(what or f"{content!r} in", path, write)


def scrambled(path):
    """Overwrites the middle of a file and keeps its size."""

    def scramble(file):
        first, second = halves(file)
        count = min(200, len(first) // 2, len(second) // 2)
        file.write_bytes(first[:-count] + bytes(2 * count) + second[count:])

    return Change("scrambled", path, scramble)


def removed(path):
    def remove(place):
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    return Change("no", path, remove)


def folder(path):
    return Change("folder", path, lambda place: place.mkdir(parents=True))


def replaced(path, old, new):
    """Replaces a string in a text file."""

    def replace(file):
        text = file.read_text("utf-8")
        assert text.count(old), f"{file} has no {old!r}"
        file.write_text(text.replace(old, new), "utf-8")

    return Change(f"{old!r} as {new!r} in", path, replace)


def without_member(path, member):
    """Removes one file from a ZIP archive."""

    def rewrite(file):
        with zipfile.ZipFile(file) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        del contents[member]
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in contents.items():
                archive.writestr(name, content)

    return Change(f"no {member} in", path, rewrite)
