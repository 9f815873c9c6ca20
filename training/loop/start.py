"""Fine-tuning: training that starts from the weights of another run."""

import dataclasses
from typing import Any

from keras_transformer.config.parts import PARTS
from keras_transformer.mixers import AttentionHeads, short_options
from keras_transformer.models.parts import copy_parts, source_of
from keras_transformer.positions import Learned
from keras_transformer.text.tokenizers.pair import Tokenizers
from keras_transformer.training.settings.inheritance import finished_run
from keras_transformer.training.settings.taken_vocabulary import KEYS, conflicts

# Options that do not affect the shapes of weights.
FREE = {"dropout", "attention_dropout", "activation_dropout"}


class Start:
    """The finished run whose weights another run starts from.

    Args:
        settings: The `Settings` of the new run, with a `model.start_from`.

    Attributes:
        tokenizers: The `Tokenizers` of the other run.
        run: The other `Run`.
        task: Name of the task of the other run.

    Raises:
        ValueError: If the other run is not finished, is damaged or lacks the vocabulary of a task
            with texts, or the settings describe another vocabulary or other sizes. One line, with
            every key that differs.
    """

    def __init__(self, settings):
        self.run = other = finished_run(settings.model.start_from)
        self.path = other.path
        task, self.parts = settings.task.get(), settings.model.parts
        model_class = task.pipeline_class().model_class if self.parts is None else None
        # Read although `settings` may be derived from them: since then the run may have changed.
        sections = other.read_settings()
        self.task = sections.get("task", {}).get("kind")
        loaded: Any = other.load(model_class, self.task)
        self.model, self.tokenizers = loaded
        if task.texts and self.tokenizers is None:
            raise ValueError(
                f"`model.start_from` must be a run with a vocabulary, as texts are to be read; "
                f"{self.path} has none."
            )
        vocabulary = sections.get("vocabulary", {})
        theirs = {key: vocabulary[key] for key in KEYS if key in vocabulary}
        if task.texts and not task.has_two_sides:
            self.tokenizers = Tokenizers.of(self.tokenizers.source)
            theirs = {**theirs, "shared": True}
        self._refuse(settings.vocabulary.description(), theirs, "vocabulary")
        parts = PARTS if self.parts is None else self.parts
        self.shrinks = settings.model.shrink
        sizes = _sizes(settings.config(), self.model.config, parts)
        self._refuse(*(_without_fewer(*sizes) if self.shrinks else sizes), "model")
        update = other.read_metrics().get("model_update")
        self.metadata = {"run": str(self.path), "model_update": update}

    def give_weights(self, model) -> Any:
        """Copies the weights of the parts to the model to train.

        Returns:
            The `Copied` parts.

        Raises:
            ValueError: If the training data have other labels or shapes, or a part does not fit.
        """
        parts = PARTS if self.parts is None else self.parts
        self._check_data(model.config, parts)
        copied = copy_parts(model, self.model, parts, self.shrinks)
        for name in parts:
            if name in copied.new:
                raise ValueError(
                    f"the weights of {self.path} do not fit the part {name}: {copied.new[name]}."
                )
        if self.parts is not None and not copied.copied:
            raise ValueError(
                f"`model.parts` must name a part of the model. Received: {', '.join(parts)}."
            )
        if self.shrinks:
            self._check_layers(model.config, copied)
        return copied

    def _check_layers(self, config, copied):
        """Raises a `ValueError` if `model.shrink` has no effect or mixes up kinds of attention."""
        if not copied.layers:
            where = "" if self.parts is None else " among `model.parts`"
            raise ValueError(
                f"`model.shrink` has no effect: no stack{where} has fewer layers than in "
                f"{self.path}."
            )
        for name, numbers in copied.layers.items():
            ours, theirs = getattr(config, name), getattr(self.model.config, copied.copied[name])
            for place, number in enumerate(numbers) if ours.has_blocks else ():
                if ours.is_local(place) != theirs.is_local(number):
                    raise ValueError(
                        f"`model.shrink` would copy layer {number + 1} of the {name} of "
                        f"{self.path} to layer {place + 1}, and only one of them has local "
                        "attention. Choose another `num_layers` or `window`."
                    )

    def describe(self, copied) -> list[str]:
        """Returns lines about the copied weights, a list.

        Args:
            copied: The result of `give_weights`.
        """
        kept = [
            f"layer{'s' * (len(numbers) > 1)} {', '.join(str(number + 1) for number in numbers)} "
            f"of its {copied.copied[name]}"
            for name, numbers in copied.layers.items()
        ]
        shrunk = f", with {' and '.join(kept)}" if kept else ""
        lines = [f"Starting with the weights of {self.path}{shrunk}."]
        return lines if self.parts is None else [*lines, self._describe_parts(copied)]

    def _describe_parts(self, copied):
        names = ", ".join(
            name if name == source else f"{name} (from its {source})"
            for name, source in copied.copied.items()
        )
        new = ", ".join(copied.new) or "none"
        return f"Parts copied from {self.path}: {names}. New parts: {new}."

    def _check_data(self, ours, parts):
        """Raises a `ValueError` if the training data have other labels or shapes than the run."""
        theirs = self.model.config
        fields = {
            name: (part, field)
            for part in parts
            if part in ours.description
            for name, field in ours.description[part].options().items()
        }
        for name, (part, field) in fields.items():
            if field.metadata["set_by"] != "data" or field.metadata["statistic"]:
                continue
            here = getattr(getattr(ours, part), name)
            there = getattr(getattr(theirs, part), name, here)  # another kind does not fit anyway
            if here != there:
                raise ValueError(
                    f"the weights of {self.path} do not fit: the training data have "
                    f"{name.replace('_', ' ')} {_shown(here)} here and {_shown(there)} there."
                )

    def _refuse(self, ours, theirs, section):
        if wrong := conflicts(ours, theirs, section):
            raise ValueError(
                f"the weights of {self.path} do not fit: {', '.join(wrong)}. To use the sizes and "
                "the vocabulary of that run, remove `model.preset`, the sizes in [model] and the "
                "section [vocabulary]."
            )


def _sizes(ours, theirs, parts):
    """Returns the options of some parts that affect weights, two dictionaries.

    An option that has the same values in both stacks is under its own name; other options are under
    the name of the stack and their own.
    """
    by_key, sizes = {}, ({}, {})
    for name in parts:
        source = source_of(name, theirs)
        if getattr(ours, name) is None or source is None:
            continue
        here, there = _flat(getattr(ours, name), getattr(theirs, source))
        for key in _of_weights(ours, name, here):
            if key in there:
                by_key.setdefault(key, {})[name] = here[key], there[key]
    for key, pairs in by_key.items():
        alike = len({repr(pair) for pair in pairs.values()}) == 1
        for name, pair in pairs.items():
            for side, value in zip(sizes, pair, strict=True):
                side[key if alike else f"{name}.{key}"] = value
    return sizes


def _flat(*parts):
    """Returns the options of two parts, a list, without those of attention that are in `FREE`."""
    flats = [part.to_flat() for part in parts]
    if any(flat.get("cross_attention") is not None for flat in flats):
        for part, flat in zip(parts, flats, strict=True):
            if "cross_attention" in flat:  # `None`: it has the options of self-attention
                flat["cross_attention"] = part.block.memory_attention
    return [{key: _without_free(value) for key, value in flat.items()} for flat in flats]


def _without_free(value):
    if not isinstance(value, AttentionHeads):
        return value
    options = short_options(type(value))
    free = {field.name: field.default for name, field in options.items() if name in FREE}
    return dataclasses.replace(value, **free)


def _without_fewer(ours, theirs):
    """Returns options without numbers of layers that are smaller than those of the other run."""
    fewer = {key for key in ours if key.endswith("num_layers") and ours[key] < theirs[key]}
    return tuple({k: v for k, v in one.items() if k not in fewer} for one in (ours, theirs))


def _of_weights(config, name, options):
    """Returns the names of the options of a part that affect its weights."""
    fields = config.description[name].options(getattr(config, name))
    decided = {
        key
        for key, field in fields.items()
        if field.metadata["set_by"] is not None or field.metadata["statistic"]
    }
    position = set() if isinstance(options.get("position"), Learned) else {"max_length"}
    left_out = decided | FREE | config.follow | position
    return [key for key in {**fields, **options} if key in options and key not in left_out]


def _shown(value):
    return ", ".join(value) if isinstance(value, tuple) else value
