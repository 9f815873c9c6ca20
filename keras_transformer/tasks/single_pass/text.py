"""Codecs of models that read a text and answer in one pass."""

import json
from typing import Any, TypeVar

import numpy as np

from keras_transformer.lazy_tensorflow import LateAttribute, tf
from keras_transformer.tasks.single_pass.codec import Codec
from keras_transformer.tasks.strings import check_samples, check_sentences, encode, encode_plain
from keras_transformer.tasks.token_rows import checked_ids, empty_where_invalid, valid_rows
from keras_transformer.tensors import Tensor
from keras_transformer.text.tokenizers import Tokenizers

Kind = TypeVar("Kind", bound="TextCodec")

RULE = (
    "Each row: the ids of a text's tokens, each at least 0 and below vocab_size, none of them pad "
    "or bos; then eos, once; then pad up to source_length. {} Other rows are not affected."
)


class TextCodec(Codec):
    """The codec of a model that reads token ids `source`, `[B, S]`.

    Args:
        tokenizer: The `Tokenizer`, or a pair of them, of which the first is used.
        max_length: Maximum length of a text in tokens, including its end token; longer texts are
            truncated.
    """

    example = "text"
    signature = "tokens"
    own_metadata = ("max_length",)
    request_specs = LateAttribute(
        lambda: {"sentences": tf.TensorSpec([None], tf.string, name="sentences")}
    )

    def __init__(self, tokenizer, max_length):
        self.tokenizer = Tokenizers.of(tokenizer).source
        self.longest = max_length
        self.padding = {"source": self.tokenizer.pad_id}

    @classmethod
    def check(cls, examples) -> list:  # noqa: D102
        return check_sentences(examples, "texts")

    @classmethod
    def check_samples(cls, examples) -> list:  # noqa: D102
        return check_samples(examples)

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:  # noqa: D102
        return {"sentences": tf.constant(examples, tf.string, [len(examples)])}

    def encode(self, sentences) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, padded token ids `[B, S]`, and `truncated`, `[B]`."""
        ids, truncated, _ = encode(self.tokenizer, sentences, self.longest)
        return {"source": ids.to_tensor(self.tokenizer.pad_id)}, {"truncated": truncated}

    def plainly_encoded(self, examples) -> Any | None:  # noqa: D102
        # A class that encodes in another way has no plain form unless it defines one.
        if type(self).encode is not TextCodec.encode or self.tokenizer.plain is None:
            return None
        return self._plain_rows(examples)

    def _plain_rows(self, texts):
        """Returns the result of `encode` for a list of texts, as arrays."""
        rows, truncated, _ = encode_plain(self.tokenizer, texts, self.longest)
        source = np.full([len(rows), max(map(len, rows), default=0)], self.tokenizer.pad_id)
        for place, row in zip(source, rows, strict=True):
            place[: len(row)] = row
        return {"source": source.astype(np.int32)}, {"truncated": truncated}

    def checked(self, source) -> dict[str, Tensor]:  # noqa: D102
        return {"source": checked_ids(source, self.tokenizer, self.longest)}

    def screen(self, source) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        begins = int(self.tokenizer.starts_with_bos)
        valid = valid_rows(source, self.tokenizer, separators=begins)  # [B]
        return valid, {"source": empty_where_invalid(source, valid, self.tokenizer)}

    def input_specs(self, rows=None, length=None) -> "dict[str, tf.TensorSpec]":  # noqa: D102
        return {"source": tf.TensorSpec([rows, length], tf.int32, name="source")}

    def input_shapes(self, rows=None, length=None) -> dict[str, tuple]:  # noqa: D102
        if type(self).input_specs is not TextCodec.input_specs:
            return super().input_shapes(rows, length)
        return {"source": ([rows, length], np.int32)}

    def lengths(self, inputs) -> list[int]:  # noqa: D102
        real = np.asarray(inputs["source"]) != self.tokenizer.pad_id
        return real.sum(axis=1).tolist()

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        tokenizer = self.tokenizer
        names = ("pad", "unk", "bos", "eos")
        return {
            "tokens": {name: getattr(tokenizer, f"{name}_id") for name in names},
            "vocab_size": tokenizer.vocab_size,
            "source": self._rule(),
            "max_length": self.longest,
        }

    def _rule(self):
        """Returns the rule of a row, with the id that it begins with if there is one."""
        if not self.tokenizer.starts_with_bos:
            return self.rule
        return self.rule.replace("Each row: ", "Each row: bos; then ", 1)

    @classmethod
    def from_metadata(cls: type[Kind], metadata, tokenizers) -> Kind:  # noqa: D102
        return cls(tokenizers, metadata["max_length"])

    def notes(self) -> list[str]:
        """Returns the notes on texts and token ids for the README beside a SavedModel."""
        return [
            "B: number of texts in the request. S: number of tokens of its longest text, at most "
            f"{self.longest}.",
            f"Strings are UTF-8. A text of more than {self.longest} tokens is truncated, and "
            f"`truncated` is true. Token ids belong to the {self.tokenizer.title} vocabulary "
            f"inside: a text ends with {self.tokenizer.eos_id}, and later ids are ignored; invalid "
            "ids are an error.",
        ]


# Modules that a program must import before it loads a SavedModel with a tokenizer, with reasons.
LONGEST_TEXT = 500  # characters of a text in an example
MODULES = {"tensorflow_text": "registers the operations of the tokenizer"}


def quoted(strings) -> str:
    """Returns the beginnings of strings as JSON without single quotes, which a shell reads."""
    strings = [string[:LONGEST_TEXT] for string in strings]
    return json.dumps(strings).replace("'", "\\u0027")
