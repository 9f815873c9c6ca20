"""The student's run before its training: its settings, its vocabulary, where it comes from."""

from keras_transformer.files import replacing
from keras_transformer.training.settings.taken_vocabulary import read_rules
from keras_transformer.training.settings.toml import SettingsError, make_settings, save_settings


def check_student(settings):
    """Refuses settings that a distillation could not follow.

    Raises:
        SettingsError: With what to do.
    """
    task = settings.task.get()
    if not task.has_two_sides:
        raise SettingsError(
            f"a student for {task.name} cannot be distilled: it needs a task whose models generate "
            "a text for a source, such as translation or summarization."
        )
    if settings.model.start_from is not None:
        raise SettingsError(
            "`model.start_from` has no place in a distillation, whose student begins with weights "
            "of its own: train on the files that a distillation leaves in its run instead."
        )
    if getattr(settings.data, "train_weights", None) is not None:
        raise SettingsError(
            "`data.train_weights` has no effect on a distillation, which reads all sources once; "
            "remove it."
        )


def student_settings(settings, section, teacher, own_vocabulary):
    """Returns the `Settings` of the student.

    Args:
        settings: Those that describe it, with the original data.
        section: The section `[data]` of what it learns, a dictionary.
        teacher: The `Teacher` whose vocabulary it has.
        own_vocabulary: Whether it learns one of its own instead.

    Raises:
        SettingsError: If the vocabulary that they describe is not the teacher's.
    """
    values = {**settings.used(), "data": section}
    if not own_vocabulary:
        if settings.vocabulary.places is not None:
            raise SettingsError(
                f"the student has the vocabulary of {teacher.run.path}: remove `vocabulary.from`, "
                "or let the student have its own (`--vocabulary own`)."
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


def prepare_run(run, settings, teacher, origin):
    """Writes what a training finds in a run that it begins.

    Args:
        run: The `Run`, in which nothing was trained yet.
        settings: The `Settings` of the student.
        teacher: The `Teacher` whose vocabulary it has. `None`: the training learns one.
        origin: See `origin_of`.
    """
    run.config.unlink(missing_ok=True)  # written last: a training of it alone would learn pieces
    run.remove_vocabulary()
    run.origin.unlink(missing_ok=True)
    run.write_origin(origin)
    if teacher is not None:
        run.write_tokenizers(teacher.tokenizers)
        run.write_generation(read_rules([teacher.run.path]))
    with replacing(run.config) as draft:
        save_settings(settings, draft)


def origin_of(teachers):
    """Returns the origin of a student, for `Run.write_origin`.

    Its licence names those of all teachers that were converted, or made of such.

    Args:
        teachers: List of `Teacher`s.

    Returns:
        A dictionary, empty where all teachers were trained from nothing.
    """
    known = [origin for teacher in teachers if (origin := teacher.run.read_origin())]
    if not known:
        return {}
    licenses = dict.fromkeys(origin.get("license") for origin in known)
    stated = ", ".join(license or "one that is not stated" for license in licenses)
    return {
        "format": "distilled",
        "name": f"student of {', '.join(teacher.name for teacher in teachers)}",
        "license": stated if any(licenses) else None,
    }
