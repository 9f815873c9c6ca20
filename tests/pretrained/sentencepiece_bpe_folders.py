"""Folders of Llama 2's kind: a BPE vocabulary of SentencePiece with tokens of bytes.

Nothing here is shared with the package.
"""

import functools
import io
import json

import llama_folders
import roberta_folders
import safetensors.numpy
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

WORDS = ["the film", "a dog", "is running", "very  good", "not bad", "2123 cats"]
LINES = [*roberta_folders.LINES, *(f"{a} and {b}." for a in WORDS for b in WORDS)]
TEXTS = [
    *("A dog is", " a film", "  the", "", " ", "   ", "▁a", "▁▁", "very   good  ", "<s> a </s>b"),
    *("<0x0A>", "☃ caf\u0301e é\n\n12", "a\0b", "\ufffd", "\u2028x\u3000\u00a0y\u200b", "ＡＢ"),
    *(" " * n + "x" + " " * n for n in range(3, 20)),
]
BEGIN = {"id": "<s>", "type_id": 0}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": BEGIN}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
}
EXACT = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
# What a tokenizer.json does before the merges. SentencePiece does the first.
PREFIXES = {
    "prepend": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
    },
    **{
        scheme: {
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Metaspace",
                "replacement": "▁",
                "prepend_scheme": scheme,
                "split": False,
            },
        }
        for scheme in ("first", "always", "never")
    },
}


@functools.cache
def model(prefix=True, **options):
    """The bytes of a SentencePiece model, with or without a space in front of a text."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 3), model_writer=written, minloglevel=2, num_threads=1,
        **{"model_type": "bpe", "vocab_size": 345, "byte_fallback": True, "split_digits": True,
           "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
           "allow_whitespace_only_pieces": True, **options},
    )  # fmt: skip
    proto = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
    proto.normalizer_spec.add_dummy_prefix = prefix
    return proto.SerializeToString()


def pieces():
    """Pairs of piece and score."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model())
    return [(piece.piece, piece.score) for piece in proto.pieces]


def ids_of(texts, prefix="prepend"):
    """The ids of texts by SentencePiece; it is given the space that Metaspace adds."""
    if prefix in ("first", "always"):
        texts = [text if text[:1] in ("", " ", "▁") else " " + text for text in texts]
    processor = sentencepiece.SentencePieceProcessor(model_proto=model(prefix == "prepend"))
    return processor.encode(texts)


def merges():
    """All pairs of pieces that make a piece, in the order of the scores."""
    scores = dict(pieces())
    pairs = [
        (-score, number, piece[:place], piece[place:])
        for number, (piece, score) in enumerate(scores.items())
        for place in range(1, len(piece))
        if piece[:place] in scores and piece[place:] in scores
    ]
    return [[one, other] for _, _, one, other in sorted(pairs)]


def tokenizer_json(prefix="prepend", **changes):
    ids = {piece: number for number, (piece, _) in enumerate(pieces())}
    special = ("<unk>", "<s>", "</s>")
    return {
        "added_tokens": [
            {"id": number, "content": name, "special": True, "normalized": False, **EXACT}
            for number, name in enumerate(special)
        ],
        **PREFIXES[prefix],
        "post_processor": TEMPLATE,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                *([STRIP] if prefix != "never" else []),
            ],
        },
        "model": {
            **{"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True},
            **{"ignore_merges": False, "vocab": ids, "merges": merges()},
        },
        **changes,
    }


def write_folder(folder, kind="prepend", **changes):
    """Writes a checkpoint with a `tokenizer.model` or a kind of tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**llama_folders.SIZES, **llama_folders.LLAMA, "vocab_size": len(pieces())}
    settings |= {"bos_token_id": 1, "eos_token_id": 2, **changes}
    tensors = llama_folders.tensors_of(settings)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if kind == "model":
        (folder / "tokenizer.model").write_bytes(model())
    else:
        content = json.dumps(tokenizer_json(kind), ensure_ascii=False)
        (folder / "tokenizer.json").write_text(content, "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}
