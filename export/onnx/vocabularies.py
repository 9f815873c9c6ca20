"""Vocabularies whose tokens the operators of onnxruntime-extensions return."""

from typing import Any

from keras_transformer.export.errors import ExportError
from keras_transformer.export.onnx.packages import require_extensions
from keras_transformer.text.sentencepiece_model import read_model, type_of
from keras_transformer.text.tokenizers import SentencePieceTokenizer

KINDS = ("bpe", "unigram")


def check_run(config, tokenizers, options, origin=None) -> None:
    """Checks the vocabularies of a run if its file is to take strings.

    Raises:
        ExportError: See `check_vocabulary`.
        ValueError: If onnxruntime-extensions is missing.
    """
    if not options.tokenizer or None in (config.encoder, config.decoder):
        return  # a model without an encoder is refused later
    require_extensions()
    for side in dict.fromkeys(tokenizers):
        check_vocabulary(side)


def check_vocabulary(tokenizer: Any) -> None:
    """Checks the kind of a vocabulary.

    Raises:
        ExportError: If it is not a SentencePiece model of the kinds `KINDS` with its own ids.
    """
    kind = tokenizer.title
    if kind == SentencePieceTokenizer.title:
        if tokenizer.table is not None:
            raise ExportError(
                "`tokenizer` needs a vocabulary whose ids are SentencePiece's own; this one has "
                "a table of different ids. Export without the tokenizer."
            )
        kind = type_of(read_model(tokenizer.model))
        if kind in KINDS:
            return
        kind = f"{kind} model of SentencePiece"
    raise ExportError(
        "`tokenizer` needs a BPE or unigram model of SentencePiece, which onnxruntime-extensions "
        f"reproduces. Received: a vocabulary of the kind {kind}. Export without the tokenizer."
    )
