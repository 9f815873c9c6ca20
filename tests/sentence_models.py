"""Objects that translate sentences without a model."""

import numpy as np

from keras_transformer.pipelines import Alignment, Translation
from keras_transformer.tasks.answering import TextAnswering


class Words(TextAnswering):
    """A function of sentences in place of a model.

    Args:
        function: Function from a sentence to its translation.
        longest: Number of characters above which a sentence is truncated.
    """

    task, has_source = "translation", True

    def __init__(self, function, longest=None):
        self.function, self.longest, self.batches = function, longest, []

    def answer_batch(self, inputs):
        self.batches.append(list(inputs))
        return [self.translation(sentence) for sentence in inputs]

    def translation(self, sentence):
        cut = sentence[: self.longest]
        return Translation(self.function(cut), 0.0, cut != sentence, complete=True)


class Aligned(Words):
    """As `Words`, for a function from a list of words to the numbers of those in the output.

    The words of the output are those words in capitals, and attend to them only.
    """

    aligns = True

    def __init__(self, order):
        self.order = order
        super().__init__(lambda text: " ".join(self._chosen(text)[0]).upper())

    def _chosen(self, text):
        words = text.split()
        numbers = self.order(words)
        return [words[number] for number in numbers], numbers, words

    def align(self, sentences, batch_size=64, progress=None):
        return [self._align(sentence) for sentence in sentences]

    def _align(self, sentence):
        chosen, numbers, words = self._chosen(sentence)
        weights = np.zeros((len(numbers) + 1, len(words) + 1), "float32")
        weights[range(len(numbers)), numbers] = 1
        weights[-1, -1] = 1
        pieces = [[f"\u2581{word}" for word in side] + ["</s>"] for side in (words, chosen)]
        pieces[1][:-1] = [piece.upper() for piece in pieces[1][:-1]]
        return Alignment(*pieces, weights, self.translation(sentence))
