"""Downloads and verifies the real data of packaged configurations, benchmarks and some tests.

    export KERAS_TRANSFORMER_DATA="$HOME/data"
    python benchmarks/data.py download
    python benchmarks/data.py verify

Every file has a fixed address (a commit of a public repository) and a SHA-256 checksum, without
which it is not written. Read docs/data.md for the licences before you download.
"""

import dataclasses
import datetime
import gzip
import hashlib
import math
import pathlib
import struct
import urllib.request
import zlib

import click
from rda import read_rda

HOST = "https://raw.githubusercontent.com"
MULTI30K = "multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
SST2 = (
    "clairett/pytorch-sentiment-classification/457ffd83de90a9d6d472d8ffc31bbffe40a8b236/data/SST2"
)
AIRGR = "cran/airGR/d98088ab72adae96563725c177deb093e00c3448/data"


@dataclasses.dataclass(frozen=True)
class File:
    """A file of the data folder.

    Args:
        path: Path in the folder.
        source: Address without the host.
        sha256: Checksum of the file, after `convert`.
        convert: Function from the downloaded bytes to the bytes of the file.
    """

    path: str
    source: str
    sha256: str
    convert: callable = bytes


def river(content):
    """Returns the CSV file of the river from a data file of the R package airGR."""
    table = read_rda(content)["BasinObs"]
    dates = table["DatesR"]  # R counts years from 1900 and months from 0
    days = zip(dates["year"], dates["mon"], dates["mday"], strict=True)
    numbers = zip(*(table[name] for name in ("P", "T", "E", "Qmm")), strict=True)
    lines = ["date,precipitation_mm,temperature_c,potential_evapotranspiration_mm,discharge_mm"]
    for (year, month, day), row in zip(days, numbers, strict=True):
        cells = ["" if math.isnan(number) else str(round(number, 6)) for number in row]
        lines.append(",".join([str(datetime.date(1900 + year, 1 + month, day)), *cells]))
    return ("\n".join(lines) + "\n").encode()


def captions(split, language, raw, tokenized):
    """Returns the two files of a split of Multi30K in one language, raw and tokenised."""
    name = f"{split}.lc.norm.tok.{language}"
    return (
        File(f"multi30k/{split}.{language}", f"{MULTI30K}/raw/{split}.{language}.gz", raw,
             gzip.decompress),
        File(f"multi30k/{name}", f"{MULTI30K}/tok/{name}", tokenized),
    )  # fmt: skip


# fmt: off
FILES = (
    *captions("train", "en", "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
              "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    *captions("train", "de", "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
              "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    *captions("val", "en", "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
              "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    *captions("val", "de", "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
              "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    *captions("test_2016_flickr", "en",
              "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
              "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
    *captions("test_2016_flickr", "de",
              "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
              "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
    File("sst2/train.tsv", f"{SST2}/train.tsv",
         "ec192f833a64da08f475488a77b0d0b47db47acd0f458bd18433fc793b569920"),
    File("sst2/dev.tsv", f"{SST2}/dev.tsv",
         "eddea6b39e601dd4e7a672b53cc40fdf6019fa80522f351206c24340ca5d9359"),
    File("sst2/test.tsv", f"{SST2}/test.tsv",
         "831169c7e2e429d6026e1bdbb542f33b636e3e596caad9602ebc953c205928b7"),
    File("runoff/durance_embrun_daily.csv", f"{AIRGR}/X0310010.rda",
         "a4f00e46742b22a2827539f13ea9ee73e089d8963999aef9f75275644ffbf10e", river),
)
# fmt: on


def checksum(content):
    return hashlib.sha256(content).hexdigest()


def state(folder, file):
    """Returns `"good"`, `"missing"` or `"different"`."""
    path = folder / file.path
    if not path.is_file():
        return "missing"
    return "good" if checksum(path.read_bytes()) == file.sha256 else "different"


def fetch(folder, file, host):
    """Downloads a file, and writes it if its checksum is correct.

    Raises:
        click.ClickException: If it cannot be downloaded or has another checksum.
    """
    address = f"{host}/{file.source}"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content = file.convert(answer.read())
    except (OSError, EOFError, ValueError, struct.error, zlib.error) as error:
        raise click.ClickException(f"{address}: {error}") from error
    if checksum(content) != file.sha256:
        raise click.ClickException(
            f"{address} does not have the expected content: its SHA-256 is {checksum(content)}, "
            f"not {file.sha256}. Nothing was written."
        )
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


@click.group()
def main():
    """Check or download the files of Multi30K, SST-2 and the river Durance."""


def folder_option(command):
    return click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=pathlib.Path),
        envvar="KERAS_TRANSFORMER_DATA",
        required=True,
        help="Folder of the data; the default is the environment variable KERAS_TRANSFORMER_DATA.",
    )(command)


@main.command()
@folder_option
def verify(folder):
    """Compare every file with its checksum; fails if a file is missing or different."""
    states = [state(folder, file) for file in FILES]
    for file, result in zip(FILES, states, strict=True):
        click.echo(f"{result:<10}{file.path}")
    if set(states) != {"good"}:
        raise SystemExit(1)


@main.command()
@folder_option
@click.option("--host", default=HOST, show_default=True, help="Server, for example a mirror.")
@click.option(
    "--only", type=click.Choice(["multi30k", "sst2", "runoff"]), help="Download only one data set."
)
def download(folder, host, only):
    """Download the missing files; existing files are never replaced."""
    for file in FILES:
        if only is not None and not file.path.startswith(f"{only}/"):
            continue
        before = state(folder, file)
        if before == "different":
            raise click.ClickException(
                f"{folder / file.path} is not the expected file. Move it away to download it again."
            )
        if before == "missing":
            fetch(folder, file, host.rstrip("/"))
        click.echo(f"{'downloaded' if before == 'missing' else 'there':<12}{file.path}")


if __name__ == "__main__":
    main()
