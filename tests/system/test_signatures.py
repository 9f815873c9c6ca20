"""Signatures that type checkers and editors see: options as explicit arguments, in stubs."""

import ast
import dataclasses
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import keras_transformer as kt
from keras_transformer.arguments import option, options_of, parameter
from keras_transformer.config import StackConfig
from keras_transformer.mixers import Mixer
from keras_transformer.models import ClassifierConfig, TransformerConfig
from keras_transformer.scores import AttentionScore

ROOT = pathlib.Path(__file__).parents[2]
# Lines that a type checker must report end in `# wrong`; it must not report any other one.
PROGRAM = """
import dataclasses
from typing import Any

import keras
import keras_transformer as kt
from keras_transformer.config import BlockConfig, StackConfig
from keras_transformer.layers import (
    SSRU, Alibi, Gated, LayerNorm, MultiHeadCrossAttention, Position, Rotary, SelfAttention
)
from keras_transformer.models import (
    ClassifierConfig, ImageClassifierConfig, LanguageModelConfig, SeriesConfig,
    SeriesRegressor, SpeechTransformerConfig, TokenClassifierConfig,
)


class Mine(Position):
    kind = "mine"


class Wider(kt.EncoderBlock):
    def __init__(self, num_heads: int, d_ff: int, **kwargs: Any):
        super().__init__(num_heads, 2 * d_ff, dropout=0.0, **kwargs)


block = kt.EncoderBlock(num_heads=8, d_ff=2048)
block = kt.EncoderBlock(8, 2048, True, dropout=0.2, name="block", dtype="float32")
block = kt.EncoderBlock(None, 64, mixer=SelfAttention(4, window=3), norm="pre")
block = kt.EncoderBlock(4, 64, position=Mine(), activation=keras.activations.silu)
block = kt.EncoderBlock(4, 64, position="mine", feed_forward=Gated(), normalization="rms")
block = kt.EncoderBlock(4, 64, position={"kind": "rotary", "base": 500_000.0})
block = Wider(4, 64, norm="pre")
block = kt.EncoderBlock(4, 64, droput=0.2)  # wrong
block = kt.EncoderBlock(4, 64, num_layers=2)  # wrong
block = kt.EncoderBlock(4, 64, norm=LayerNorm())  # wrong
block = kt.EncoderBlock(4, 64, position=LayerNorm())  # wrong
block = kt.EncoderBlock(4, 64, dropout="0.2")  # wrong
block = kt.EncoderBlock("8", 64)  # wrong
block = kt.EncoderBlock(4)  # wrong
block = kt.EncoderBlock(mixer="gru", d_ff=64)
block = kt.EncoderBlock(mixer=SelfAttention(4), d_ff=64, causal=True)
block = kt.EncoderBlock(mixer="gru")  # wrong
block = kt.EncoderBlock(mixer="gru", d_ff=64, droput=0.2)  # wrong
encoder = kt.Encoder(2, mixer="gru", d_ff=64, norm="pre")
decoder = kt.Decoder(6, 8, 2048, mixer=SSRU(), cross_attention={"num_heads": 4})
decoder = kt.Decoder(6, 8, 2048, causal=False)  # wrong
decoder = kt.DecoderBlock(8, 2048, final_norm=True)  # wrong
window = kt.layers.AlternatingWindow(64, global_every=3)
encoder = kt.Encoder(num_layers=6, num_heads=8, d_ff=2048, window=window)
encoder = kt.Encoder(6, 8, 2048, cross_attention=None)  # wrong
attention = kt.MultiHeadSelfAttention(8, position="alibi", score="additive", use_bias=["query"])
attention = kt.MultiHeadSelfAttention(SelfAttention(8, query_key_norm="rms"), causal=True)
attention = kt.MultiHeadSelfAttention(8, bias=True)  # wrong
attention = kt.MultiHeadSelfAttention(8, window=6.4)  # wrong
attention = MultiHeadCrossAttention(8, d_k=4, dropout=0.1)
attention = MultiHeadCrossAttention(8, window=4)  # wrong
heads = attention.num_heads + "1"  # wrong
mixer = SelfAttention(8, score="additive")
mixer = SelfAttention(8, scores="additive")  # wrong
stack = StackConfig(num_layers=2, position="rotary", block=BlockConfig(mixer="ssru"))
stack = StackConfig(layers=2)  # wrong

config = kt.TransformerConfig(vocab_size=8000, num_heads=8, decoder="ssru")
config = kt.TransformerConfig(position=Rotary(base=5e5), decoder={"position": Alibi()})
config = kt.TransformerConfig(encoder=stack, num_decoder_layers=2, end_ids=[3, 4])
config = kt.TransformerConfig.preset("big", vocab_size=37000, dropout=0.3)
config = kt.TransformerConfig(vocab=8000)  # wrong
config = kt.TransformerConfig(num_heads="8")  # wrong
config = kt.TransformerConfig(segments="from_bos")  # wrong
config = kt.TransformerConfig(encoder=6)  # wrong
config = kt.TransformerConfig.preset("big", vocab=37000)  # wrong
config = kt.TransformerConfig.preset("big", vocab_size="many")  # wrong
model = kt.Transformer(kt.TransformerConfig(vocab_size=8000, num_heads=8))
model = kt.Transformer(kt.TransformerConfig(vocab_size=8000, heads=8))  # wrong
model = kt.Transformer(num_layers=6, decoder={"num_layers": 2}, dtype="mixed_bfloat16")
model = kt.LanguageModel("tiny", vocab_size=8000, name="model")
model = kt.LanguageModel("tiny", vocabulary=8000)  # wrong
model = kt.LanguageModel(kt.TransformerConfig())  # wrong
model.compile("adam", keras.losses.SparseCategoricalCrossentropy())
model.summary(expand_nested=False)
memory = kt.Transformer().encode(keras.ops.ones((1, 2), "int32"))
model = SeriesRegressor(inputs=("rain",), encoder="lstm")
model = SeriesRegressor(input=("rain",))  # wrong
ClassifierConfig(labels=["bad", "good"], pooling="first")
ClassifierConfig(labels=["bad", "good"], pooling="middle")  # wrong
ImageClassifierConfig.preset("tiny", image_height=32, image_width=48, patch_size=8)
ImageClassifierConfig(image_size=32)  # wrong
LanguageModelConfig(num_heads=4, window=64)
LanguageModelConfig(num_heads=4, cross_attention=None)  # wrong
SeriesConfig(inputs=("rain",), target="discharge", encoder="lstm")
SeriesConfig(input=("rain",))  # wrong
SpeechTransformerConfig(max_seconds=10)
SpeechTransformerConfig(max_length="10")  # wrong
TokenClassifierConfig(labels=("O", "B-X"))
TokenClassifierConfig(pooling="mean")  # wrong
dataclasses.replace(stack, num_layers=3)
given: dict[str, Any] = {"vocab_size": 8000}
kt.TransformerConfig(**given)
"""


def program(name):
    """Returns a program of `.ci` as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stubs():
    return program("stubs")


def contents(text):
    """Returns the imported names and the other statements of a stub, however it is formatted."""
    statements = ast.parse(text).body
    imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {(getattr(node, "module", None), x.name) for node in imports for x in node.names}
    return names, [ast.dump(node) for node in statements if node not in imports]


def test_stubs_list_the_declared_options(stubs):
    paths = stubs.stubbed()
    assert len(paths) > 15
    for path in paths:
        committed = path.with_suffix(".pyi").read_text("utf-8")
        assert contents(committed) == contents(stubs.stub_of(path)), f"{path}: run `make stubs`"


def test_lists_of_mixers_follow_from_their_classes():
    lists = program("mixer_lists")
    for name in lists.LISTS:
        assert (ROOT / name).read_text("utf-8") == lists.written(name), f"{name}: run `make stubs`"


def test_a_type_checker_knows_the_options(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "ty", "check", "--output-format", "concise"]
    done = subprocess.run(
        [*command, "--python", sys.prefix, "--project", ROOT, program],
        capture_output=True,
        text=True,
    )
    reported = {int(line) for line in re.findall(r"program\.py:(\d+):", done.stdout)}
    lines = PROGRAM.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 25
    differences = (f"{number}: {lines[number - 1]}" for number in sorted(reported ^ wrong))
    assert reported == wrong, "\n".join([*differences, done.stderr])


def test_signatures_have_the_types_and_defaults_of_options():
    parameters = inspect.signature(kt.EncoderBlock).parameters
    assert str(parameters["dropout"]) == "dropout: float = 0.1"
    assert str(parameters["causal"]) == "causal: bool = False"
    assert parameters["activation"].annotation == str | Callable[..., Any]
    assert parameters["mixer"].annotation == Mixer | str | dict[str, Any]
    parameters = inspect.signature(TransformerConfig).parameters
    assert str(parameters["num_decoder_layers"]) == "num_decoder_layers: int | None = None"
    assert {*TransformerConfig.options(), "input", "decoder", "head"} <= {*parameters}
    stack = StackConfig | dict[str, Any] | None
    assert parameters["encoder"].annotation == stack | Mixer | str
    assert parameters["decoder"].annotation == stack | Mixer | str
    labels = inspect.signature(ClassifierConfig).parameters["labels"]
    assert str(labels) == "labels: tuple | list = ('0', '1')"


def test_options_of_ones_own_may_be_required_or_have_types_as_text():
    @dataclasses.dataclass
    class Own:
        width: "int" = option(dataclasses.MISSING, "Width.")
        score: "AttentionScore" = option("general", "Score.", of=AttentionScore)

    width, score = (parameter(*item) for item in options_of(Own).items())
    assert width.annotation is Any
    assert score.default == "general" and width.default is width.empty
