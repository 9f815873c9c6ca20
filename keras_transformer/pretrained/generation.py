"""Generation settings of Hugging Face checkpoints."""

import math
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.decoding.generation import Generation

# Settings of generation that our searches do not have, with the values that have no effect.
WITHOUT_EFFECT = {
    "min_new_tokens": (None,),
    "max_new_tokens": (None,),
    "encoder_no_repeat_ngram_size": (0, None),
    "encoder_repetition_penalty": (1.0, None),
    "diversity_penalty": (0.0, None),
    "num_beam_groups": (1, None),
    "suppress_tokens": (None,),
    "begin_suppress_tokens": (None,),
    "sequence_bias": (None,),
    "exponential_decay_length_penalty": (None,),
    "force_words_ids": (None,),
}
# Further ones of a language model, whose outputs have no other rules than their end tokens.
OF_TEXTS = {
    "num_beams": (1, None),
    "min_length": (0, None),
    "no_repeat_ngram_size": (0, None),
    "bad_words_ids": (None,),
}
# Further ones of sampling.
OF_SAMPLING = {
    "typical_p": (1.0, None),
    "epsilon_cutoff": (0.0, None),
    "eta_cutoff": (0.0, None),
    "top_h": (None,),
}
TOP_K = 50  # of `generate`, if a checkpoint draws its outputs and names no other


def ends_of(settings, generation, size) -> tuple[int, tuple[int, ...]]:
    """Returns the id of the token that ends a text, and those that also end an output.

    Args:
        settings: The `CheckpointSettings` of `config.json`.
        generation: The `CheckpointSettings` for outputs; its end tokens take precedence.
        size: Number of tokens of the vocabulary.

    Raises:
        ValueError: If an id is not valid; the error names it.
    """
    own = settings.tokens("eos_token_id", size)
    ends = generation.tokens("eos_token_id", size) or own or [settings.token("eos_token_id", size)]
    first = next((token for token in own if token in ends), ends[0])
    return first, tuple(token for token in dict.fromkeys(ends) if token != first)


def generation_of_texts(generation, further) -> Generation | None:
    """Returns the `Generation` of a language model, `None` if the checkpoint says nothing about it.

    `max_length` is left out, because it counts the prompt.

    Args:
        generation: The `CheckpointSettings` for outputs.
        further: Ids of the tokens that end an output besides the one that ends all texts.

    Raises:
        ValueError: If a setting is not valid; the error names it.
    """
    idle = Greedy()
    search = _single(generation, notes := [], None)
    notes = [*_dropped(generation, {**WITHOUT_EFFECT, **OF_TEXTS}), *notes]
    if search == idle and not further and not notes:
        return None
    rules = OutputRules(end_ids=tuple(further))
    return Generation(None if search == idle else search, rules, tuple(notes))


def read_generation(settings, ends, size, carried=(), languages=False) -> Generation:
    """Returns the `Generation` that Hugging Face's settings describe.

    Args:
        settings: The `CheckpointSettings` of `generation_config.json`, or of `config.json`.
        ends: Result of `ends_of`.
        size: Size of the vocabulary of outputs.
        carried: Names of settings that the family carries over itself.
        languages: Whether every output begins with the token of its language.

    Raises:
        ValueError: If a setting is not valid; the error names it.
    """
    unread = {name: idle for name, idle in WITHOUT_EFFECT.items() if name not in carried}
    notes = _dropped(settings, unread)
    first = settings.token("forced_bos_token_id", size, optional=True)
    search = _search(settings, notes, counted=1 + (languages or first is not None))
    renormalized = settings.flag("renormalize_logits")
    banned = "banned_ids" if renormalized else "suppressed_ids"
    notes += [
        f"`renormalize_logits` does not renormalise the probabilities that `{name}` leaves"
        for name in ("no_repeat_ngram_size", "min_length")
        if renormalized and settings.count(name, 0, least=0) > 0
    ]
    rules = OutputRules(
        **{banned: _banned(settings, {ends[0], *ends[1]}, size)},
        forced_bos_id=first,
        forced_eos_id=settings.token("forced_eos_token_id", size, optional=True),
        no_repeat_ngram=settings.count("no_repeat_ngram_size", 0, least=0),
        end_ids=ends[1],
    )
    return Generation(search, rules, tuple(notes))


def special_ids(settings, generation, size) -> dict[str, Any]:
    """Returns the ids of special tokens as fields of a `TransformerConfig`.

    Args:
        settings: The `CheckpointSettings` of `config.json`.
        generation: The `CheckpointSettings` for outputs; their start and end tokens take
            precedence.
        size: Number of tokens that both vocabularies contain.

    Raises:
        ValueError: If an id is not valid; the error names it.
    """
    pad_id = settings.token("pad_token_id", size)
    start = settings.token("decoder_start_token_id", size, default=pad_id)
    return {
        "pad_id": pad_id,
        "bos_id": generation.token("decoder_start_token_id", size, default=start),
        "eos_id": ends_of(settings, generation, size)[0],
    }


def _dropped(settings, unread):
    """Returns a note for each of the settings in `unread` that has an effect, a list."""
    return [
        f"`{name}` = {settings.get(name)!r} is not carried over"
        for name, idle in unread.items()
        if settings.get(name, idle[0]) not in idle
    ]


def _banned(settings, ends, size):
    """Returns the token ids in `bad_words_ids`; sequences of several tokens are refused.

    Without `renormalize_logits`, banned tokens keep their share of the probability.
    """
    words = settings.get("bad_words_ids") or []
    single = isinstance(words, list) and all(
        isinstance(word, list) and len(word) == 1 and is_integer(word[0]) and 0 <= word[0] < size
        for word in words
    )
    if not single:
        raise settings.wrong("bad_words_ids", f"a list of lists of one of the {size} token ids")
    # `generate` also removes the end tokens from the list.
    return tuple(sorted({word[0] for word in words} - ends))


def _search(settings, notes, counted):
    """Returns the search, and adds unsupported values to the notes.

    Args:
        settings: See `read_generation`.
        notes: List of the notes.
        counted: Number of tokens that Hugging Face counts and our searches do not: the one that
            starts an output, and one that is forced after it.
    """
    beams = settings.count("num_beams", 1)
    longest = None
    if settings.get("max_length") is not None:
        longest = max(1, settings.count("max_length") - counted)
    # Hugging Face does not count the end token that it forbids.
    shortest = settings.count("min_length", 0, least=0) - (counted - 1)
    if beams == 1:
        search = _single(settings, notes, longest)
        if shortest > 1:
            kind = "sampling" if isinstance(search, Sample) else "greedy search"
            notes.append(f"`min_length` = {shortest} is not carried over to {kind}")
        return search
    if settings.flag("do_sample"):
        notes.append("`do_sample` = True is not carried over to a beam")
    penalty = settings.number("length_penalty", 1.0)
    early = settings.get("early_stopping", False)
    if early == "never":
        notes.append('`early_stopping` = "never" is treated as false')
    if penalty < 0:
        notes.append(f"`length_penalty` = {penalty} is treated as 0")
    return Beam(
        beams,
        max(0.0, penalty),
        normalization="power",
        min_length=max(1, shortest),
        extra_length=None,
        max_length=longest,
        stopping="count" if early is True else "score",
        repetition_penalty=_number(settings, "repetition_penalty", 1.0, above=0),
    )


def _single(settings, notes, longest):
    """Returns the `Sample`, or without `do_sample` the `Greedy`; adds to the notes.

    Args:
        settings: See `read_generation`.
        notes: List of the notes.
        longest: Maximum number of new tokens, or `None`.
    """
    penalty = _number(settings, "repetition_penalty", 1.0, above=0)
    if not settings.flag("do_sample"):
        return Greedy(longest, repetition_penalty=penalty)
    notes += _dropped(settings, OF_SAMPLING)
    top_k = TOP_K if settings.get("top_k") is None else settings.count("top_k", least=0)
    return Sample(
        _number(settings, "temperature", 1.0, above=0),
        top_k,
        _number(settings, "top_p", 1.0, most=1),
        max_length=longest,
        min_p=_number(settings, "min_p", 0.0, most=1),
        repetition_penalty=penalty,
    )


def _number(settings, name, default, above=None, most=math.inf):
    """Returns a number within its limits; `null` counts as missing."""
    value = default if settings.get(name) is None else settings.number(name, default)
    if above is not None and value <= above:
        raise settings.wrong(name, f"a number above {above}")
    if not (above is not None or value >= 0) or value > most:
        raise settings.wrong(name, f"a number between 0 and {most}")
    return value
