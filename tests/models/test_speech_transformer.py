"""The Transformer over frames against the reference; padding, searches, prompts and saving."""

import functools

import keras
import numpy as np
import pytest
import reference
from marks import slow
from searching import by_beam, by_greedy
from support import normal, randomise, sentences, to_numpy, weights_of

from keras_transformer import Beam, Greedy, Transformer
from keras_transformer.decoding import EncoderDecoder, Prompted, Shortlist, Shortlisted, score
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.layers import FrameEmbedding, FrameMask
from keras_transformer.models import SpeechTransformer, SpeechTransformerConfig

MODEL = {"rtol": 0, "atol": 1e-4}
SAME = {"rtol": 0, "atol": 1e-5}
FEATURES = 5
VARIANTS = {
    "whisper": {"norm": "pre", "decoder": {"position": "learned"}, "attention_bias": True},
    "learned, untied": {"position": "learned", "tie": "none", "conv_activation": "relu"},
    "wide": {"kernel_size": 5, "conv_stride": 3, "output_bias": True},
}


def config(**changes):
    fields = {
        **{"vocab_size": 19, "num_mel_filters": FEATURES, "max_seconds": 0.3, "max_length": 11},
        **{"num_layers": 1, "num_decoder_layers": 2, "d_model": 12, "num_heads": 2, "d_ff": 17},
        "dropout": 0.0,
    }
    return SpeechTransformerConfig(**{**fields, **changes})


@functools.cache
def model_of(variant="whisper", **changes):
    return randomise(SpeechTransformer(config(**VARIANTS[variant], **changes)))


def recordings(*lengths, width=None, seed=0):
    """Random frames [B, width, F], zeros after the end of each recording."""
    frames = normal(len(lengths), width or max(lengths), FEATURES, seed=seed)
    for row, length in zip(frames, lengths, strict=True):
        row[length:] = 0
    return frames


def convolution(weights, x, stride, activation):
    """One row [S, F]: the kernel moved over it frame by frame, with zeros beyond both ends."""
    kernel = weights["kernel"]
    margin = len(kernel) // 2
    rows = []
    for centre in range(0, len(x), stride):
        total = weights["bias"].copy()
        for offset in range(-margin, margin + 1):
            if 0 <= centre + offset < len(x):
                total += x[centre + offset] @ kernel[offset + margin]
        rows.append(total)
    return reference.activate(np.array(rows), activation)


def reference_logits(model, frames, lengths, target):
    """Every recording alone, without padding."""
    weights, chosen = weights_of(model), model.config
    speech = chosen.input
    logits = []
    for row, length, tokens in zip(frames.astype("float64"), lengths, target, strict=True):
        x = row[:length]
        for name, stride in (("conv_0", 1), ("conv_1", speech.conv_stride)):
            layer = reference.scope(weights, f"source_embedding/{name}")
            x = convolution(layer, x, stride, speech.conv_activation)
        if chosen.encoder.position.kind == "learned":
            x = x + weights["source_embedding/positions"][: len(x)]
        else:
            x = x + reference.sinusoids(len(x), chosen.d_model)
        x, norm = x[None], chosen.encoder.block.norm.kind
        everywhere = np.ones((1, x.shape[1], x.shape[1]), bool)
        memory = reference.encoder(
            reference.scope(weights, "encoder"), x, everywhere, 1, 2, norm=norm
        )
        embedding = reference.scope(weights, "target_embedding")
        y = reference.embedding(embedding, tokens[None], chosen.decoder.position.kind)
        past = np.ones((1, len(tokens), len(tokens)), bool)
        seen = np.ones((1, len(tokens), x.shape[1]), bool)
        scope = reference.scope(weights, "decoder")
        y = reference.decoder(scope, y, memory, past, seen, 2, 2, norm=norm)
        tied = chosen.head.tie != "none"
        output = embedding["table"].T if tied else weights["output/kernel"]
        logits.append(y[0] @ output + weights.get("logits/bias", 0.0))
    return np.array(logits)


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_equal_the_reference_of_each_recording_alone(variant):
    model, lengths = model_of(variant), (13, 8, 1)
    target = sentences([7, 7, 7], first=2)
    inputs = {"source": recordings(*lengths, width=17), "target": target}
    expected = reference_logits(model, inputs["source"], lengths, target)
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, **MODEL)


@pytest.mark.parametrize("padding", [1, 2, 5])
def test_padding_changes_no_result(padding):
    model, lengths = model_of(), (13, 8)
    target = sentences([7, 7], first=2)
    frames = recordings(*lengths)
    wider = np.pad(frames, [(0, 0), (0, padding), (0, 0)])
    before, after = (to_numpy(model({"source": x, "target": target})) for x in (frames, wider))
    np.testing.assert_allclose(after, before, **SAME)


def test_silence_instead_of_a_mask():
    model = model_of(pad_to_max_seconds=True)
    frames, target = recordings(13, 8), sentences([7, 7], first=2)
    before = to_numpy(model({"source": frames, "target": target}))
    after = to_numpy(model({"source": np.pad(frames, [(0, 0), (0, 4), (0, 0)]), "target": target}))
    assert np.abs(after - before).max() > 1e-3
    assert to_numpy(model.source_mask(frames)).all()


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_the_mask_has_a_position_for_every_centre(stride):
    lengths = range(1, 8)
    mask = FrameMask(stride)(recordings(*lengths))
    counts = np.asarray(mask).sum(axis=(1, 2))
    np.testing.assert_array_equal(counts, [-(-length // stride) for length in lengths])
    spec = keras.Input((7, FEATURES))
    assert FrameMask(stride)(spec).shape == (None, 1, mask.shape[2])


@pytest.mark.slow
def test_searches_score_their_outputs_as_the_model_does():
    model, frames = model_of(), recordings(13, 8, 3)
    for search in (Greedy(), Beam(3, length_penalty=0.0)):
        found = search(model, frames)
        tokens = found.tokens[:, 0] if len(found.tokens.shape) == 3 else found.tokens
        scores = found.scores[:, 0] if len(found.scores.shape) == 2 else found.scores
        _, expected = score(model, frames, tokens)
        np.testing.assert_allclose(scores, expected, **MODEL)


@pytest.mark.slow
def test_a_recording_alone_gets_the_tokens_that_it_gets_in_a_batch():
    model, lengths = model_of(), (13, 8, 3)
    frames = recordings(*lengths)
    together, _ = by_greedy(model, frames, 9)
    for row, length, tokens in zip(frames, lengths, np.asarray(together), strict=True):
        alone, _ = by_greedy(model, row[None, :length], 9)
        np.testing.assert_array_equal(np.asarray(alone)[0], tokens)


@pytest.mark.parametrize("decode", [by_greedy, slow(functools.partial(by_beam, size=3))])
def test_outputs_begin_with_the_prompt(decode):
    prompt, frames = (7, 5), recordings(13, 8)
    model, free = model_of(prompt_ids=prompt), model_of()
    tokens, scores = (np.asarray(x) for x in decode(model, frames, max_length=9)[:2])
    tokens, scores = tokens.reshape(2, -1, tokens.shape[-1])[:, 0], scores.reshape(2, -1)[:, 0]
    assert [tuple(row[:2]) for row in tokens] == [prompt] * 2
    # The prompt has probability 1: the score is that of the tokens after it.
    gains, _ = score(free, frames, tokens)
    expected = np.asarray(gains)[:, 2:].sum(axis=1)
    of_model = np.asarray(score(model, frames, tokens)[1])
    np.testing.assert_allclose(of_model, expected, **MODEL)
    if decode is by_greedy:
        np.testing.assert_allclose(scores, expected, **MODEL)


PROMPT = (7, 5, 9)
OWN = [(7, 5, NO_TOKEN), (9, 4, 7), (6, 8, 10)]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "own"), [(1, True), slow(3, False), slow(3, True)])
def test_prompts_are_read_in_one_pass_as_they_are_read_step_by_step(size, own, monkeypatch):
    model, frames = model_of(prompt_ids=PROMPT), recordings(13, 8, 3)
    inputs = Prompted(frames, OWN) if own else frames
    read, passes = SpeechTransformer.read, []

    def counted(self, tokens, *memory):
        passes.append(tokens.shape[1])
        return read(self, tokens, *memory)

    def search():
        how = {"max_length": 9, "token_scores": True, "cache_stages": (2,)}
        if size == 1:
            return by_greedy(model, inputs, **how)
        return by_beam(model, inputs, size, size, **how)

    monkeypatch.setattr(SpeechTransformer, "read", counted)
    once = search()
    # `bos_id` and the prompt but for its last token, which the next step reads.
    assert passes == [3]
    monkeypatch.setattr(EncoderDecoder, "prompts", lambda self, inputs: None)
    steps = search()
    assert len(passes) == 1
    np.testing.assert_array_equal(once["tokens"], steps["tokens"])
    np.testing.assert_allclose(once["scores"], steps["scores"], **SAME)
    np.testing.assert_allclose(once["token_scores"], steps["token_scores"], **SAME)
    if own:
        rows = once["tokens"].numpy().reshape(3, size, -1)
        for row, prompt in zip(rows, OWN, strict=True):
            known = [token for token in prompt if token != NO_TOKEN]
            assert (row[:, : len(known)] == known).all()


def test_prompts_are_not_read_where_it_would_save_or_lose_something():
    frames = recordings(9, 4)
    assert predictor_of(model_of(prompt_ids=PROMPT)).prompts(frames).shape == (2, 3)
    for model, alignment in (
        (model_of(), None),
        (model_of(prompt_ids=PROMPT[:1]), None),
        (model_of(prompt_ids=PROMPT), (0, None)),  # the steps' attention
        (model_of(prompt_ids=PROMPT, language_ids=(7, 6), detect_language=True), None),
    ):
        assert predictor_of(model, alignment).prompts(frames) is None


@pytest.mark.slow
def test_minimum_and_maximum_length_do_not_count_the_prompt():
    frames = recordings(13, 8, 3)
    model = randomise(
        SpeechTransformer(config(**VARIANTS["whisper"], prompt_ids=PROMPT, eos_id=11))
    )
    table = model.target_embedding.table
    table.assign(0.1 * table)
    # The end is the most probable token after the prompt.
    model.decoder.norm.beta.assign(10 * table[11] / np.linalg.norm(table[11]))
    for own in (frames, Prompted(frames, [PROMPT, (7, NO_TOKEN, NO_TOKEN), PROMPT])):
        counts = [3, 1 if isinstance(own, Prompted) else 3, 3]
        for least in (1, 4):
            tokens, _ = by_beam(model, own, 3, max_length=9, min_length=least)
            lengths = np.argmax(np.asarray(tokens)[:, 0] == 11, axis=1) + 1
            assert lengths.tolist() == [count + least for count in counts]
    tokens, _ = by_beam(model, frames, 3, max_length=5, min_length=5)
    ends = np.argmax(np.asarray(tokens)[:, 0] == 11, axis=1)
    assert (ends == len(PROMPT) + 5 - 1).all(), "neither limit counts the prompt"


def test_a_shortlist_needs_a_source_of_text():
    shortlist = Shortlist.from_counts([[7, 6, 3]], 19, first=10)
    with pytest.raises(TypeError, match="`model` must be a Transformer, or an Ensemble of them"):
        Shortlisted(model_of(), shortlist)


def test_alignment_has_the_positions_of_the_encoder():
    model, frames = model_of(), recordings(13, 8)
    _, positions = predictor_of(model, (1, None)).sizes(frames)
    assert int(positions) == 7
    inputs = {"source": frames, "target": sentences([5, 5], first=2)}
    weights = model.attention_weights(inputs)["decoder/block_1/cross_attention"]
    assert weights.shape == (2, 2, 5, 7)
    np.testing.assert_array_equal(to_numpy(weights)[1, ..., 4:], 0)


def test_a_saved_model_is_the_same(tmp_path):
    model = model_of("wide", prompt_ids=(7,))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config and type(loaded) is SpeechTransformer
    inputs = {"source": recordings(9, 4), "target": sentences([5, 5], first=2)}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def test_lengths_follow_from_seconds():
    small = config(max_seconds=1.01, hop_length=80, conv_stride=3)
    assert (small.input.max_frames, small.encoder.max_length, small.max_length) == (202, 68, 11)
    assert SpeechTransformerConfig.from_dict(small.to_dict()) == small
    assert SpeechTransformerConfig(**small.to_flat()) == small


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window_length": 401}, "`window_length` must be even and at least `hop_length`"),
        ({"hop_length": 500}, "`window_length` must be even and at least `hop_length`"),
        ({"num_mel_filters": 202}, "`num_mel_filters` must be at most `window_length // 2 \\+ 1`"),
        ({"kernel_size": 4}, "`kernel_size` must be odd. Received: kernel_size=4"),
        ({"max_seconds": 0.001}, "`max_seconds` must be at least the time of a frame"),
        ({"prompt_ids": (19,)}, "`prompt_ids` must be ids of the 19 tokens except"),
        ({"prompt_ids": (3,)}, "`prompt_ids` must be ids of the 19 tokens except"),
        ({"prompt_ids": (5,) * 11}, "`prompt_ids` must be shorter than `max_length`"),
        (
            {"prompt_ids": (5,), "forced_bos_id": 4},
            "`forced_bos_id` must be None with `prompt_ids`",
        ),
        ({"max_seconds": 0.0}, "`max_seconds` must be above 0"),
        ({"encoder": {"max_length": 9}}, "encoder.max_length"),
        ({"eos_id": 19}, "`pad_id`, `bos_id` and `eos_id` must be in the vocabulary"),
    ],
)
def test_wrong_options(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (np.zeros((2, 9, FEATURES), "int32"), TypeError, "`source` must be floating"),
        (np.zeros((2, 9), "float32"), ValueError, r"`source` must be \[batch, frames, features\]"),
        (np.zeros((2, 9, 4), "float32"), ValueError, "`source` must have frames of 5 features"),
        (np.zeros((3, 9, FEATURES), "float32"), ValueError, "must have the same batch size"),
    ],
)
def test_wrong_frames(source, error, message):
    with pytest.raises(error, match=message):
        model_of()({"source": source, "target": sentences([5, 5], first=2)})


def test_wrong_layers():
    with pytest.raises(ValueError, match="`kernel_size` must be odd. Received: kernel_size=2"):
        FrameEmbedding(12, kernel_size=2)
    with pytest.raises(ValueError, match="`stride` must be at least 1"):
        FrameMask(0)
    with pytest.raises(ValueError, match=r"`padding_mask` must be the same for every query"):
        FrameEmbedding(12)(recordings(9), np.ones((1, 3, 9), bool))
    with pytest.raises(TypeError, match="`frames` must be floating"):
        FrameEmbedding(12)(np.ones((1, 9, 5), "int32"))
    with pytest.raises(ValueError, match="`cutoff` must be None for frames"):
        inputs = {"source": recordings(9), "target": sentences([5], first=2)}
        model_of().hidden_states(inputs, cutoff=lambda tokens: tokens > 0)


def test_a_model_without_a_drawing():
    with pytest.raises(ValueError, match="`model` must read tokens to be drawn"):
        _ = model_of().columns
    assert not isinstance(model_of(), Transformer)
