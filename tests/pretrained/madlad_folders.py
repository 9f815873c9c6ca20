"""MADLAD-400 as it is published, with random weights and a small vocabulary.

The settings are those of `google/madlad400-3b-mt`, except for the sizes: no token for padding,
outputs that start with the unknown token, and codes of languages that are symbols of SentencePiece.
"""

import functools
import io
import json

import safetensors.numpy
import sentencepiece
import t5_folders
from opus_folders import SOURCE_TEXT, TARGET_TEXT

CODES = ("ace", "de", "en", "fr", "nan_Latn_TW")
SIZES = {
    **t5_folders.SIZES, **t5_folders.UNTIED, "architectures": ["T5ForConditionalGeneration"],
    "num_decoder_layers": 2, "decoder_start_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
    "output_past": True, "task_specific_params": {}, "use_cache": True,
}  # fmt: skip
GENERATION = {"_from_model_config": True, "decoder_start_token_id": 0, "eos_token_id": 2,
              "pad_token_id": 1}  # fmt: skip
OF_SEARCH = ("max_length", "num_beams", "bad_words_ids", "renormalize_logits")
SPECIAL = ("<unk>", "<s>", "</s>")
EXACT = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
OPTIONS = {
    "added_tokens_decoder": {
        str(number): {"content": name, "special": True, **EXACT}
        for number, name in enumerate(SPECIAL)
    },
    "additional_special_tokens": [],
    "clean_up_tokenization_spaces": True,
    "eos_token": "</s>",
    "extra_ids": 0,
    "legacy": False,
    "pad_token": "<s>",
    "sp_model_kwargs": {},
    "tokenizer_class": "T5Tokenizer",
    "unk_token": "<unk>",
}


@functools.cache
def spm():
    """Learns a Unigram model whose first symbols are a line feed and the codes of languages."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SOURCE_TEXT, *TARGET_TEXT] * 3),
        model_writer=model, vocab_size=70, model_type="unigram", hard_vocab_limit=False,
        remove_extra_whitespaces=False, minloglevel=2,
        user_defined_symbols=["\n", *(f"<2{code}>" for code in CODES)],
    )  # fmt: skip
    return model.getvalue()


def processor():
    return sentencepiece.SentencePieceProcessor(model_proto=spm())


def write_vocabulary(folder):
    """Writes the files of the vocabulary; returns its size."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(spm())
    (folder / "tokenizer_config.json").write_text(json.dumps(OPTIONS))
    names = {"eos_token": "</s>", "pad_token": "<s>", "unk_token": "<unk>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(names))
    (folder / "added_tokens.json").write_text("{}")
    return processor().vocab_size()


def write_folder(folder, seed=0, **changes):
    """Writes a whole checkpoint; returns its settings and its tensors in float64."""
    settings = {**SIZES, "vocab_size": write_vocabulary(folder), **changes}
    tensors = t5_folders.tensors_of(settings, seed)
    values = {name: x.astype("float64") for name, x in tensors.items()}
    tensors["decoder.embed_tokens.weight"] = tensors.pop("shared.weight")
    (folder / "config.json").write_text(json.dumps(settings))
    searches = {name: value for name, value in changes.items() if name in OF_SEARCH}
    (folder / "generation_config.json").write_text(json.dumps({**GENERATION, **searches}))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return settings, values
