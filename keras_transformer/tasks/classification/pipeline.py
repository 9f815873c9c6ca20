"""The pipeline of text classification."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.tasks.classification.model import TextClassifier
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.labels import Classification
from keras_transformer.tasks.single_pass.text import MODULES, RULE, quoted
from keras_transformer.tasks.single_pass.text_labels import TextLabelCodec, TextLabelPass
from keras_transformer.tasks.strings import check_sentences


class ClassificationCodec(TextLabelCodec):
    """Converts texts to inputs of a model, and its outputs to probabilities and labels.

    Args:
        tokenizer, max_length, labels: See `TextLabelCodec`.
    """

    rule = RULE.format("For any other row all probabilities are 0.")

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return {**self.named(outputs), "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers) -> list[Classification]:
        """Returns a `Classification` for each text."""
        columns = (answers[name] for name in ("label", "probability", "truncated", "probabilities"))
        return [
            Classification(label.decode(), float(probability), bool(truncated), row)
            for label, probability, truncated, row in zip(*columns, strict=True)
        ]

    def guide(self, example) -> Guide:  # noqa: D102
        labels = ", ".join(f"`{label}`" for label in self.labels)
        texts, strings = self.notes()
        count = f"C: the {len(self.labels)} labels, in the order above. `label` is the most "
        return Guide(
            purpose=f"Classifies texts as one of the labels {labels}, with its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={"source": "B, S", "probabilities": "B, C"},
            notes=[texts, f"{count}probable of them.", strings],
            modules=MODULES,
        )


class TextClassificationPipeline(TextLabelPass):
    """A trained `TextClassifier` with its tokenizer.

    Args:
        model: A `TextClassifier`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a text in tokens, including its end token; longer texts are
            truncated. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer.pipelines import TextClassificationPipeline
        TextClassificationPipeline.from_run("runs/sst2")(["one long string of cliches"])
    """

    task = "classification"
    model_class = TextClassifier
    output = "label"
    codec_class = ClassificationCodec

    def classify(self, texts: Sequence[str], batch_size: int = 64) -> list[Classification]:
        """Returns a `Classification` for each string of a list.

        Args:
            texts: List of strings of any length.
            batch_size: Number of texts classified at a time. A batch contains texts of similar
                length.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """
        return self.answer(check_sentences(texts, "texts"), batch_size=batch_size)
