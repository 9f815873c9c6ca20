"""Reading of checkpoints of other projects as models with tokenizers."""

from keras_transformer.checkpoint_hints import hint
from keras_transformer.pretrained.family import CONFIG, Checkpoint, Family, families
from keras_transformer.pretrained.files.folder import CheckpointFolder
from keras_transformer.pretrained.hub import find_checkpoint


def read_checkpoint(
    path,
    license=None,
    name=None,
    source_language=None,
    target_language=None,
    revision=None,
    task=None,
    **options,
) -> Checkpoint:
    """Returns the `Checkpoint` at a path.

    Args:
        path: A folder in Hugging Face's format, the name of a repository on its hub, or a `.npz` or
            `.bin` file of Marian.
        license: Licence of the checkpoint. `None`: the licence that it names.
        name: Name of the checkpoint. `None`: the name of the repository or of the folder.
        source_language, target_language: Default languages of a multilingual model. `None`: those
            that the checkpoint names.
        task: Name of the task of the model, where the files leave a choice: `"sparse_embedding"`
            for a masked language model that was trained as SPLADE. `None`: that of its head.
        revision: Branch, tag or commit of a repository. `None`: its main branch.
        **options: Options of the checkpoint's family; see, for example, `Marian`.

    Raises:
        ValueError: If there is no checkpoint at `path`, or it is damaged or not supported. The
            error is one line that names the file, and the setting or the tensor.
        OSError: If a file cannot be read.
    """
    place = find_checkpoint(path, revision)
    folder = CheckpointFolder(place.path, place.root, place.repository)
    family = find_family(folder, path)(folder, **options)
    family.choose_task(task)
    source_language, target_language = family.choose_languages(source_language, target_language)
    config, generation = family.config(), family.generation()
    if generation is not None:
        config = generation.configure(config)
    for tensor, shape in family.sizes(config):
        family.tensors.check_shape(tensor, shape)
    model = family.model_class(config, dtype="float32")
    family.tensors.fill(model, family.names(config))
    family.tensors.fill(model, family.names_after_pooling())
    family.tensors.check_all_used(family.ignored)
    tokenizers = family.tokenizers(config)
    if source_language or target_language:
        if tokenizers is None:
            raise ValueError(f"{folder.path}: a model without a vocabulary has no languages.")
        tokenizers = tokenizers.with_languages(source_language, target_language)
    chat = family.chat()
    notes = [*family.notes, *(() if generation is None else generation.notes)]
    notes += () if tokenizers is None else _dropped(tokenizers)
    given = {key: value for key, value in (("name", name), ("license", license)) if value}
    origin = {**family.origin(), **place.origin, **given}
    if origin.get("base") == origin["name"]:
        del origin["base"]
    prompts = family.prompts()
    return Checkpoint(model, tokenizers, family.task, origin, generation, notes, prompts, chat)


def _dropped(tokenizers):
    """Yields a note if vocabularies have no token for some bytes."""
    for dropped in {getattr(side, "dropped_bytes", ()) for side in tokenizers} - {()}:
        few = ", ".join(f"0x{byte:02X}" for byte in dropped[:3])
        yield (
            f"the vocabulary has no token for {len(dropped)} bytes of UTF-8, such as {few}: they "
            "are dropped from texts, as by Hugging Face's tokenizers"
        )


def find_family(folder, path) -> type[Family]:
    """Returns the class of the family of a checkpoint.

    Args:
        folder: A `CheckpointFolder`.
        path: The path that the user named, for messages.

    Raises:
        ValueError: If the folder contains no checkpoint of a known family.
    """
    for family in families():
        if family.matches(folder):
            return family
    content = None if folder.model is not None else folder.json(CONFIG)
    if content is None:
        known = hint(path, conversion=False)
        what = "is not a checkpoint" if known or folder.model is not None else f"has no {CONFIG}"
        raise ValueError(
            f"{path} {what}. A checkpoint is a folder in Hugging Face's format, or a .npz or .bin "
            f"file of Marian.{known}"
        )
    kinds = [family.model_type for family in families() if family.model_type]
    raise ValueError(
        f"{folder.path / CONFIG}: `model_type` must be one of {', '.join(kinds)}. "
        f"Received: {content.get('model_type')!r}."
    )
