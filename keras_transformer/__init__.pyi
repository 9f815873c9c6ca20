"""Namespaces, and the names that a first program needs, with the modules that define them."""

# isort: off
from . import (
    decoding as decoding,
    export as export,
    layers as layers,
    models as models,
    pipelines as pipelines,
    tokenizers as tokenizers,
    training as training,
)
from .config import TransformerConfig as TransformerConfig
from .decoding.beam import Beam as Beam
from .decoding.greedy import Greedy as Greedy
from .layers.attention import MultiHeadSelfAttention as MultiHeadSelfAttention
from .layers.blocks.decoder import Decoder as Decoder, DecoderBlock as DecoderBlock
from .layers.blocks.encoder import Encoder as Encoder, EncoderBlock as EncoderBlock
from .layers.feed_forward import FeedForward as FeedForward
from .layers.inputs.embedding import PositionalEmbedding as PositionalEmbedding
from .models.transformer import Transformer as Transformer
from .opening.forms import open as open
from .opening.pretrained import from_pretrained as from_pretrained
from .tasks.language_modelling.model import LanguageModel as LanguageModel
from .tasks.translation.pipeline import Translator as Translator

__version__: str
