"""The search that a Marian model of Hugging Face's is generated with."""

import typing

from keras_transformer.decoding.search import Beam, Greedy

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
    """The search that a checkpoint asks for, and its settings that no search here has."""

    search: Greedy | Beam
    notes: list


def read_generation(generation):
    """Returns the `Generation` that the settings ask for.

    Args:
        generation: The `Settings` of `generation_config.json`, or of `config.json`.
    """
    notes = [
        f"`{name}` = {generation.get(name)!r} is not carried over"
        for name, idle in WITHOUT_EFFECT.items()
        if generation.get(name, idle[0]) not in idle
    ]
    beams = generation.count("num_beams", 1)
    longest = None
    if generation.get("max_length") is not None:
        # Hugging Face counts the token that starts an output.
        longest = max(1, generation.count("max_length") - 1)
    if beams == 1:
        return Generation(Greedy(longest), notes)
    penalty = generation.number("length_penalty", 1.0)
    early = generation.get("early_stopping", False)
    if early == "never":
        notes.append('`early_stopping` = "never" is searched as false')
    if penalty < 0:
        notes.append(f"`length_penalty` = {penalty} is searched as 0")
    search = Beam(
        beams,
        max(0.0, penalty),
        normalization="power",
        extra_length=None,
        max_length=longest,
        stopping="count" if early is True else "score",
    )
    return Generation(search, notes)
