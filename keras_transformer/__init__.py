"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) as Keras layers.

One key for shapes, in comments, docstrings and einsum strings throughout:

    B  batch                          D  d_model, the width of the model
    T  target or query length         F  d_ff, the width inside the feed-forward network
    S  source or key length           H  attention heads
    V  vocabulary                     K  size of a head (d_k; d_v where values differ)
    L  length of a key/value cache    N  beam or n-best

Masks are boolean tensors and `True` means "may attend".
"""

import importlib

from keras_transformer.registration import register

__version__ = "0.1.0"

# Where each public name is defined, in the order of the paper.
_MODULES = {
    "config": (
        "PRESETS",
        "ClassifierConfig",
        "ImageClassifierConfig",
        "LanguageModelConfig",
        "SeriesConfig",
        "SpanPredictorConfig",
        "TokenClassifierConfig",
        "TransformerConfig",
    ),
    "layers.masks": ("PaddingMask", "causal_mask", "padding_mask"),
    "layers.dot_product": ("dot_product_attention",),
    "layers.scores": ("Additive", "AttentionScore", "DotProduct", "General", "ScaledDotProduct"),
    "layers.attention": ("MultiHeadSelfAttention",),
    "layers.cross_attention": ("MultiHeadCrossAttention",),
    "layers.recurrence.ssru": ("SSRU",),
    "layers.feed_forward": ("FeedForward",),
    "layers.positions": (
        *("Alibi", "Binary", "Learned", "Position", "Relative", "Rotary", "Sinusoidal", "T5Bias"),
        "sinusoids",
    ),
    "layers.positions.grid": ("SinusoidalGrid",),
    "layers.inputs.embedding": ("PositionalEmbedding",),
    "layers.inputs.patches": ("PatchEmbedding",),
    "layers.inputs.series": ("SeriesEmbedding",),
    "layers.blocks.encoder": ("Encoder", "EncoderBlock"),
    "layers.blocks.decoder": ("Decoder", "DecoderBlock"),
    "models.transformer": ("Transformer",),
    "models.snow": ("SnowAccount",),
    "models.language_model": ("LanguageModel",),
    "models.classifier": ("TextClassifier",),
    "models.token_classifier": ("TokenClassifier",),
    "models.image_classifier": ("ImageClassifier",),
    "models.series_regressor": ("SeriesRegressor",),
    "models.span_predictor": ("SpanPredictor",),
    "decoding": ("Constraints", "beam_decode", "greedy_decode", "sample_decode", "score"),
    "decoding.search": ("Beam", "Greedy", "Sample"),
    "text.shortlist": ("Shortlist",),
    "text.tokenizers": ("SentencePieceTokenizer", "Tokenizer", "WordPieceTokenizer"),
    "text.bert_normalizer": ("BertNormalizer",),
    "tasks.attention": ("Attention",),
    "tasks.pretrained": ("from_pretrained",),
    "tasks.results": ("Alignment", "Generated", "Score", "Summary", "Translation"),
    "tasks.translator": ("Translator",),
    "tasks.summarization.summarizer": ("Summarizer",),
    "tasks.text_generator": ("TextGenerator",),
    "tasks.single_pass.labels": ("Classification",),
    "tasks.classification.classifier": ("Classifier",),
    "tasks.images.recognizer": ("ImageRecognizer",),
    "tasks.series.simulator": ("SeriesSimulator",),
    "tasks.labelling.labeller": ("Labelling", "TokenLabeller"),
    "tasks.question_answering.answerer": ("QuestionAnswerer",),
    "tasks.question_answering.codec": ("Answer",),
    "tasks.run": ("Run",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


register()
