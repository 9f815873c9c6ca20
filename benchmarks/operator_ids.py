"""Token ids of the operators of onnxruntime-extensions against those of this package.

    KERAS_TRANSFORMER_DATA=... python benchmarks/operator_ids.py --texts 1000000

Learns a BPE and a unigram vocabulary from Multi30K, as `train` does, and compares lines of
Multi30K, unchanged and mutated, and random Unicode (see `random_texts.py`), one by one. The first
difference ends it with status 1. The operators run in another process, without TensorFlow Text.
"""

import itertools
import pathlib
import sys
import time
import types

import click
from command import names
from random_texts import hostile

from keras_transformer.export.errors import ExportError
from keras_transformer.export.onnx.string_proof import require_same_strings
from keras_transformer.text.tokenizers import SentencePieceTokenizer
from keras_transformer.text.tokenizers.pair import Tokenizers
from keras_transformer.training.vocabulary import learn_vocabulary

KINDS = ("bpe", "unigram")
SHARD = 10_000  # texts that are compared at a time
MAX_LENGTH = 512  # tokens; longer texts are truncated on both sides
LONGEST = 5_000  # characters of the longest random words


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--kinds", callback=names(KINDS), default=",".join(KINDS),
              help="Kinds of SentencePiece models.")
@click.option("--texts", "count", type=click.IntRange(1), default=1_000_000,
              help="Number of texts, for each kind; the lines of Multi30K are among them.")
@click.option("--pieces", type=click.IntRange(400), default=8_000, help="Size of a vocabulary.")
@click.option("--seed", type=int, default=10, help="Seed of the random texts.")
@click.option("--data", envvar="KERAS_TRANSFORMER_DATA", required=True,
              type=click.Path(path_type=pathlib.Path, exists=True),
              help="Folder with multi30k/train.en and train.de.")
# fmt: on
def main(kinds, count, pieces, seed, data):
    """Compare the ids of texts, and the text of every token."""
    lines = [
        line
        for language in ("en", "de")
        for line in (data / f"multi30k/train.{language}").read_text(encoding="utf-8").splitlines()
    ]
    for kind in kinds:
        settings = types.SimpleNamespace(
            size=pieces, model_type=kind, split_digits=True, character_coverage=1.0
        )
        tokenizer = SentencePieceTokenizer(learn_vocabulary(lines, settings))
        begin, done = time.perf_counter(), 0
        for shard in _shards(lines, count, seed):
            try:
                require_same_strings(Tokenizers(tokenizer, tokenizer), shard, MAX_LENGTH)
            except ExportError as error:
                sys.exit(f"{kind}: after {done:,} equal texts: {error}")
            done += len(shard)
            seconds = time.perf_counter() - begin
            print(f"{kind}: ids of {done:,} of {count:,} texts are equal, {seconds:.0f} s",
                  flush=True)  # fmt: skip


def _shards(lines, count, seed):
    """Yields lists of `count` texts in all, first the lines."""
    wild = hostile(count, seed, lines, longest=LONGEST, every=SHARD, invalid=False)
    texts = itertools.islice(itertools.chain(lines, (text.decode() for text in wild)), count)
    while shard := [*itertools.islice(texts, SHARD)]:
        yield shard


if __name__ == "__main__":
    main()
