"""Encoder-decoders with BART's names as Hugging Face writes them, with random weights."""

import functools
import io
import json

import bpe_in_python
import numpy as np
import opus_folders
import safetensors.numpy
import sentencepiece
import t5_folders
from opus_folders import SOURCE_TEXT, TARGET_TEXT
from roberta_folders import MERGES

FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]
M2M_LANGUAGES = 100
NLLB_CODES = ("ace_Arab", "deu_Latn", "eng_Latn", "fra_Latn")
MBART_CODES = ("ar_AR", "cs_CZ", "de_DE", "en_XX")
MBART_LANGUAGES = 25  # of the first mBART, whose files may not name them
SIZES = {
    "d_model": 12,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 17,
    "decoder_ffn_dim": 17,
    "max_position_embeddings": 23,
    "activation_function": "gelu",
    "scale_embedding": True,
    "dropout": 0.1,
    "is_encoder_decoder": True,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "num_beams": 4,
    "max_length": 20,
}
# What each kind computes, in the words of `marian_in_numpy`, which no file contains.
KINDS = {
    "m2m_100": {
        "normalize_before": True, "add_final_layer_norm": True, "fairseq_sinusoids": True,
    },
    "mbart": {
        "normalize_before": True, "add_final_layer_norm": True, "normalize_embedding": True,
        "static_position_embeddings": False,
    },
    "bart": {"normalize_embedding": True, "static_position_embeddings": False},
    "pegasus": {"normalize_before": True, "add_final_layer_norm": True},
}  # fmt: skip


@functools.cache
def spm(kind="bpe"):
    """Learns a SentencePiece model with SentencePiece's own ids of special tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SOURCE_TEXT, *TARGET_TEXT] * 3),
        model_writer=model,
        vocab_size=60,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces(kind="bpe"):
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm(kind))
    return [processor.id_to_piece(number) for number in range(processor.vocab_size())]


def write_m2m_vocabulary(folder, **options):
    """Writes M2M100's files; returns the size of the vocabulary, with 3 ids that no token has."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [*FAIRSEQ, *pieces()[3:]]
    ids = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(ids))
    (folder / "sentencepiece.bpe.model").write_bytes(spm())
    options = {"src_lang": "en", "tgt_lang": "de", **options}
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    return len(ids) + M2M_LANGUAGES + 3


def write_fairseq_vocabulary(folder, codes, kind, **options):
    """Writes the files of NLLB or mBART; returns the size of the vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(spm(kind))
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    special = {"additional_special_tokens": list(codes)}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    return len(pieces(kind)) + 1 + len(codes) + 1


def write_model(folder, kind, size, seed=0, **changes):
    """Writes settings and weights; returns the settings of `marian_in_numpy`, and the weights."""
    settings = {**SIZES, "model_type": kind, "vocab_size": size, **changes}
    reference = {
        **settings,
        **KINDS[kind],
        "decoder_vocab_size": size,
        "share_encoder_decoder_embeddings": True,
    }
    tensors = opus_folders.tensors_of(reference, seed)
    if kind == "m2m_100":
        del tensors["final_logits_bias"]
    elif kind != "pegasus":
        rng = np.random.default_rng(seed + 100)
        for side in ("encoder", "decoder"):
            rows = settings["max_position_embeddings"] + 2, settings["d_model"]
            table = rng.normal(size=rows).astype("float32")
            tensors[f"model.{side}.embed_positions.weight"] = table
    (folder / "config.json").write_text(json.dumps(settings))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return reference, {name: values.astype("float64") for name, values in tensors.items()}


def write_bart_vocabulary(folder):
    """Writes BART's files; returns the number of tokens without `<mask>`."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [*FAIRSEQ, *bpe_in_python.vocabulary(MERGES, []), "<mask>"]
    ids = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(ids))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in MERGES)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")
    return len(names) - 1


def write_pegasus_vocabulary(folder):
    """Writes T5's SentencePiece model; returns the number of tokens with 103 in front."""
    return t5_folders.write_vocabulary(folder) - 104 + 103


def write_folder(folder, name, **changes):
    """Writes a checkpoint: `m2m100`, `nllb`, `nllb_legacy`, `mbart`, `mbart50`, `bart`, `pegasus`.

    Outputs of `mbart` start with German, the third of its languages.
    """
    if name == "pegasus":
        special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
        return write_model(folder, name, write_pegasus_vocabulary(folder), **special, **changes)
    if name == "bart":
        return write_model(folder, "bart", write_bart_vocabulary(folder), **changes)
    if name == "m2m100":
        return write_model(folder, "m2m_100", write_m2m_vocabulary(folder), **changes)
    if name == "mbart":
        size = write_fairseq_vocabulary(folder, (), "unigram") + MBART_LANGUAGES
        start = {"decoder_start_token_id": size - 1 - MBART_LANGUAGES + 2}
        return write_model(folder, name, size, **{**start, **changes})
    options = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
    if name == "nllb_legacy":
        options["legacy_behaviour"] = True
    codes, kind = (NLLB_CODES, "m2m_100")
    if name == "mbart50":
        codes, kind = MBART_CODES, "mbart"
        options = {
            "src_lang": "en_XX", "tgt_lang": "de_DE", "tokenizer_class": "MBart50Tokenizer",
        }  # fmt: skip
    spm_kind = "unigram" if kind == "mbart" else "bpe"
    size = write_fairseq_vocabulary(folder, codes, spm_kind, **options)
    return write_model(folder, kind, size, **changes)


def random_sources(settings, model, lengths=(7, 3, 1), seed=0):
    """Returns random sources, with two tokens of languages in front if the model takes them."""
    rows = opus_folders.random_tokens(settings, lengths, seed)
    if model.config.head.rules.language_codes == "none":
        return rows
    return np.insert(rows, 0, [[settings["vocab_size"] - 3], [settings["vocab_size"] - 4]], axis=1)
