"""Tokens that files add to a vocabulary, of which special ones are read, or put around a text."""

from collections.abc import Iterator
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.pretrained.settings import CheckpointSettings

TEXT = "$A"  # the text, in a template
# Processors that have the tokens of the end and of the beginning as options.
NAMED = ("BertProcessing", "RobertaProcessing")


def check_marks(content, path, ids, allowed) -> None:
    """Refuses a `post_processor` that puts tokens around a text that are not allowed.

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


def end_token(content, pieces, path) -> int:
    """Returns the id of the token that a `tokenizer.json` puts after a text, and none before it.

    Args:
        content: Content of the file.
        pieces: The tokens in the order of their ids.
        path: Path of the file, for messages.

    Raises:
        ValueError: If there is no such token.
    """
    try:
        begin, (name, number) = _marks(content.get("post_processor"))
        valid = begin == TEXT and is_integer(number) and pieces[number] == name
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        valid, number = False, 0
    if not valid:
        rule = "one that puts a token after a text, whose vector stands for it, and none before it"
        raise CheckpointSettings(content, path).wrong("post_processor", rule)
    return number


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


OPTIONS, MAP, LEGACY = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
TOKENIZER, DECODER = "tokenizer.json", "added_tokens_decoder"
MASKS = ("<mask>", "[MASK]")  # usual names
ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
RULES = ("single_word", "lstrip", "rstrip")  # of finding a token in a text
LISTS = ("additional_special_tokens", "extra_special_tokens")


def with_added_tokens(ids, folder, content, path, found=None) -> dict[str, int]:
    """Returns the ids of a vocabulary with those of the tokens that the folder's files add.

    The files are `tokenizer.json`, `tokenizer_config.json` and, if that has no list of added
    tokens, `added_tokens.json`.

    Args:
        ids: Dictionary from tokens to ids.
        folder: The `CheckpointFolder`.
        content: Content of `tokenizer.json`, or `None`.
        path: Path of the file of `ids`, for messages.
        found: List to which tokens that are not special are appended: they are found in texts
            before words are split. `None`: the tokenizer cannot do that.

    Raises:
        ValueError: If an entry is damaged or contradicts the vocabulary, or a token that is not
            special would be found by rules that no tokenizer here has.
    """
    ids = dict(ids)
    for name, number, special, place, token in added_entries(folder, content, path):
        if special is not True and found is not None:
            rules = [rule for rule in RULES if token.get(rule)]
            if rules or not name:
                raise ValueError(
                    f"{place} must be without {', '.join(RULES)}. "
                    f"Received: {name!r} with {rules[0] if rules else 'no text'}."
                )
            found += [name] * (name not in found)
        elif special is not True:
            raise ValueError(
                f"{place} must be special tokens. Received: {name!r}, which is found in texts."
            )
        if ids.setdefault(name, number) != number:
            raise ValueError(
                f"{place} must give {name!r} the id that it has in the vocabulary of {path}, "
                f"{ids[name]!r}. Received: {number!r}."
            )
    return ids


def token_name(value) -> str | None:
    """Returns the name of a token, which is a string or in a dictionary; `None` if it has none."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def read_mask(ids, folder, content, default) -> tuple[str | None, bool]:
    """Returns the mask token of a vocabulary, and whether white space before it is removed.

    Args:
        ids: Dictionary from tokens to ids.
        folder: The `CheckpointFolder`.
        content: Content of `tokenizer.json`, or `None`.
        default: The token, unless `tokenizer_config.json` names another.

    Returns:
        The token, or `None` if the vocabulary has none, or it is found in texts by other rules.
    """
    options = folder.json(OPTIONS) or {}
    named = options.get("mask_token")
    mask = token_name(named) or default
    if mask not in ids:
        return None, False
    entry = _mask_entry(options, content, {mask})
    if _conditions(entry, content):
        return None, False
    return mask, entry.get("lstrip") is True


def describe_mask(folder) -> str:
    """Returns the mask token of a `CheckpointFolder`, with reasons to refuse it, for a message."""
    options, content = folder.json(OPTIONS) or {}, folder.json(TOKENIZER)
    named = token_name(options.get("mask_token"))
    entry = _mask_entry(options, content, MASKS if named is None else {named})
    conditions = _conditions(entry, content)
    if not conditions:
        return "none" if named is None else f"{named!r}"
    return f"{entry['content']!r} with {', '.join(conditions)}"


def _mask_entry(options, content, names):
    """Returns the first entry of a mask token in the files; empty if there is none."""
    decoder = options.get(DECODER)
    entries = [
        *(decoder.values() if isinstance(decoder, dict) else ()),
        *((content or {}).get("added_tokens") or ()),
        options.get("mask_token"),
    ]
    return next((e for e in entries if isinstance(e, dict) and e.get("content") in names), {})


def _conditions(entry, content):
    """Returns the rules by which a token is found in texts otherwise than as it is written."""
    flags = [f"`{flag}`" for flag in ("rstrip", "single_word") if entry.get(flag)]
    if entry.get("normalized") and (content or {}).get("normalizer") is not None:
        flags.append("`normalized`, and a normalizer changes texts")
    return flags


def added_entries(folder, content, path) -> Iterator[tuple[str, int, Any, str, dict]]:
    """Yields name, id, whether the token is special, its list for messages, and its entry.

    Args:
        folder: The `CheckpointFolder`.
        content: Content of `tokenizer.json`, or `None`.
        path: Path of that file, for messages.

    Raises:
        ValueError: If an entry is damaged.
    """
    place = f"{path}: `added_tokens`"
    for token in _list(place, (content or {}).get("added_tokens")):
        yield *_entry(place, token, token.get("id")), token.get("special", True), place, token
    options = CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)
    decoder, place = options.get(DECODER), f"{options.path}: `{DECODER}`"
    if decoder is not None:
        if not isinstance(decoder, dict):
            raise options.wrong(DECODER, "a dictionary from ids to tokens")
        for number, token in zip(decoder, _list(place, [*decoder.values()]), strict=True):
            number = int(number) if number.isascii() and number.isdigit() else number
            yield *_entry(place, token, number), token.get("special", False), place, token
    else:
        place = f"{folder.path / LEGACY}: the tokens"
        special = _special_names(options) | _special_names(folder.json(MAP) or {})
        for name, number in (folder.json(LEGACY) or {}).items():
            yield *_entry(place, {"content": name}, number), name in special, place, {}


def _list(place, tokens):
    """Returns a list of dictionaries."""
    tokens = [] if tokens is None else tokens
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise ValueError(f"{place} must have a `content` and an `id`.")
    return tokens


def _entry(place, token, number):
    name = token.get("content")
    if not isinstance(name, str) or not is_integer(number):
        raise ValueError(f"{place} must have a `content` and an `id`.")
    return name, number


def _special_names(options):
    """Returns the names of the tokens that options give a role, a set."""
    named = [options.get(role) for role in ROLES]
    for key in LISTS:
        values = options.get(key)
        named += values if isinstance(values, list) else []
    return {token_name(value) for value in named} - {None}
