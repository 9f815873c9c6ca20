"""Hugging Face's Marian checkpoints against their arithmetic in NumPy, oddities included."""

import json
import os
import pathlib
import re
import subprocess
import sys
import warnings

import documents
import marian_in_numpy as marian
import ml_dtypes
import numpy as np
import pytest
import pytorch_files
import safetensors.numpy
import sentencepiece
import tensorflow as tf
from marks import slow
from opus_folders import (
    CODES,
    SIZES,
    UNKNOWN,
    UNKNOWN_TEXTS,
    random_tokens,
    vocabulary,
    with_unknown_pieces,
    write_folder,
)

from keras_transformer import Beam, Greedy, from_pretrained
from keras_transformer.decoding.generation import Generation
from keras_transformer.positions import sinusoids
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.text.tokenizers import Tokenizers

LENGTHS = (11, 4, 1)


def assert_equal_to_numpy(model, settings, tensors, left=False):
    source = random_tokens(settings, LENGTHS, left=left)
    target = random_tokens(
        settings, LENGTHS, 1, size="decoder_vocab_size", start=settings["decoder_start_token_id"]
    )
    states, logits = marian.forward(tensors, settings, source, target)
    real = source != settings["pad_token_id"]
    np.testing.assert_allclose(
        model.encode(source)[0].numpy()[real], states[real], rtol=0, atol=1e-5
    )
    ours = model({"source": source, "target": target}, training=False)
    np.testing.assert_allclose(ours, logits, rtol=0, atol=1e-4)


def learned(offset=0):
    rng = np.random.default_rng(9)
    shape = (SIZES["max_position_embeddings"] + offset, SIZES["d_model"])
    names = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
    return {name: rng.normal(size=shape).astype("float32") for name in names}


def sinusoidal():
    table = sinusoids(SIZES["max_position_embeddings"], SIZES["d_model"], "halves")
    return {name: table for name in learned()}


OF_BART = {"architectures": ["BartForConditionalGeneration"]}
KINDS = {
    "shared": {},
    "separate": {"separate": True},
    "untied": {"tie_word_embeddings": False},
    "separate and untied": {"separate": True, "tie_word_embeddings": False},
    "float16": {"dtype": "float16"},
    "bfloat16": {"dtype": ml_dtypes.bfloat16},
    "relu": {"activation_function": "relu"},
    "gelu, 12 layers, unscaled": {
        "activation_function": "gelu",
        "encoder_layers": 12,
        "decoder_layers": 12,
        "scale_embedding": False,
    },
    "pre-norm": {"normalize_before": True, "add_final_layer_norm": True, **OF_BART},
    "norms at both ends": {"normalize_embedding": True, "add_final_layer_norm": True, **OF_BART},
    "pre-norm without an end": {"normalize_before": True, **OF_BART},
    "learned positions in the file": {"more": learned()},
    "learned positions of BART": {
        "static_position_embeddings": False,
        "extra_pos_embeddings": 2,
        "more": learned(2),
        **OF_BART,
    },
    "sinusoids in the file": {"more": sinusoidal()},
    "sinusoids in a file of float16": {"more": sinusoidal(), "dtype": "float16"},
    "a gap and more ids than pieces": {"gap": 3, "extra": 5, "codes": CODES},
    "fields that old files lack": {
        "decoder_vocab_size": None,
        "share_encoder_decoder_embeddings": None,
        "tie_word_embeddings": None,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "left"),
    [*(slow(kind, False) for kind in KINDS), slow("shared", True), ("separate", True)],
)
def test_logits_and_encoder_states(kind, left, tmp_path):
    changes = dict(KINDS[kind])
    removed = {name: changes.pop(name) for name in list(changes) if changes[name] is None}
    settings, tensors = write_folder(tmp_path, **changes)
    if removed:
        kept = {name: value for name, value in settings.items() if name not in removed}
        (tmp_path / "config.json").write_text(json.dumps(kept))
    model = from_pretrained(tmp_path).model
    # The file contains rounded sinusoids; the model uses exact ones.
    if kind == "sinusoids in a file of float16":
        tensors |= {name: table.astype("float64") for name, table in sinusoidal().items()}
    assert_equal_to_numpy(model, settings, tensors, left)
    expected = {"learned positions in the file": "learned", "learned positions of BART": "learned"}
    assert model.config.encoder.position.kind == expected.get(kind, "sinusoidal")
    assert model.config.head.tie == {
        "separate": "target",
        "untied": "none",
        "separate and untied": "none",
        "learned positions in the file": "target",
        "learned positions of BART": "target",
    }.get(kind, "all")


@pytest.mark.parametrize("named", [["MarianMTModel"], None])
def test_settings_that_hugging_faces_marian_ignores_have_no_effect(named, tmp_path):
    ignored = {
        "normalize_before": True,
        "normalize_embedding": True,
        "add_final_layer_norm": True,
        "static_position_embeddings": False,
        "layer_norm_eps": 0.1,
        "do_blenderbot_90_layernorm": True,
    }
    plain, tensors = write_folder(tmp_path)
    written = {**plain, **ignored, "extra_pos_embeddings": 2, "architectures": named}
    (tmp_path / "config.json").write_text(json.dumps(written))
    checkpoint = read_checkpoint(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = from_pretrained(tmp_path).model
    assert [str(one.message).rstrip(".") for one in caught] == checkpoint.notes
    assert_equal_to_numpy(model, plain, tensors)
    assert checkpoint.notes == [
        f"`{name}` = {json.dumps(value)} has no effect: Hugging Face's Marian models do not read it"
        for name, value in ignored.items()
    ]


def test_a_table_of_positions_on_one_side_only(tmp_path):
    """The other side has sinusoids, as in Hugging Face."""
    name, table = next(iter(learned().items()))
    settings, tensors = write_folder(tmp_path, more={name: table})
    assert_equal_to_numpy(from_pretrained(tmp_path).model, settings, tensors)


def test_a_table_of_positions_of_another_length_is_reported_with_the_setting(tmp_path):
    refused(
        tmp_path,
        r"embed_positions\.weight must have the shape \[23, 12\], as `max_position_embeddings` "
        r"says in config\.json\. Received: \[25, 12\]",
        more=learned(2),
    )
    refused(
        tmp_path,
        r"the shape \[26, 12\], as `max_position_embeddings` and `extra_pos_embeddings` say in ",
        more=learned(2),
        static_position_embeddings=False,
        extra_pos_embeddings=3,
        **OF_BART,
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/pretrained.md", "docs/migrating.md"])
def test_the_python_of_the_page_runs(page, tmp_path, monkeypatch):
    write_folder(tmp_path / "opus-mt-en-de")
    monkeypatch.chdir(tmp_path)
    page = documents.blocks(page, "python")
    names = documents.run([block for block in page if block.needs == "checkpoint"])
    assert names["translator"].model.count_params() > 0
    assert names.get("model", names["translator"].model) is names["translator"].model


@pytest.mark.slow
def test_the_commands_of_the_readme_run(tmp_path):
    """With a small checkpoint of random weights, in a folder and in PyTorch's format."""
    write_folder(tmp_path / "opus-mt-en-de", max_position_embeddings=70)
    path = tmp_path / "opus-mt-en-de" / "model.safetensors"
    pytorch_files.save(path.with_name("pytorch_model.bin"), safetensors.numpy.load_file(path))
    path.unlink()
    (block,) = [block for block in documents.blocks("README.md", "sh") if block.needs == "opus"]
    code = block.code.replace("Helsinki-NLP/opus-mt-en-de", "./opus-mt-en-de")
    assert code != block.code
    programs = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", code], cwd=tmp_path, env={**os.environ, "PATH": programs}, text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for name in ("serving/en-de/1/saved_model.pb", "en-de.tflite", "en-de-ct2/model.bin"):
        assert (tmp_path / name).exists()


def test_copies_of_a_tied_table_may_be_in_the_file(tmp_path):
    settings, tensors = write_folder(tmp_path)
    table = tensors["model.shared.weight"].astype("float32")
    names = ("model.encoder.embed_tokens.weight", "lm_head.weight")
    settings, tensors = write_folder(tmp_path, more={name: table for name in names})
    assert_equal_to_numpy(from_pretrained(tmp_path).model, settings, tensors)


def test_the_search_is_read_from_the_files(tmp_path):
    write_folder(tmp_path, length_penalty=0.8)
    checkpoint = read_checkpoint(tmp_path)
    config = checkpoint.model.config
    assert checkpoint.search == Beam(
        4, 0.8, "power", extra_length=None, max_length=19, stopping="score"
    )
    assert (config.head.rules.banned_ids, config.head.rules.forced_eos_id) == (
        (config.tokens.pad_id,),
        0,
    )
    assert (config.tokens.bos_id, config.tokens.eos_id) == (
        config.tokens.pad_id,
        0,
    ) and checkpoint.notes == []
    generation = {"eos_token_id": 0, "max_length": 20, "repetition_penalty": 3.0}
    (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.search == Greedy(max_length=19, repetition_penalty=3.0)
    assert checkpoint.model.config.head.rules.banned_ids == ()
    assert checkpoint.model.config.head.rules.forced_eos_id is None
    assert checkpoint.notes == [] and checkpoint.generation == Generation(checkpoint.search)
    beams = {"num_beams": 3, "repetition_penalty": 1.2, "do_sample": True}
    (tmp_path / "generation_config.json").write_text(json.dumps(beams))
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.search.repetition_penalty == 1.2 and checkpoint.search.size == 3
    assert checkpoint.notes == ["`do_sample` = True is not carried over to a beam"]


def test_custom_start_padding_and_forced_end_tokens(tmp_path):
    """As in tc-big models: the forced end differs from the end."""
    write_folder(
        tmp_path,
        decoder_start_token_id=1,
        bos_token_id=1,
        forced_eos_token_id=7,
        bad_words_ids=[[5]],
    )
    config = from_pretrained(tmp_path).model.config
    assert (
        config.tokens.bos_id,
        config.head.rules.forced_eos_id,
        config.head.rules.banned_ids,
    ) == (
        1,
        7,
        (5,),
    )
    assert config.tokens.pad_id == config.tokens.vocab_size - 1


def test_text_becomes_the_ids_of_hugging_face(tmp_path):
    """Tokens from SentencePiece, ids from the table, unknown if it lacks one; codes first."""
    vocab = vocabulary("source", "target", codes=CODES)
    write_folder(tmp_path, codes=CODES)
    translator = from_pretrained(tmp_path)
    spm = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "source.spm"))
    texts = ["a dog", ">>nld<< the cat sat", ">>xxx<<a cat", "über Q", ">>deu<<", "",
             "a >>deu<< cat", ">>nld<< a\ncat"]  # fmt: skip
    codes = [[], [vocab[">>nld<<"]], [vocab["<unk>"]], [], [vocab[">>deu<<"]], [], [],
             [vocab[">>nld<<"]]]  # fmt: skip
    rest = ["a dog", "the cat sat", "a cat", "über Q", "", "", "a >>deu<< cat", "a\ncat"]
    expected = [
        [*code, *(vocab.get(piece, vocab["<unk>"]) for piece in spm.encode(text, out_type=str)), 0]
        for code, text in zip(codes, rest, strict=True)
    ]
    assert translator.source_tokenizer.encode(texts).to_list() == expected
    sampled = translator.source_tokenizer.sample(texts, 0.5, 1)
    assert [row[: len(code)] for row, code in zip(sampled, codes, strict=True)] == codes


def test_characters_known_only_to_the_vocabulary_are_looked_up_as_in_hugging_face(tmp_path):
    """The reference is SentencePiece's own pieces as strings, and `vocab.json`."""
    vocab = with_unknown_pieces(tmp_path)
    rng = np.random.default_rng(0)
    alphabet = [*"abdogcet ", *"жж€漢字ÿxyzüQ1"]
    texts = [*UNKNOWN_TEXTS, *("".join(rng.choice(alphabet, 1 + n % 17)) for n in range(500))]
    tokenizers = from_pretrained(tmp_path).tokenizers
    for tokenizer, name in zip(tokenizers, ("source", "target"), strict=True):
        spm = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / f"{name}.spm"))
        expected = []
        for text in texts:
            match = re.match(">>.*?<<", text)
            code = [] if match is None else [vocab.get(match[0], vocab["<unk>"])]
            pieces = spm.encode_as_pieces(text[match.end() :] if match else text)
            expected.append([*code, *(vocab.get(p, vocab["<unk>"]) for p in pieces), 0])
        assert tokenizer.encode(texts).to_list() == expected
        found = {number for row in expected for number in row}
        assert len(found & {vocab[piece] for piece in UNKNOWN}) >= 5
        one = [tokenizer.encode([text]).to_list()[0] for text in texts[:40]]
        assert one == expected[:40]
        sampled = tokenizer.sample(["ж a dog €"] * 3, 0.5, 1)
        assert all({vocab["ж"], vocab["€"]} <= set(row) for row in sampled)


@pytest.mark.slow
def test_such_characters_are_looked_up_in_a_saved_model_and_from_exported_files(tmp_path):
    """A server has no Python, so the SavedModel is loaded as a server loads it."""
    with_unknown_pieces(tmp_path / "hf")
    tokenizers = from_pretrained(tmp_path / "hf").tokenizers
    expected = tokenizers.source.encode(UNKNOWN_TEXTS)
    module = tf.Module()
    module.tokenizer = tokenizers.source
    texts = tf.TensorSpec([None], tf.string, name="texts")
    encode = tf.function(
        lambda texts: {"ids": module.tokenizer.encode(texts).to_tensor(-1)}, input_signature=[texts]
    )
    tf.saved_model.save(module, str(tmp_path / "saved"), {"encode": encode})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved"))
        signature = meta.signature_def["encode"]
        feed = {signature.inputs["texts"].name: [text.encode() for text in UNKNOWN_TEXTS]}
        ids = session.run(signature.outputs["ids"].name, feed)
    np.testing.assert_array_equal(ids, expected.to_tensor(-1))
    again = Tokenizers.from_files(tokenizers.files().get).source
    assert again.encode(UNKNOWN_TEXTS).to_list() == expected.to_list()


def test_ids_become_text_also_for_tokens_of_the_other_side(tmp_path):
    write_folder(tmp_path, codes=CODES)
    translator = from_pretrained(tmp_path)
    vocab = vocabulary("source", "target", codes=CODES)
    import opus_folders

    only = [p for p in opus_folders.pieces("source") if p not in opus_folders.pieces("target")]
    only = [p for p in only if p.isalpha()][:2]
    ids = [[vocab["▁"], vocab[only[0]], vocab[only[1]], vocab[">>deu<<"], 0, vocab[only[0]]]]
    assert translator.target_tokenizer.decode(ids).numpy()[0].decode() == "".join(only)
    german = "ein hund rennt"
    encoded = translator.target_tokenizer.encode([german])
    assert translator.target_tokenizer.decode(encoded).numpy()[0].decode() == german


def test_the_name_and_the_licence_come_from_the_folder(tmp_path):
    folder = tmp_path / "opus-mt-en-de"
    write_folder(folder, _name_or_path="/tmp/x/Helsinki-NLP/opus-mt-en-de")
    assert read_checkpoint(folder).origin == {
        "format": "opus-mt",
        "name": "Helsinki-NLP/opus-mt-en-de",
        "license": None,
    }
    given = read_checkpoint(folder, license="MIT", name="mine").origin
    assert (given["license"], given["name"]) == ("MIT", "mine")


def test_a_fine_tuned_checkpoint_has_the_name_of_its_folder(tmp_path):
    write_folder(tmp_path / "ours", _name_or_path="Helsinki-NLP/opus-mt-en-de")
    origin = read_checkpoint(tmp_path / "ours").origin
    assert (origin["name"], origin["base"]) == ("ours", "Helsinki-NLP/opus-mt-en-de")
    given = read_checkpoint(tmp_path / "ours", name="Helsinki-NLP/opus-mt-en-de").origin
    assert "base" not in given
    write_folder(tmp_path / "plain")
    origin = read_checkpoint(tmp_path / "plain").origin
    assert origin["name"] == "plain" and "base" not in origin


@pytest.mark.parametrize(
    ("card", "license"),
    [
        ("---\nlanguage: en\nlicense: cc-by-4.0\n---\nlicense: x\n", "cc-by-4.0"),
        ("---\nlicense: 'MIT'\nlicense_name: x\n---\n", "MIT"),
        ("---\nlicense:\n- mit\n- apache-2.0\nlanguage:\n- en\n---\n", "mit, apache-2.0"),
        ("---\nlicense: other\nlicense_name: gemma\n---\n", "gemma"),
        ("---\nlicense: other\n---\n", "other"),
        ("---\nlicense:\nlanguage:\n- en\n---\n", None),
        ("license: mit\n", None),
    ],
)
def test_a_licence_is_never_guessed(tmp_path, card, license):
    write_folder(tmp_path)
    (tmp_path / "LICENSE").write_text("Apache License")
    (tmp_path / "README.md").write_text(card)
    origin = read_checkpoint(tmp_path).origin
    assert origin["license"] == license
    assert origin.get("license_file") == (None if license else "LICENSE")


def refused(folder, message, **changes):
    write_folder(folder, **changes)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(folder)
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "wav2vec2"},
            r"`model_type` must be one of .*marian.* Received: 'wav2vec2'\.",
        ),
        ({"activation_function": "gelu_fast"}, r"`activation_function` must be one of relu, "),
        ({"decoder_attention_heads": 2}, r"`decoder_attention_heads` must be `encoder_att.*, 3"),
        ({"decoder_ffn_dim": 2}, r"`decoder_ffn_dim` must be `encoder_ffn_dim`, 17"),
        ({"d_model": "12"}, r"`d_model` must be a whole number of at least 1"),
        ({"scale_embedding": "yes"}, r"`scale_embedding` must be true or false"),
        ({"eos_token_id": [0, -1]}, r"`eos_token_id` must be one or more of the \d+ token ids"),
        ({"bad_words_ids": [[3, 4]]}, r"`bad_words_ids` must be a list of lists of one of"),
        ({"max_position_embeddings": 10**9}, r"`max_position_embeddings` must be at most 65,536 "),
        ({"pad_token_id": 10**9}, r"`pad_token_id` must be one of the"),
        (
            {"do_blenderbot_90_layernorm": True, **OF_BART},
            r"`do_blenderbot_90_layernorm` must be false",
        ),
        (
            {"static_position_embeddings": False, **OF_BART},
            r"embed_positions\.weight is missing, although `static_position_embeddings` = false ",
        ),
        ({"num_beams": "4"}, r"`num_beams` must be a whole number"),
        ({"length_penalty": float("nan")}, r"`length_penalty` must be a number. Received: nan"),
        (
            {"vocab_size": 10**11, "decoder_vocab_size": 10**11},
            r"shared\.weight must have the shape \[10+, 12\]",
        ),
        (
            {"encoder_ffn_dim": 10**11, "decoder_ffn_dim": 10**11},
            r"fc1\.weight must have the shape \[10+, 12\]",
        ),
        ({"encoder_layers": 10**9}, r"encoder\.layers\.9+\.fc1\.weight is missing"),
    ],
)
def test_settings_that_cannot_be_expressed_are_reported(changes, message, tmp_path):
    write_folder(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"model.strange": np.zeros(3)}, r"every tensor must be used .*: model\.strange\."),
        (
            {"model.encoder.layers.0.fc1.weight": np.zeros((12, 17))},
            r"fc1\.weight must have the shape \[17, 12\].* Received: \[12, 17\]\.",
        ),
        ({"model.encoder.layers.0.fc1.bias": np.full(17, np.nan)}, r"fc1\.bias contains NaN or"),
        ({"final_logits_bias": np.ones((1, 3))}, r"final_logits_bias must have the shape \[1, "),
    ],
)
def test_wrong_tensors_are_reported(more, message, tmp_path):
    write_folder(tmp_path)
    refused(tmp_path, message, more=more)


def test_a_missing_tensor_is_reported(tmp_path):
    _, tensors = write_folder(tmp_path)
    tensors = {name: values.astype("float32") for name, values in tensors.items()}
    del tensors["model.decoder.layers.1.encoder_attn.k_proj.bias"]
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"layers\.1\.encoder_attn\.k_proj\.bias is missing\."):
        read_checkpoint(tmp_path)


def test_missing_files_are_reported(tmp_path):
    write_folder(tmp_path)
    for name in ("source.spm", "vocab.json"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        with pytest.raises(ValueError, match=rf"{re.escape(name)} is missing\."):
            read_checkpoint(tmp_path)
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\n")
        with pytest.raises(ValueError, match=rf"{re.escape(name)} is a pointer of Git LFS, which"):
            read_checkpoint(tmp_path)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match=r"model\.safetensors is a pointer of Git LFS.*lfs pull"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    message = r"must contain weights in model\.safetensors or pytorch_model\.bin\. It contains nei"
    with pytest.raises(ValueError, match=message):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"has no config\.json\. A checkpoint is a folder in"):
        read_checkpoint(tmp_path)
    with pytest.raises(ValueError, match=r"a folder with a checkpoint\. There is no such"):
        read_checkpoint(tmp_path / "nowhere")


@pytest.mark.parametrize("archive", [True, False])
def test_weights_of_pytorch(archive, tmp_path):
    """A file of PyTorch also contains the copies of tied weights, which safetensors leave out."""
    settings, tensors = write_folder(tmp_path)
    held = {name: values.astype("float32") for name, values in tensors.items()}
    shared = held.get("model.shared.weight", held.get("model.encoder.embed_tokens.weight"))
    names = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
    held |= {f"{name}.weight": shared for name in names}
    table = sinusoids(23, 12, "halves").astype("float64")
    held |= {f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")}
    (tmp_path / "model.safetensors").unlink()
    pytorch_files.save(tmp_path / "pytorch_model.bin", held, archive)
    assert_equal_to_numpy(from_pretrained(tmp_path).model, settings, tensors)


SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


def write_shards(folder, change=None, more=None):
    """Splits the weights of a folder into two files and an index; returns the expected model.

    `change`: changes the index; `more`: further tensors in the second file.
    """
    settings, tensors = write_folder(folder)
    tensors = {name: values.astype("float32") for name, values in tensors.items()}
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    half = len(names) // 2
    places = {name: SHARDS[number >= half] for number, name in enumerate(names)}
    for shard in SHARDS:
        held = {name: tensors[name] for name in names if places[name] == shard}
        if shard == SHARDS[1]:
            held |= {name: tensors.get(name, np.zeros(1, "float32")) for name in more or ()}
        safetensors.numpy.save_file(held, folder / shard)
    places.update(change or {})
    content = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / INDEX).write_text(json.dumps(content))
    return settings, tensors


@pytest.mark.parametrize("pytorch", [False, True])
def test_weights_in_several_files(pytorch, tmp_path):
    settings, tensors = write_shards(tmp_path)
    if pytorch:
        as_pytorch(tmp_path)
    model = from_pretrained(tmp_path).model
    assert_equal_to_numpy(
        model, settings, {name: values.astype("float64") for name, values in tensors.items()}
    )


def as_pytorch(folder):
    """Replaces the files of safetensors in a folder by PyTorch's."""
    for path in folder.glob("*.safetensors"):
        name = path.name.replace("model", "pytorch_model").replace(".safetensors", ".bin")
        pytorch_files.save(folder / name, safetensors.numpy.load_file(path))
        path.unlink()
    text = (folder / INDEX).read_text().replace(".safetensors", ".bin")
    text = text.replace('"model-', '"pytorch_model-')
    (folder / "pytorch_model.bin.index.json").write_text(text)
    (folder / INDEX).unlink()


FIRST = "final_logits_bias"


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({FIRST: "../a"}, None, r"must name files in its own folder\. Received: '\.\./a'\."),
        ({FIRST: "/etc/passwd"}, None, r"must name files in its own folder\. .*'/etc/passwd'"),
        ({FIRST: ".."}, None, r"must name files in its own folder\. Received: '\.\.'\."),
        ({FIRST: "a\\b"}, None, r"must name files in its own folder\."),
        ({FIRST: ["a"]}, None, r"must name files in its own folder\. Received: \['a'\]\."),
        ({FIRST: 3}, None, r"`weight_map` must name files in its own folder\. Received: 3\."),
        ({FIRST: "c.safetensors"}, None, r"names the file c\.safetensors, which is missing\."),
        ({"strange": SHARDS[0]}, None, r"strange must be in model-00001-.* It is not there\."),
        ({}, [FIRST], r"final_logits_bias must be in one file\. It is in .*1-of.* and in .*2-of"),
        ({}, ["strange"], r"index\.json does not name strange, which is in model-00002"),
    ],
)
def test_an_index_that_does_not_match_the_files_is_reported(change, more, message, tmp_path):
    write_shards(tmp_path, change, more)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path / INDEX) in str(error.value)


def test_a_shard_linked_from_outside_or_an_empty_index_is_reported(tmp_path):
    write_shards(tmp_path / "a")
    (tmp_path / "a" / SHARDS[0]).rename(tmp_path / "outside")
    (tmp_path / "a" / SHARDS[0]).symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match=r"00001-of-00002\.safetensors must be in its folder\."):
        read_checkpoint(tmp_path / "a")
    (tmp_path / "a" / INDEX).write_text("{}")
    with pytest.raises(ValueError, match=r"`weight_map` must name the file of each tensor\."):
        read_checkpoint(tmp_path / "a")


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    write_folder(tmp_path / "a")
    (tmp_path / "a" / "model.safetensors").rename(tmp_path / "outside")
    (tmp_path / "a" / "model.safetensors").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match=r"model\.safetensors must be in its folder\..*cp -rL"):
        read_checkpoint(tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"{", r"config\.json is damaged: "),
        ("config.json", b"[]", r"config\.json must contain a JSON object\. Received: list\."),
        (
            "vocab.json",
            b'{"a": 1, "b": 1, "<unk>": 2}',
            r"must have a different id\. .*'b'\.",
        ),
        ("vocab.json", b'{"a": 1}', r"the token '<unk>' is missing\."),
        ("vocab.json", b'{"a": 99999}', r"ids must be whole numbers from 0 .*'a': 99999\."),
        ("vocab.json", b'{"<unk>": 1, "</s>": 3}', r"'</s>' must have the id.* 0\. Received: 3\."),
        ("source.spm", b"no model", r"source\.spm: not a SentencePiece model"),
        ("target_vocab.json", b"{}", r"target_vocab\.json must not exist, because config\.json"),
    ],
)
def test_damaged_files_are_reported(name, content, message, tmp_path):
    write_folder(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)
