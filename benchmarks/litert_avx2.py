"""Copies LiteRT's package so that it works as on a processor without AVX-512.

    python benchmarks/litert_avx2.py FOLDER
    PYTHONPATH=FOLDER python ...

LiteRT's kernels (XNNPACK) are chosen when it starts, and it has no switch for that. One condition
for AVX-512 is that the operating system saves its registers, which the instruction XGETBV tells.
In the copy, that instruction is replaced by the answer of a system that saves those of AVX only.
AVX-VNNI, which some processors without AVX-512 have, is not switched off.
"""

import importlib.util
import pathlib
import platform
import shutil
import sys
import tempfile

import click
from measurements import BenchmarkError

# xor ecx, ecx; xgetbv
ASKS = bytes.fromhex("31c9 0f01d0")
# mov eax, 7: the registers of x87, SSE and AVX
ANSWERS = bytes.fromhex("b807000000")


def copy_litert(folder):
    """Writes the package `ai_edge_litert` into a folder and returns the names of changed files.

    Args:
        folder: The folder, which is created if it is missing. A package in it is replaced.

    Raises:
        BenchmarkError: If LiteRT is missing, or no library of it asks for the registers.
    """
    package = importlib.util.find_spec("ai_edge_litert")
    if package is None:
        raise BenchmarkError("LiteRT is missing: pip install ai-edge-litert")
    source = pathlib.Path(package.submodule_search_locations[0])
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        copy = shutil.copytree(source, pathlib.Path(place, source.name))
        changed = [library.name for library in copy.rglob("*.so") if _answer(library)]
        if not changed:
            raise BenchmarkError(f"{source}: no library in it looks for AVX-512 as expected")
        target = folder / source.name
        if target.exists():
            target.rename(pathlib.Path(place, "replaced"))
        copy.rename(target)
    return sorted(changed)


def _answer(library):
    """Replaces the questions in a library; returns whether there were any."""
    code = library.read_bytes()
    if ASKS not in code:
        return False
    library.write_bytes(code.replace(ASKS, ANSWERS))
    return True


@click.command(help=__doc__.partition("\n")[0])
@click.argument("folder", type=click.Path(path_type=pathlib.Path, file_okay=False))
def main(folder):
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise click.ClickException("This takes Linux on x86-64.")
    try:
        changed = copy_litert(folder)
    except (BenchmarkError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Written to {folder}, without AVX-512: {', '.join(changed)}")


if __name__ == "__main__":
    main()
