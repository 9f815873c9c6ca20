"""Configuration of a head that predicts the next token of a target, and of its searches."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

from keras_transformer.checks import check_count, is_integer
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.block import OptionalCount
from keras_transformer.config.heads.next_token import NextTokenHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetHead(NextTokenHead):
    """Configuration of a head that predicts the next token of a target.

    The target may have its own vocabulary.

    Args:
        **options: See `help(TargetHead)`.
    """

    tie: Literal["all", "target", "none"] = option(
        "all",
        """Weight tying: `"all"`, source embedding, target embedding and output weights are the same
        matrix (section 3.4); `"target"`, only target embedding and output weights; or
        `"none"`.""",
    )
    target_vocab_size: OptionalCount = option(
        None,
        "Size of the target vocabulary. `None`: source and target share a vocabulary.",
        set_by="vocabulary",
    )
    decoder_start: Literal["token", "zeros"] = option(
        "token",
        """First input of the decoder: `"token"`, the embedding of `bos_id`, or `"zeros"`, zeros in
        its place, as in Marian's models. A position is added to both.""",
    )
    language_codes: Literal["none", "before", "after", "start"] = option(
        "none",
        """Tokens of languages in front of each source: that of the target language, then that of
        the source language. Each output begins with the first one. The encoder reads the second
        one before the text, `"before"`, as in M2M100, or after its end, `"after"`. `"start"`: as
        `"after"`, but the first one is not part of an output; it is the first input of the decoder
        in place of `bos_id`, as in the mBART of 25 languages. `"none"`: a source has no such
        tokens.""",
        set_by="vocabulary",
    )
    banned_ids: tuple = option(
        (),
        "Token ids that no search emits; the probabilities of the others sum to 1.",
        set_by="vocabulary",
    )
    silent_ids: tuple = option(
        (),
        "Token ids that no search emits, but which keep their probability.",
        set_by="vocabulary",
    )
    forced_bos_id: int | None = option(
        None,
        """Token id that a search emits at the first position of every output, as in BART. `None`:
        no token is forced there.""",
        set_by="vocabulary",
    )
    forced_eos_id: int | None = option(
        None,
        """Token id, usually `eos_id`, that a search emits at the last position of an output of
        maximum length. `None`: such an output has no end.""",
        set_by="vocabulary",
    )

    no_repeat_ngram: Annotated[int, functools.partial(check_count, least=0)] = option(
        0,
        "Number n of tokens: in an output of a search, no n-gram occurs twice. 0: any may.",
        set_by="vocabulary",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("banned_ids", "silent_ids"):  # tuples become lists in JSON
            ids = getattr(self, name)
            if not isinstance(ids, tuple | list):
                raise TypeError(f"`{name}` must be a list of ids. Received: {name}={ids!r}.")
            object.__setattr__(self, name, tuple(ids))

    @property
    def has_languages(self) -> bool:
        """`True` if sources begin with tokens of languages."""
        return self.language_codes != "none"

    @property
    def starts_with_language(self) -> bool:
        """`True` if the first input of the decoder is the token of the target's language."""
        return self.language_codes == "start"

    @property
    def forces_language(self) -> bool:
        """`True` if outputs begin with the token of their language."""
        return self.has_languages and not self.starts_with_language

    @property
    def starts_with_zeros(self) -> bool:
        """`True` if the first input of the decoder is zeros instead of an embedding."""
        return self.decoder_start == "zeros"

    @property
    def shares_vocabulary(self) -> bool:
        """`True` if source and target share a vocabulary."""
        return self.target_vocab_size is None or self.tie == "all"

    def check_with(self, config: Any) -> None:  # noqa: D102
        size, tokens = config.output_size, config.input
        if self.tie == "all" and self.target_vocab_size not in (None, tokens.vocab_size):
            raise ValueError(
                "`tie='all'` needs one vocabulary for source and target. "
                f"Received: vocab_size={tokens.vocab_size}, "
                f"target_vocab_size={self.target_vocab_size}."
            )
        for name in ("banned_ids", "silent_ids"):
            ids = getattr(self, name)
            if not all(is_integer(token) and 0 <= token < size for token in ids):
                raise ValueError(
                    f"`{name}` must be ids of the {size} target tokens. Received: {name}={ids}."
                )
            if tokens.eos_id in ids:
                raise ValueError(
                    f"`{name}` must not contain `eos_id`, or no output would end. "
                    f"Received: eos_id={tokens.eos_id}."
                )
        self._check_forced(size, tokens)

    def _check_forced(self, size, tokens):
        for name in ("forced_bos_id", "forced_eos_id"):
            forced = getattr(self, name)
            if forced is None:
                continue
            if not is_integer(forced) or not 0 <= forced < size or forced == tokens.pad_id:
                raise ValueError(
                    f"`{name}` must be the id of one of the {size} target tokens except "
                    f"`pad_id`, or None. Received: {name}={forced!r}."
                )
            if forced in self.silent_ids or forced == tokens.bos_id != tokens.eos_id:
                raise ValueError(
                    f"`{name}` must be a token that a search may emit: neither `bos_id` nor one "
                    f"of `silent_ids`. Received: {name}={forced}."
                )
        if self.forced_bos_id is not None and self.has_languages:
            raise ValueError(
                "`forced_bos_id` must be None with `language_codes`, which force the first token "
                f"of an output. Received: forced_bos_id={self.forced_bos_id}."
            )
