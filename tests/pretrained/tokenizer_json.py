"""`tokenizer.json` of a SentencePiece model, as transformers 5 saves it."""

import base64

from sentencepiece import sentencepiece_model_pb2

SPACES = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def of_model(model, front, skip, added=(), end=1):
    """Returns the content of the file.

    Args:
        model: The bytes of the model.
        front: The first tokens, which replace `skip` pieces of the model.
        added: Pairs of further tokens and ids, all of them special.
        end: Id of `</s>`.
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces[skip:]]
    vocabulary = [*([name, 0.0] for name in front), *pieces]
    names = [name for name, _ in vocabulary]
    special = [(name, number) for number, name in enumerate(front)]
    rules = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    content = {
        "added_tokens": [
            {"content": name, "id": number, "special": True} for name, number in [*special, *added]
        ],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": rules},
        "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, SPACES],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}],
            "special_tokens": {"</s>": {"ids": [end], "tokens": ["</s>"]}},
        },
    }  # fmt: skip
    if proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM:
        kind = {"type": "Unigram", "unk_id": names.index("<unk>"), "vocab": vocabulary}
        return {**content, "model": kind}
    ids = {name: number for number, name in enumerate(names)}
    splits = [
        (ids[name], ids[name[:n]], ids[name[n:]], [name[:n], name[n:]])
        for name, _ in pieces
        for n in range(1, len(name))
        if {name[:n], name[n:]} <= {*ids}
    ]
    merges = [pair for *_, pair in sorted(splits)]
    bpe = {"type": "BPE", "vocab": ids, "merges": merges, "unk_token": "<unk>", "fuse_unk": True}
    return {**content, "model": bpe}
