"""Small distillations: texts, untrained teachers, and a fake search that reverses sentences."""

import io

import numpy as np
import rich.console

from keras_transformer import Beam
from keras_transformer.tasks.results import Translation
from keras_transformer.training.distillation.distill import distill
from keras_transformer.training.distillation.options import Distillation
from keras_transformer.training.settings.toml import load_settings

WORDS = ["a", "the", "big", "dog", "cat", "runs", "and"]
LONG = "the big dog and the big cat and the big dog and the cat runs"  # more than 11 tokens
ORIGIN = {"format": "opus-mt", "name": "opus-mt-xx-yy", "license": "CC-BY 4.0"}
CONFIG = """
[model]
preset = "tiny"
num_layers = 1
d_model = 16
d_ff = 24
num_heads = 2
max_length = 40

[data]
source = "text"
train_source = "train.a"
train_target = "train.b"
validation_source = "validation.a"
validation_target = "validation.b"
source_language = "en"
target_language = "xx"
max_length = 40
batch_tokens = 80

[schedule]
warmup_steps = 1

[training]
updates = 2
validate_every = 2
validate_sentences = 0
checkpoint_every = 1
progress_seconds = 0.0001
"""


def lines(path):
    return path.read_text("utf-8").splitlines()


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 5))) for _ in range(count)]


def write_run(run, pipeline):
    run.path.mkdir()
    size = pipeline.source_tokenizer.vocab_size
    run.config.write_text(f'[data]\nsource = "none"\n[vocabulary]\nsize = {size}\n')
    run.write_tokenizers(pipeline.tokenizers)
    pipeline.model.save(run.model)


def settings_of(folder, *overrides):
    return load_settings(folder / "config.toml", overrides)


def call(folder, run, *names, forward=("one",), settings=None, **options):
    """Distils quietly; returns the metrics and the messages."""
    text = io.StringIO()
    console = rich.console.Console(file=text, width=200)
    options = {"search": Beam(3), **options}
    teachers = [folder / name for name in names or forward]
    settings = settings or settings_of(folder)
    return distill(settings, run, teachers, Distillation(**options), console=console), text


class Reader:
    """A fake teacher that returns `n` texts for each sentence, the last one the longest."""

    calls = 0
    stop = None
    opened = ()  # names of the teachers of each search
    change = staticmethod(lambda names, text: text[::-1])

    def __init__(self, teachers):
        self.names = "+".join(teacher.run.path.name for teacher in teachers)
        type(self).opened.append(self.names)

    def check(self, search, n, sentences):
        pass

    def __call__(self, batch, search, n=1):
        type(self).calls += 1
        if self.calls == self.stop:
            raise KeyboardInterrupt
        return [
            [
                Translation(
                    f"{self.change(self.names, text)} {'x' * rank}".strip(), 0.0, len(text) > 50
                )
                for rank in range(n)
            ]
            for text in batch
        ]
