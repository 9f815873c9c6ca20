"""Decoding: greedy search, beam search and sampling over one predictor interface (section 6.1)."""

from keras_transformer.decoding.beam import Beam
from keras_transformer.decoding.best_path import BestPath
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.decoder_only import DecoderOnly
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.decoding.ensemble import Ensemble
from keras_transformer.decoding.greedy import Greedy
from keras_transformer.decoding.predictor import Predictor, Step, Vocabulary
from keras_transformer.decoding.prompts import Prompted
from keras_transformer.decoding.sample import Sample
from keras_transformer.decoding.scoring import score
from keras_transformer.decoding.search import Found, Search, SearchOptions
from keras_transformer.decoding.shortlist import Shortlisted
from keras_transformer.decoding.unrolled import Unrolled
from keras_transformer.text.shortlist import Shortlist

__all__ = [
    "Beam",
    "BestPath",
    "Constraints",
    "DecoderOnly",
    "EncoderDecoder",
    "Ensemble",
    "Found",
    "Greedy",
    "Predictor",
    "Prompted",
    "Sample",
    "Search",
    "SearchOptions",
    "Shortlist",
    "Shortlisted",
    "Step",
    "Unrolled",
    "Vocabulary",
    "score",
]
