"""Public names and the modules that define them."""

# isort: off
from ..text.shortlist import Shortlist as Shortlist
from .beam import Beam as Beam
from .beginnings import Prompted as Prompted
from .best_path import BestPath as BestPath
from .constraints import Constraints as Constraints
from .decoder_only import DecoderOnly as DecoderOnly
from .encoder_decoder import EncoderDecoder as EncoderDecoder
from .ensemble import Ensemble as Ensemble
from .greedy import Greedy as Greedy
from .predictor import (
    Predictor as Predictor,
    Step as Step,
    Vocabulary as Vocabulary,
)
from .sample import Sample as Sample
from .scoring import score as score
from .search import (
    Found as Found,
    Search as Search,
    SearchOptions as SearchOptions,
)
from .shortlist import Shortlisted as Shortlisted
