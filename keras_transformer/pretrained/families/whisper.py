"""Whisper in Hugging Face's format: recognition and translation of speech in many languages."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.decoding import Beam
from keras_transformer.decoding.generation import Generation
from keras_transformer.norms import LayerNorm
from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.encoder_decoder import (
    BLOCKS,
    EPSILON,
    NORMS,
    POSITIONS,
    SIDES,
    TABLES,
    check_sizes,
    sizes_and_dropout,
)
from keras_transformer.pretrained.family import CONFIG, Family
from keras_transformer.pretrained.generation import ends_of, read_generation
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import TRANSPOSED, Weight, is_tied, layers
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.pretrained.whisper_prompt import WhisperPrompt, lacks_names, with_names
from keras_transformer.tasks.speech_recognition.config import SpeechTransformerConfig
from keras_transformer.tasks.speech_recognition.model import SpeechTransformer
from keras_transformer.text.smaller_model import PLACEHOLDER

READER = "WhisperForConditionalGeneration"
TABLE, OUTPUT = TABLES["decoder"], "proj_out.weight"
CONVOLUTIONS = {"conv1": "source_embedding.first", "conv2": "source_embedding.second"}
KERNEL, STRIDE = 3, 2  # of the convolutions, which no configuration changes
# The features: files of older and newer releases, and the settings that they may have.
PREPROCESSOR, PROCESSOR, SECTION = (
    *("preprocessor_config.json", "processor_config.json", "feature_extractor"),
)
FEATURES = {
    "feature_extractor_type": ("WhisperFeatureExtractor",),
    "sampling_rate": (16_000,),  # the mel filters end at 8,000 Hz whatever the rate
    "padding_value": (0.0,),
    "dither": (0.0,),
    "do_normalize": (False,),
}
LONGEST_WINDOW = 4096  # samples; of real checkpoints 400
# Tokens that no search emits. Either is trained to be probable where nobody speaks, and stands for
# padding: Whisper pads with the end token.
PADDING = ("<|nospeech|>", "<|nocaptions|>")
PREVIOUS = "<|startofprev|>"  # before the text of the windows before
# Thresholds of invented outputs: our names, and Hugging Face's.
THRESHOLDS = {
    "no_speech_threshold": "no_speech_threshold",
    "log_probability_threshold": "logprob_threshold",
    "compression_ratio_threshold": "compression_ratio_threshold",
}
# Settings of generation that this file carries over.
CARRIED = ("suppress_tokens", "begin_suppress_tokens")


class Whisper(Family):
    """A folder with `config.json`, `generation_config.json` and the vocabulary.

    The vocabulary is `tokenizer.json`, or `vocab.json` and `merges.txt`. Also read:
    `preprocessor_config.json` or `processor_config.json`, which describe the features. An output
    begins with the tokens of its language and its task. The source language is by default the one
    that a user chooses, or the one that the checkpoint names; otherwise it is detected for every
    recording. The target language is the same, for transcripts, or English, for translations.

    The positions of the encoder are those of the file.
    """

    name, model_type, task = "whisper", "whisper", "speech_recognition"
    listing = Listing(
        {"whisper": ("Whisper",)},
        "pretrained_speech.md",
        "`vocab.json` and `merges.txt`, or `tokenizer.json`",
        tried=("Whisper tiny.en", "Whisper base"),
    )
    reader, model_class = READER, SpeechTransformer

    @functools.cached_property
    def _prompt(self):
        settings = self.generation_settings
        if lacks_names(settings, self.settings):
            _, start = self._ids(self.tokenizer.vocab_size)
            pieces = self.tokenizer.pieces(range(self.tokenizer.vocab_size))
            settings = with_names(settings, pieces, start)
            if settings is not self.generation_settings:
                self.notes.append(
                    f"{settings.path} has no `lang_to_id`: languages and tasks are those of the "
                    "vocabulary"
                )
        return WhisperPrompt(settings, self.settings)

    def choose_languages(self, source, target) -> tuple[None, None]:  # noqa: D102
        self._prompt.choose(source, target)
        return None, None

    def config(self) -> SpeechTransformerConfig:  # noqa: D102
        settings, tokenizer = self.settings, self.tokenizer
        named = settings.get("architectures") or [READER]
        if named != [READER]:
            raise settings.wrong("architectures", f"{READER} alone")
        check_sizes(settings)
        return SpeechTransformerConfig(
            **tokenizer.config_fields,
            **{**sizes_and_dropout(settings, "max_target_positions"), "embedding_scale": 1.0},
            norm="pre",
            normalization=LayerNorm(EPSILON),
            tie="all" if is_tied(self, OUTPUT, [TABLE]) else "none",
            attention_bias=("query", "value", "output"),
            position="learned",
            **self._features(),
        )

    def _features(self):
        """Returns the options of `SpeechInput`, after the checks of a file that describes them."""
        filters = self.settings.count("num_mel_bins", 80)
        positions = self.settings.count("max_source_positions")
        content, path = self.folder.json(PREPROCESSOR), self.folder.path / PREPROCESSOR
        if content is None:
            content, path = self.folder.json(PROCESSOR) or {}, self.folder.path / PROCESSOR
            content = content.get(SECTION, {})
        given = CheckpointSettings(content if isinstance(content, dict) else {}, path)
        given.check(FEATURES)
        if given.count("feature_size", filters) != filters:
            raise given.wrong("feature_size", f"{filters}, `num_mel_bins` in {CONFIG}")
        rate, hop = given.count("sampling_rate", 16_000), given.count("hop_length", 160)
        samples, window = positions * STRIDE * hop, given.count("n_fft", 400)
        if window > LONGEST_WINDOW:
            raise given.wrong("n_fft", f"at most {LONGEST_WINDOW}")
        seconds = given.number("chunk_length", samples / rate)
        if round(seconds * rate) != samples:
            rule = f"{samples / rate:g}, the time of `max_source_positions` in {CONFIG}"
            raise given.wrong("chunk_length", rule)
        return {
            "sample_rate": rate,
            "window_length": window,
            "hop_length": hop,
            "num_mel_filters": filters,
            "max_seconds": samples / rate,
            "pad_to_max_seconds": True,
            "kernel_size": KERNEL,
            "conv_stride": STRIDE,
            "conv_activation": "gelu",
        }

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        width = config.d_model
        for side, stack in (("encoder", config.encoder), ("decoder", config.decoder)):
            yield (
                f"model.{side}.layers.{stack.num_layers - 1}.fc1.weight",
                (config.encoder.block.d_ff, width),
            )
            yield POSITIONS[side], (stack.max_length, width)
        yield "model.encoder.conv1.weight", (width, config.input.num_mel_filters, KERNEL)
        yield TABLE, (config.tokens.vocab_size, width)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        is_tied = config.head.tie == "all"
        yield Weight((TABLE, OUTPUT) if is_tied else TABLE, "target_embedding.table")
        if not is_tied:
            yield Weight(OUTPUT, "output_layer.kernel", TRANSPOSED)
        yield from layers(CONVOLUTIONS, "model.encoder.")
        for side, stack in (("encoder", config.encoder), ("decoder", config.decoder)):
            yield Weight(POSITIONS[side], f"{SIDES[side]}_embedding.positions")
            for number in range(stack.num_layers):
                theirs, ours = f"model.{side}.layers.{number}.", f"{side}.blocks.{number}."
                yield from layers(BLOCKS[side], theirs, ours)
            yield from layers(NORMS, f"model.{side}.", f"{side}.")

    @functools.cached_property
    def tokenizer(self) -> Any:  # noqa: D102
        self.tensors.check_rows(TABLE, self.settings, "vocab_size")
        return read_byte_bpe(
            self.folder,
            self.settings,
            self._special,
            starts_with_bos=False,
            marks=(),  # tokens of language and task, which a search begins with
            no_text=self._no_text,
            notes=self.notes,
        )

    def _ids(self, size):
        """Returns the result of `ends_of`, and the id of the token that begins an output."""
        start = self.settings.token("decoder_start_token_id", size)
        own = self.generation_settings
        start = own.token("decoder_start_token_id", size, default=start)
        return ends_of(self.settings, own, size), start

    def _special(self, pieces):
        """Returns the special tokens of a vocabulary by their roles."""
        (end, _), start = self._ids(len(pieces))
        pad = self.settings.token("pad_token_id", len(pieces), default=end)
        names = [pieces[pad]] if pad not in (end, start) else [p for p in PADDING if p in pieces]
        if not names:
            rule = f"a token of its own, if the vocabulary has neither {' nor '.join(PADDING)}"
            raise self.settings.wrong("pad_token_id", rule)
        return {"pad": names[0], "unk": pieces[end], "bos": pieces[start], "eos": pieces[end]}

    def _no_text(self, pieces):
        """Returns the end token and those after it, and ids without a token."""
        (end, _), _ = self._ids(len(pieces))
        return [*(p for p in pieces[:end] if PLACEHOLDER.fullmatch(p)), *pieces[end:]]

    def generation(self) -> Generation:  # noqa: D102
        settings, size = self.generation_settings, self.tokenizer.vocab_size
        ends, _ = self._ids(size)
        own = read_generation(settings, ends, size, CARRIED)
        prompt = {**self._prompt.rules(), **self._silence(size), **self._previous(size)}
        prompt["alignment_heads"] = self._alignment_heads()
        self._check_names()
        suppressed = {*own.rules.suppressed_ids, *self._list_of_ids("suppress_tokens", size)} - {
            ends[0]
        }
        rules = dataclasses.replace(
            own.rules,
            suppressed_ids=tuple(sorted(suppressed)),
            first_suppressed_ids=tuple(self._list_of_ids("begin_suppress_tokens", size)),
            **prompt,
        )
        search = self._search(own.search, len(prompt["prompt_ids"]))
        return dataclasses.replace(own, search=search, rules=rules)

    def _search(self, search, count):
        """Returns the search; Hugging Face counts the prompt in the minimum length alone.

        The start of an output counts as one of its positions there.
        """
        most = max(1, self.settings.count("max_target_positions") - 1 - count)
        longest = most if search.max_length is None else search.max_length + 1
        search = dataclasses.replace(search, max_length=min(longest, most))
        if not isinstance(search, Beam):
            return search
        return dataclasses.replace(search, min_length=max(1, search.min_length - count))

    def _silence(self, size):
        """Returns fields of `OutputRules` about silence: a token and the thresholds of OpenAI."""
        settings, pieces = self.generation_settings, self.tokenizer.pieces(range(size))
        names = [piece for piece in PADDING if piece in pieces]
        if not names:
            return {}
        thresholds = {
            ours: settings.number(theirs, None)
            for ours, theirs in THRESHOLDS.items()
            if settings.get(theirs) is not None
        }
        if not 0 <= thresholds.get("no_speech_threshold", 0) <= 1:
            raise settings.wrong("no_speech_threshold", "a probability, from 0 to 1")
        if not thresholds.get("compression_ratio_threshold", 1) > 0:
            raise settings.wrong("compression_ratio_threshold", "positive")
        return {"no_speech_id": pieces.index(names[0]), **thresholds}

    def _previous(self, size):
        """Returns the field of `OutputRules` for the text before a recording, if there is one."""
        pieces = self.tokenizer.pieces(range(size))
        return {"previous_id": pieces.index(PREVIOUS)} if PREVIOUS in pieces else {}

    def _alignment_heads(self):
        """Returns the heads that align words; by default, as in OpenAI's program, half of all."""
        settings = self.generation_settings
        layers = self.settings.count("decoder_layers")
        heads = self.settings.count("decoder_attention_heads")
        pairs = settings.get("alignment_heads")
        if pairs is None:
            return tuple((layer, n) for layer in range(layers // 2, layers) for n in range(heads))
        most = (layers, heads)
        if (
            not isinstance(pairs, list)
            or not pairs
            or not all(
                isinstance(pair, list)
                and len(pair) == 2
                and all(is_integer(n) and 0 <= n < end for n, end in zip(pair, most, strict=True))
                for pair in pairs
            )
        ):
            rule = f"pairs of one of {layers} layers and one of {heads} heads of the decoder"
            raise settings.wrong("alignment_heads", rule)
        return tuple(map(tuple, pairs))

    def _check_names(self):
        """Requires that languages and tasks are the tokens by whose names they are chosen."""
        names = self._prompt.names
        if self.tokenizer.pieces(names.values()) != [f"<|{name}|>" for name in names]:
            rule = "ids that have these names in the vocabulary, like `task_to_id`"
            raise self.generation_settings.wrong("lang_to_id", rule)

    def _list_of_ids(self, name, size):
        settings = self.generation_settings
        ids = settings.get(name) or []
        if not isinstance(ids, list) or not all(is_integer(x) and 0 <= x < size for x in ids):
            raise settings.wrong(name, f"a list of some of the {size} token ids")
        return ids
