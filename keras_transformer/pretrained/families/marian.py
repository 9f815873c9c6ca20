"""Marian's own model files, `.npz` and `.bin`, with their vocabularies beside them."""

import pathlib

import numpy as np

from keras_transformer.checks import is_integer
from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.search import Greedy
from keras_transformer.models.transformer import Transformer
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.files.marian.arrays import SETTINGS, in_floats
from keras_transformer.pretrained.files.marian.gelu import SIGMOID, as_swish, form_of
from keras_transformer.pretrained.files.marian.model_file import READERS, Arrays, read
from keras_transformer.pretrained.files.marian.settings import read_settings
from keras_transformer.pretrained.generation import Generation
from keras_transformer.pretrained.names import ROW, Layout, Weight
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.settings import Settings
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import SentencePieceTokenizer, Tokenizers
from keras_transformer.text.tokenizers.sentencepiece import SpecialIds

EPSILON = 1e-6  # of Marian's layer normalisation
ACTIVATIONS = {"relu": "relu", "swish": "silu", "gelu": "gelu"}  # Marian's names and Keras's
OURS = {"self-attention": "self_attention", "rnn": "ssru"}  # of what reads earlier positions
# Settings that change what a model computes, with the values that a `Transformer` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "transformer-preprocess": ("", "d"),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("", "d"),
    "transformer-ffn-activation": tuple(ACTIVATIONS),
    "transformer-decoder-autoreg": tuple(OURS),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-attention-mask": ("default",),
    "transformer-tied-layers": ([],),
    "input-types": ([], ["sequence", "sequence"]),
    "factors-dim-emb": (0,),
    "lemma-dim-emb": (0,),
} | {
    name: (False,)
    for name in (
        "transformer-no-projection",
        "transformer-no-bias",
        "transformer-no-affine",
        "transformer-pool",
        "transformer-rnn-projection",
        "transformer-train-position-embeddings",
        "transformer-disable-position-embeddings",
        "transformer-alibi-shift",
        "transformer-alibi-trainable",
        "layer-normalization",
        "right-left",
        "ulr",
    )
}
FLAGS = ("tied-embeddings-all", "tied-embeddings", "tied-embeddings-src", "output-omit-bias")
SILENT_PIECE = "<s>"  # name of the entry that pads and starts
# The logit of an entry that no search emits: no probability is left for it in float32, and the
# logarithm of that is still a sensible number for label smoothing.
SILENT = -1000.0
OUTPUT, OLD_OUTPUT = "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"
LOGITS = "decoder_ff_logit_out_b"
SOURCES = ("source", "src")  # begin the name of the vocabulary of sources


class Marian(Family):
    """A `.npz` or `.bin` file of Marian; one in 8 bits is read as the floats that it stands for.

    Args:
        folder: A `CheckpointFolder`.
        vocabularies: The SentencePiece file of both languages, or those of source and target.
            `None`: those beside the model, see `vocabularies_beside`.
        gelu: Which function a file with the activation gelu means: `"exact"`, or `"sigmoid"`, which
            is `x * sigmoid(1.702 x)`. `None`: by the version of Marian that the file names.
        **changes: Fields of the `TransformerConfig` that Marian does not know: `max_length`,
            `dropout`.
    """

    name, task, model_class = "marian", "translation", Transformer

    def __init__(self, folder, vocabularies=None, gelu=None, **changes):
        self._gelu, self._changes = gelu, changes
        super().__init__(folder)
        self._vocabularies = (
            vocabularies_beside(folder.model) if vocabularies is None else vocabularies
        )
        self._sides = self._special_ids()

    @classmethod
    def matches(cls, folder):  # noqa: D102
        return folder.model is not None and folder.model.suffix in READERS

    def read_settings(self):  # noqa: D102
        path = self.folder.model
        self._arrays = read(path)
        settings = Settings(read_settings(self._arrays, path), path)
        check_settings(settings)
        return settings

    def read_tensors(self):  # noqa: D102
        settings, path = self.settings, self.folder.model
        weights = in_floats(self._arrays, path)
        form, notes = form_of(settings.content, path, self._gelu)
        self.notes += notes
        if form == SIGMOID:
            content, weights = as_swish(settings.content, weights)
            self.settings = Settings(content, path)
        if settings.flag("output-omit-bias"):  # the entry that pads must have one all the same
            weights.setdefault(LOGITS, np.zeros((1, settings.get("dim-vocabs")[1]), np.float32))
        return Reader(Arrays(path, weights), SETTINGS)

    def config(self):
        """Returns the `TransformerConfig`.

        Marian starts an output with nothing and pads with nothing. One more entry after both
        vocabularies is `pad_id` and `bos_id`; it has no text, and the model gives it no
        probability.
        """
        settings, sizes = self.settings, self.settings.get("dim-vocabs")
        silent = max(
            sizes
        )  # both vocabularies have as many entries, as both have the one that pads
        separate = {"target_vocab_size": silent + 1} if self._separate else {}
        return TransformerConfig(
            vocab_size=silent + 1,
            pad_id=silent,
            bos_id=silent,
            eos_id=self._sides[1].eos_id,
            tie=_tie(settings),
            output_bias=True,
            num_layers=settings.count("enc-depth"),
            num_decoder_layers=settings.count("dec-depth"),
            d_model=settings.count("dim-emb"),
            d_ff=settings.count("transformer-dim-ffn"),
            num_heads=settings.count("transformer-heads"),
            activation=settings.choice("transformer-ffn-activation", ACTIVATIONS, "relu"),
            decoder=settings.choice("transformer-decoder-autoreg", OURS, "self-attention"),
            decoder_start="zeros",
            layer_norm_epsilon=EPSILON,
            attention_bias=True,
            sinusoid_layout="halves",
            sinusoid_endpoint=True,
            **self.generation().ids(),
            **separate,
            **self._changes,
        )

    def sizes(self, config):  # noqa: D102
        width, sizes, tensors = config.d_model, self.settings.get("dim-vocabs"), self.tensors
        for side, layers in (("encoder", config.num_layers), ("decoder", config.decoder_layers)):
            yield f"{side}_l{layers}_ffn_W1", (width, config.d_ff)
        for side, size in zip(("encoder", "decoder"), sizes, strict=True):
            yield tensors.first_of([f"{side}_Wemb", "Wemb"]), (size, width)

    def names(self, config):  # noqa: D102
        for weight in weights_of(config, self.settings.get("dim-vocabs")):
            if weight.theirs == OUTPUT and OLD_OUTPUT in self.tensors:
                layout = weight.layout._replace(transposed=False, axis=1)
                weight = weight._replace(theirs=OLD_OUTPUT, layout=layout)
            yield weight

    def tokenizers(self, config):  # noqa: D102
        tokenizers = []
        for file, ids in zip(self._vocabularies, self._sides, strict=False):
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

    def generation(self):
        """Returns greedy search that never emits the unknown piece, as in Marian."""
        return Generation(Greedy(), silent_ids=(self._sides[1].unk_id,))

    def origin(self):  # noqa: D102
        version = str(self.settings.get("version", "")).strip() or None
        return {
            "format": self.name,
            "name": self.folder.model.name,
            "license": None,
            "marian": version,
        }

    @property
    def _separate(self):
        return len({pathlib.Path(file).read_bytes() for file in self._vocabularies}) == 2

    def _special_ids(self):
        """The ids that the vocabularies of source and target define."""
        files = self._vocabularies
        if not 1 <= len(files) <= 2:
            raise ValueError(
                "`vocabularies` must be one file, or those of source and target. "
                f"Received: {len(files)}."
            )
        sides = []
        pairs = zip([files[0], files[-1]], self.settings.get("dim-vocabs"), strict=True)
        for file, size in pairs:
            sides.append(_read_special(file, size))
            if sides[-1].size < size:
                self.notes.append(
                    f"{file} has {sides[-1].size} pieces, the model {size} entries for them: is it "
                    "the model's own?"
                )
        self.notes = list(dict.fromkeys(self.notes))
        if sides[0].eos_id != sides[1].eos_id:
            raise ValueError(
                "`vocabularies` must have the same id for the end of a sentence. "
                f"Received: {sides[0].eos_id} and {sides[1].eos_id}."
            )
        return sides


def check_settings(settings):
    """Refuses settings that a `Transformer` does not have.

    Raises:
        ValueError: With the name of the setting.
    """
    if settings.get("type") != "transformer":
        raise settings.wrong("type", "transformer")
    for name, values in EXPRESSIBLE.items():
        if settings.get(name, values[0]) not in values:
            raise settings.wrong(name, " or ".join(map(repr, values)))
    for name in FLAGS:
        settings.flag(name)
    is_recurrent = settings.get("transformer-decoder-autoreg") == "rnn"
    if is_recurrent and settings.get("dec-cell", "ssru") != "ssru":
        raise settings.wrong("dec-cell", "'ssru'")
    inner = settings.count("transformer-dim-ffn")
    if settings.get("transformer-decoder-dim-ffn", 0) not in (0, inner):
        raise settings.wrong("transformer-decoder-dim-ffn", "0 or that of the encoder")
    sizes = settings.get("dim-vocabs")
    right = isinstance(sizes, list) and len(sizes) == 2
    if not right or not all(is_integer(size) and size > 1 for size in sizes):
        raise settings.wrong("dim-vocabs", "the sizes of two vocabularies")
    if settings.flag("tied-embeddings-all") and sizes[0] != sizes[1]:
        raise settings.wrong("dim-vocabs", "of equal sizes with `tied-embeddings-all`")


def weights_of(config, sizes):
    """Yields the `Weight`s of a Marian model; `theirs`, or the first of it, is what Marian writes.

    Marian counts layers from 1 and stores vectors as `[1, n]`; its matrices are `[in, out]`, as
    Keras's kernels are.

    Args:
        config: The `TransformerConfig`.
        sizes: Entries of the vocabularies of source and target in Marian. Ours may have more at
            their end.
    """
    yield from _vocabulary(config, *sizes)
    for side, layers in (("encoder", config.num_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            marian, ours = f"{side}_l{number + 1}", f"{side}.blocks.{number}"
            if side == "decoder" and config.decoder.autoregression == "ssru":
                yield from _recurrence(f"{marian}_rnn", ours)
            else:
                yield from _attention(f"{marian}_self", f"{ours}.self_attention", config)
            if side == "decoder":
                yield from _attention(f"{marian}_context", f"{ours}.cross_attention", config)
            yield from _feed_forward(marian, ours, config)


def _vocabulary(config, source, target):
    if config.tie == "all":
        yield Weight("Wemb", "source_embedding.table", Layout(entries=source))
    else:
        names = ("encoder_Wemb", "Wemb"), ("decoder_Wemb", "Wemb")
        yield Weight(names[0], "source_embedding.table", Layout(entries=source))
        yield Weight(names[1], "target_embedding.table", Layout(entries=target))
    if config.tie == "none":
        yield Weight(OUTPUT, "output_layer.kernel", Layout(transposed=True, entries=target))
    if config.output_bias:
        layout = Layout(is_row=True, entries=target, axis=1, filling=SILENT)
        yield Weight(LOGITS, "logits.bias", layout)


def _attention(marian, ours, config):
    projections = ("query", "key", "value", "output_projection")
    for letter, name in zip("qkvo", projections, strict=True):
        yield Weight(f"{marian}_W{letter}", f"{ours}.{name}.kernel")
        if config.attention_bias:
            yield Weight(f"{marian}_b{letter}", f"{ours}.{name}.bias", ROW)
    yield from _norm(f"{marian}_Wo", f"{ours}_norm")


def _recurrence(marian, ours):
    yield Weight(f"{marian}_W", f"{ours}.ssru.candidate.kernel")
    yield Weight(f"{marian}_Wf", f"{ours}.ssru.forget.kernel")
    yield Weight(f"{marian}_bf", f"{ours}.ssru.forget.bias", ROW)
    yield from _norm(f"{marian}_ffn", f"{ours}.ssru_norm")


def _feed_forward(marian, ours, config):
    for number, name in (("1", "inner"), ("2", "outer")):
        yield Weight(f"{marian}_ffn_W{number}", f"{ours}.feed_forward.{name}.kernel")
        if config.feed_forward_bias:
            yield Weight(f"{marian}_ffn_b{number}", f"{ours}.feed_forward.{name}.bias", ROW)
    yield from _norm(f"{marian}_ffn_ffn", f"{ours}.feed_forward_norm")


def _norm(marian, ours):
    yield Weight(f"{marian}_ln_scale", f"{ours}.gamma", ROW)
    yield Weight(f"{marian}_ln_bias", f"{ours}.beta", ROW)


def vocabularies_beside(path):
    """Returns the SentencePiece files of a model, those in its folder: one, or source and target.

    Of two that of the source is `source.spm` or begins with `src`, as in browsers.

    Raises:
        ValueError: If there is none, or it is not clear which they are.
    """
    files = sorted(path.parent.glob("*.spm"), key=lambda file: not file.name.startswith(SOURCES))
    clear = len(files) == 1 or [file.name.startswith(SOURCES) for file in files] == [True, False]
    if not clear:
        names = ", ".join(file.name for file in files) or "none"
        raise ValueError(
            f"{path} must have one vocabulary beside it, a .spm file, or source.spm and target.spm."
            f" Received: {names}."
        )
    return files


def _tie(settings):
    if settings.flag("tied-embeddings-all"):
        return "all"
    return "target" if settings.flag("tied-embeddings") else "none"


def _read_special(file, size):
    """The ids that a vocabulary defines, where a model has `size` entries for it."""
    try:
        ids = SpecialIds.of(pathlib.Path(file).read_bytes())
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    if ids.size > size:
        raise ValueError(f"{file} has {ids.size} pieces, the model {size} entries for them.")
    if ids.eos_id < 0:
        raise ValueError(f"{file} has no piece that ends a sentence.")
    return ids
