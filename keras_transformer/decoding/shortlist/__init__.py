"""Searches over the candidates of a shortlist."""

from keras_transformer.decoding.shortlist.restricted import Shortlisted

__all__ = ["Shortlisted"]
