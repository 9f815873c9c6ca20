"""What is measured on the validation split during the training."""

from keras_transformer.tasks.translator import Translator
from keras_transformer.text.quality import score
from keras_transformer.training.data.corpus import TokenizedCorpus
from keras_transformer.training.data.shards import cut_batches
from keras_transformer.training.evaluate import read_pairs
from keras_transformer.training.loop.moving_average import averaged_weights

SCORES = ("bleu", "exact_match")


class Validator:
    """Measures a learner, with the average of its weights if it keeps one.

    Under a strategy all workers measure in step; only the chief translates, and tells the others.

    Args:
        learner: A compiled `Learner`.
        tokenizer: Its `Tokenizer`.
        data: A `ParallelData` with the split `"validation"`.
        settings: The `Settings` of the run.
        workers: The `Workers` that train together.

    Call arguments: none.

    Returns:
        Dictionary of `loss`, `perplexity` and `token_accuracy` over all pairs of the split that are
        no longer than `data.max_length`, and of `bleu` and `exact_match` (0 to 100) over its first
        `validate_sentences`, if there are any.
    """

    def __init__(self, learner, tokenizer, data, settings, workers):
        self.learner = learner
        pairs = data.pairs("validation")
        corpus = TokenizedCorpus.from_pairs(pairs, tokenizer, settings.data.max_length)
        size = settings.data.batch_tokens
        batches = corpus.batches(size).cache().repeat()
        self.batches = cut_batches(batches, workers.strategy, tokenizer.pad_id)
        self.steps = corpus.steps(size)
        self.workers = workers
        limit = settings.training.validate_sentences
        self.sources, self.references = read_pairs(data, "validation", limit)
        self.translator = Translator(learner.transformer, tokenizer)

    def __call__(self):
        with averaged_weights(self.learner):
            figures = self.learner.evaluate(
                self.batches, steps=self.steps, verbose=0, return_dict=True
            )
            if self.sources:
                figures |= self.workers.from_chief(self._translate, SCORES)
        return figures

    def _translate(self):
        scores = score(self.translator(self.sources), self.references)
        return {name: scores[name] for name in SCORES}
