"""The student's run before training: its settings, vocabulary and provenance."""

from typing import TYPE_CHECKING, Any

import keras

from keras_transformer.files import replacing
from keras_transformer.training.factory import model_config
from keras_transformer.training.settings.taken_vocabulary import read_rules
from keras_transformer.training.settings.toml import SettingsError, make_settings, save_settings

if TYPE_CHECKING:
    from keras_transformer.training.settings.schema import Settings


def check_student(settings, word_level=None) -> None:
    """Checks that the settings of a student suit a distillation.

    Args:
        settings: The `Settings`.
        word_level: See `Distillation`.

    Raises:
        SettingsError: If they do not; the message says how to change them.
    """
    task = settings.task.get()
    if not task.has_two_sides:
        raise SettingsError(
            f"a student for {task.name} cannot be distilled: distillation needs a task whose "
            "models generate a text from a source, such as translation or summarisation."
        )
    if settings.model.start_from is not None:
        raise SettingsError(
            "`model.start_from` cannot be used in a distillation, whose student begins with random "
            "weights: instead, train on the files that a distillation leaves in its run."
        )
    if settings.training.distillation_weight is not None and word_level is None:
        raise SettingsError(
            "`training.distillation_weight` has no effect without word-level targets "
            "(`--word-level`); remove it."
        )
    for key, reason in (
        ("train_distributions", "which writes its own (`--word-level`)"),
        ("train_weights", "which reads every source once"),
        ("bidirectional", "whose teachers read only the sources"),
    ):
        if getattr(settings.data, key, None):
            raise SettingsError(
                f"`data.{key}` has no effect on a distillation, {reason}; remove it."
            )


def student_settings(settings, section, teacher) -> "Settings":
    """Returns the `Settings` of the student's training.

    Args:
        settings: The `Settings` of the student, with the original data.
        section: The `[data]` section of the generated texts, a dictionary.
        teacher: The `Teacher` whose vocabulary the student has. `None`: it learns its own.

    Raises:
        SettingsError: If the settings describe a vocabulary other than the teacher's.
    """
    values = {**settings.used(), "data": section}
    if teacher is not None:
        if settings.vocabulary.places is not None:
            raise SettingsError(
                f"the student has the vocabulary of {teacher.run.path}: remove `vocabulary.from`, "
                "or give the student a vocabulary of its own (`--vocabulary own`)."
            )
        theirs = teacher.settings.vocabulary
        for key in sorted(settings.vocabulary.model_fields_set):
            ours, value = getattr(settings.vocabulary, key), getattr(theirs, key)
            if ours != value:
                raise SettingsError(
                    f"the student has the vocabulary of {teacher.run.path}: `vocabulary.{key}` is "
                    f"{value!r} there and {ours!r} here. Remove [vocabulary], or let the student "
                    "learn its own."
                )
        values["vocabulary"] = theirs.description()
    return make_settings(values, "the student's configuration")


def size_warning(settings, teacher) -> str:
    """Returns a warning if the student is not smaller than its teacher, otherwise an empty string.

    Args:
        settings: The `Settings` of the student.
        teacher: The `Teacher` whose vocabulary the student has. `None`: sizes are not compared.
    """
    theirs = None if teacher is None else teacher.run.read_metrics().get("parameters")
    if theirs is None:
        return ""
    config = model_config(settings, teacher.tokenizers)
    with keras.StatelessScope(initialize_variables=False):  # the values of weights do not matter
        ours = settings.task.get().pipeline_class().model_class(config).count_params()
    if ours < theirs:
        return ""
    return (
        f"Warning: the student has {ours:,} parameters and its teacher {theirs:,}: a student is "
        "usually smaller and faster. Set smaller sizes in [model], such as num_layers, d_model and "
        "d_ff."
    )


def prepare_run(run, settings, teacher, origin) -> None:
    """Writes the files with which training of the student begins: settings, vocabulary, provenance.

    Args:
        run: The `Run`, in which nothing has been trained yet.
        settings: The `Settings` of the student.
        teacher: The `Teacher` whose vocabulary the student has. `None`: `train` learns one.
        origin: See `origin_of`.
    """
    # Written last: `train` would learn a vocabulary if it found a configuration without one.
    run.config.unlink(missing_ok=True)
    run.remove_vocabulary()
    run.origin.unlink(missing_ok=True)
    run.write_origin(origin)
    if teacher is not None:
        run.write_tokenizers(teacher.tokenizers)
        run.write_generation(read_rules([teacher.run.path]))
    with replacing(run.config) as draft:
        save_settings(settings, draft)


def origin_of(teachers) -> dict[str, Any]:
    """Returns the provenance of a student, for `Run.write_origin`.

    Its licence lists the licences of all teachers that derive from a converted checkpoint.

    Args:
        teachers: List of `Teacher`s.

    Returns:
        A dictionary, empty if all teachers were trained from random weights.
    """
    known = [origin for teacher in teachers if (origin := teacher.run.read_origin())]
    if not known:
        return {}
    licenses = dict.fromkeys(origin.get("license") for origin in known)
    stated = ", ".join(license or "an unstated licence" for license in licenses)
    return {
        "format": "distilled",
        "name": f"student of {', '.join(teacher.name for teacher in teachers)}",
        "license": stated if any(licenses) else None,
    }
