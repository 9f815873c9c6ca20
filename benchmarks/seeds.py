"""Several seeds of one recipe for translation, trained at once with JAX on a GPU.

    keras-transformer train multi30k_tokenized --output runs/tok       # Ctrl-C once it has begun
    python benchmarks/seeds.py prepare runs/tok seeds --seeds 5
    python benchmarks/seeds_jax.py seeds                               # where JAX and a GPU are
    python benchmarks/seeds.py collect runs/tok seeds
    keras-transformer evaluate seeds/run-1 --tokenize none --beam 5 --length-penalty 1

`prepare` encodes the training split with the vocabulary of a run, and initialises one model for
each seed with Keras. `collect` makes a run of the average of each seed's last ten checkpoints.
"""

import json
import pathlib

import click
import keras
import numpy as np

from keras_transformer import Transformer
from keras_transformer.config import TransformerConfig
from keras_transformer.tasks.run import Run
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.factory import model_config
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import load_settings, save_settings


@click.group()
def main():
    """Train several seeds of one recipe at once."""


def folders(command):
    """Adds the arguments RUN and FOLDER to a command."""
    path = click.Path(path_type=pathlib.Path, file_okay=False)
    command = click.argument("folder", type=path)(command)
    return click.argument("run", type=path)(command)


@main.command()
@folders
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True)
def prepare(run, folder, seeds):
    """Write the examples and the initial weights for seeds_jax.py."""
    settings, config, tokenizers = _read(run)
    recipe = recipe_of(settings, config)
    folder.mkdir(parents=True, exist_ok=True)
    source = open_source(settings.data, settings.task.get().columns)
    sides = read_columns(source, settings.task.get(), "train")
    rows = [
        tokenizer.encode(side).to_list()
        for tokenizer, side in zip(tokenizers, sides, strict=True)
    ]  # fmt: skip
    rows = [pair for pair in zip(*rows, strict=True) if max(map(len, pair)) <= recipe["longest"]]
    longest = max(len(row) for pair in rows for row in pair)
    table = np.full([2, len(rows), longest], config.tokens.pad_id, np.int32)
    for number, pair in enumerate(rows):
        for side, row in enumerate(pair):
            table[side, number, : len(row)] = row
    np.savez_compressed(folder / "examples.npz", source=table[0], target=table[1])
    for seed in range(1, seeds + 1):
        keras.utils.set_random_seed(seed)
        np.savez(folder / f"first-{seed}.npz", **arrays(Transformer(config)))
    (folder / "recipe.json").write_text(json.dumps(recipe, indent=1) + "\n", encoding="utf-8")
    click.echo(f"{folder}: {len(rows):,} examples, {seeds} seeds")


@main.command()
@folders
def collect(run, folder):
    """Make a run of the weights of each seed."""
    settings, config, tokenizers = _read(run)
    files = sorted(folder.glob("mean-*.npz"))
    if not files:
        raise click.ClickException(f"{folder} has no mean-*.npz: run seeds_jax.py {folder} first.")
    for file in files:
        model = Transformer(config)
        with np.load(file) as values:
            for weight in model.weights:
                weight.assign(values[weight.path])
        new = Run(folder / file.stem.replace("mean", "run"))
        new.path.mkdir(exist_ok=True)
        save_settings(settings, new.config)
        new.write_tokenizers(tokenizers)
        model.save(new.model)
        new.update_metrics(parameters=model.count_params())
        click.echo(new.path)


def recipe_of(settings, config):
    """Returns what `seeds_jax.py` needs to know, a dictionary.

    Raises:
        click.ClickException: If that program computes another model or another training.
    """
    encoder, training, schedule = config.encoder, settings.training, settings.schedule
    block = encoder.block
    # What `Model` of seeds_jax.py computes; all else must be as by default.
    plain = TransformerConfig(
        vocab_size=config.tokens.vocab_size, norm="pre",
        num_layers=encoder.num_layers, d_model=encoder.d_model, d_ff=block.d_ff,
        num_heads=block.attention.num_heads, max_length=encoder.max_length, dropout=block.dropout,
    )  # fmt: skip
    if config != plain:
        raise click.ClickException(
            "the model must have the paper's layers with norm = pre, and both stacks alike."
        )
    for name, required in {
        "schedule.kind": "linear", "optimizer.kind": "adam", "training.accumulate": 1,
        "training.subword_sampling": 0.0, "training.r_drop": 0.0, "optimizer.clip_norm": None,
        "optimizer.ema_momentum": None, "training.layer_decay": None, "training.freeze": None,
        "training.lora": None, "training.checkpoint_every": 100, "training.keep_checkpoints": 10,
    }.items():  # fmt: skip
        section, key = name.split(".")
        if (value := getattr(getattr(settings, section), key)) != required:
            raise click.ClickException(f"{name} must be {required}. Received: {value}.")
    if config.tokens.vocab_size > 32_768:
        raise click.ClickException(
            "the vocabulary must have at most 32,768 tokens, whose ids fit into 16 bits. "
            f"Received: {config.tokens.vocab_size:,}."
        )
    if not training.simcut:
        raise click.ClickException("training.simcut must be more than 0.")
    return {
        "num_heads": encoder.block.attention.num_heads,
        "dropout": encoder.block.dropout,
        "layer_norm_epsilon": encoder.block.normalization.epsilon,
        **{name: getattr(config.tokens, name) for name in ("pad_id", "bos_id", "eos_id")},
        "longest": settings.data.max_length,
        "batch_tokens": settings.data.batch_tokens,
        "peak": schedule.peak,
        "final": schedule.final,
        "warmup_steps": schedule.warmup_steps,
        "betas": [settings.optimizer.beta_1, settings.optimizer.beta_2],
        "epsilon": settings.optimizer.epsilon,
        "updates": training.updates,
        "simcut": training.simcut,
        "token_cutoff": training.token_cutoff,
        "label_smoothing": training.label_smoothing,
    }


def arrays(model):
    """Returns the weights of a model, a dictionary from paths to arrays."""
    return {weight.path: weight.numpy() for weight in model.weights}


def _read(run):
    """Returns the settings, the configuration of the model and the vocabularies of a run."""
    files = Run(run)
    if not files.config.is_file() or not files.vocabulary():
        raise click.ClickException(
            f"{run} must be a run with a vocabulary: train it, at least until its first update."
        )
    settings, tokenizers = load_settings(files.config), files.load_tokenizers()
    return settings, model_config(settings, tokenizers), tokenizers


if __name__ == "__main__":
    main()
