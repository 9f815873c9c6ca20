"""What is measured on the validation split during the training."""

from keras_transformer.translator import Translator

from .data import TokenizedCorpus
from .evaluate import read_pairs, score
from .moving_average import averaged_weights


class Validator:
    """Measures a learner, with the average of its weights if it keeps one.

    Args:
        learner: A compiled `Learner`.
        tokenizer: Its `Tokenizer`.
        data: A `ParallelData` with the split `"validation"`.
        settings: The `Settings` of the run.

    Call arguments: none.

    Returns:
        Dictionary of `loss`, `perplexity` and `token_accuracy` over the whole split, and of `bleu`
        and `exact_match` (0 to 100) over its first `validate_sentences`, if there are any.
    """

    def __init__(self, learner, tokenizer, data, settings):
        self.learner = learner
        pairs = data.pairs("validation")
        corpus = TokenizedCorpus.from_pairs(pairs, tokenizer, settings.data.max_length)
        self.batches = corpus.batches(settings.data.batch_tokens).cache()
        limit = settings.training.validate_sentences
        self.sources, self.references = read_pairs(data, "validation", limit)
        self.translator = Translator(learner.transformer, tokenizer)

    def __call__(self):
        with averaged_weights(self.learner):
            figures = self.learner.evaluate(self.batches, verbose=0, return_dict=True)
            if self.sources:
                scores = score(self.translator(self.sources), self.references)
                figures |= {name: scores[name] for name in ("bleu", "exact_match")}
        return figures
