"""Public names and the modules that define them."""

# isort: off
from ..feed_forwards import (
    Gated as Gated,
    Network as Network,
    NoNetwork as NoNetwork,
    Plain as Plain,
)
from ..mixers import (
    AlternatingWindow as AlternatingWindow,
    AttentionWindow as AttentionWindow,
    CrossAttention as CrossAttention,
    SamePosition as SamePosition,
    LocalWindow as LocalWindow,
    Mixer as Mixer,
)

# Written by `make stubs`.
from ..mixers.dilated_convolution import DilatedConvolution as DilatedConvolution
from ..mixers.gru import GRU as GRU
from ..mixers.gated_convolution import GatedConvolution as GatedConvolution
from ..mixers.lstm import LSTM as LSTM
from ..mixers.ssru import SSRU as SSRU
from ..mixers.self_attention import SelfAttention as SelfAttention
from ..norms import (
    LayerNorm as LayerNorm,
    NoNorm as NoNorm,
    Norm as Norm,
    NormPlace as NormPlace,
    PostNorm as PostNorm,
    PreNorm as PreNorm,
    RMSNorm as RMSNorm,
    Scale as Scale,
)
from ..positions import (
    Alibi as Alibi,
    Binary as Binary,
    Disentangled as Disentangled,
    Learned as Learned,
    LinearScaling as LinearScaling,
    Llama3Scaling as Llama3Scaling,
    Position as Position,
    Relative as Relative,
    Rotary as Rotary,
    Sinusoidal as Sinusoidal,
    SinusoidalGrid as SinusoidalGrid,
    T5Bias as T5Bias,
    YarnScaling as YarnScaling,
    sinusoids as sinusoids,
)
from ..scores import (
    Additive as Additive,
    AttentionScore as AttentionScore,
    DotProduct as DotProduct,
    General as General,
    ScaledDotProduct as ScaledDotProduct,
)
from ..tasks.arithmetic.layers import ConvolutionalGRU as ConvolutionalGRU, NeuralGPU as NeuralGPU
from ..tasks.arithmetic.tape import TapeDecoder as TapeDecoder, TapeGRU as TapeGRU
from .inputs.patches import PatchEmbedding as PatchEmbedding
from ..tasks.speech_recognition.layers import (
    FrameEmbedding as FrameEmbedding,
    FrameMask as FrameMask,
)
from ..tasks.time_series.layers import SeriesEmbedding as SeriesEmbedding
from .attention import MultiHeadSelfAttention as MultiHeadSelfAttention
from .blocks.decoder import Decoder as Decoder, DecoderBlock as DecoderBlock
from .blocks.encoder import Encoder as Encoder, EncoderBlock as EncoderBlock
from .multi_head import MultiHeadCrossAttention as MultiHeadCrossAttention
from .dot_product import dot_product_attention as dot_product_attention
from .feed_forward import FeedForward as FeedForward
from .inputs.embedding import PositionalEmbedding as PositionalEmbedding
from .masks import (
    PaddingMask as PaddingMask,
    causal_mask as causal_mask,
    padding_mask as padding_mask,
)
from .mixing import Mixing as Mixing
from .same_position import PositionReader as PositionReader
