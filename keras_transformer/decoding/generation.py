"""Generation settings of a checkpoint: its default search and its special tokens."""

import dataclasses
from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.predictor import GENERATION_IDS
from keras_transformer.decoding.stored import as_dict, from_dict

# Fields of configurations that tell which outputs count as invented.
THRESHOLDS = ("no_speech_threshold", "log_probability_threshold", "compression_ratio_threshold")


@dataclasses.dataclass(frozen=True)
class Generation:
    """Default search of a checkpoint, and the tokens that it never emits or must end with.

    A run stores it in `generation.json`. For the model of the run, these ids override those in
    `model.keras`, which are used only if the model is loaded without its run.

    Args:
        search: The default search. `None`: greedy search.
        banned_ids, silent_ids, forced_bos_id, forced_eos_id: See `TransformerConfig`.
        no_repeat_ngram, language_codes: See `TransformerConfig`.
        prompt_ids, first_silent_ids: See `SpeechTransformerConfig`.
        timestamp_id, max_first_timestamp, no_timestamps_id: See `SpeechTransformerConfig`.
        language_ids, task_ids, detect_language: See `SpeechTransformerConfig`.
        no_speech_id, no_speech_threshold, log_probability_threshold: See `SpeechTransformerConfig`.
        compression_ratio_threshold: See `SpeechTransformerConfig`.
        end_ids: See `TransformerConfig` and `LanguageModelConfig`.
        length_factor: See `TransformerConfig`.
        start_id: Token that begins an output, if it is not the `bos_id` of the tokenizer. `None`:
            it is.
        notes: Strings that describe settings of the checkpoint that no search supports.
    """

    search: Greedy | Beam | None = None
    banned_ids: tuple = ()
    silent_ids: tuple = ()
    forced_bos_id: int | None = None
    forced_eos_id: int | None = None
    no_repeat_ngram: int = 0
    prompt_ids: tuple = ()
    first_silent_ids: tuple = ()
    timestamp_id: int | None = None
    max_first_timestamp: int | None = None
    no_timestamps_id: int | None = None
    language_ids: tuple = ()
    task_ids: tuple = ()
    detect_language: bool = False
    no_speech_id: int | None = None
    no_speech_threshold: float = 0.6
    log_probability_threshold: float = -1.0
    compression_ratio_threshold: float = 2.4
    end_ids: tuple = ()
    length_factor: float | None = None
    language_codes: str = "none"
    start_id: int | None = None
    notes: tuple = ()

    def of_vocabulary(self) -> "Generation":
        """Returns only the ids, which are valid for every model with the same vocabulary."""
        return dataclasses.replace(self, search=None, notes=())

    def configure(self, config) -> Any:
        """Returns a model configuration with these ids, or as it is if the model emits no tokens.

        Raises:
            ValueError: If an id is not in the vocabulary of the model.
        """
        names = (*GENERATION_IDS, *THRESHOLDS, "language_codes")
        ids = {name: getattr(self, name) for name in names if hasattr(config, name)}
        if self.start_id is not None:
            ids["bos_id"] = self.start_id
        return dataclasses.replace(config, **ids) if ids else config

    def to_dict(self) -> dict[str, Any]:
        """Returns a dictionary of plain values."""
        search = None if self.search is None else as_dict(self.search)
        return {**dataclasses.asdict(self), "search": search}

    @classmethod
    def from_dict(cls, fields) -> "Generation":
        """Returns the `Generation` from a result of `to_dict`.

        Raises:
            TypeError, ValueError: If `fields` is not a result of `to_dict`.
        """
        fields = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in dict(fields).items()
        }
        search = fields.pop("search", None)
        return cls(None if search is None else from_dict(search), **fields)
