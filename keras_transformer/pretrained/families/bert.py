"""BERT in Hugging Face's format: an encoder, with a head for labels of texts if it has one."""

import functools

from keras_transformer.config import ClassifierConfig
from keras_transformer.models.classifier import TextClassifier
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.names import Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.pretrained.wordpiece import read_wordpiece
from keras_transformer.text.tokenizers import Tokenizers

CLASSIFIER = "BertForSequenceClassification"
# Models whose heads have no place here; their encoders are read.
OTHERS = ("BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForNextSentencePrediction")
# Settings that change what a model computes, with the values that a `TextClassifier` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "problem_type": (None, "single_label_classification"),
    "type_vocab_size": (2,),
}
EMBEDDINGS = {
    "word_embeddings": "embedding.table",
    "position_embeddings": "embedding.positions",
    "token_type_embeddings": "segments.table",
}
BLOCK = {
    "attention.self.query": "self_attention.query",
    "attention.self.key": "self_attention.key",
    "attention.self.value": "self_attention.value",
    "attention.output.dense": "self_attention.output_projection",
    "attention.output.LayerNorm": "self_attention_norm",
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.outer",
    "output.LayerNorm": "feed_forward_norm",
}


class Bert(Family):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`.
    """

    name, model_type, task = "bert", "bert", "classification"
    reader, model_class = "AutoModelForSequenceClassification", TextClassifier
    ignored = (r"cls\..*", r"(bert\.)?embeddings\.(position_ids|token_type_ids)")

    def config(self):  # noqa: D102
        settings, tokenizer = self.settings, self._tokenizer
        settings.check(EXPRESSIBLE)
        return ClassifierConfig(
            vocab_size=tokenizer.vocab_size,
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            segments="after_eos",
            embedding_scale=1.0,
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            d_ff=settings.count("intermediate_size"),
            max_length=settings.count("max_position_embeddings"),
            dropout=settings.number("hidden_dropout_prob", 0.1),
            attention_dropout=settings.number("attention_probs_dropout_prob", 0.1),
            activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
            layer_norm_epsilon=settings.number("layer_norm_eps", 1e-12),
            position="learned",
            norm="post",
            embedding_norm=True,
            attention_bias=True,
            pooling="first",
            pooler=True,
            labels=self._labels(),
        )

    def sizes(self, config):  # noqa: D102
        base, width = self._base, config.d_model
        last = f"{base}encoder.layer.{config.num_layers - 1}.intermediate.dense.weight"
        yield last, (config.d_ff, width)
        yield f"{base}embeddings.word_embeddings.weight", (config.vocab_size, width)
        yield f"{base}embeddings.position_embeddings.weight", (config.max_length, width)

    def names(self, config):  # noqa: D102
        base = self._base
        for name, ours in EMBEDDINGS.items():
            yield Weight(f"{base}embeddings.{name}.weight", ours)
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, base)
        for number in range(config.num_layers):
            yield from layers(BLOCK, f"{base}encoder.layer.{number}.", f"encoder.blocks.{number}.")
        if f"{base}pooler.dense.weight" in self.tensors:
            yield from layers({"pooler.dense": "pooler"}, base)
        if self._has_labels:
            yield from layers({"classifier": "output_layer"})

    def tokenizers(self, config):  # noqa: D102
        return Tokenizers.of(self._tokenizer)

    @functools.cached_property
    def _tokenizer(self):
        return read_wordpiece(self.folder, self.settings)

    @functools.cached_property
    def _base(self):
        """Begins the names of the encoder's tensors; of a `BertModel` alone it is empty."""
        return "bert." if any(name.startswith("bert.") for name in self.tensors.shapes) else ""

    @functools.cached_property
    def _has_labels(self):
        named = self.settings.get("architectures") or ["BertModel"]
        if named == [CLASSIFIER]:
            return True
        if not isinstance(named, list) or len(named) != 1 or named[0] not in OTHERS:
            raise self.settings.wrong("architectures", f"one of {CLASSIFIER}, {', '.join(OTHERS)}")
        return False

    def _labels(self):
        """The names of the labels, in the order of the logits."""
        if self._has_labels:
            return self.settings.labels("id2label")
        self.notes.append(
            "the checkpoint has no head for labels of texts, so that of the run is untrained: "
            'train a new one with `start_from` and `parts = ["input", "encoder"]`'
        )
        return ("0", "1")
