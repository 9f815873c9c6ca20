"""Releases of OPUS-MT with random weights: SentencePiece splits texts, a table has the ids."""

import types

import marian_models
import numpy as np
import sentencepiece
import yaml
from marian_reference import Marian
from opus_folders import SOURCE_TEXT, pieces, spm

from keras_transformer.pretrained.files.marian.npz import write_npz

# Tokens that YAML would read as other values than strings, or as syntax.
HOSTILE = [
    "~",
    "null",
    "yes",
    "NO",
    "1",
    "1.5",
    "0x1f",
    "1_000",
    "<<",
    "=",
    "-",
    "?",
    ":",
    "::",
    "'",
]
HOSTILE += [
    '"',
    '\\"',
    "#",
    "%",
    "@",
    "`",
    "!",
    "&a",
    "*a",
    "---",
    "a: b",
    "[",
    "{",
    "漢字",
    "\xa0",
]
TEXTS = [*SOURCE_TEXT, "a mat", "", "漢字 dog", "dog 1.5", ">>deu<< a cat", ">>xxx<< a"]
MODEL, TABLE = "opus.spm40-spm40.model1.npz", "opus.spm40-spm40.vocab.yml"


def line(token, number):
    """Returns a line as Marian's YAML library writes it: plain, or in double quotes."""
    plain = token in ("</s>", "<unk>") or token.lstrip("▁").isalpha()
    if plain and token not in ("null", "yes", "NO"):
        return f"{token}: {number}\n"
    escaped = token.replace("\\", "\\\\").replace('"', '\\"').replace("\xa0", "\\xa0")
    return f'"{escaped}": {number}\n'


def table_of(*sides, seed=1):
    """Returns ids by token: end, unknown, then the tokens in an order of its own."""
    names = [*dict.fromkeys(piece for side in sides for piece in pieces(side)[3:]), *HOSTILE]
    names = [names[number] for number in np.random.default_rng(seed).permutation(len(names))]
    return {name: number for number, name in enumerate(["</s>", "<unk>", *names, ">>deu<<"])}


def decoder(**changes):
    """Returns the text of a `decoder.yml`."""
    settings = {"relative-paths": True, "models": [MODEL], "vocabs": [TABLE, TABLE], **changes}
    return yaml.safe_dump(settings)


def release(folder, *tables, names=(TABLE,), **changes):
    """Writes the files of a release; returns what they contain."""
    sizes = [len(tables[0]), len(tables[-1])]
    changes = {"transformer_decoder_autoreg": "self-attention", "dec_depth": 2, **changes}
    options = marian_models.settings(
        dim_vocabs=sizes, transformer_ffn_activation="swish", **changes
    )
    arrays = marian_models.varied(marian_models.arrays(options, seed=23))
    write_npz(folder / MODEL, arrays)
    for name, ids in zip(names, tables, strict=True):
        (folder / name).write_text("".join(line(*pair) for pair in ids.items()), "utf-8")
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(spm(side))
    (folder / "decoder.yml").write_text(decoder(vocabs=[names[0], names[-1]]))
    (folder / "preprocess.sh").write_text("spm_encode --model $1\n")
    return types.SimpleNamespace(
        path=folder / MODEL, ids=tables, marian=Marian(arrays, options, np.float64)
    )


def ids_of(text, side, ids):
    """Returns ids as Marian gets them from `spm_encode`: the pieces of a line, looked up."""
    code, processor = [], sentencepiece.SentencePieceProcessor(model_proto=spm(side))
    if text.startswith(">>"):
        first, _, text = text.partition(" ")
        code = [first]
    tokens = code + processor.encode(text, out_type=str)
    return [ids.get(token, ids["<unk>"]) for token in tokens] + [ids["</s>"]]
