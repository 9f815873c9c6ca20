"""Decoding: greedy search, beam search and sampling over one predictor interface (section 6.1)."""

from keras_transformer.decoding.beam import beam_decode
from keras_transformer.decoding.beginnings import Prompted
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.ctc import ctc_decode
from keras_transformer.decoding.decoder_only import DecoderOnly
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.decoding.ensemble import Ensemble
from keras_transformer.decoding.greedy import greedy_decode
from keras_transformer.decoding.predictor import Predictor, Step, Vocabulary
from keras_transformer.decoding.sampling import sample_decode
from keras_transformer.decoding.scoring import score
from keras_transformer.decoding.search import Beam, BestPath, Found, Greedy, Sample
from keras_transformer.decoding.shortlist import Shortlisted

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
    "Shortlisted",
    "Step",
    "Vocabulary",
    "beam_decode",
    "ctc_decode",
    "greedy_decode",
    "sample_decode",
    "score",
]
