"""Public names and the modules that define them, in the order of the paper."""

# isort: off
from .config import (
    PRESETS as PRESETS,
    TransformerConfig as TransformerConfig,
)
from .tasks.speech_recognition.config import SpeechTransformerConfig as SpeechTransformerConfig
from .tasks.classification.config import ClassifierConfig as ClassifierConfig
from .tasks.token_classification.config import TokenClassifierConfig as TokenClassifierConfig
from .tasks.language_modelling.config import LanguageModelConfig as LanguageModelConfig
from .tasks.question_answering.config import SpanPredictorConfig as SpanPredictorConfig
from .tasks.masked_language_modelling.config import (
    MaskedLanguageModelConfig as MaskedLanguageModelConfig,
)
from .tasks.embedding.config import EmbedderConfig as EmbedderConfig
from .tasks.image_classification.config import ImageClassifierConfig as ImageClassifierConfig
from .tasks.time_series.config import SeriesConfig as SeriesConfig
from .layers.masks import (
    PaddingMask as PaddingMask,
    causal_mask as causal_mask,
    padding_mask as padding_mask,
)
from .layers.dot_product import dot_product_attention as dot_product_attention
from .scores import (
    Additive as Additive,
    AttentionScore as AttentionScore,
    DotProduct as DotProduct,
    General as General,
    ScaledDotProduct as ScaledDotProduct,
)
from .layers.attention import MultiHeadSelfAttention as MultiHeadSelfAttention
from .layers.cross_attention import MultiHeadCrossAttention as MultiHeadCrossAttention
from .layers.mixing import Mixing as Mixing
from .mixers import Mixer as Mixer, SSRU as SSRU, SelfAttention as SelfAttention
from .layers.feed_forward import FeedForward as FeedForward
from .feed_forwards import Gated as Gated, Network as Network, Plain as Plain
from .norms import LayerNorm as LayerNorm, Norm as Norm, RMSNorm as RMSNorm
from .positions import (
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
from .layers.inputs.embedding import PositionalEmbedding as PositionalEmbedding
from .tasks.image_classification.layers import PatchEmbedding as PatchEmbedding
from .tasks.time_series.layers import SeriesEmbedding as SeriesEmbedding
from .tasks.speech_recognition.layers import (
    FrameEmbedding as FrameEmbedding,
    FrameMask as FrameMask,
)
from .layers.blocks.encoder import Encoder as Encoder, EncoderBlock as EncoderBlock
from .layers.blocks.decoder import Decoder as Decoder, DecoderBlock as DecoderBlock
from .models.transformer import Transformer as Transformer
from .tasks.speech_recognition.model import SpeechTransformer as SpeechTransformer
from .tasks.time_series.snow import SnowAccount as SnowAccount
from .tasks.language_modelling.model import LanguageModel as LanguageModel
from .tasks.masked_language_modelling.model import MaskedLanguageModel as MaskedLanguageModel
from .tasks.classification.model import TextClassifier as TextClassifier
from .tasks.embedding.model import TextEmbedder as TextEmbedder
from .tasks.token_classification.model import TokenClassifier as TokenClassifier
from .tasks.image_classification.model import ImageClassifier as ImageClassifier
from .tasks.time_series.model import SeriesRegressor as SeriesRegressor
from .tasks.question_answering.model import SpanPredictor as SpanPredictor
from .decoding import (
    Beam as Beam,
    BestPath as BestPath,
    Constraints as Constraints,
    Greedy as Greedy,
    Sample as Sample,
    SearchOptions as SearchOptions,
    score as score,
)
from .text.shortlist import Shortlist as Shortlist
from .text.tokenizers import (
    ByteBPETokenizer as ByteBPETokenizer,
    SentencePieceTokenizer as SentencePieceTokenizer,
    Tokenizer as Tokenizer,
    WordPieceTokenizer as WordPieceTokenizer,
)
from .text.bert_normalizer import BertNormalizer as BertNormalizer
from .tasks.answering import Answering as Answering
from .tasks.attention import Attention as Attention
from .opening.pretrained import from_pretrained as from_pretrained
from .tasks.results import (
    Alignment as Alignment,
    Generated as Generated,
    Score as Score,
    Summary as Summary,
    Translation as Translation,
)
from .tasks.translation.pipeline import Translator as Translator
from .tasks.summarization.pipeline import Summarizer as Summarizer
from .tasks.language_modelling.pipeline import TextGenerator as TextGenerator
from .tasks.single_pass.labels import Classification as Classification
from .tasks.classification.pipeline import TextClassificationPipeline as TextClassificationPipeline
from .tasks.image_classification.pipeline import (
    ImageClassificationPipeline as ImageClassificationPipeline,
)
from .tasks.time_series.pipeline import SeriesSimulator as SeriesSimulator
from .tasks.speech_recognition.pipeline import SpeechRecognizer as SpeechRecognizer
from .tasks.speech_recognition.transcript import Transcript as Transcript
from .tasks.token_classification.codec import TokenClassification as TokenClassification
from .tasks.token_classification.entities import Entity as Entity, TextEntities as TextEntities
from .tasks.token_classification.pipeline import (
    TokenClassificationPipeline as TokenClassificationPipeline,
)
from .tasks.embedding.pipeline import Embedder as Embedder, TextVector as TextVector
from .tasks.question_answering.pipeline import QuestionAnswerer as QuestionAnswerer
from .tasks.question_answering.codec import Answer as Answer
from .tasks.masked_language_modelling.pipeline import Filling as Filling, MaskFiller as MaskFiller
from .tasks.run import Run as Run
from .opening.forms import open as open

__version__: str
