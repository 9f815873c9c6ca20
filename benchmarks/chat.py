"""Time to the first token and tokens per second of an instruct model, beside other programs.

    python benchmarks/chat.py RUN model.onnx model.gguf model.litertlm \\
        --llama FOLDER --litert-lm PYTHON

The run has a chat template, which makes the prompts; the others are exports of it with
`--streaming`, and files with the same weights for llama.cpp and LiteRT-LM. Each model is in a
process of its own, all on the same core and with one thread, and continues the same token ids by
greedy search; LiteRT-LM gets them as text. A repeat begins with another model. Times are processor
times: other programs on the machine affect them less than wall-clock times. FOLDER is one in which
`npm install node-llama-cpp` was run, with its prebuilt library of llama.cpp; PYTHON has
`litert-lm-api`. Linux only.
"""

import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
from typing import NamedTuple

import click
import tensorflow as tf
from command import RESULTS, describe_machine, versions
from measurements import spread
from workers import processors

from keras_transformer.pipelines import Chat

SHORT = "Why is the sky blue?"
HERE = pathlib.Path(__file__).parent
PACKAGES = ("keras", "tensorflow", "onnxruntime")
POSITIONS = 1024  # of the caches of other programs
GGUF, LITERT_LM = ".gguf", ".litertlm"  # endings of their files


class Process:
    """A model in a process of its own.

    Args:
        path: The model.
        peers: The `Peers`.
    """

    def __init__(self, path, peers):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.path = path
        self._process = subprocess.Popen(peers.command(path), **pipes)

    def answer(self, prompt, count):
        """Returns the answer of the process to a `Prompt`, up to `count` tokens."""
        print(
            json.dumps({**prompt._asdict(), "count": count}), file=self._process.stdin, flush=True
        )
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException(f"{self.path} has ended.")
        return json.loads(line)

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


class Peers(NamedTuple):
    """Where other programs are installed.

    Attributes:
        llama: Folder with node-llama-cpp, for .gguf files.
        litert_lm: Python with `litert-lm-api`, for .litertlm files.
    """

    llama: pathlib.Path | None
    litert_lm: str | None

    def command(self, path):
        """Returns the command that opens a model."""
        arguments = [str(path.resolve()), str(POSITIONS)]
        if path.suffix == GGUF:
            # A module finds packages in the folders above it.
            script = shutil.copy(HERE / "chat_llama.mjs", _given(path, self.llama, "--llama"))
            return ["node", script, *arguments]
        if path.suffix == LITERT_LM:
            python = _given(path, self.litert_lm, "--litert-lm")
            return [python, str(HERE / "chat_litert_lm.py"), *arguments]
        return [sys.executable, str(HERE / "chat_worker.py"), arguments[0]]


class Prompt(NamedTuple):
    """A prompt.

    Attributes:
        ids: Its token ids, without those that begin every text.
        begins: These ids, which llama.cpp must be given.
        text: Its text.
    """

    ids: list[int]
    begins: list[int]
    text: str


def _given(path, value, option):
    if value is None:
        raise click.UsageError(f"{path} needs {option}.")
    return value


def prompts_of(chat, length):
    """Returns a short `Prompt` and one with about `length` tokens, by name."""
    begins = [] if chat._hides_start else [chat._tokenizer.bos_id]

    def prompt(text):
        messages = [{"role": "user", "content": text}]
        return Prompt(chat.ids(messages), begins, chat._template.render(messages))

    long = SHORT
    while len(prompt(long).ids) < length:
        long += f" {SHORT}"
    return {"short": prompt(SHORT), "long": prompt(long)}


def tokens_of(answer, chat):
    """Returns the token ids of an answer, which may be pieces of text."""
    if "tokens" in answer:
        return answer["tokens"]
    (ids,) = chat._tokenizer.tokenize(tf.constant(["".join(answer["pieces"])])).to_list()
    return ids


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("run", type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False))
@click.argument("others", nargs=-1, type=click.Path(path_type=pathlib.Path, exists=True))
@click.option("--llama", type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False),
              help="Folder with node-llama-cpp, for a .gguf file.")
@click.option("--litert-lm", help="Python with litert-lm-api, for a .litertlm file.")
@click.option("--tokens", default=64, type=click.IntRange(2), help="Number of new tokens.")
@click.option("--length", default=500, type=click.IntRange(2), help="Tokens of the long prompt.")
@click.option("--repeats", default=5, type=click.IntRange(1), help="Number of repeats.")
@RESULTS
# fmt: on
def main(run, others, llama, litert_lm, tokens, length, repeats, output):
    """Measure RUN, an instruct model, and OTHERS, the same model in other forms."""
    chat = Chat(run)
    prompts = prompts_of(chat, length)
    os.sched_setaffinity(0, processors(1))
    models = {str(path): Process(path, Peers(llama, litert_lm)) for path in (run, *others)}
    times = collections.defaultdict(lambda: ([], []))
    answers, ring = {}, collections.deque(models)
    for repeat in range(repeats + 1):  # the first one is not counted
        for name in ring:
            for prompt in prompts:
                answer = models[name].answer(prompts[prompt], tokens)
                answers[name, prompt] = tokens_of(answer, chat)
                begin, first, *_, last = answer["times"]
                if repeat:
                    times[name, prompt][0].append(first - begin)
                    rate = (len(answers[name, prompt]) - 1) / (last - first)
                    times[name, prompt][1].append(rate)
        ring.rotate(-1)
    for model in models.values():
        model.close()
    rows = []
    for (name, prompt), (first, rate) in times.items():
        count = len(prompts[prompt].ids)
        pairs = zip(answers[name, prompt], answers[str(run), prompt], strict=False)
        equal = next((place for place, (one, other) in enumerate(pairs) if one != other), tokens)
        rows.append({
            "model": name, "prompt": prompt, "prompt_tokens": count,
            "seconds_to_first": spread(first), "tokens_per_second": spread(rate),
            "equal_tokens": equal,
        })  # fmt: skip
        print(
            f"{name}, {prompt} prompt of {count} tokens: first token after "
            f"{statistics.median(first):.2f} s, then {statistics.median(rate):.1f} tokens/s; the "
            f"first {equal} tokens are those of the run"
        )
    report = {"machine": describe_machine(1), "versions": versions(PACKAGES), "rows": rows}
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
