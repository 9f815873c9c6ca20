"""The tensors of a Marian model of Hugging Face's as the weights of a `Transformer`.

PyTorch's linear layers are `[out, in]`, Keras's `[in, out]`. Tables that are tied may be in the
file several times; they must then be equal.
"""

import dataclasses

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.positions import sinusoids
from keras_transformer.models.transformer import Transformer

SHARED = "model.shared.weight"
TABLES = {side: f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
POSITIONS = {side: f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
OUTPUT, BIAS = "lm_head.weight", "final_logits_bias"
SIDES = {"encoder": "source", "decoder": "target"}
# Sinusoids are kept in the type of the file; half a unit of bfloat16 between 0.5 and 1 is 0.002.
SINUSOIDS_DIFFER = {"F32": 1e-4, "F16": 1e-3, "BF16": 8e-3}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
NORMS = {
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward_norm": "final_layer_norm",
}


def read_model(file, architecture):
    """Returns the `Transformer` whose weights a file has.

    Args:
        file: A `SafetensorsFile`.
        architecture: The `Architecture` of its settings.

    Raises:
        ValueError: If a tensor is missing, unknown, of another shape or not finite, or tables that
            are tied differ; it is named.
    """
    reader = _Reader(file)
    _check_sizes(reader, architecture)
    fields = dict(architecture.fields)
    positions = _positions(reader, architecture)
    # Learned positions of source and target belong to the tables of tokens, so that these cannot
    # be one if those differ.
    apart = positions is not None and not np.array_equal(*positions.values())
    fields["position"] = "sinusoidal" if positions is None else "learned"
    if positions is None:
        fields["sinusoid_layout"] = "halves"
    fields["tie"] = _tie(architecture, apart)
    bias = reader.read(BIAS) if BIAS in file.shapes else np.zeros(0, "float32")
    fields["output_bias"] = bool(np.any(bias))
    fields["attention_bias"] = _has_biases(file, *PROJECTIONS.values())
    fields["feed_forward_bias"] = _has_biases(file, "fc1", "fc2")
    config = TransformerConfig(**fields)
    model = Transformer(config, dtype="float32")
    _give_tables(reader, model, architecture, positions)
    if bias.size and bias.size != config.output_size:
        raise reader.wrong_shape(BIAS, (1, config.output_size))
    if config.output_bias:
        model.output_bias.assign(bias.reshape(-1))
    for stack, side in ((model.encoder, "encoder"), (model.decoder, "decoder")):
        _give_stack(reader, stack, f"model.{side}")
    reader.check_all_used()
    return model


def _check_sizes(reader, architecture):
    """Refuses settings that are not those of the tensors, before a model of their size is made."""
    fields = architecture.fields
    width, size = fields["d_model"], fields["vocab_size"]
    rows = {"encoder": size, "decoder": fields["target_vocab_size"] or size}
    layers = {"encoder": fields["num_layers"], "decoder": fields["num_decoder_layers"]}
    for side, table in TABLES.items():
        last = f"model.{side}.layers.{layers[side] - 1}.fc1.weight"
        reader.check_shape(last, (fields["d_ff"], width))
        if table not in reader.file.shapes:
            table = SHARED
        reader.check_shape(table, (rows[side], width))


def _tie(architecture, apart):
    if not architecture.tied:
        return "none"
    return "all" if architecture.shared and not apart else "target"


def _has_biases(file, *layers):
    """Whether linear layers of these names have biases; one that lacks it is named later."""
    return any(name.endswith(tuple(f".{layer}.bias" for layer in layers)) for name in file.shapes)


@dataclasses.dataclass
class _Reader:
    """The tensors of a file, and which of them have been used."""

    file: object

    def __post_init__(self):
        self.unused = set(self.file.shapes)

    def read(self, name, shape=None):
        """Returns a tensor, which must have that shape."""
        if shape is not None:
            self.check_shape(name, shape)
        values = self.file.read(name)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.file.path}: {name} must hold finite numbers alone.")
        self.unused.discard(name)
        return values

    def check_shape(self, name, shape):
        """Raises unless there is a tensor of that name and shape; reads nothing of it."""
        if name not in self.file.shapes:
            raise ValueError(f"{self.file.path}: the tensor {name} is missing.")
        if self.file.shapes[name] != shape:
            raise self.wrong_shape(name, shape)

    def read_tied(self, names, shape):
        """Returns a tensor that has several names, of which those in the file must be equal."""
        names = [name for name in names if name in self.file.shapes] or names[:1]
        first, *others = names
        values = self.read(first, shape)
        for other in others:
            if not np.array_equal(values, self.read(other, shape)):
                raise ValueError(
                    f"{self.file.path}: {first} and {other} must be equal, as config.json ties "
                    "them. They differ."
                )
        return values

    def give(self, variable, name, transpose=False):
        """Gives a tensor to a variable."""
        shape = tuple(variable.shape)
        values = self.read(name, shape[::-1] if transpose else shape)
        variable.assign(values.T if transpose else values)

    def wrong_shape(self, name, shape, reason="config.json says"):
        return ValueError(
            f"{self.file.path}: {name} must have the shape {list(shape)}, as {reason}. "
            f"Received: {list(self.file.shapes[name])}."
        )

    def check_all_used(self):
        """Refuses a file with tensors that no weight was made of."""
        if self.unused:
            names = sorted(self.unused)
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ValueError(
                f"{self.file.path}: every tensor must have its place in the model. "
                f"Without one: {', '.join(names[:3])}{more}."
            )


def _positions(reader, architecture):
    """Learned positions of encoder and decoder, by side; `None` where they are sinusoids."""
    length, width = architecture.fields["max_length"], architecture.fields["d_model"]
    tables = {
        side: _read_positions(reader, name, architecture)
        for side, name in POSITIONS.items()
        if architecture.learned or name in reader.file.shapes
    }
    if architecture.learned or not tables:
        return tables or None
    expected = sinusoids(length, width, "halves")
    far = max(
        np.abs(table - expected).max() - SINUSOIDS_DIFFER[reader.file.types[POSITIONS[side]]]
        for side, table in tables.items()
    )
    return {side: tables.get(side, expected) for side in POSITIONS} if far > 0 else None


def _read_positions(reader, name, architecture):
    """The rows of a table of positions from that of the first position on."""
    if name not in reader.file.shapes:
        raise ValueError(
            f"{reader.file.path}: {name} is missing, which `static_position_embeddings` = false in "
            "config.json asks for: positions are learned. With true they are sinusoids."
        )
    shape = (
        architecture.fields["max_length"] + architecture.offset,
        architecture.fields["d_model"],
    )
    if reader.file.shapes[name] != shape:
        rows = "`max_position_embeddings`"
        rows += " and `extra_pos_embeddings` say" if architecture.learned else " says"
        raise reader.wrong_shape(name, shape, f"{rows} in config.json")
    return reader.read(name)[architecture.offset :]


def _give_tables(reader, model, architecture, positions):
    """The embeddings, the output weights and the learned positions."""
    config, width = model.config, model.config.d_model
    source_shape, target_shape = (config.vocab_size, width), (config.output_size, width)
    source, target = [TABLES["encoder"]], [TABLES["decoder"]]
    if architecture.shared:
        source = target = [SHARED, *source, *target]
    elif SHARED in reader.file.shapes:
        source = [SHARED, *source]
    if architecture.tied:
        target = [*target, OUTPUT]
    if architecture.shared:
        source = target
    model.source_embedding.table.assign(reader.read_tied(source, source_shape))
    model.target_embedding.table.assign(reader.read_tied(target, target_shape))
    if config.tie == "none":
        reader.give(model.output_layer.kernel, OUTPUT, transpose=True)
    for side, table in (positions or {}).items():
        getattr(model, f"{SIDES[side]}_embedding").positions.assign(table)


def _give_stack(reader, stack, prefix):
    for number, block in enumerate(stack.blocks):
        _give_block(reader, block, f"{prefix}.layers.{number}")
    if stack.norm is not None:
        _give_norm(reader, stack.norm, f"{prefix}.layer_norm")
    if stack.embedding_norm is not None:
        _give_norm(reader, stack.embedding_norm, f"{prefix}.layernorm_embedding")


def _give_block(reader, block, prefix):
    for ours, theirs in ATTENTIONS.items():
        attention = getattr(block, ours, None)
        if attention is None:
            continue
        for projection, name in PROJECTIONS.items():
            projection = "output_projection" if projection == "output" else projection
            _give_linear(reader, getattr(attention, projection), f"{prefix}.{theirs}.{name}")
    _give_linear(reader, block.feed_forward.inner, f"{prefix}.fc1")
    _give_linear(reader, block.feed_forward.outer, f"{prefix}.fc2")
    for ours, theirs in NORMS.items():
        if hasattr(block, ours):
            _give_norm(reader, getattr(block, ours), f"{prefix}.{theirs}")


def _give_linear(reader, layer, name):
    reader.give(layer.kernel, f"{name}.weight", transpose=True)
    if layer.bias is not None:
        reader.give(layer.bias, f"{name}.bias")


def _give_norm(reader, norm, name):
    reader.give(norm.gamma, f"{name}.weight")
    reader.give(norm.beta, f"{name}.bias")
