"""M2M100, BART, mBART and T5 against Hugging Face's own models; see `test_hugging_face.py`."""

import functools
import json
import pathlib
import shutil
import tempfile
import unicodedata

import madlad_folders
import numpy as np
import pytest
import seq2seq_folders as folders
import t5_folders
import tensorflow as tf
from test_hugging_face import SCRIPT, run_python

from keras_transformer.decoding import SearchOptions
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.pretrained.trimming import restrict

pytestmark = pytest.mark.slow
LIMIT = 15
BASE = {
    "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
    "decoder_attention_heads": 3, "encoder_ffn_dim": 33, "decoder_ffn_dim": 33,
    "max_position_embeddings": 31, "scale_embedding": True, "pad_token_id": 1,
    "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "dropout": 0.1,
}  # fmt: skip
# The vocabulary of each kind, in a folder of its own, and the number of its tokens.
VOCABULARIES = {
    "m2m100": folders.write_m2m_vocabulary,
    "mbart": functools.partial(
        folders.write_fairseq_vocabulary, codes=folders.MBART_CODES, kind="unigram"
    ),
    "mbart25": lambda folder: (
        folders.write_fairseq_vocabulary(folder, (), "unigram") + folders.MBART_LANGUAGES
    ),
    "bart": folders.write_bart_vocabulary,
    "t5": t5_folders.write_vocabulary,
    "madlad": madlad_folders.write_vocabulary,
    "pegasus": folders.write_pegasus_vocabulary,
}
T5 = {
    "d_model": 24, "d_kv": 7, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 3, "d_ff": 33,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 9, "pad_token_id": 0,
    "eos_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip
MADLAD = {"decoder_start_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
BEAM = {"num_beams": 4}
RULES = {
    "no_repeat_ngram_size": 2, "min_length": 5, "length_penalty": 2.0, "early_stopping": True,
    "renormalize_logits": False,
}  # fmt: skip


def case(
    kind, vocabulary, searches, seed=0, sharpen=3.0, forced=None, start=None, generation=None,
    base=BASE, **config,
):  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        size = VOCABULARIES[vocabulary](pathlib.Path(folder))
    # The first token of outputs, such as a language, is the last of the vocabulary.
    first = {} if forced is None else {"forced_bos_token_id": size + forced}
    # With a forced end: beams that stop by count rank truncated outputs last, unlike `generate`.
    rules = {
        "max_length": LIMIT, "bad_words_ids": [[base["pad_token_id"]]], "renormalize_logits": True,
        "forced_eos_token_id": base["eos_token_id"], **first,
    }  # fmt: skip
    if start is not None:
        config = {**config, "decoder_start_token_id": size + start}
    generation = {**rules, **(generation or {})}
    return {
        "class": kind,
        "vocabulary": vocabulary,
        "seed": seed,
        "sharpen": sharpen,
        "config": {**base, "vocab_size": size, **config},
        "generation": generation,
        "searches": {name: {**generation, **options} for name, options in searches.items()},
    }


SEARCHES = {"greedy": {"num_beams": 1}, "beam": BEAM, "rules": {**BEAM, **RULES}}
CASES = {
    "m2m100": case("M2M100", "m2m100", SEARCHES, forced=-5, activation_function="relu"),
    "m2m100_3": case("M2M100", "m2m100", SEARCHES, 3, forced=-7, activation_function="relu"),
    "mbart": case("MBart", "mbart", SEARCHES, 1, forced=-3),
    # The token of a language is not in these outputs: `generate` counts it for n-grams.
    "mbart25": case("MBart", "mbart25", SEARCHES, 11, start=-4),
    "bart": case(
        "Bart", "bart", SEARCHES, 2, scale_embedding=False,
        generation={"forced_bos_token_id": 0},
    ),
    "bart_without_rules": case("Bart", "bart", SEARCHES, 4),
    "pegasus": case(
        "Pegasus", "pegasus", SEARCHES, 8,
        base={**BASE, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
    ),
    "t5": case("T5", "t5", SEARCHES, 5, base=T5),
    "flan_t5": case(
        "T5", "t5", SEARCHES, 6, sharpen=0.5, base=T5, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    ),
    "mt5": case(
        "MT5", "t5", SEARCHES, 7, sharpen=0.5, base=T5, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    ),
    "madlad": case(
        "T5", "madlad", SEARCHES, 9, sharpen=0.5, base={**T5, **MADLAD},
        generation={"bad_words_ids": [[0], [1]]}, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    ),
}  # fmt: skip


@functools.cache
def folder():
    """Returns the folder of all cases, computed once by the other Python."""
    place = run_python(SCRIPT, CASES)
    for name, content in CASES.items() if place else ():
        VOCABULARIES[content["vocabulary"]](place / name)
    return place


@functools.cache
def converted(name, search="greedy"):
    if folder() is None:
        pytest.skip("torch and transformers are missing: see test_hugging_face.py")
    path = folder() / name / "generation_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, **CASES[name]["searches"][search]}))
    return read_checkpoint(folder() / name), np.load(folder() / f"{name}.npz")


def source_of(name, model, expected):
    """Returns the sources of a case, with the target's language in front if there is one."""
    source = expected["right_source"].astype("int32")
    if model.config.head.rules.language_codes == "none":
        return source
    if (
        model.config.head.rules.language_codes == "start"
    ):  # the language of a source is its last token
        config, rows = CASES[name]["config"], []
        for row in source:
            *text, language = row[row != config["pad_token_id"]]
            padding = [config["pad_token_id"]] * (len(row) - len(text) - 1)
            rows.append([config["decoder_start_token_id"], language, *text, *padding])
        return np.array(rows, "int32")
    forced = CASES[name]["generation"]["forced_bos_token_id"]
    return np.insert(source, 0, forced, axis=1)


@pytest.mark.parametrize("name", CASES)
def test_logits_and_encoder_states(name):
    checkpoint, expected = converted(name)
    model, source = checkpoint.model, source_of(name, checkpoint.model, expected)
    pad = model.config.tokens.pad_id
    target, real = expected["target"].astype("int32"), expected["right_source"] != pad
    states = model.encode(source)[0].numpy()[:, : real.shape[1]]
    np.testing.assert_allclose(states[real], expected["right_states"][real], rtol=0, atol=1e-5)
    logits = model({"source": source, "target": target}, training=False)
    real = np.cumsum(target[:, 1:] == pad, axis=1) == 0  # M2M100's padding has another position
    theirs = expected["right_logits"][:, 1:][real]
    np.testing.assert_allclose(logits.numpy()[:, 1:][real], theirs, rtol=0, atol=1e-4)


def log_softmax(logits):
    logits = logits.astype("float64")
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("name", CASES)
def test_probabilities_of_the_tokens_that_remain_in_a_smaller_vocabulary(name):
    """They are Hugging Face's, divided by their sum; the states of the encoder are the same."""
    checkpoint, expected = converted(name)
    source = source_of(name, checkpoint.model, expected)[1:]  # of some sentences
    target, pad = expected["target"][1:].astype("int32"), checkpoint.model.config.tokens.pad_id
    used = {*source.ravel().tolist(), *target.ravel().tolist()}
    needed = checkpoint.tokenizers.source.needed(used)
    smaller, (kept, _) = restrict(checkpoint, needed, needed)
    assert len(kept) < checkpoint.model.config.tokens.vocab_size
    numbers = np.full(checkpoint.model.config.tokens.vocab_size, -1, "int32")
    numbers[kept] = range(len(kept))
    source, ours = numbers[source], numbers[target]
    real = expected["right_source"][1:] != pad
    states = smaller.model.encode(source)[0].numpy()[:, : real.shape[1]]
    theirs = expected["right_states"][1:]
    np.testing.assert_allclose(states[real], theirs[real], rtol=0, atol=1e-5)
    logits = smaller.model({"source": source, "target": ours}, training=False).numpy()[:, 1:]
    real = np.cumsum(target[:, 1:] == pad, axis=1) == 0
    theirs = log_softmax(expected["right_logits"][1:, 1:][real][:, kept])
    np.testing.assert_allclose(log_softmax(logits[real]), theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", CASES)
def test_the_checkpoints_own_search_emits_the_same_tokens(name, search):
    checkpoint, expected = converted(name, search)
    assert not checkpoint.notes
    run = tf.function(
        lambda source: checkpoint.search(
            checkpoint.model, source, SearchOptions(cache_length=LIMIT - 1)
        )[:2],
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
    )
    tokens, scores = (x.numpy() for x in run(source_of(name, checkpoint.model, expected)))
    pad = checkpoint.model.config.tokens.pad_id
    theirs = expected[f"right_{search}"][:, 1:]  # without the first token
    theirs = np.pad(theirs, [(0, 0), (0, LIMIT - 1 - theirs.shape[1])], constant_values=pad)
    np.testing.assert_array_equal(tokens[:, 0], theirs)
    if search != "greedy":
        expected = expected[f"right_{search}_scores"]
        np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=1e-4)
    if search == "rules":
        assert ((theirs != pad).sum(1) >= RULES["min_length"]).all()


def test_the_outputs_above_are_varied():
    outputs = [
        (converted(name)[1][f"right_{search}"][:, 1:], CASES[name]["config"]["pad_token_id"])
        for name in CASES
        for search in SEARCHES
    ]
    rows = [tuple(row[row != pad]) for rows, pad in outputs for row in rows]
    assert len({*rows}) > len(rows) / 2
    assert sum(len(row) < LIMIT - 1 for row in rows) > 3


TEXTS = [
    "a dog runs", "The cat sat on a mat.", "", "seven dogs, nine cats", "über  zwei   Hügel ж",
    "a\tb", "ﬁ ½ Ａ", "'s dogs'",
]  # fmt: skip
TOKENIZERS = {
    "m2m100": ("M2M100Tokenizer", {"src_lang": "en"}),
    "nllb": ("NllbTokenizer", {"extra_special_tokens": list(folders.NLLB_CODES)}),
    "nllb_legacy": (
        "NllbTokenizer", {"extra_special_tokens": list(folders.NLLB_CODES),
                          "legacy_behaviour": True},
    ),
    "mbart": ("MBartTokenizer", {"src_lang": "en_XX"}),
    "bart": ("BartTokenizer", {}),
    "t5": ("T5Tokenizer", {}),
    "pegasus": ("PegasusTokenizer", {}),
}  # fmt: skip


def test_token_ids(tmp_path):
    cases = {}
    for name, (kind, options) in TOKENIZERS.items():
        write = t5_folders if name == "t5" else functools.partial(folders.write_folder, name=name)
        (write.write_folder if name == "t5" else write)(tmp_path / name)
        texts = TEXTS
        if name == "mbart":  # the class does not read the normalisation of the SentencePiece model
            texts = [text for text in TEXTS if unicodedata.is_normalized("NFKC", text)]
        cases[str(tmp_path / name)] = {"class": kind, "options": options, "texts": texts}
        cases[str(tmp_path / name)]["save"] = kind == "NllbTokenizer"
        if name != "nllb_legacy":  # whose old behaviour transformers 5 does not save
            cases[str(tmp_path / name)]["saved"] = str(tmp_path / f"{name}-saved")
    place = run_python(SCRIPT.with_name("hugging_face_tokenizers.py"), cases)
    if place is None:
        pytest.skip("torch and transformers are missing: see test_hugging_face.py")
    theirs = json.loads((place / "ids.json").read_text())
    for name in TOKENIZERS:
        case = cases[str(tmp_path / name)]
        check_ids(read_checkpoint(tmp_path / name), name, case, theirs, tmp_path)
    # The same from saved files, of which only M2M100 has a SentencePiece model.
    for name in (name for name in TOKENIZERS if "saved" in cases[str(tmp_path / name)]):
        saved = tmp_path / f"{name}-saved"
        for file in ("config.json", "model.safetensors"):
            shutil.copy(tmp_path / name / file, saved / file)
        assert ([*saved.glob("*.model")] != []) == (name == "m2m100")
        check_ids(read_checkpoint(saved), name, cases[str(tmp_path / name)], theirs, tmp_path)


def check_ids(checkpoint, name, case, theirs, folder):
    """Compares the token ids of a case's texts with those of `transformers`."""
    texts = case["texts"]
    rows = checkpoint.tokenizers.source.encode(texts).to_tensor(
        checkpoint.model.config.tokens.pad_id
    )
    read = checkpoint.model.read_source(rows).numpy()
    pad = checkpoint.model.config.tokens.pad_id
    for text, row, expected in zip(texts, read, theirs[str(folder / name)], strict=True):
        assert row[row != pad].tolist() == expected, (name, text)
