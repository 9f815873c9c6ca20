"""A Marian model file and its vocabularies as a `Transformer` and `Tokenizers`."""

import pathlib

import numpy as np

from keras_transformer.decoding import Greedy
from keras_transformer.models.transformer import Transformer
from keras_transformer.pretrained.checkpoint import Checkpoint
from keras_transformer.pretrained.marian import names
from keras_transformer.pretrained.marian.arrays import in_floats
from keras_transformer.pretrained.marian.configuration import check_settings, to_config
from keras_transformer.pretrained.marian.files import read
from keras_transformer.pretrained.marian.gelu import SIGMOID, as_swish, form_of
from keras_transformer.pretrained.marian.settings import read_settings
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer, SpecialIds

SILENT_PIECE = "<s>"  # name of the entry that pads and starts
# What older files have in the place of an array, or share.
ALIASES = {"encoder_Wemb": "Wemb", "decoder_Wemb": "Wemb"}
OUTPUT, OLD_OUTPUT = "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"
LOGITS = "decoder_ff_logit_out_b"


def read_marian(path, vocabularies, license=None, name=None, gelu=None, **changes):
    """Returns the `Checkpoint` of a model of Marian's.

    A `.bin` file in 8 bits is read as the floats that it stands for.

    Args:
        path: The `.npz` or `.bin` file.
        vocabularies: The SentencePiece file of both languages, or those of source and target.
        license: Under which the model may be used, or `None`.
        name: Name of the model. `None`: that of the file.
        gelu: Which function a file with the activation gelu means: `"exact"`, or `"sigmoid"`, which
            is `x * sigmoid(1.702 x)`. `None`: by the version of Marian that the file names.
        **changes: Fields of the `TransformerConfig` that Marian does not know: `max_length`,
            `dropout`.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If one is damaged, they do not belong together, or a `Transformer` cannot
            express the model; in one line that names what.
    """
    path = pathlib.Path(path)
    arrays = read(path)
    settings = read_settings(arrays, path)
    weights = in_floats(arrays, path)
    check_settings(settings, path)
    form, notes = form_of(settings, path, gelu)
    if form == SIGMOID:
        settings, weights = as_swish(settings, weights)
    if settings.get("output-omit-bias", False):  # the entry that pads must have one all the same
        zeros = np.zeros((1, settings["dim-vocabs"][1]), np.float32)
        weights.setdefault(LOGITS, zeros)
    _check_sizes(weights, settings, path)
    source, target = _special_ids(vocabularies, settings)
    contents = {pathlib.Path(file).read_bytes() for file in vocabularies}
    if len(contents) == 2:  # of as many entries, as both have the one that pads
        changes["target_vocab_size"] = 1 + max(settings["dim-vocabs"])
    config = to_config(settings, path, target.eos_id, target.unk_id, **changes)
    tokenizers = _tokenizers(vocabularies, config, (source, target))
    model = Transformer(config, dtype="float32")
    fill(model, weights, path)
    version = str(settings.get("version", "")).strip() or None
    origin = {"format": "marian", "name": name or path.name, "license": license, "marian": version}
    notes += _notes(vocabularies, (source, target), settings["dim-vocabs"])
    return Checkpoint(model, tokenizers, origin, Greedy(), notes)


def _notes(vocabularies, sides, sizes):
    """What may be a vocabulary of another model: one of fewer pieces than there are entries."""
    files = (vocabularies[0], vocabularies[-1])
    notes = [
        f"{file} has {ids.size} pieces, the model {size} entries for them: is it the model's own?"
        for file, ids, size in zip(files, sides, sizes, strict=True)
        if ids.size < size
    ]
    return list(dict.fromkeys(notes))


def _check_sizes(weights, settings, path):
    """Refuses settings that are not those of the weights, before a model of their size is made."""
    source, target = settings["dim-vocabs"]
    width, inner = settings["dim-emb"], settings["transformer-dim-ffn"]
    if settings["enc-depth"] + settings["dec-depth"] > len(weights):
        raise ValueError(f"{path}: `enc-depth` and `dec-depth` name more layers than there are.")
    wanted = {"encoder_l1_ffn_W1": (width, inner)}
    for name, size in (("encoder_Wemb", source), ("decoder_Wemb", target)):
        wanted[name if name in weights else ALIASES[name]] = (size, width)
    outputs = {OUTPUT: (target, width), OLD_OUTPUT: (width, target), LOGITS: (1, target)}
    wanted.update((name, shape) for name, shape in outputs.items() if name in weights)
    for name, shape in wanted.items():
        if name not in weights:
            raise ValueError(f"{path}: {name} is missing.")
        _check_shape(name, weights[name], shape, path)


def _check_shape(name, array, shape, path):
    if array.shape != tuple(shape):
        raise ValueError(
            f"{path}: {name} must have the shape {tuple(shape)}. Received: {array.shape}."
        )


def _special_ids(vocabularies, settings):
    """The ids that the vocabularies of source and target define."""
    if not 1 <= len(vocabularies) <= 2:
        raise ValueError(
            "`vocabularies` must be one file, or those of source and target. "
            f"Received: {len(vocabularies)}."
        )
    sides = []
    for file, size in zip([vocabularies[0], vocabularies[-1]], settings["dim-vocabs"], strict=True):
        try:
            ids = SpecialIds.of(pathlib.Path(file).read_bytes())
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
        if ids.size > size:
            raise ValueError(f"{file} has {ids.size} pieces, the model {size} entries for them.")
        if ids.eos_id < 0:
            raise ValueError(f"{file} has no piece that ends a sentence.")
        sides.append(ids)
    if sides[0].eos_id != sides[1].eos_id:
        raise ValueError(
            "`vocabularies` must have the same id for the end of a sentence. "
            f"Received: {sides[0].eos_id} and {sides[1].eos_id}."
        )
    return sides


def _tokenizers(vocabularies, config, sides):
    tokenizers = []
    for file, ids in zip(vocabularies, sides, strict=False):
        table = PieceTable(
            ids=range(ids.size),
            size=config.vocab_size,
            pad_id=config.pad_id,
            unk_id=ids.unk_id,
            bos_id=config.bos_id,
            eos_id=config.eos_id,
            names={config.pad_id: SILENT_PIECE},
            silent_ids=config.silent_ids,
        )
        tokenizers.append(SentencePieceTokenizer(pathlib.Path(file).read_bytes(), table))
    return Tokenizers.of(tokenizers if len(tokenizers) == 2 else tokenizers[0])


def fill(model, weights, path):
    """Gives a model the weights of a file.

    Args:
        model: A `Transformer`, whose configuration is that of the file.
        weights: Arrays by Marian's names.
        path: The file, for errors.

    Raises:
        ValueError: If one is missing, has another shape or is not used.
    """
    size, used = model.config.vocab_size, set()
    for weight in names.weights_of(model.config):
        name, form = _found(weight, weights)
        if name not in weights:
            raise ValueError(f"{path}: {name} is missing.")
        variable = weight.variable(model)
        array = weights[name]
        if array.ndim != 2 or (form.is_vector and len(array) != 1):
            kind = "a matrix of one row" if form.is_vector else "a matrix"
            raise ValueError(f"{path}: {name} must be {kind}. Received: shape {array.shape}.")
        _check_shape(name, form.ours(array, size), variable.shape, path)
        variable.assign(form.ours(array, size))
        used.add(name)
    unused = sorted(set(weights) - used)
    if unused:
        raise ValueError(
            f"{path}: a `Transformer` has no place for {', '.join(unused[:5])}"
            f"{' and others' if unused[5:] else ''}."
        )


def _found(weight, weights):
    """The name and the form that a file has for a weight."""
    if weight.marian == OUTPUT and OLD_OUTPUT in weights:
        return OLD_OUTPUT, names.OLD_OUTPUT
    name = weight.marian
    return (name if name in weights else ALIASES.get(name, name)), weight.form
