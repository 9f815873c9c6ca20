"""Pipelines of untrained models for several tests."""

import functools
import io

import sentencepiece
from support import randomise

from keras_transformer import LanguageModel, Transformer, TransformerConfig, Translator
from keras_transformer.models import (
    ClassifierConfig,
    EmbedderConfig,
    ImageClassifier,
    ImageClassifierConfig,
    ImageEmbedder,
    ImageEmbedderConfig,
    LanguageModelConfig,
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    MultiLabelClassifier,
    MultiLabelClassifierConfig,
    MultiVectorEncoder,
    MultiVectorEncoderConfig,
    PairScorer,
    PairScorerConfig,
    SeriesConfig,
    SeriesRegressor,
    SpanPredictor,
    SpanPredictorConfig,
    SparseEmbedderConfig,
    SparseTextEmbedder,
    SpeechTransformer,
    SpeechTransformerConfig,
    StoryReader,
    StoryReaderConfig,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
    TokenClassifierConfig,
)
from keras_transformer.pipelines import (
    Embedder,
    ImageClassificationPipeline,
    ImageEmbeddingPipeline,
    LateInteractionRanker,
    MaskFiller,
    MultiLabelClassificationPipeline,
    QuestionAnswerer,
    Reranker,
    Run,
    SeriesSimulator,
    SparseEmbedder,
    SpeechRecognizer,
    StoryAnswerer,
    Summarizer,
    TextClassificationPipeline,
    TextGenerator,
    TokenClassificationPipeline,
)
from keras_transformer.tokenizers import SentencePieceTokenizer

LINES = ["a cat runs", "the big dog", "a dog and a cat", "the cat and the big dog runs"]
SIZES = {
    "num_layers": 2, "d_model": 16, "d_ff": 24, "num_heads": 2, "max_length": 11, "dropout": 0.3,
    "position": "learned",
}  # fmt: skip
LABELS = ("bad", "good", "so so")


@functools.cache
def tokenizer(size=30, control=()):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20), model_writer=model, vocab_size=size, model_type="bpe",
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, control_symbols=[*control], minloglevel=2,
    )  # fmt: skip
    return SentencePieceTokenizer(model.getvalue())


def with_larger_weights(model):
    """Increases positions and attention weights of a model, so that its answers differ."""
    for weight in randomise(model).weights:
        if weight.path.endswith(("positions", "query/kernel")):
            weight.assign(4 * weight)
    return model


@functools.cache
def classifier():
    config = ClassifierConfig(vocab_size=30, **SIZES, labels=LABELS, pooling="attention")
    return TextClassificationPipeline(with_larger_weights(TextClassifier(config)), tokenizer())


@functools.cache
def multi_label_classifier():
    """Its texts have one to three labels."""
    options = {"labels": LABELS, "pooling": "attention", "threshold": 0.26}
    config = MultiLabelClassifierConfig(vocab_size=30, **SIZES, **options)
    model = with_larger_weights(MultiLabelClassifier(config))
    return MultiLabelClassificationPipeline(model, tokenizer())


@functools.cache
def embedder():
    layers = [{"kind": "dense", "units": 7}, "layer_norm"]
    config = EmbedderConfig(vocab_size=30, **SIZES, after_pooling=layers, dimensions=5)
    return Embedder(with_larger_weights(TextEmbedder(config)), tokenizer())


@functools.cache
def sparse_embedder():
    """Its vectors have at most 9 of the 30 tokens."""
    config = SparseEmbedderConfig(vocab_size=30, **SIZES, max_active=9)
    return SparseEmbedder(with_larger_weights(SparseTextEmbedder(config)), tokenizer())


@functools.cache
def token_classifier():
    config = TokenClassifierConfig(vocab_size=30, **SIZES, labels=("O", "B-X", "I-X"))
    return TokenClassificationPipeline(with_larger_weights(TokenClassifier(config)), tokenizer())


@functools.cache
def filler():
    config = MaskedLanguageModelConfig(vocab_size=30, **SIZES)
    known = tokenizer(control=("<mask>",))
    return MaskFiller(with_larger_weights(MaskedLanguageModel(config)), known)


@functools.cache
def generator():
    config = LanguageModelConfig(vocab_size=30, **SIZES, tie="none")
    return TextGenerator(with_larger_weights(LanguageModel(config)), tokenizer())


@functools.cache
def translator():
    """A translator whose decoder has a layer less than its encoder."""
    config = TransformerConfig(vocab_size=30, **SIZES, num_decoder_layers=1)
    return Translator(with_larger_weights(Transformer(config)), tokenizer())


@functools.cache
def recurrent_translator():
    """A translator whose decoder has SSRUs."""
    config = TransformerConfig(vocab_size=30, **SIZES, decoder="ssru", decoder_start="zeros")
    return Translator(with_larger_weights(Transformer(config)), tokenizer())


@functools.cache
def summarizer():
    return Summarizer(translator().model, tokenizer())


@functools.cache
def answerer():
    config = SpanPredictorConfig(vocab_size=30, **SIZES, max_answer=4)
    return QuestionAnswerer(with_larger_weights(SpanPredictor(config)), tokenizer())


@functools.cache
def reranker():
    config = PairScorerConfig(vocab_size=30, **SIZES, pooler=True)
    return Reranker(with_larger_weights(PairScorer(config)), tokenizer())


CONTROL = ("<q>", "<p>", "<mask>")
MARKERS = 4, 5, 6  # their ids
SKIPPED = (8, 19)


@functools.cache
def ranker():
    """A ranker by late interaction whose queries are extended to 8 tokens."""
    query, passage, mask = MARKERS
    config = MultiVectorEncoderConfig(
        vocab_size=33, **SIZES, dimensions=5, query_length=8, passage_length=10,
        query_marker_id=query, passage_marker_id=passage, expansion="unattended",
        expansion_id=mask, skipped_ids=SKIPPED,
    )  # fmt: skip
    model = with_larger_weights(MultiVectorEncoder(config))
    return LateInteractionRanker(model, tokenizer(33, CONTROL))


def story_answerer(encoder="memory", **options):
    """A memory network for stories of at most 3 sentences, or a Transformer."""
    sizes = {"num_layers": 2, "d_model": 5, "memory_size": 3, "max_length": 40}
    sizes = sizes if encoder == "memory" else {**SIZES, "max_length": 40}
    config = StoryReaderConfig(
        encoder=encoder, vocab_size=30, labels=LABELS, **{**sizes, **options}
    )
    return StoryAnswerer(with_larger_weights(StoryReader(config)), tokenizer())


def image_sizes():
    """Sizes of a model of grey images of 4 x 6 pixels."""
    sizes = {**SIZES, "num_layers": 1}
    sizes.pop("max_length")
    return {**sizes, "image_height": 4, "image_width": 6, "channels": 1, "patch_size": 2}


@functools.cache
def image_classifier():
    config = ImageClassifierConfig(**image_sizes(), labels=LABELS)
    return ImageClassificationPipeline(with_larger_weights(ImageClassifier(config)))


@functools.cache
def image_embedder():
    config = ImageEmbedderConfig(**image_sizes(), dimensions=5)
    return ImageEmbeddingPipeline(with_larger_weights(ImageEmbedder(config)))


SPEECH = {
    **{"sample_rate": 1000, "window_length": 20, "hop_length": 8, "num_mel_filters": 6},
    **{"max_seconds": 0.4, "num_layers": 1},
}


@functools.cache
def speech_recognizer(**changes):
    """A recognizer of recordings of at most 400 samples, 50 frames."""
    config = SpeechTransformerConfig(vocab_size=30, **{**SIZES, **SPEECH, **changes})
    return SpeechRecognizer(with_larger_weights(SpeechTransformer(config)), tokenizer())


SERIES = {"num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2, "dropout": 0.0}


@functools.cache
def simulator():
    """A simulator with windows of 9 steps, of which the last 4 are evaluated."""
    config = SeriesConfig(
        max_length=9, scored=4, inputs=("rain", "warmth"), target="flow",
        input_mean=(1.0, 2.0), input_scale=(3.0, 4.0), **SERIES,
    )  # fmt: skip
    return SeriesSimulator(randomise(SeriesRegressor(config)))


def write_run(pipeline, folder, config=""):
    """Writes a pipeline as a finished run and returns its folder."""
    run = Run(folder)
    run.path.mkdir()
    run.config.write_text(f'[task]\nkind = "{pipeline.task}"\n{config}')
    if pipeline.tokenizers is not None:
        run.write_tokenizers(pipeline.tokenizers)
    pipeline.model.save(run.model)
    return run.path
