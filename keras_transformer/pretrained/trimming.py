"""Checkpoints whose vocabularies are reduced to the tokens that given texts use."""

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.config.parts import PARTS
from keras_transformer.pretrained.family import Checkpoint
from keras_transformer.text.lines import binary_lines, decode_line
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import SPECIAL

BATCH = 2048  # lines that are tokenized at a time
# Ends of the names of settings that are one token id, or several.
ONE, SEVERAL = "_id", "_ids"
SIZE = 4  # of a float32, in bytes
NO_TEXT = "{} must have lines of text, whose tokens remain. It has none."


class Trimmed(typing.NamedTuple):
    """A checkpoint with fewer tokens.

    Attributes:
        checkpoint: The `Checkpoint`.
        kept: Two lists of the ids that remain of the original vocabularies of source and target, in
            ascending order. The place of an id in its list is the new id.
    """

    checkpoint: Checkpoint
    kept: tuple[list[int], list[int]]


def trim(checkpoint, files) -> Trimmed:
    """Returns a checkpoint with only the tokens that the lines of text files use.

    All lines are segmented as before, which is checked. Special tokens, tokens of languages, bytes
    and single characters remain as well, so that other texts can still be encoded. The logits of
    the tokens that remain do not change.

    Args:
        checkpoint: A `Checkpoint`.
        files: Paths of files with one text per line.

    Raises:
        ValueError: If the checkpoint has no vocabulary, a file is not UTF-8 or has no text, or a
            line would be segmented in another way.
        OSError: If a file cannot be read.
    """
    check_files(files)
    if checkpoint.tokenizers is None:
        raise ValueError(
            f"a model for {checkpoint.task} has no vocabulary to trim: leave out --keep-tokens-of."
        )
    sides = checkpoint.tokenizers.with_any_languages()
    needed = [_needed(side, files) for side in ([sides.source] if sides.shared else sides)]
    trimmed = restrict(checkpoint, needed[0], needed[-1])
    smaller = trimmed.checkpoint.tokenizers.with_any_languages()
    for before, after, kept in {*zip(sides, smaller, map(tuple, trimmed.kept), strict=True)}:
        _check_segmentation(before, after, np.array(kept), files)
    names = ", ".join(file.name for file in files)
    counts = _counts(checkpoint.tokenizers, trimmed.checkpoint.tokenizers)
    origin = {**checkpoint.origin, "vocabulary": f"{counts}, those that {names} use"}
    return trimmed._replace(checkpoint=trimmed.checkpoint._replace(origin=origin))


def check_files(files) -> None:
    """Refuses files without text, before a checkpoint is read.

    Args:
        files: Paths of files with one text per line.

    Raises:
        ValueError: If a file is not UTF-8 or has no text; the error names it.
        OSError: If a file cannot be read.
    """
    for file in files:
        if not any(line.strip() for line in _lines(file)):
            raise ValueError(NO_TEXT.format(file))


def restrict(checkpoint, source, target) -> Trimmed:
    """Returns a checkpoint that keeps only some of its tokens.

    Args:
        checkpoint: A `Checkpoint`.
        source, target: Sets of ids of the tokens of both sides, such as `Tokenizer.needed` returns.
            They are joined if both sides have one vocabulary. Tokens without which the model could
            not be used, such as a forced first token, are added.
    """
    config, rules = checkpoint.model.config, checkpoint.generation
    options = {**_ids(config.to_flat()), **_ids({} if rules is None else vars(rules.rules))}
    single = {number for name, number in options.items() if name.endswith(ONE)}
    single |= {*options.get("end_ids", ())}
    special = {getattr(config.tokens, name) for name in SPECIAL}
    special |= {getattr(side, name) for side in checkpoint.tokenizers for name in SPECIAL}
    special |= {side.mask_id for side in checkpoint.tokenizers} - {None}
    source, target = source | special, target | special | single
    if getattr(config.head, "shares_vocabulary", True):
        source = target = source | target
    else:
        source, target = _aligned(source, target, special)
    kept = sorted(source), sorted(target)
    tokenizers = _restricted(checkpoint.tokenizers, kept)
    numbers = {number: new for new, number in enumerate(kept[1])}
    changes = {"vocab_size": len(kept[0]), **_renumbered(config.to_flat(), numbers)}
    if getattr(config.head, "target_vocab_size", None) is not None:
        changes["target_vocab_size"] = len(kept[1])
    smaller = dataclasses.replace(config, **changes)
    model = type(checkpoint.model)(smaller, dtype=checkpoint.model.policy)
    _copy(checkpoint.model, model, kept)
    if rules is not None:
        own = dataclasses.replace(rules.rules, **_renumbered(vars(rules.rules), numbers))
        rules = dataclasses.replace(rules, rules=own)
    return Trimmed(checkpoint._replace(model=model, tokenizers=tokenizers, generation=rules), kept)


def summary(before, after) -> str:
    """Returns the sizes of a checkpoint with all and with fewer tokens, as text.

    Args:
        before, after: The `Checkpoint`s.
    """
    sizes = [SIZE * checkpoint.model.count_params() / 1e6 for checkpoint in (before, after)]
    counts = _counts(before.tokenizers, after.tokenizers)
    return f"{counts}, {sizes[1]:,.1f} of {sizes[0]:,.1f} MB in float32"


def _counts(before, after):
    """Returns the numbers of tokens of `Tokenizers`, such as "900 of 2,500 tokens"."""
    source, target = (
        f"{new.vocab_size:,} of {old.vocab_size:,}" for old, new in zip(before, after, strict=True)
    )
    return f"{source} tokens" if source == target else f"{source} and {target} tokens"


def _lines(file) -> Iterator[str]:
    for number, line in enumerate(binary_lines(file), start=1):
        yield decode_line(file, number, line)


def _batches(files) -> Iterator[tuple[Any, int, list[str]]]:
    """Yields files, the number of a line, and the lines from there on, a list of strings."""
    for file in files:
        lines, first = [], 1
        for number, line in enumerate(_lines(file), start=1):
            lines.append(line)
            if len(lines) == BATCH:
                yield file, first, lines
                lines, first = [], number + 1
        if lines:
            yield file, first, lines


def _needed(tokenizer, files):
    """Returns the ids of the tokens that a tokenizer needs for the lines of files."""
    marks, used = tokenizer.used([""]), {file: set() for file in files}
    for file, _, lines in _batches(files):
        used[file] |= tokenizer.used(lines)
    for file, ids in used.items():
        if ids <= marks:
            raise ValueError(NO_TEXT.format(file))
    return tokenizer.needed(set().union(*used.values()))


def _check_segmentation(before, after, kept, files):
    """Raises a `ValueError` if a line gets other tokens."""
    for file, first, lines in _batches(files):
        old, new = (tokenizer.encode(tf.constant(lines)) for tokenizer in (before, after))
        splits = np.array_equal(old.row_splits, new.row_splits)
        if splits and np.array_equal(old.values, kept[new.values.numpy()]):
            continue
        rows = zip(old.to_list(), new.to_list(), strict=True)
        wrong = next(n for n, (a, b) in enumerate(rows) if a != kept[b].tolist())
        raise ValueError(
            f"{file}, line {first + wrong}: the smaller vocabulary would segment this line in "
            "another way. Leave the line out, or convert without --keep-tokens-of."
        )


def _ids(fields) -> dict[str, Any]:
    """Returns the settings that are token ids, by name; those that are `None` are left out."""
    return {
        name: value
        for name, value in fields.items()
        if name.endswith((ONE, SEVERAL)) and value is not None
    }


def _renumbered(fields, numbers):
    """Returns the settings that are token ids with their new ids; lost ones leave the lists."""
    return {
        name: numbers[value]
        if name.endswith(ONE)
        else tuple(numbers[number] for number in value if number in numbers)
        for name, value in _ids(fields).items()
    }


def _aligned(source, target, special):
    """Returns the ids of both sides with a few added, so that special tokens keep equal ids.

    Between two special tokens, both vocabularies then have equally many tokens.

    Args:
        source, target: Ids of both sides, sets.
        special: Ids of the tokens that are special on both sides.
    """
    sides, begin = [{*source}, {*target}], 0
    for end in sorted(special):
        between = range(begin, end)
        counts = [sum(number in ids for number in between) for ids in sides]
        for ids, count in zip(sides, counts, strict=True):
            free = (number for number in between if number not in ids)
            ids.update(next(free) for _ in range(max(counts) - count))
        begin = end + 1
    return sides


def _restricted(tokenizers, kept) -> Tokenizers:
    if tokenizers.source is tokenizers.target and kept[0] == kept[1]:
        return Tokenizers.of(tokenizers.source.restricted(kept[0]))
    sides = zip(tokenizers, kept, strict=True)
    return Tokenizers.of([side.restricted(ids) for side, ids in sides])


def _copy(model, smaller, kept: Sequence[list[int]]) -> None:
    """Copies the weights of a model to one with fewer tokens.

    The models differ only in the sizes of their vocabularies, so an axis whose size differs is an
    axis of tokens.
    """
    for part in PARTS:
        theirs, ids = model.parts.weights(part), kept[0 if part == "input" else 1]
        for path, variable in (smaller.parts.weights(part) or {}).items():
            values = theirs[path].numpy()
            for axis, size in enumerate(variable.shape):
                if size != values.shape[axis]:
                    values = np.take(values, ids, axis)
            variable.assign(values)
