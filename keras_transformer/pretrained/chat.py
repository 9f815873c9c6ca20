"""Chat templates in the folders of checkpoints."""

from keras_transformer.pretrained.added_tokens import (
    OPTIONS,
    ROLES,
    RULES,
    TOKENIZER,
    added_entries,
    token_name,
)
from keras_transformer.text.chat_template import EACH, FIRST, ChatTemplate
from keras_transformer.text.tokenizers import ByteBPETokenizer, SentencePieceTokenizer

FILE = "chat_template.jinja"
KEY = "chat_template"
DEFAULT = "default"  # name of the template that is used, if there are several
LARGEST = 2**20  # characters


def read_chat_template(folder, tokenizer, notes) -> ChatTemplate | None:
    """Returns the chat template of a checkpoint, or `None` if it has none that works here.

    Args:
        folder: The `CheckpointFolder`.
        tokenizer: The `Tokenizer` of the checkpoint.
        notes: List to which the reason is appended if there is a template that does not work.

    Raises:
        ValueError: If a file is damaged.
    """
    if folder.model is not None:
        return None
    text = chat_text(folder)
    if text is None:
        return None
    options = folder.json(OPTIONS) or {}
    reason = _refusal(text, folder, tokenizer)
    if reason is not None:
        notes.append(f"the chat template is not carried over: {reason}")
        return None
    variables = {role: token_name(options.get(role)) for role in ROLES}
    variables = {role: name for role, name in variables.items() if name is not None}
    of_pieces = isinstance(tokenizer, SentencePieceTokenizer)
    special = {
        name: number
        for name, number, is_special, *_ in _entries(folder)
        if is_special is True or of_pieces and writes(text, name)
    }
    if of_pieces:  # whose file need not say what is special
        ids = {name: n for n, name in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
        special |= {name: ids[name] for name in variables.values() if name in ids}
    return ChatTemplate(text, special, variables, _spaces(folder, tokenizer))


def _entries(folder):
    return added_entries(folder, folder.json(TOKENIZER), folder.path / TOKENIZER)


def _spaces(folder, tokenizer):
    """Returns the texts of a prompt that begin with a space; see `ChatTemplate`."""
    content = folder.json(TOKENIZER)
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return EACH
    if content is None:  # `legacy` is true in `transformers` 4 where it is missing
        return FIRST if (folder.json(OPTIONS) or {}).get("legacy") is False else EACH
    return FIRST if (content.get("pre_tokenizer") or {}).get("prepend_scheme") == FIRST else EACH


def chat_text(folder) -> str | None:
    """Returns the text of the chat template in a `CheckpointFolder`, or `None`."""
    if folder.file(FILE) is not None:
        return folder.text(FILE)
    return _text_of((folder.json(OPTIONS) or {}).get(KEY))


def writes(template: str, name: str) -> bool:
    """Returns whether a chat template writes an added token that is not called special.

    White space in a template is no such token.
    """
    return name in template and not any(map(str.isspace, name))


def _text_of(value):
    """Returns the template in `tokenizer_config.json`, where there may be several by name."""
    if isinstance(value, list):
        named = [one for one in value if isinstance(one, dict) and one.get("name") == DEFAULT]
        value = named[0].get("template") if named else None
    return value if isinstance(value, str) else None


def _refusal(text, folder, tokenizer):
    """Returns the reason for which a template does not work here, or `None`."""
    if len(text) > LARGEST:
        return f"it has more than {LARGEST:,} characters"
    of_pieces = isinstance(tokenizer, SentencePieceTokenizer)
    if of_pieces and tokenizer.normalizes:
        return "the SentencePiece model of the checkpoint normalises texts"
    if not of_pieces and (not isinstance(tokenizer, ByteBPETokenizer) or tokenizer.prefix_space):
        return (
            "chats need SentencePiece, or byte-level BPE without `add_prefix_space`, so that the "
            "parts of a prompt between special tokens can be tokenised alone. Received: "
            f"{tokenizer.title}"
        )
    for name, _, is_special, _, token in _entries(folder):
        rules = [rule for rule in RULES if token.get(rule)]
        if of_pieces and token.get("normalized") and _has_normalizer(folder):
            rules.append("normalized")
        if (is_special is True or of_pieces) and rules and name in text:
            return f"its token {name!r} is found by the rule `{rules[0]}`"
    return None


def _has_normalizer(folder):
    """Returns true if texts are changed before tokens with the rule `normalized` are found."""
    content = folder.json(TOKENIZER)
    if content is None:
        return (folder.json(OPTIONS) or {}).get("legacy") is not False
    return content.get("normalizer") is not None
