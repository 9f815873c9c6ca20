"""Updates, searches and predictions of this package, as TensorFlow hands them to XLA."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf
from encoder_task import ENCODERS
from speech_task import KERNEL, MEL_FILTERS, POSITIONS, SECONDS, SHAPES
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.distribute import distribute_lib, one_device_strategy

from keras_transformer import Beam, Greedy, Transformer, TransformerConfig
from keras_transformer.devices import assumed
from keras_transformer.models import (
    ClassifierConfig,
    SpeechTransformer,
    SpeechTransformerConfig,
    TextClassifier,
)
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.loop.objectives import RealLabels
from keras_transformer.training.losses import projected
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tuning.adam import Adam

PAD_ID, FIRST_ID = 0, 4  # of padding, and of the first token that is not special
FRAMES = 2 * POSITIONS["encoder"]  # of a recording of 30 seconds
BEAM, LENGTH_PENALTY = 4, 0.6  # as in the paper, section 6.1


@dataclasses.dataclass(frozen=True)
class Batch:
    """Shapes of a batch.

    Args:
        rows: Number of sentences, texts or recordings for each replica.
        length: Tokens of each, on either side; of a search also the maximum length of its outputs.
        replicas: Number of devices that share an update.
    """

    rows: int
    length: int
    replicas: int = 1


class _Replica(one_device_strategy.OneDeviceExtended):
    """One of several replicas, whose all-reduces are operations of XLA."""

    def __init__(self, strategy, device, replicas):
        super().__init__(strategy, device)
        self._replicas = replicas

    @property
    def _num_replicas_in_sync(self):
        return self._replicas

    def _use_merge_call(self):
        return False

    def _replica_ctx_all_reduce(self, reduce_op, value, options=None):
        group = [list(range(self._replicas))]
        return [
            gen_xla_ops.xla_all_reduce(
                input=tensor, group_assignment=group, reduce_op="Add", mode="CrossReplica"
            )
            for tensor in value
        ]


class ReplicaStrategy(distribute_lib.Strategy):
    """Strategy whose programs are those of one of `replicas` devices; they cannot run here.

    It stands for `TPUStrategy`: the package sees several replicas, sums over them, and takes
    Keras's own optimizer. Placement of variables and input pipeline are not those of a TPU.
    """

    def __init__(self, replicas):
        super().__init__(_Replica(self, "/cpu:0", replicas))


def translator(preset, vocab_size):
    """Returns a function that makes a `Transformer` of a preset, for a dtype policy."""
    config = TransformerConfig.preset(preset, vocab_size=vocab_size)
    return lambda policy: Transformer(config, dtype=policy)


def bert(policy):
    """Returns a classifier of BERT-base's shape."""
    shape = ENCODERS["bert-base"]
    config = ClassifierConfig(
        vocab_size=shape.vocab_size, labels=("no", "yes"), num_layers=shape.num_layers,
        d_model=shape.d_model, num_heads=shape.num_heads, d_ff=shape.d_ff, activation="gelu",
        max_length=shape.max_length, position="learned", embedding_scale=1.0, embedding_norm=True,
        pooling="first", pooler=True, segments="after_eos",
    )  # fmt: skip
    return TextClassifier(config, dtype=policy)


def whisper(policy):
    """Returns a model of Whisper tiny's shape."""
    shape = SHAPES["whisper-tiny"]
    config = SpeechTransformerConfig(
        vocab_size=shape.vocab_size, d_model=shape.d_model, num_layers=shape.num_layers,
        num_heads=shape.num_heads, d_ff=shape.d_ff, activation="gelu", norm="pre",
        attention_bias=("query", "value", "output"), position="learned", embedding_scale=1.0,
        max_length=POSITIONS["decoder"], num_mel_filters=MEL_FILTERS, max_seconds=float(SECONDS),
        pad_to_max_seconds=True, kernel_size=KERNEL, conv_stride=2, conv_activation="gelu",
    )  # fmt: skip
    return SpeechTransformer(config, dtype=policy)


MODELS = {
    "tiny": translator("tiny", 4_000),
    "base": translator("base", 37_000),
    "big": translator("big", 37_000),
    "bert-base": bert,
    "whisper-tiny": whisper,
}


def inputs_of(model, batch):
    """Returns inputs and labels of an update, as the package's training batches are made."""
    draw = np.random.default_rng(1)
    vocab_size = model.config.tokens.vocab_size
    ids = tf.constant(draw.integers(FIRST_ID, vocab_size, (batch.rows, batch.length), "int32"))
    if isinstance(model, TextClassifier):
        return ids, tf.constant(draw.integers(0, 2, batch.rows, "int32"))
    source = ids
    if isinstance(model, SpeechTransformer):
        source = tf.constant(draw.normal(size=(batch.rows, FRAMES, MEL_FILTERS)), tf.float32)
    return {"source": source, "target": ids}, ids


def update(model_of, batch, policy):
    """Returns the function of an update, and its arguments."""
    strategy = tf.distribute.get_strategy()
    if batch.replicas > 1:
        strategy = ReplicaStrategy(batch.replicas)
    with strategy.scope():
        model = model_of(policy)
        labels_of_texts = isinstance(model, TextClassifier)
        learner = Learner(
            model,
            (lambda inputs, labels: tf.ones_like(labels, tf.float32)) if labels_of_texts
            else RealLabels(PAD_ID),
            dtype=policy,
        )  # fmt: skip
        learner.compile(
            Adam(1e-3, beta_1=0.9, beta_2=0.98, epsilon=1e-9),
            ClassCrossEntropy() if labels_of_texts else LabelSmoothedCrossEntropy(0.1, PAD_ID),
            jit_compile=True,
        )
        learner.optimizer.build(learner.trainable_weights)

    def step(data):
        return strategy.run(learner.train_step, args=(data,))

    return step, inputs_of(model, batch)


def search(chosen):
    """Returns a function like `update`, of a search with outputs as long as the batch."""

    def program(model_of, batch, policy):
        model = model_of(policy)
        inputs, _ = inputs_of(model, batch)
        settings = chosen(batch.length)
        return (lambda source: settings(model, source).tokens), inputs["source"]

    return program


def prediction(model_of, batch, policy):
    """Returns the function of a model's outputs, and its arguments."""
    model = model_of(policy)
    inputs, _ = inputs_of(model, batch)
    return (lambda given: model(given, training=False)), inputs


PROGRAMS = {
    "update": update,
    "greedy": search(Greedy),
    "beam": search(lambda length: Beam(BEAM, max_length=length, length_penalty=LENGTH_PENALTY)),
    "prediction": prediction,
}
SEARCHES = ("greedy", "beam")


def extract(model, program, batch, policy, chunk_bytes=None):
    """Returns a program for XLA, a serialized `HloModuleProto`.

    Args:
        model: A key of `MODELS`.
        program: A key of `PROGRAMS`.
        batch: A `Batch`.
        policy: Dtype policy of Keras.
        chunk_bytes: Size of the logits that an update computes at a time. `None`: the package's.
    """
    keras.utils.set_random_seed(1)
    if chunk_bytes:
        projected.CHUNK_BYTES = chunk_bytes
    with assumed("TPU"):  # or a GPU: no computation has the form for a CPU
        function, argument = PROGRAMS[program](MODELS[model], batch, policy)
        compiled = tf.function(function, jit_compile=True, autograph=False)
        return compiled.experimental_get_compiler_ir(argument)(stage="hlo_serialized")
