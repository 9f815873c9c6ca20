"""Public names and the modules that define them."""

# isort: off
from ..config import PRESETS as PRESETS, TransformerConfig as TransformerConfig
from ..tasks.arithmetic.config import CalculatorConfig as CalculatorConfig
from ..tasks.arithmetic.model import Calculator as Calculator
from ..tasks.classification.config import ClassifierConfig as ClassifierConfig
from ..tasks.classification.model import TextClassifier as TextClassifier
from ..tasks.embedding.config import EmbedderConfig as EmbedderConfig
from ..tasks.embedding.model import TextEmbedder as TextEmbedder
from ..tasks.image_classification.config import ImageClassifierConfig as ImageClassifierConfig
from ..tasks.image_classification.model import ImageClassifier as ImageClassifier
from ..tasks.image_embedding.config import ImageEmbedderConfig as ImageEmbedderConfig
from ..tasks.image_embedding.model import ImageEmbedder as ImageEmbedder
from ..tasks.language_modelling.config import LanguageModelConfig as LanguageModelConfig
from ..tasks.language_modelling.model import LanguageModel as LanguageModel
from ..tasks.late_interaction.config import MultiVectorEncoderConfig as MultiVectorEncoderConfig
from ..tasks.late_interaction.model import MultiVectorEncoder as MultiVectorEncoder
from ..tasks.masked_language_modelling.config import (
    MaskedLanguageModelConfig as MaskedLanguageModelConfig,
)
from ..tasks.masked_language_modelling.model import MaskedLanguageModel as MaskedLanguageModel
from ..tasks.multi_label_classification.config import (
    MultiLabelClassifierConfig as MultiLabelClassifierConfig,
)
from ..tasks.multi_label_classification.model import MultiLabelClassifier as MultiLabelClassifier
from ..tasks.question_answering.config import SpanPredictorConfig as SpanPredictorConfig
from ..tasks.question_answering.model import SpanPredictor as SpanPredictor
from ..tasks.scoring.config import PairScorerConfig as PairScorerConfig
from ..tasks.scoring.model import PairScorer as PairScorer
from ..tasks.sparse_embedding.config import SparseEmbedderConfig as SparseEmbedderConfig
from ..tasks.sparse_embedding.model import SparseTextEmbedder as SparseTextEmbedder
from ..tasks.speech_recognition.config import SpeechTransformerConfig as SpeechTransformerConfig
from ..tasks.speech_recognition.model import SpeechTransformer as SpeechTransformer
from ..tasks.story_questions.config import StoryReaderConfig as StoryReaderConfig
from ..tasks.story_questions.model import StoryReader as StoryReader
from ..tasks.time_series.config import SeriesConfig as SeriesConfig
from ..tasks.time_series.model import SeriesRegressor as SeriesRegressor
from ..tasks.time_series.snow import SnowAccount as SnowAccount
from ..tasks.token_classification.config import TokenClassifierConfig as TokenClassifierConfig
from ..tasks.token_classification.model import TokenClassifier as TokenClassifier
from .transformer import Transformer as Transformer
