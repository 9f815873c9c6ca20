"""The rules of a checkpoint for the outputs that it generates."""

import typing

from keras_transformer.checks import is_integer
from keras_transformer.decoding.search import Beam, Greedy, as_dict

# Settings of a generation that our searches do not have, with the values that change nothing.
WITHOUT_EFFECT = {
    "do_sample": (False,),
    "min_length": (0,),
    "min_new_tokens": (None,),
    "max_new_tokens": (None,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "diversity_penalty": (0.0,),
    "num_beam_groups": (1,),
    "suppress_tokens": (None,),
    "begin_suppress_tokens": (None,),
    "forced_bos_token_id": (None,),
    "sequence_bias": (None,),
    "exponential_decay_length_penalty": (None,),
    "force_words_ids": (None,),
}


class Generation(typing.NamedTuple):
    """All rules of a checkpoint for its outputs.

    Attributes:
        search: The search that it asks for.
        banned_ids, silent_ids, forced_eos_id: See `TransformerConfig`.
        notes: Settings that no search here has: strings.
    """

    search: Greedy | Beam
    banned_ids: tuple = ()
    silent_ids: tuple = ()
    forced_eos_id: int | None = None
    notes: tuple = ()

    def to_dict(self):
        """Returns everything as a dictionary of plain values, for `generation.json` of a run."""
        return {"search": as_dict(self.search), **self.ids(), "notes": list(self.notes)}

    def ids(self):
        """Returns the fields that are token ids, by name."""
        names = ("banned_ids", "silent_ids", "forced_eos_id")
        return {name: getattr(self, name) for name in names}


def read_generation(settings, eos_id, size):
    """Returns the `Generation` in settings of Hugging Face's.

    Args:
        settings: The `Settings` of `generation_config.json`, or of `config.json`.
        eos_id: Id of the end of an output.
        size: Tokens of the vocabulary of outputs.

    Raises:
        ValueError: If a setting is wrong; it is named.
    """
    notes = [
        f"`{name}` = {settings.get(name)!r} is not carried over"
        for name, idle in WITHOUT_EFFECT.items()
        if settings.get(name, idle[0]) not in idle
    ]
    search = _search(settings, notes)
    banned = "banned_ids" if settings.flag("renormalize_logits") else "silent_ids"
    return Generation(
        search,
        **{banned: _banned(settings, eos_id, size)},
        forced_eos_id=settings.token("forced_eos_token_id", size, optional=True),
        notes=tuple(notes),
    )


def _banned(settings, eos_id, size):
    """The tokens of `bad_words_ids`, which may be sequences; those of several are refused.

    Without `renormalize_logits` they keep their probability.
    """
    words = settings.get("bad_words_ids") or []
    single = isinstance(words, list) and all(
        isinstance(word, list) and len(word) == 1 and is_integer(word[0]) and 0 <= word[0] < size
        for word in words
    )
    if not single:
        raise settings.wrong("bad_words_ids", f"a list of lists of one of the {size} token ids")
    # As in `generate`, which takes the end of a sentence out of the list.
    return tuple(sorted({word[0] for word in words} - {eos_id}))


def _search(settings, notes):
    """The search; what it cannot have is added to the notes."""
    beams = settings.count("num_beams", 1)
    longest = None
    if settings.get("max_length") is not None:
        # Hugging Face counts the token that starts an output.
        longest = max(1, settings.count("max_length") - 1)
    if beams == 1:
        return Greedy(longest)
    penalty = settings.number("length_penalty", 1.0)
    early = settings.get("early_stopping", False)
    if early == "never":
        notes.append('`early_stopping` = "never" is searched as false')
    if penalty < 0:
        notes.append(f"`length_penalty` = {penalty} is searched as 0")
    return Beam(
        beams,
        max(0.0, penalty),
        normalization="power",
        extra_length=None,
        max_length=longest,
        stopping="count" if early is True else "score",
    )
