"""Records the README's moving picture: three commands in a terminal, then `examples/browser`.

    python .ci/recording.py FOLDER --speech whisper.tflite --sound recording.wav

The commands are run in FOLDER, which takes as long as `make demo`. What they print, and when, is
kept in FOLDER/terminal.json: remove a command there to run it again. The pages run in headless
Chromium and are photographed after each key. Only waiting times are changed: training is shown
faster, and results are shown longer. Needs Node, Chromium, and `npm install` in `examples/browser`.
Without `--speech`, the last scene is left out.
"""

import base64
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import click
import recording_frames as frames
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the tests drive Chromium in the same way

import browsers  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "demo.webp"
TRAIN, EXPORT, TRANSLATE = COMMANDS = (
    "keras-transformer train demo --output runs/demo",
    "keras-transformer export litert runs/demo demo.tflite --quantize int8 --alignment",
    'echo "in 17 weeks" | keras-transformer translate demo.tflite',
)
TYPED = "March 5, 2031"
ZOOM = 1.25  # a page shows more than a terminal of this size


def printed_by(command, folder):
    """Runs a command in a folder; returns its lines, each with its seconds."""
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
    begin, lines = time.monotonic(), []
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env={**os.environ, **settings}, text=True,
        encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    for line in process.stdout:
        click.echo(line, nl=False)
        lines.append([round(time.monotonic() - begin, 2), line.rstrip()])
    if process.wait():
        raise click.ClickException(f"{command} ended with {process.returncode}.")
    return lines


def run_commands(folder):
    """Returns what each command printed, which is run unless FOLDER/terminal.json has it."""
    path = folder / "terminal.json"
    session = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for command in COMMANDS:
        if command not in session:
            session[command] = printed_by(command, folder)
            path.write_text(json.dumps(session, indent=1) + "\n", "utf-8")
    return session


def terminal_scene(session, file):
    """Yields the frames of the terminal with their milliseconds."""
    trained = re.search(r"Trained in ([\d:]+)", json.dumps(session[TRAIN]))[1]
    size = file.stat().st_size / 1e6
    captions = {
        TRAIN: f"Train a small translator: {trained} minutes on two cores",
        EXPORT: f"Export it with its decoding loop: a file of {size:.1f} MB",
        TRANSLATE: "Run the file with LiteRT, without TensorFlow",
    }
    times = {TRAIN: (2600, 30), EXPORT: (800, 2), TRANSLATE: (300, 1)}
    for command in COMMANDS:
        lines = []  # a clear screen: lines that move need most of the space in the file
        yield from frames.typing(lines, command, captions[command])
        lines.append(f"$ {command}")
        yield frames.terminal(lines, captions[command]), 300
        printed = session[command]
        yield from frames.output(lines, printed, captions[command], *times[command])
        yield frames.terminal(lines, captions[command]), 800


def photograph(browser, caption):
    image = browser.call("Page.captureScreenshot", format="png")["data"]
    picture = Image.open(io.BytesIO(base64.b64decode(image))).convert("RGB")
    return frames.with_caption(picture, caption)


def translation_scene(browser):
    """Yields the frames of the page that translates with the exported file."""
    caption = "The same file in a web page: nothing is sent anywhere"
    browser.open("?model=demo.tflite")
    browser.evaluate('document.getElementById("source").focus()')
    yield photograph(browser, caption), 700
    for letter in TYPED:
        browser.call("Input.insertText", text=letter)
        yield photograph(browser, caption), 70
    browser.translate(TYPED)
    yield photograph(browser, caption), 1200
    browser.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    yield photograph(browser, caption), 2200


def speech_scene(browser, size, sound):
    """Yields the frames of the page that transcribes a recording."""
    caption = f"A published model, Whisper tiny.en in int8: {size / 1e6:.0f} MB"
    browser.open("?model=speech.tflite", "speech.html")
    yield photograph(browser, caption), 700
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(sound)])
    yield photograph(browser, caption), 900
    browser.wait_for("/ ms$/.test(status) || failed")
    yield photograph(browser, caption), 2500


def page_scenes(file, speech, sound):
    """Yields the frames of the pages of `examples/browser`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        site, profile = pathlib.Path(folder, "site"), pathlib.Path(folder, "profile")
        for each in (site, profile):
            each.mkdir()
        browsers.copy_page(site)
        shutil.copy(file, site / "demo.tflite")
        with browsers.served(site, profile) as browser:
            wide, high = (round(ZOOM * side) for side in (frames.WIDTH, frames.HEIGHT))
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.call("Emulation.setDeviceMetricsOverride", width=wide, height=high,
                         deviceScaleFactor=frames.SCALE / ZOOM, mobile=False)  # fmt: skip
            yield from translation_scene(browser)
            if speech:
                shutil.copy(speech, site / "speech.tflite")
                yield from speech_scene(browser, speech.stat().st_size, sound)


FILE = click.Path(path_type=pathlib.Path, exists=True, dir_okay=False, resolve_path=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=pathlib.Path, file_okay=False))
@click.option("--speech", type=FILE, help="A .tflite file of Whisper.")
@click.option("--sound", type=FILE, help="The recording to transcribe.")
@click.option("--output", type=click.Path(path_type=pathlib.Path), default=PICTURE)
def main(folder, speech, sound, output):
    """Record the demo in FOLDER and write the moving picture."""
    if (speech is None) != (sound is None):
        raise click.UsageError("--speech and --sound belong together.")
    folder.mkdir(parents=True, exist_ok=True)
    session, file = run_commands(folder), folder / "demo.tflite"
    all_frames = [*terminal_scene(session, file), *page_scenes(file, speech, sound)]
    frames.write_webp(all_frames, output)
    seconds = sum(duration for _, duration in all_frames) / 1000
    click.echo(f"{output}: {seconds:.1f} s, {output.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
