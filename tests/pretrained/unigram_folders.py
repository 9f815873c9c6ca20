"""Folders as Hugging Face writes XLM-RoBERTa and CamemBERT, with a small Unigram vocabulary."""

import base64
import functools
import io
import json

import bert_folders
import roberta_folders
import safetensors.numpy
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

TEXTS = ["A dog is running.", "the film is not very good", "", " cats  & dogs ☃x", "good " * 40,
         "Ａ ﬁlm, caf\u0301e\u00a0bad"]  # fmt: skip
WORDS = ["a", "the", "dog", "cat", "film", "run", "good", "bad", "very", "not", "is", "cafe",
         "goodness", "running", "dogs"]  # fmt: skip
LINES = [*roberta_folders.LINES, *(f"{a} {b} {a}s" for a in WORDS for b in WORDS)]
# First tokens, number of SentencePiece's pieces that they replace, and ids of begin and end.
FAMILIES = {
    "xlm-roberta": (["<s>", "<pad>", "</s>", "<unk>"], 3, 0, 2),
    "camembert": (["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"], 1, 5, 6),
}
CLASSES = {"xlm-roberta": "XLMRoberta", "camembert": "Camembert"}


@functools.cache
def model():
    """The bytes of a SentencePiece model."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*LINES] * 3),
        model_writer=written, model_type="unigram", vocab_size=43, minloglevel=2,
    )  # fmt: skip
    return written.getvalue()


def scored(family):
    """Pairs of the tokens and scores, in the order of the ids."""
    first, skip, *_ = FAMILIES[family]
    proto = sentencepiece_model_pb2.ModelProto.FromString(model())
    pieces = [[piece.piece, piece.score] for piece in proto.pieces[skip:]]
    return [*([name, 0.0] for name in first), *pieces, ["<mask>", 0.0]]


def ids_of(family, text):
    """The ids of a text by SentencePiece, and the numbers that the family gives its pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model())
    names = [name for name, _ in scored(family)]
    *_, begin, end = FAMILIES[family]
    unknown = processor.unk_id()
    ids = [
        3 if number == unknown else names.index(processor.id_to_piece(number))
        for number in processor.encode(text)
    ]
    return [begin, *ids, end]


def charsmap():
    proto = sentencepiece_model_pb2.ModelProto.FromString(model())
    return proto.normalizer_spec.precompiled_charsmap


def tokenizer_json(family):
    *_, begin, end = FAMILIES[family]
    pieces = scored(family)
    return {
        "added_tokens": [{"id": len(pieces) - 1, "content": "<mask>", "special": True}],
        "normalizer": {
            "type": "Precompiled",
            "precompiled_charsmap": base64.b64encode(charsmap()).decode(),
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
            ],
        },
        "post_processor": bert_folders.template("<s>", "</s>", [name for name, _ in pieces]),
        "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": False},
    }


def settings_of(family, **changes):
    *_, begin, end = FAMILIES[family]
    return {
        **roberta_folders.SIZES,
        "model_type": family,
        "architectures": [f"{CLASSES[family]}ForSequenceClassification"],
        "vocab_size": len(scored(family)),
        "bos_token_id": begin,
        "eos_token_id": end,
        **changes,
    }


def write_folder(folder, family="xlm-roberta", as_json=True, **changes):
    """Writes a checkpoint, as `bert_folders.write_folder` does."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_of(family, **changes)
    tensors = roberta_folders.tensors_of(settings)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if as_json:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(family)))
    else:
        (folder / "sentencepiece.bpe.model").write_bytes(model())
    return settings, {name: values.astype("float64") for name, values in tensors.items()}
