"""Folders of Llama and Qwen against their arithmetic in NumPy, and what is refused."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import llama_folders
import numpy as np
import pytest
import tensorflow as tf
from llama_folders import (
    BEGIN,
    END,
    KINDS,
    LLAMA3,
    PIECES,
    SIZES,
    TEXTS,
    YARN,
    forward_of_texts,
    ids_of,
    random_rows,
    tokenizer_json,
    write_folder,
)
from marks import slow, slow_except

from keras_transformer import Beam, Greedy, from_pretrained
from keras_transformer.export import (
    LiteRTOptions,
    SavedModelOptions,
    export_ctranslate2,
    export_litert,
    export_saved_model,
)
from keras_transformer.export.ctranslate2.generated import CTranslate2Generation
from keras_transformer.export.ctranslate2.translator import CTranslate2TextGenerator
from keras_transformer.export.limits import Limits
from keras_transformer.installation import install_hint
from keras_transformer.pipelines import TextGenerator
from keras_transformer.positions import Llama3Scaling
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted

ORIGINAL = "original_max_position_embeddings"
PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_llama.py")
LONGEST = SIZES["max_position_embeddings"]


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("kind", slow_except(KINDS, "mistral", "qwen3"))
def test_hidden_states_and_logits(kind, tmp_path):
    settings, tensors = write_folder(tmp_path, kind)
    checkpoint, ids = read_checkpoint(tmp_path), random_rows(settings)
    model = checkpoint.model
    states, logits = forward_of_texts(tensors, settings, ids, KINDS[kind]["pattern"])
    np.testing.assert_allclose(model.hidden_states(ids), states, rtol=0, atol=1e-5)
    ours = model(ids, training=False).numpy()
    np.testing.assert_allclose(ours[..., :-1], logits, rtol=0, atol=1e-4)
    assert ours.shape[-1] == len(PIECES) + 1 and (ours[..., -1] < -900).all()
    tokenizer = checkpoint.tokenizers.source
    assert tokenizer.pattern == KINDS[kind]["pattern"] and not checkpoint.notes
    if kind != "qwen3":  # whose tokenizer is Qwen2's
        expected = [ids_of(text, tokenizer.pattern) for text in TEXTS]
        assert tokenizer.tokenize(TEXTS).to_list() == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"prefix": "", "architectures": ["LlamaModel"], "tie_word_embeddings": True},
        {"dtype": "float16", "head_dim": 6, "hidden_act": "gelu"},
        {"rope_scaling": None, "rope_parameters": {**LLAMA3, "rope_theta": 90.0}},
        {"rope_scaling": None, "attention_bias": True, "num_key_value_heads": 6},
        {"kind": "qwen2", "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0},
        {"kind": "mistral", "sliding_window": None},
    ],
    ids=str,
)
def test_other_settings(changes, tmp_path):
    settings, tensors = write_folder(tmp_path, **changes)
    ids = random_rows(settings)
    logits = read_checkpoint(tmp_path).model(ids, training=False)[..., :-1]
    pattern = KINDS[changes.get("kind", "llama3")]["pattern"]
    expected = forward_of_texts(tensors, settings, ids, pattern)[1]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4)


def test_missing_settings_have_the_values_of_hugging_face(tmp_path):
    """Llama 3's rotations count from the longest text, and heads are as wide as they fit."""
    rope = {name: LLAMA3[name] for name in LLAMA3 if name != ORIGINAL}
    write_folder(tmp_path, rope_scaling=rope, num_key_value_heads=6)
    content = json.loads((tmp_path / "config.json").read_text())
    del content["num_key_value_heads"], content["rope_theta"]
    (tmp_path / "config.json").write_text(json.dumps(content))
    config = read_checkpoint(tmp_path).model.config
    assert (
        config.decoder.block.attention.num_key_value_heads == 6
        and config.decoder.position.base == 10_000
    )
    assert config.decoder.position.scaling == Llama3Scaling(LLAMA3["factor"], LONGEST / 4, LONGEST)


@pytest.mark.parametrize("kind", ["llama3", "smollm", "qwen2"])
def test_the_vocabulary_may_be_in_two_files(kind, tmp_path):
    """Only a Qwen states its pattern without a tokenizer.json."""
    write_folder(tmp_path, kind)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text(json.dumps(content["model"]["vocab"]), "utf-8")
    pairs = "".join(f"{' '.join(pair)}\n" for pair in content["model"]["merges"])
    (tmp_path / "merges.txt").write_text(pairs, "utf-8")
    added = {str(token["id"]): token for token in content["added_tokens"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    if kind != "qwen2":
        with pytest.raises(ValueError, match=r"tokenizer\.json is missing"):
            read_checkpoint(tmp_path)
        return
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    assert (tokenizer.pattern, tokenizer.normalization) == ("qwen2", "nfc")


def test_windows_of_some_layers_are_refused_unless_they_are_as_long_as_texts(tmp_path):
    windows = {"use_sliding_window": True, "sliding_window": LONGEST, "max_window_layers": 1}
    write_folder(tmp_path, "qwen2", **windows)
    assert read_checkpoint(tmp_path).model.config.decoder.window is None
    edit(tmp_path / "config.json", sliding_window=LONGEST - 1)
    with pytest.raises(ValueError, match="`max_window_layers` must be one kind of attention for"):
        read_checkpoint(tmp_path)
    edit(tmp_path / "config.json", layer_types=["full_attention", "sliding_attention"])
    with pytest.raises(ValueError, match="`layer_types` must be one kind of attention for all"):
        read_checkpoint(tmp_path)
    edit(tmp_path / "config.json", layer_types=["full_attention"] * 2)
    assert read_checkpoint(tmp_path).model.config.decoder.window is None
    edit(tmp_path / "config.json", layer_types=["full_attention"])
    with pytest.raises(ValueError, match="`layer_types` must be a list with one entry for each la"):
        read_checkpoint(tmp_path)
    edit(tmp_path / "config.json", layer_types=["linear_attention"] * 2)
    with pytest.raises(ValueError, match="`layer_types` must be a list of full_attention and"):
        read_checkpoint(tmp_path)
    edit(tmp_path / "config.json", layer_types=None, max_window_layers=0, sliding_window=1)
    with pytest.raises(ValueError, match="`sliding_window` must be a whole number of at least 2"):
        read_checkpoint(tmp_path)


def test_special_tokens(tmp_path):
    """A token of its own pads, unless it also ends or begins texts; several tokens may end them."""
    write_folder(tmp_path, "smollm", pad_token_id=SIZES["eos_token_id"])
    assert read_checkpoint(tmp_path).model.config.tokens.pad_id == len(PIECES)
    write_folder(tmp_path, "smollm", pad_token_id=SIZES["bos_token_id"], bos_token_id=None)
    config = read_checkpoint(tmp_path).model.config
    assert (
        config.tokens.pad_id == SIZES["bos_token_id"]
        and config.tokens.bos_id == SIZES["eos_token_id"]
    )
    eos = SIZES["eos_token_id"]
    write_folder(tmp_path, "smollm", eos_token_id=[eos, 7])
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [eos, 7, 9]}))
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.model.config.tokens.eos_id == eos
    assert checkpoint.model.config.head.rules.end_ids == (7, 9) and checkpoint.notes == []
    write_folder(tmp_path, "smollm", eos_token_id=[eos, 7], pad_token_id=9)
    assert read_checkpoint(tmp_path).model.config.tokens.pad_id == len(PIECES)  # 9 also ends texts
    edit(tmp_path / "generation_config.json", eos_token_id=[SIZES["bos_token_id"], 9])
    config = read_checkpoint(tmp_path).model.config
    assert config.tokens.eos_id == SIZES["bos_token_id"] and config.head.rules.end_ids == (9,)
    for wrong in ([], "x", [eos, len(PIECES)]):
        edit(tmp_path / "generation_config.json", eos_token_id=wrong)
        with pytest.raises(
            ValueError, match=r"`eos_token_id` must be one or more of the \d+ token"
        ):
            read_checkpoint(tmp_path)


def test_added_tokens_that_are_not_special_are_found_in_texts(tmp_path):
    write_folder(tmp_path, "smollm", vocab_size=len(PIECES) + 1)
    content = tokenizer_json("gpt2_digits")
    content["added_tokens"].append({"id": len(PIECES), "content": "<tool>", "special": False})
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    checkpoint = read_checkpoint(tmp_path)
    assert not checkpoint.notes
    tokenizer = checkpoint.tokenizers.source
    assert tokenizer.pieces([len(PIECES)]) == ["<tool>"]
    before, found, after = (
        tokenizer.tokenize([text]).to_list()[0] for text in ("a 1", "<tool>", "b")
    )
    assert found == [len(PIECES)]
    assert tokenizer.tokenize(["a 1<tool>b"]).to_list() == [before + found + after]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["LlamaForTokenClassification"]}, "`architectures` must be one of Llam"),
        ({"rope_scaling": {"type": "longrope"}}, "`type` must be one of default, .*'longrope'"),
        slow({"rope_scaling": {**YARN, "factor": 0}}, "`factor` must be a number above 0"),
        ({"rope_scaling": {**YARN, "beta_slow": 1e6}}, "`beta_slow` must be a number below"),
        (
            {"rope_scaling": {**YARN, "beta_slow": 1e-320}},
            "`beta_slow` must be between 1 / 4194304",
        ),
        slow(
            {"rope_scaling": {**YARN, "beta_fast": 1e308}},
            "`beta_fast` must be between 1 / 4194304",
        ),
        ({"rope_scaling": {**YARN, ORIGINAL: 10**400}}, f"`{ORIGINAL}` must be at most 4194304"),
        slow({"rope_theta": 10**400}, "`rope_theta` must be a number"),
        ({"rope_scaling": {**YARN, "attention_factor": -1}}, "`attention_factor` must be a num"),
        ({"rope_scaling": {**YARN, "mscale": -1, "mscale_all_dim": 1}}, "`mscale` must be a num"),
        slow({"rope_scaling": YARN, "rope_theta": 1}, "`rope_theta` must be a number above 1"),
        ({"rope_scaling": {"type": "linear"}}, "`factor` must be a number"),
        ({"rope_scaling": {**LLAMA3, "factor": 0}}, "`factor` must be a number above 0"),
        slow({"rope_scaling": {**LLAMA3, "low_freq_factor": 9}}, "`low_freq_factor` must be below"),
        ({"rope_scaling": 3}, "`rope_scaling` must be a table"),
        slow(
            {"rope_parameters": {"partial_rotary_factor": 0.5}, "rope_scaling": None},
            "`partial_rot",
        ),
        ({"use_sliding_window": True}, "`use_sliding_window` must be false"),
        ({"layer_types": ["sliding_attention"] * 2}, "`layer_types` must be full_attention for ev"),
        slow({"quantization_config": {"bits": 4}}, "`quantization_config` must be null"),
        ({"hidden_act": "gelu_fast"}, "`hidden_act` must be one of relu, "),
        ({"rms_norm_eps": 0}, "`rms_norm_eps` must be a number above 0"),
        slow({"rope_theta": -1}, "`rope_theta` must be a number above 0"),
        ({"num_key_value_heads": 4}, "`num_key_value_heads` must be a divisor of 6"),
        slow(
            {"num_attention_heads": 7, "num_key_value_heads": 7}, "`hidden_size` must be a multiple"
        ),
        ({"head_dim": 5}, "`head_dim` must be even"),
        ({"num_hidden_layers": 10**9}, r"layers\.9+\.self_attn\.q_proj\.weight is missing"),
        slow({"intermediate_size": 10**11}, r"down_proj\.weight must have the shape \[24, 10+\]"),
        ({"max_position_embeddings": 10**11}, "`max_position_embeddings` must be at most 4194304"),
        ({"vocab_size": 10**9}, r"embed_tokens\.weight must have 1000000000 rows"),
        slow({"head_dim": 10**10}, r"q_proj\.weight must have the shape \[6"),
        ({"eos_token_id": 10**9}, r"`eos_token_id` must be one or more of the \d+ token ids"),
        slow({"eos_token_id": 40}, "must not be a piece of text"),
        ({"attention_bias": True}, r"q_proj\.bias is missing"),
    ],
)
def test_settings_that_cannot_be_expressed_are_named(changes, message, tmp_path):
    write_folder(tmp_path)
    edit(tmp_path / "config.json", **changes)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_an_option_of_the_tokenizer_that_transformers_5_leaves_empty_is_the_default(tmp_path):
    write_folder(tmp_path, "qwen2")
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": null}')
    assert read_checkpoint(tmp_path).tokenizers.source.encode(["a"]).to_list()[0][0] == ord("a")


def of(**changes):
    return {**json.loads(json.dumps(tokenizer_json("llama3"))), **changes}


def split_at(regex, **changes):
    content = of()
    split, last = content["pre_tokenizer"]["pretokenizers"]
    steps = [{**split, "pattern": {"Regex": regex}}, {**last, **changes}]
    return {**content, "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


LLAMA3_REGEX = of()["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
PATTERN = "`pre_tokenizer` must be of the type ByteLevel with the pattern of GPT-2, Llama 3, Qwen2"
ENDING = {
    "type": "TemplateProcessing",
    "special_tokens": {END: {"id": END, "ids": [PIECES.index(END)], "tokens": [END]}},
    "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": END}}],
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (split_at(LLAMA3_REGEX.replace("{1,3}", "{1,2}")), PATTERN),
        (split_at(LLAMA3_REGEX, use_regex=True), PATTERN),
        (
            split_at(r"\p{Lu}*\p{Ll}+|\p{N}|\s+"),
            r"SmolLM or Tekken \(Mistral Nemo\)\. Other patterns that split words before capital "
            r"letters are not supported; this one contains \\p\{Lu\}\. Received: \{'type': 'Seq",
        ),
        (split_at(LLAMA3_REGEX, add_prefix_space=True), PATTERN),
        (of(pre_tokenizer={"type": "Metaspace"}), PATTERN),
        (of(pre_tokenizer={"type": "Sequence", "pretokenizers": [3]}), PATTERN),
        (of(pre_tokenizer=None), PATTERN),
        (of(normalizer={"type": "NFKC"}), "`normalizer` must be of the type NFC, or null"),
        (of(post_processor=ENDING), r"`post_processor` must be one that puts no token or <\|begin"),
        (of(model={**of()["model"], "type": "Unigram"}), "`model` must be of the type BPE"),
        (of(added_tokens=[{"id": 3, "content": BEGIN}]), "every token must have a different id"),
    ],
)
def test_other_tokenizers_are_refused(content, message, tmp_path):
    write_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_a_space_in_front_of_texts_is_refused(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": True}))
    with pytest.raises(ValueError, match="`add_prefix_space` must be false for texts that are"):
        read_checkpoint(tmp_path)


def search_of(generator, prompts, search):
    """The ids that a search returns for prompts, after the token that begins a text."""
    config = generator.model.config
    encoded = generator.source_tokenizer.encode(prompts).to_tensor(config.tokens.pad_id)
    tokens = search(generator.model, encoded).tokens.numpy()[:, 0]
    return [[int(token) for token in row if token != config.tokens.pad_id] for row in tokens]


@pytest.mark.slow
def test_texts_go_on_as_in_numpy_in_a_run_as_well(tmp_path, kind="yarn"):
    settings, tensors = write_folder(tmp_path / "hf", kind)
    generator = from_pretrained(tmp_path / "hf")
    assert isinstance(generator, TextGenerator)
    rows = search_of(generator, TEXTS, Greedy())
    for row, text in zip(rows, TEXTS, strict=True):
        whole = [settings["bos_token_id"], *ids_of(text, KINDS[kind]["pattern"])]
        while len(whole) <= LONGEST and whole[-1] != settings["eos_token_id"]:
            pattern = KINDS[kind]["pattern"]
            logits = forward_of_texts(tensors, settings, np.array([whole]), pattern)[1]
            whole.append(int(logits[0, -1].argmax()))
        assert row == whole[1:]
    found = generator(TEXTS, search=Greedy())
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(TEXTS, search=Greedy()) == found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama3", "qwen3"])
def test_a_saved_model_of_strings(kind, tmp_path):
    """It is kept only if it answers as the model in memory does."""
    write_folder(tmp_path / "hf", kind)
    generator, search = from_pretrained(tmp_path / "hf"), Greedy()
    report = export_saved_model(
        generator, tmp_path / "saved", TEXTS, SavedModelOptions(search=search)
    )
    assert report["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        (name,) = signature.inputs
        feed = {signature.inputs[name].name: [text.encode() for text in TEXTS]}
        found = session.run({k: v.name for k, v in signature.outputs.items()}, feed)
    texts = [text.decode() for text in found[generator.output].ravel()]
    assert texts == generator(TEXTS, search=search)


@pytest.mark.long
@pytest.mark.slow
def test_ctranslate2_without_a_token_that_begins_texts(tmp_path):
    """It has no such token in its cache; the score of a beam is still that of the continuation."""
    pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))
    write_folder(tmp_path / "hf", "qwen2")
    generator, texts = from_pretrained(tmp_path / "hf"), [text for text in TEXTS if text]
    report = export_ctranslate2(generator, tmp_path / "ct2", ["", *texts], left_out=2)
    assert report["agreement"] == 1 and report["sentences"] == len(texts)
    assert report["sentences_left_out"] == 3  # with the empty prompt
    with pytest.raises(ValueError, match="`samples` must contain a prompt that is not empty"):
        CTranslate2Generation(generator, [""], Limits(), print, 0)
    by_sum = Beam(4, length_penalty=0.0, extra_length=None)
    for search in (Greedy(), by_sum):
        loaded = CTranslate2TextGenerator(tmp_path / "ct2", search)
        sources = generator.source_tokenizer.encode(["", *texts]).to_list()
        tokens, scores = loaded.decode(sources)
        padded = tf.ragged.constant(sources, dtype=tf.int32).to_tensor(
            generator.model.config.tokens.pad_id
        )
        found = search(generator.model, padded)
        assert tokens[1:, 0].tolist() == found.tokens.numpy()[1:, 0].tolist()
        np.testing.assert_allclose(scores[1:, 0], found.scores[1:, 0], rtol=0, atol=1e-4)
        assert (tokens[0] == generator.model.config.tokens.pad_id).all() and scores[
            0, 0
        ] == 0  # empty
        (empty,) = loaded.answer_batch([""])
        assert (empty.text, empty.score) == ("", 0)
    with pytest.raises(ValueError, match="`search` must have no length penalty for .*ct2"):
        CTranslate2TextGenerator(
            tmp_path / "ct2", Beam(4, normalization="average", extra_length=None)
        )


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama3", "qwen3"])
def test_tflite_files_of_ids(kind, tmp_path):
    write_folder(tmp_path / "hf", kind)
    generator = from_pretrained(tmp_path / "hf")
    assert export_litert(generator, tmp_path / "m.tflite", TEXTS)["agreement"] == 1
    if kind == "llama3":  # 8 bits cost the random weights of the other one more than is allowed
        assert export_litert(
            generator, tmp_path / "8.tflite", TEXTS, LiteRTOptions(quantize="int8")
        )["agreement"]


def case(kind, name, **changes):
    config = {**SIZES, **KINDS[kind], **changes}
    for key in ("pattern", "model_type", "architectures"):
        del config[key]
    base = config.pop("rope_theta")
    config["rope_parameters"] = {"rope_theta": base, "rope_type": "default"}
    scaling = config.pop("rope_scaling", None) or {}
    config["rope_parameters"] |= {{"type": "rope_type"}.get(k, k): scaling[k] for k in scaling}
    return {"class": name, "config": config, "starts": KINDS[kind]["pattern"] == "llama3"}


CASES = {
    "llama3": case("llama3", "Llama"),
    "smollm": case("smollm", "Llama"),
    "qwen2": case("qwen2", "Qwen2"),
    "qwen3": case("qwen3", "Qwen3"),
    "mistral": case("mistral", "Mistral"),
    "yarn": case("yarn", "Llama"),
    "yarn without truncation": case(
        "yarn", "Llama", rope_scaling={**YARN, "truncate": False, "attention_factor": 1.25}
    ),
    "dynamic": case("yarn", "Llama", rope_scaling={"rope_type": "dynamic", "factor": 4.0}),
    "windows": case(
        "qwen2", "Qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=0
    ),
}


@functools.cache
def folder():
    """All cases, computed once by the other Python."""
    probe = [PYTHON, "-c", "import torch, transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(json.dumps(CASES))
    (place / "texts.json").write_text(json.dumps([ids_of(text, "gpt2_digits") for text in TEXTS]))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    content = llama_folders.tokenizer_json("gpt2_digits")
    marks = llama_folders.tokenizer_json("llama3")["post_processor"]
    for name, case in CASES.items():
        own = {**content, "post_processor": marks if case["starts"] else None}
        (place / name / "tokenizer.json").write_text(json.dumps(own), "utf-8")
    return place


SEARCHES = {
    "greedy": Greedy(),
    "beam4": Beam(4, 0.0, normalization="power", extra_length=None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_logits_and_outputs_of_hugging_face(name):
    if folder() is None:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    generator, starts = from_pretrained(folder() / name), CASES[name]["starts"]
    model, expected = generator.model, np.load(folder() / f"{name}.npz")
    # Here a token begins each text, which later ones do not see unless it does so there as well.
    begin = [] if starts else [model.config.tokens.bos_id]
    texts = [text for text in TEXTS if starts or text]

    def rows_of(ids):
        rows = tf.ragged.constant([[*begin, *row] for row in ids], dtype=tf.int32)
        return rows.to_tensor(model.config.tokens.pad_id)

    ids = rows_of(expected["ids"].tolist())
    states = model.hidden_states(ids)[:, len(begin) :]
    np.testing.assert_allclose(states, expected["states"], rtol=0, atol=1e-5)
    logits = model(ids, training=False).numpy()[:, len(begin) :]
    np.testing.assert_allclose(logits[..., :-1], expected["logits"], rtol=0, atol=1e-4)
    for side in ("left", "right"):
        mask = expected[f"{side}_mask"].astype(bool)
        rows = [row[real] for row, real in zip(expected[f"{side}_ids"], mask, strict=True)]
        rows = rows_of([row.tolist() for row in rows])
        ours = model(rows, training=False).numpy()[:, len(begin) :, :-1]
        ours = ours[rows.numpy()[:, len(begin) :] != model.config.tokens.pad_id]
        np.testing.assert_allclose(ours, expected[f"{side}_logits"][mask], rtol=0, atol=1e-4)
    theirs = json.loads((folder() / f"{name}.json").read_text())
    for search, value in SEARCHES.items():
        found = search_of(generator, texts, value)
        assert found == [row[starts:] for row in theirs[search]], search
    greedy = search_of(generator, texts, Greedy())
    for row, text, new in zip(greedy, texts, theirs["together"], strict=True):
        row = row[: len(ids_of(text, "gpt2_digits")) + 6]
        assert row == new[starts : len(row) + starts]
