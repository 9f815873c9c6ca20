"""Copies LiteRT's package so that it works as on a processor without AVX-512.

    python benchmarks/litert_avx2.py FOLDER
    PYTHONPATH=FOLDER python ...

LiteRT chooses its kernels (XNNPACK) when it starts and has no option for that. It uses AVX-512 only
if the operating system saves the registers of AVX-512, which it reads with the instruction XGETBV.
The copy contains a constant in place of that instruction: only the registers of AVX are saved.
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

READ_REGISTERS = bytes.fromhex("31c9 0f01d0")  # xor ecx, ecx; xgetbv
ONLY_AVX = bytes.fromhex("b807000000")  # mov eax, 7: the registers of x87, SSE and AVX
# Libraries of the two engines, `CompiledModel` and `Interpreter`.
ENGINES = {"libLiteRt.so", "libpywrap_litert_common.so"}


def copy_litert(folder):
    """Writes the package `ai_edge_litert` into a folder and returns the names of changed files.

    Args:
        folder: The folder, which is created if it is missing. An earlier copy in it is replaced.

    Raises:
        BenchmarkError: If LiteRT is missing or is in this folder, or if the library of an engine
            does not contain the instruction.
    """
    package = importlib.util.find_spec("ai_edge_litert")
    if package is None:
        raise BenchmarkError("LiteRT is missing: pip install ai-edge-litert")
    source = pathlib.Path(package.submodule_search_locations[0])
    folder = pathlib.Path(folder)
    target = folder / source.name
    if target.resolve() == source.resolve():
        raise BenchmarkError(f"{folder} contains the LiteRT that is to be copied; name another")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        copy = shutil.copytree(source, pathlib.Path(place, source.name))
        changed = {library.name for library in copy.rglob("*.so") if _patch(library)}
        if missing := ENGINES - changed:
            raise BenchmarkError(
                f"{source}: {', '.join(sorted(missing))} does not look for AVX-512 as expected. If "
                "this is a copy already, unset PYTHONPATH."
            )
        if target.exists():
            target.rename(pathlib.Path(place, "replaced"))
        copy.rename(target)
    return sorted(changed)


def _patch(library):
    """Replaces the instruction in a library; returns whether it contained it."""
    code = library.read_bytes()
    if READ_REGISTERS not in code:
        return False
    library.write_bytes(code.replace(READ_REGISTERS, ONLY_AVX))
    return True


@click.command(help=__doc__.partition("\n")[0])
@click.argument("folder", type=click.Path(path_type=pathlib.Path, file_okay=False))
def main(folder):
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise click.ClickException("This takes Linux on x86-64.")
    try:
        changed = copy_litert(folder)
    except shutil.Error as error:  # a list of all files that could not be copied
        _, path, reason = error.args[0][0]
        raise click.ClickException(f"{path} could not be written: {reason}") from error
    except (BenchmarkError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Written to {folder}, without AVX-512: {', '.join(changed)}")


if __name__ == "__main__":
    main()
