"""Marian's own model files, `.npz` and `.bin`, with their vocabularies beside them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.checks import is_integer
from keras_transformer.config import TransformerConfig
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import Greedy
from keras_transformer.decoding.generation import Generation
from keras_transformer.models.transformer import Transformer
from keras_transformer.norms import LayerNorm
from keras_transformer.positions import Sinusoidal
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.files.marian.arrays import SETTINGS, in_floats
from keras_transformer.pretrained.files.marian.gelu import SIGMOID, as_swish, form_of
from keras_transformer.pretrained.files.marian.settings import read_length_factor, read_settings
from keras_transformer.pretrained.files.marian.sides import read_sides
from keras_transformer.pretrained.files.marian.weights import (
    LOGITS,
    READERS,
    Arrays,
    read,
    weights_of,
)
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Weight
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import Tokenizers

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


class Marian(Family):
    """A `.npz` or `.bin` file of Marian; one in 8 bits is read as the floats that it stands for.

    Args:
        folder: A `CheckpointFolder`.
        vocabularies: The SentencePiece file of both languages, or those of source and target. If
            a table has the ids of the tokens, also this table, or those of source and target.
            `None`: those beside the model, see `find_vocabularies`.
        gelu: Which function a file with the activation gelu means: `"exact"`, or `"sigmoid"`, which
            is `x * sigmoid(1.702 x)`. `None`: by the version of Marian that the file names.
        max_length_ratio: Factor of the length of a source at which an output ends. `None`: that of
            the model's settings or of its decoder's, see `read_length_factor`.
        **changes: Fields of the `TransformerConfig` that Marian does not know: `max_length`,
            `dropout`.
    """

    name, task, model_class = "marian", "translation", Transformer
    listing = Listing(
        {"": ("Marian",)},
        "marian.md",
        "`*.spm`; of OPUS-MT's releases also `*vocab.yml`",
        exports=("marian",),
        tried=("a student that Marian trained",),
    )

    def __init__(self, folder, vocabularies=None, gelu=None, max_length_ratio=None, **changes):
        self._gelu, self._length_factor, self._changes = gelu, max_length_ratio, changes
        super().__init__(folder)
        sizes = self.settings.get("dim-vocabs")
        self._sides = read_sides(folder.model, vocabularies, sizes)
        self.notes += dict.fromkeys(note for side in self._sides for note in side.notes)

    @classmethod
    def matches(cls, folder) -> bool:  # noqa: D102
        return folder.model is not None and folder.model.suffix in READERS

    def read_settings(self) -> CheckpointSettings:  # noqa: D102
        path = self.folder.model
        self._arrays = read(path)
        settings = CheckpointSettings(read_settings(self._arrays, path), path)
        _check_settings(settings)
        return settings

    def read_tensors(self) -> Reader:  # noqa: D102
        settings, path = self.settings, self.folder.model
        weights = in_floats(self._arrays, path)
        form, notes = form_of(settings.content, path, self._gelu)
        self.notes += notes
        if form == SIGMOID:
            content, weights = as_swish(settings.content, weights)
            self.settings = CheckpointSettings(content, path)
        if settings.flag("output-omit-bias"):  # the entry that pads must have one all the same
            weights.setdefault(LOGITS, np.zeros((1, settings.get("dim-vocabs")[1]), np.float32))
        return Reader(Arrays(path, weights), SETTINGS)

    def config(self) -> TransformerConfig:
        """Returns the `TransformerConfig`.

        Marian starts an output with nothing and pads with nothing. One more entry after both
        vocabularies, which have as many entries then, is `pad_id` and `bos_id`; it has no text,
        and the model gives it no probability.
        """
        settings, (source, target) = self.settings, self._sides
        silent = max(settings.get("dim-vocabs"))
        output = "target" if settings.flag("tied-embeddings") else "none"
        return TransformerConfig(
            vocab_size=silent + 1,
            target_vocab_size=None if source.entries == target.entries else silent + 1,
            pad_id=silent,
            bos_id=silent,
            eos_id=target.eos_id,
            tie="all" if settings.flag("tied-embeddings-all") else output,
            output_bias=True,
            num_layers=settings.count("enc-depth"),
            num_decoder_layers=settings.count("dec-depth"),
            d_model=settings.count("dim-emb"),
            d_ff=settings.count("transformer-dim-ffn"),
            num_heads=settings.count("transformer-heads"),
            activation=settings.choice("transformer-ffn-activation", ACTIVATIONS, "relu"),
            decoder=settings.choice("transformer-decoder-autoreg", OURS, "self-attention"),
            decoder_start="zeros",
            normalization=LayerNorm(EPSILON),
            attention_bias=True,
            position=Sinusoidal("halves", endpoint=True),
            **self._changes,
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        depths = {"encoder": config.num_layers, "decoder": config.decoder_layers}
        for (side, depth), size in zip(
            depths.items(), self.settings.get("dim-vocabs"), strict=True
        ):
            yield f"{side}_l{depth}_ffn_W1", (config.d_model, config.encoder.block.d_ff)
            yield self.tensors.first_of([f"{side}_Wemb", "Wemb"]), (size, config.d_model)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        return weights_of(config, self.settings.get("dim-vocabs"), self.tensors)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        source, target = self._sides
        first = source.tokenizer(config)
        if (source.model, source.entries) == (target.model, target.entries):
            return Tokenizers.of(first)
        return Tokenizers.of([first, target.tokenizer(config)])

    def generation(self) -> Generation:
        """Returns greedy search that never emits the unknown piece, with Marian's length limit.

        Marian's limit depends on the longest source of a batch; this one is that of a source alone.
        """
        factor = self._length_factor
        if factor is None:
            factor = read_length_factor(self.folder.model, self.settings.content)
        suppressed = (self._sides[1].unk_id,)
        return Generation(Greedy(), OutputRules(suppressed_ids=suppressed, max_length_ratio=factor))

    def origin(self) -> dict[str, Any]:  # noqa: D102
        version = str(self.settings.get("version", "")).strip() or None
        name = self.folder.model.name
        return {"format": self.name, "name": name, "license": None, "marian": version}


def _check_settings(settings):
    """Refuses settings that a `Transformer` does not have, by name."""
    if settings.get("type") != "transformer":
        raise settings.wrong("type", "transformer")
    settings.check(EXPRESSIBLE)
    for name in FLAGS:
        settings.flag(name)
    if settings.get("transformer-decoder-autoreg") == "rnn":
        settings.check({"dec-cell": ("ssru",)})
    inner = settings.count("transformer-dim-ffn")
    if settings.get("transformer-decoder-dim-ffn", 0) not in (0, inner):
        raise settings.wrong("transformer-decoder-dim-ffn", "0 or that of the encoder")
    sizes = settings.get("dim-vocabs")
    right = isinstance(sizes, list) and len(sizes) == 2
    if not right or not all(is_integer(size) and size > 1 for size in sizes):
        raise settings.wrong("dim-vocabs", "the sizes of two vocabularies")
    if settings.flag("tied-embeddings-all") and sizes[0] != sizes[1]:
        raise settings.wrong("dim-vocabs", "of equal sizes with `tied-embeddings-all`")
