"""`TextEncoder`, the base of the families of BERT's kind: an encoder of a text, and a head."""

import functools
import re
import typing
from collections.abc import Iterator
from typing import Any

from keras_transformer.pretrained.added_tokens import describe_mask
from keras_transformer.pretrained.cross_encoder import read_activation
from keras_transformer.pretrained.late_interaction import read_late_interaction
from keras_transformer.pretrained.names import TRANSPOSED, Weight, is_tied, layers
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.sentence_encoder import max_length_of
from keras_transformer.pretrained.sentence_family import SentenceFamily
from keras_transformer.pretrained.wordpiece import read_wordpiece
from keras_transformer.tasks.classification.config import ClassifierConfig
from keras_transformer.tasks.classification.model import TextClassifier
from keras_transformer.tasks.embedding.config import EmbedderConfig
from keras_transformer.tasks.embedding.model import TextEmbedder
from keras_transformer.tasks.late_interaction.config import MultiVectorEncoderConfig
from keras_transformer.tasks.late_interaction.model import MultiVectorEncoder
from keras_transformer.tasks.masked_language_modelling.config import MaskedLanguageModelConfig
from keras_transformer.tasks.masked_language_modelling.model import MaskedLanguageModel
from keras_transformer.tasks.multi_label_classification.config import (
    MultiLabelClassifierConfig,
    separator_for,
)
from keras_transformer.tasks.multi_label_classification.model import MultiLabelClassifier
from keras_transformer.tasks.question_answering.config import SpanPredictorConfig
from keras_transformer.tasks.question_answering.model import SpanPredictor
from keras_transformer.tasks.scoring.config import PairScorerConfig
from keras_transformer.tasks.scoring.model import PairScorer
from keras_transformer.tasks.sparse_embedding.config import SparseEmbedderConfig
from keras_transformer.tasks.sparse_embedding.model import SparseTextEmbedder
from keras_transformer.tasks.token_classification.config import TokenClassifierConfig
from keras_transformer.tasks.token_classification.model import TokenClassifier

NO_HEAD = (
    "the checkpoint has no head for labels of texts, so the run's head is untrained: "
    'train a new one with `start_from` and `parts = ["input", "encoder"]`'
)


class HeadKind(typing.NamedTuple):
    """A prediction head of `transformers`, and what it becomes here.

    Attributes:
        task: Name of the task.
        config_class, model_class: The classes of the configuration and of the model.
    """

    task: str
    config_class: type
    model_class: type


# By the end of the name of the class that `architectures` names.
TEXTS, SPANS = "ForSequenceClassification", "ForQuestionAnswering"
MASKS = "ForMaskedLM"
HEADS = {
    TEXTS: HeadKind("classification", ClassifierConfig, TextClassifier),
    "ForTokenClassification": HeadKind(
        "token_classification", TokenClassifierConfig, TokenClassifier
    ),
    SPANS: HeadKind("question_answering", SpanPredictorConfig, SpanPredictor),
    MASKS: HeadKind("masked_language_modelling", MaskedLanguageModelConfig, MaskedLanguageModel),
}


class MaskHead(typing.NamedTuple):
    """Names in a file of the head that predicts masked tokens.

    Attributes:
        dense, norm: The layers before the output weights.
        decoder: The output weights, unless they are those of the embedding. `None`: they always
            are.
        biases: Names of their bias, that of the decoder first.
    """

    dense: str
    norm: str
    decoder: str | None
    biases: tuple


SPARSE = HeadKind("sparse_embedding", SparseEmbedderConfig, SparseTextEmbedder)  # of `MASKS`
VECTORS = HeadKind("embedding", EmbedderConfig, TextEmbedder)
PAIRS = HeadKind("scoring", PairScorerConfig, PairScorer)  # `TEXTS` with one logit
TOKENS = HeadKind("late_interaction", MultiVectorEncoderConfig, MultiVectorEncoder)
LABEL_SETS = HeadKind(  # `TEXTS` with this `problem_type`
    "multi_label_classification", MultiLabelClassifierConfig, MultiLabelClassifier
)
LONGEST_ANSWER = 15  # in tokens, as in Hugging Face's pipeline


class TextEncoder(SentenceFamily):
    """A folder with an encoder of texts, whose `architectures` determine the head and the task.

    A folder of a sentence encoder becomes a model for vectors of texts, whatever its heads, and one
    of a ColBERT model a model for vectors of tokens. Any other checkpoint without a head that has a
    place here becomes a classifier with an untrained one.

    Attributes:
        classes: Begins the names of the family's classes in `transformers`, such as `"Bert"`.
        others: Ends of the names of classes whose heads are not supported; their encoders are
            read.
        heads: The kinds of heads that the family has, a dictionary such as `HEADS`.
        cut: Number of rows of the table of positions that no text reaches.
        words: Name of the table of embeddings, after `base`.
        mask_head: The `MaskHead`.
        mask_activation: Activation before the output weights of that head. `None`: that of the
            blocks.
        pad: Id of padding if the settings name none.
        pair_layout: Name of the `PairLayout` of question and passage.
    """

    classes = ""
    others = ()
    heads = HEADS
    cut = pad = 0
    words = "embeddings.word_embeddings.weight"
    pair_layout = "bert"
    mask_head: Any = None
    mask_activation: Any = None
    has_sparse = True
    _is_chosen_sparse = False

    @classmethod
    def kinds(cls) -> dict[str, tuple[str, ...]]:  # noqa: D102
        others = {TEXTS: (LABEL_SETS, PAIRS), MASKS: (SPARSE,)}
        heads = {
            f"{cls.classes}{end}": (kind.task, *(other.task for other in others.get(end, ())))
            for end, kind in cls.heads.items()
        }
        return {**heads, f"{cls.classes}Model": (VECTORS.task, TOKENS.task)}

    def choose_task(self, task) -> None:  # noqa: D102
        if task != SPARSE.task or self.interaction or self.sentences:
            super().choose_task(task)
        elif not self.predicts_masks:
            raise self._without_masks()
        else:
            self._is_chosen_sparse = True

    def _without_masks(self):
        return self.settings.wrong("architectures", f"{self.classes}{MASKS} for sparse vectors")

    @property
    def task(self) -> str:
        """Name of the task of the head."""
        return self._kind.task

    @property
    def model_class(self) -> type[Any]:  # ty: ignore[incompatible-property-override]
        """Class of the model with the head."""
        return self._kind.model_class

    @property
    def reader(self) -> str:
        """Class of `transformers` that reads the folder, for messages."""
        return "AutoModel" if self.represents else f"AutoModel{self._head or TEXTS}"

    @functools.cached_property
    def interaction(self) -> Any:
        """The `LateInteraction` that the folder describes, or `None`."""
        return read_late_interaction(self.folder, self.settings)

    @functools.cached_property
    def sentences(self) -> Any:
        """The `SentenceEncoder` that the folder describes, or `None`."""
        return None if self.interaction else super().sentences

    @property
    def represents(self) -> bool:
        """True if the checkpoint represents texts by vectors, of texts or of tokens, not sparse."""
        return bool(self.interaction or self.sentences and not self.sentences.is_sparse)

    def read_tensors(self) -> Reader:  # noqa: D102
        reader = super().read_tensors()
        return Reader(self.interaction.join(reader.tensors)) if self.interaction else reader

    def names_after_pooling(self) -> Iterator[Weight]:  # noqa: D102
        if self.interaction:
            yield from self.interaction.names(self.tensors)
        yield from super().names_after_pooling()

    def make_config(self, pooler=None, **options) -> Any:
        """Returns the configuration of the encoder with its head.

        Args:
            pooler: Activation of the dense layer before the text labels. `None`: no such layer.
            **options: Options of input, encoder and head.
        """
        if self.pools_texts:
            if self.classifies_texts and self._kind is self.heads[TEXTS]:
                self.settings.check_one_label("text")
            options = {"pooling": "first", **options}
            if pooler is not None:
                options |= {"pooler": True, "pooler_activation": pooler}
        if self.predicts_masks:
            options["tie"] = "all" if self._is_tied else "none"
            activation = self.mask_activation or options["activation"]
            options = {"transform_activation": activation, **options}
            if self._is_chosen_sparse:
                limit = max_length_of(self.folder)
                options["max_length"] = self._limited(options["max_length"], limit)
        if self.interaction:
            options |= self._of_interaction(options)
        elif self.sentences:
            options |= self._of_sentences(options)
        elif self._kind is PAIRS:
            options |= self._of_pairs(options)
        elif self._head == SPANS:
            options |= {"pair_layout": self.pair_layout, "max_answer": LONGEST_ANSWER}
            options = {"segments": "none", **options}
        elif not self.predicts_masks:
            options["labels"] = self._labels()
            if self._kind is LABEL_SETS:
                options["separator"] = self._separator(options["labels"])
        fixed = {
            **self.tokenizer.config_fields,
            "embedding_scale": 1.0,
            "position": "learned",
            "norm": "post",
            "embedding_norm": True,
            "attention_bias": True,
        }
        return self._kind.config_class(**{**fixed, **options})

    def linear_head(self, classifier="classifier") -> Iterator[Weight]:
        """Yields the `Weight`s of the last layer, of a trained head that is one linear map.

        Args:
            classifier: Name of the layer of heads for labels.
        """
        if self.predicts_masks:
            yield from self._mask_weights()
        elif self._head is not None:
            layer = "qa_outputs" if self._head == SPANS else classifier
            yield from layers({layer: "output_layer"})

    def table(self) -> Weight:
        """Returns the `Weight` of the embedding, which may have another name as output weights."""
        names = [self.prefix + self.words]
        decoder = self.mask_head.decoder
        if self.predicts_masks and self._is_tied and decoder is not None:
            names.append(f"{decoder}.weight")
        return Weight(tuple(names), "embedding.table")

    def _mask_weights(self):
        """Yields the `Weight`s of the head that predicts masked tokens."""
        names = self.mask_head
        yield from layers({names.dense: "transform", names.norm: "transform_norm"})
        yield from self.output_weights()

    def output_weights(self) -> Iterator[Weight]:
        """Yields the `Weight`s of the last layer of the head that predicts masked tokens."""
        names = self.mask_head
        if not self._is_tied:
            yield Weight(f"{names.decoder}.weight", "output_layer.kernel", TRANSPOSED)
        # Without ties the decoder has a bias of its own, and that of the head has no effect.
        biases = names.biases if self._is_tied else self.tensors.first_of(names.biases)
        yield Weight(biases, "output_weights.bias")

    @property
    def unused_masks(self) -> tuple[str, ...]:
        """Patterns of the tensors of the head for masked tokens that the model does not need.

        A model without that head needs none of them. One whose decoder has weights of its own only
        uses the bias of the decoder.
        """
        head = self.mask_head
        if not self.predicts_masks:
            names = (head.dense, head.norm, head.decoder, *head.biases)
            return tuple(rf"{re.escape(name)}(\..*)?" for name in names if name is not None)
        names = () if self._is_tied else head.biases[1:]
        return tuple(f"{re.escape(name)}" for name in names)

    @functools.cached_property
    def _is_tied(self):
        """True if the output weights of the head for masked tokens are those of the embedding."""
        decoder = self.mask_head.decoder
        return decoder is None or is_tied(self, f"{decoder}.weight", [self.prefix + self.words])

    def _of_sentences(self, options):
        """Returns the options of a sentence encoder, and counts the positions that it cuts off."""
        self.sentences.check_tokenizer(self.tokenizer)
        return {
            "max_length": self._limited(options["max_length"], self.sentences.max_length),
            **self.sentences.options,
        }

    def _of_interaction(self, options):
        """Returns the options of a ColBERT model."""
        self.interaction.check_tokenizer(self.tokenizer)
        width, bias = self.interaction.size(self.tensors, options["d_model"])
        segments = "none" if options.get("segments", "none") == "none" else "first"
        return {
            "segments": segments,  # also of the tokens that extend a query
            "dimensions": width,
            "projection_bias": bias,
            **self.interaction.options(self.tokenizer, options["max_length"]),
        }

    def _of_pairs(self, options):
        """Returns the options of a cross-encoder, and counts the positions that it cuts off."""
        return {
            "max_length": self._limited(options["max_length"], max_length_of(self.folder)),
            "score_activation": read_activation(self.folder, self.settings),
            "pair_layout": self.pair_layout,
            "segments": options.get("segments", "none"),
        }

    def _limited(self, most, limit):
        """Returns the maximum length of a text with a limit, and counts what is cut off."""
        length = min(most, limit or most)
        self.cut = most - length
        return length

    @functools.cached_property
    def tokenizer(self) -> Any:
        """The `Tokenizer`."""
        self.tensors.check_rows(self.prefix + self.words, self.settings, "vocab_size")
        tokenizer = self.read_tokenizer()
        if self._kind is self.heads.get(MASKS) and tokenizer.mask_id is None:
            raise ValueError(
                f"{self.folder.path}: the vocabulary must have a mask token that is found in texts "
                "as it is written, without conditions. Received: "
                f"{describe_mask(self.folder)}."
            )
        return tokenizer

    def read_tokenizer(self) -> Any:
        """Returns the `Tokenizer` in the files of the folder, by default that of BERT.

        Raises:
            ValueError: If a file is missing, damaged or does not fit the settings; it is named.
        """
        markers = self.interaction.markers if self.interaction else ()
        return read_wordpiece(self.folder, self.settings, markers=markers)

    def checked(self, tokenizer) -> Any:
        """Returns a tokenizer after checking that its padding is that of the settings."""
        if tokenizer.pad_id != self.settings.get("pad_token_id", self.pad):
            (name,) = tokenizer.pieces([tokenizer.pad_id])
            rule = f"{tokenizer.pad_id}, the id of {name} in the vocabulary"
            raise self.settings.wrong("pad_token_id", rule)
        return tokenizer

    @property
    def classifies_texts(self) -> bool:
        """True if the checkpoint has a trained head for labels of texts."""
        return self._head == TEXTS

    @property
    def predicts_masks(self) -> bool:
        """True if the checkpoint has a trained head for masked tokens."""
        return self._head == MASKS

    @property
    def has_head(self) -> bool:
        """True if the checkpoint has a trained head of one of the kinds in `heads`."""
        return self._head is not None

    @property
    def pools_texts(self) -> bool:
        """True if the model has a head for labels or scores of whole texts, perhaps untrained."""
        return not self.represents and (self._head or TEXTS) == TEXTS

    @functools.cached_property
    def _kind(self):
        if self.interaction:
            return TOKENS
        if self.sentences and not self.sentences.is_sparse:
            return VECTORS
        if self.sentences or self._is_chosen_sparse:
            return SPARSE
        if self._head == TEXTS and self.settings.num_labels == 1:
            return PAIRS
        if self._head == TEXTS and self.settings.get("problem_type") == LABEL_SETS.task:
            return LABEL_SETS
        return self.heads[self._head or TEXTS]

    @functools.cached_property
    def _head(self):
        """End of the name of the checkpoint's class, a key of `heads`; `None` for any other."""
        known = {self.classes + end: end for end in self.heads}
        others = [self.classes + end for end in self.others]
        if self.interaction:
            return None
        named = self.settings.architecture([*known, *others], *others[:1])
        if not self.sentences:
            return known.get(named)
        if not self.sentences.is_sparse:
            return None
        if known.get(named) != MASKS:
            raise self._without_masks()
        return MASKS

    def _labels(self):
        """The names of the labels, in the order of the logits."""
        if self._head is not None:
            return self.settings.labels("id2label")
        self.notes.append(NO_HEAD)
        return ("0", "1")

    def _separator(self, labels):
        """Returns a string that separates the labels of a text."""
        try:
            return separator_for(labels)
        except ValueError as error:
            raise ValueError(f"{self.settings.path}: of the names in `id2label`, {error}") from None
