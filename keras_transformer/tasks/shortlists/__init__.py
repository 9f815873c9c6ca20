"""Shortlists learned from a model's own alignments."""

from keras_transformer.tasks.shortlists.learn import learn_shortlist

__all__ = ["learn_shortlist"]
