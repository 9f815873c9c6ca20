"""Fine-tuning: a training that begins with the weights of another run."""

from keras_transformer.training.settings.of_the_data import OF_THE_DATA, OF_THE_VOCABULARY
from keras_transformer.training.settings.taken_vocabulary import conflicts

# What may differ from the run whose weights are taken: no weight depends on it, or, for the
# vocabulary, it is taken from there in any case; what the data decide is compared when it is known.
FREE = {
    "dropout", "attention_dropout", "activation_dropout", *OF_THE_VOCABULARY, *OF_THE_DATA,
}  # fmt: skip

DESCRIBED = {"size", "model_type", "split_digits", "character_coverage"}  # by a run, any version
NOT_OF_WEIGHTS = {"start_from", "vectors", "freeze_vectors"}  # keys of [model]: how a run began


def inherit(values, load):
    """Fills in what a configuration leaves to the run that `[model] start_from` names.

    Without `preset` these are the fields of `[model]` that are not given, and in any case the keys
    of `[vocabulary]` that are not. A configuration that was written for a run holds everything, so
    that the run stays readable when the other one is gone.

    A task without a vocabulary inherits none.

    Args:
        values: The configuration as nested dictionaries, with a path that is resolved; changed.
        load: Function from the path of a configuration to its `Settings`.

    Raises:
        ValueError: If the other run cannot be read.
    """
    model, vocabulary = values.get("model"), values.get("vocabulary", {})
    if not (isinstance(model, dict) and isinstance(vocabulary, dict)):
        return
    described = vocabulary.keys() >= DESCRIBED
    if not isinstance(model.get("start_from"), str) or ("preset" in model and described):
        return
    theirs = load(_require(model["start_from"]).config)
    if "preset" not in model:
        fields = theirs.model.model_dump(exclude=NOT_OF_WEIGHTS, exclude_none=True)
        values["model"] = {**fields, **model}
    if not described and theirs.task.get().texts:
        values["vocabulary"] = {**theirs.vocabulary.description(), **vocabulary}


class Start:
    """The finished run whose weights a training begins with.

    Args:
        settings: The `Settings` of the training, with a `model.start_from`.
        load: Function from the path of a configuration to its `Settings`.

    Attributes:
        tokenizers: Those of the other run.
        origin: What is known of the checkpoint that its weights come from: see `Run.read_origin`.
        search: Its search where none is named, or `None`: see `Run.read_search`.

    Raises:
        ValueError: If the other run is not finished or damaged, or its vocabulary or its sizes are
            not those of the settings. One line, with every key that differs.
    """

    def __init__(self, settings, load):
        other = _require(settings.model.start_from)
        self.path = other.path
        model_class = settings.task.get().pipeline_class().model_class
        self.model, self.tokenizers = other.load(model_class)
        self._refuse(
            settings.vocabulary.description(),
            load(other.config).vocabulary.description(),
            "vocabulary",
        )
        self._refuse(_sizes(settings.config()), _sizes(self.model.config), "model")
        update = other.read_metrics().get("model_update")
        self.origin, self.search = other.read_origin(), other.read_search()
        self.facts = {"run": str(self.path), "model_update": update}

    def give_weights(self, model):
        """Gives the weights to the model to train.

        Raises:
            ValueError: If the data have decided on other labels or shapes.
        """
        for name, statistic in OF_THE_DATA.items():
            ours, theirs = (
                getattr(config, name, None) for config in (model.config, self.model.config)
            )
            if ours != theirs and not statistic:
                raise ValueError(
                    f"the weights of {self.path} do not fit: the training data have the "
                    f"{name.replace('_', ' ')} {_shown(ours)} here and {_shown(theirs)} there."
                )
        model.set_weights(self.model.get_weights())

    def _refuse(self, ours, theirs, section):
        if wrong := conflicts(ours, theirs, section):
            raise ValueError(
                f"the weights of {self.path} do not fit: {', '.join(wrong)}. Leave `model.preset`, "
                "the sizes in [model] and the section [vocabulary] out, to take its own."
            )


def _sizes(config):
    """The fields of a configuration that two models with the same weights share."""
    fields = config.to_dict()
    if "num_decoder_layers" in fields:
        fields["num_decoder_layers"] = config.decoder_layers
    decided = "max_length" in config.without_effect(fields)  # by other fields, or by the data
    shape = fields["position"] == "learned" and not decided
    free = FREE if shape else {*FREE, "max_length"}
    return {name: value for name, value in fields.items() if name not in free}


def _shown(value):
    return ", ".join(value) if isinstance(value, tuple) else value


def _require(path):
    """The run that `start_from` names, if it is finished; its vocabulary is another question."""
    from keras_transformer.run import Run  # imports Keras, which reading settings does not need

    run = Run(path)
    run.require_finished(vocabulary=False)
    return run
