"""Time to the first token and tokens per second of an instruct model, beside llama.cpp.

    python benchmarks/chat.py RUN model.onnx model.gguf --llama FOLDER

The run has a chat template, which makes the prompts; the others are exports of it with
`--streaming`, and a file for llama.cpp with the same weights, such as the one that the run was
converted from. Each model is in a process of its own, all on the same core and with one thread,
and continues the same token ids by greedy search. A repeat begins with another model. Times are
processor times: other programs on the machine affect them less than wall-clock times. FOLDER is
one in which `npm install node-llama-cpp` was run, with its prebuilt library of llama.cpp.
Linux only.
"""

import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import click
from command import RESULTS, describe_machine, versions
from measurements import spread
from workers import processors

from keras_transformer.pipelines import Chat

SHORT = "Why is the sky blue?"
HERE = pathlib.Path(__file__).parent
PACKAGES = ("keras", "tensorflow", "onnxruntime")
POSITIONS = 2048  # of llama.cpp's cache


class Process:
    """A model in a process of its own.

    Args:
        path: The model.
        llama: Folder with node-llama-cpp, for a .gguf file.
    """

    def __init__(self, path, llama):
        command = [sys.executable, str(HERE / "chat_worker.py"), str(path.resolve())]
        if path.suffix == ".gguf" and llama is None:
            raise click.UsageError(f"{path} needs --llama.")
        if path.suffix == ".gguf":
            # A module finds packages in the folders above it.
            script = shutil.copy(HERE / "chat_llama.mjs", llama)
            command = ["node", script, str(path.resolve()), str(POSITIONS)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, **pipes)

    def tokens(self, ids, count):
        """Returns the tokens after a prompt, seconds to the first one, and seconds of the rest."""
        print(json.dumps({"ids": ids, "count": count}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException(f"{self._process.args[-1]} has ended.")
        answer = json.loads(line)
        begin, first, *_, last = answer["times"]
        return answer["tokens"], first - begin, last - first

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


def prompts_of(run, length):
    """Returns the token ids of a short prompt and of one with about `length` tokens."""
    chat = Chat(run)

    def ids(text):
        return chat.ids([{"role": "user", "content": text}])

    long = SHORT
    while len(ids(long)) < length:
        long += f" {SHORT}"
    found, begins = {}, [] if chat._hides_start else [chat._tokenizer.bos_id]
    for name, text in (("short", SHORT), ("long", long)):
        found[name] = begins + ids(text)
    return found, begins


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("run", type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False))
@click.argument("others", nargs=-1, type=click.Path(path_type=pathlib.Path, exists=True))
@click.option("--llama", type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False),
              help="Folder with node-llama-cpp, for a .gguf file.")
@click.option("--tokens", default=64, type=click.IntRange(2), help="Number of new tokens.")
@click.option("--length", default=500, type=click.IntRange(2), help="Tokens of the long prompt.")
@click.option("--repeats", default=5, type=click.IntRange(1), help="Number of repeats.")
@RESULTS
# fmt: on
def main(run, others, llama, tokens, length, repeats, output):
    """Measure RUN, an instruct model, and OTHERS, the same model in other forms."""
    prompts, begins = prompts_of(run, length)
    os.sched_setaffinity(0, processors(1))
    models = {str(path): Process(path, llama) for path in (run, *others)}
    times = collections.defaultdict(lambda: ([], []))
    answers, ring = {}, collections.deque(models)
    for repeat in range(repeats + 1):  # the first one is not counted
        for name in ring:
            for prompt, ids in prompts.items():
                own = ids if name.endswith(".gguf") else ids[len(begins) :]
                answers[name, prompt], first, rest = models[name].tokens(own, tokens)
                if repeat:
                    times[name, prompt][0].append(first)
                    times[name, prompt][1].append((len(answers[name, prompt]) - 1) / rest)
        ring.rotate(-1)
    for model in models.values():
        model.close()
    rows = []
    for (name, prompt), (first, rate) in times.items():
        pairs = zip(answers[name, prompt], answers[str(run), prompt], strict=False)
        equal = next((place for place, (one, other) in enumerate(pairs) if one != other), tokens)
        rows.append({
            "model": name, "prompt": prompt, "prompt_tokens": len(prompts[prompt]),
            "seconds_to_first": spread(first), "tokens_per_second": spread(rate),
            "equal_tokens": equal,
        })  # fmt: skip
        print(
            f"{name}, {prompt} prompt of {len(prompts[prompt])} tokens: first token after "
            f"{statistics.median(first):.2f} s, then {statistics.median(rate):.1f} tokens/s; the "
            f"first {equal} tokens are those of the run"
        )
    report = {"machine": describe_machine(1), "versions": versions(PACKAGES), "rows": rows}
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
