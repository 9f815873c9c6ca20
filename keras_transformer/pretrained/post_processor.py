"""Check of the tokens that a `tokenizer.json` puts around a text."""

from keras_transformer.pretrained.settings import CheckpointSettings

TEXT = "$A"  # the text, in a template
# Processors that have the tokens of the end and of the beginning as options.
NAMED = ("BertProcessing", "RobertaProcessing")


def check_marks(content, path, ids, begin, end) -> None:
    """Refuses a `post_processor` that does not put one token before and one after a text.

    Args:
        content: Content of the file.
        path: Path of the file, for messages.
        ids: Dictionary from tokens to ids.
        begin, end: The tokens; `None` for both if there are none.

    Raises:
        ValueError: If the tokens around a text are others.
    """
    try:
        found = _marks(content.get("post_processor"))
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        found = ()
    if begin is None:
        expected, rule = [TEXT], "no token"
    else:
        expected, rule = [(begin, ids.get(begin)), TEXT, (end, ids.get(end))], f"{begin} and {end}"
    if found != expected:
        settings = CheckpointSettings(content, path)
        raise settings.wrong("post_processor", f"one that puts {rule} around a text")


def _marks(value):
    """Returns the tokens around a text, pairs of name and id, and `TEXT` in its place."""
    kind = None if value is None else value["type"]
    if kind in (None, "ByteLevel"):  # which only changes offsets
        return [TEXT]
    if kind in NAMED:
        return [tuple(value["cls"]), TEXT, tuple(value["sep"])]
    if kind == "Sequence":
        others = [one for one in map(_marks, value["processors"]) if one != [TEXT]]
        (marks,) = others or [[TEXT]]
        return marks
    if kind != "TemplateProcessing":
        raise ValueError
    marks = []
    for item in value["single"]:
        if "Sequence" in item:
            marks.append("$" + item["Sequence"]["id"])
        else:
            (token,) = item.values()
            special = value["special_tokens"][token["id"]]
            marks += zip(special["tokens"], special["ids"], strict=True)
    return marks
