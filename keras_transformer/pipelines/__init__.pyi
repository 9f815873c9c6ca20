"""Public names and the modules that define them."""

# isort: off
from ..documents.documents import (
    Document as Document,
    Documents as Documents,
    Sentence as Sentence,
)
from ..documents.sentences import SentenceSplitter as SentenceSplitter
from ..tasks.arithmetic.codec import Calculation as Calculation
from ..tasks.arithmetic.pipeline import CalculatorPipeline as CalculatorPipeline
from ..tasks.answering import Answering as Answering
from ..tasks.attention import Attention as Attention
from ..tasks.classification.pipeline import TextClassificationPipeline as TextClassificationPipeline
from ..tasks.embedding.codec import TextVector as TextVector
from ..tasks.embedding.pipeline import Embedder as Embedder
from ..tasks.image_classification.pipeline import (
    ImageClassificationPipeline as ImageClassificationPipeline,
)
from ..tasks.image_embedding.neighbors import NearestNeighbors as NearestNeighbors
from ..tasks.image_embedding.pipeline import (
    ImageEmbeddingPipeline as ImageEmbeddingPipeline,
    ImageVector as ImageVector,
)
from ..tasks.language_modelling.chat import Chat as Chat
from ..tasks.language_modelling.pipeline import TextGenerator as TextGenerator
from ..tasks.late_interaction.codec import Interaction as Interaction
from ..tasks.late_interaction.pipeline import LateInteractionRanker as LateInteractionRanker
from ..tasks.masked_language_modelling.pipeline import Filling as Filling, MaskFiller as MaskFiller
from ..tasks.multi_label_classification.codec import LabelSet as LabelSet
from ..tasks.multi_label_classification.pipeline import (
    MultiLabelClassificationPipeline as MultiLabelClassificationPipeline,
)
from ..tasks.question_answering.codec import Answer as Answer
from ..tasks.question_answering.pipeline import QuestionAnswerer as QuestionAnswerer
from ..tasks.results import (
    Alignment as Alignment,
    Generated as Generated,
    Score as Score,
    Summary as Summary,
    Translation as Translation,
)
from ..tasks.run import Run as Run
from ..tasks.scoring.codec import PairScore as PairScore
from ..tasks.scoring.pipeline import Reranker as Reranker
from ..tasks.single_pass.labels import Classification as Classification
from ..tasks.single_pass.text_pairs import Ranked as Ranked
from ..tasks.sparse_embedding.pipeline import SparseEmbedder as SparseEmbedder
from ..tasks.sparse_embedding.vector import SparseVector as SparseVector
from ..tasks.speech_recognition.pipeline import SpeechRecognizer as SpeechRecognizer
from ..tasks.speech_recognition.transcript import Transcript as Transcript
from ..tasks.speech_recognition.voice_activity.silero import (
    SileroVoiceActivity as SileroVoiceActivity,
)
from ..tasks.story_questions.codec import StoryAnswer as StoryAnswer
from ..tasks.story_questions.pipeline import StoryAnswerer as StoryAnswerer
from ..tasks.summarization.pipeline import Summarizer as Summarizer
from ..tasks.time_series.pipeline import SeriesSimulator as SeriesSimulator
from ..tasks.token_classification.codec import TokenClassification as TokenClassification
from ..tasks.token_classification.entities import Entity as Entity, TextEntities as TextEntities
from ..tasks.token_classification.pipeline import (
    TokenClassificationPipeline as TokenClassificationPipeline,
)
from ..tasks.translation.pipeline import Translator as Translator
