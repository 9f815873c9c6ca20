"""Check of the tokens that a `tokenizer.json` puts around a text."""

from keras_transformer.pretrained.settings import CheckpointSettings

TEXT = "$A"  # the text, in a template
# Processors that have the tokens of the end and of the beginning as options.
NAMED = ("BertProcessing", "RobertaProcessing")


def check_marks(content, path, ids, allowed) -> None:
    """Refuses a `post_processor` that puts other tokens than allowed around a text.

    Args:
        content: Content of the file.
        path: Path of the file, for messages.
        ids: Dictionary from tokens to ids.
        allowed: List of pairs: the token before and the token after a text, or `None`.

    Raises:
        ValueError: If the tokens around a text are others.
    """
    try:
        found = _marks(content.get("post_processor"))
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        found = ()
    rows = [[token if token is None else (token, ids.get(token)) for token in p] for p in allowed]
    expected = [[token for token in (begin, TEXT, end) if token is not None] for begin, end in rows]
    if found not in expected:
        names = [[token for token in pair if token is not None] for pair in allowed]
        rule = " or ".join(" and ".join(pair) or "no token" for pair in names)
        settings = CheckpointSettings(content, path)
        raise settings.wrong("post_processor", f"one that puts {rule} around a text")


def begins_with_token(content) -> bool:
    """Returns true if a `tokenizer.json` puts a token in front of a text.

    Args:
        content: Content of the file, after `check_marks`.
    """
    return _marks(content.get("post_processor"))[0] != TEXT


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
