"""Chat templates in the folders of checkpoints."""

from keras_transformer.pretrained.added_tokens import (
    OPTIONS,
    ROLES,
    RULES,
    TOKENIZER,
    added_entries,
    token_name,
)
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.tokenizers import ByteBPETokenizer

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
    options = folder.json(OPTIONS) or {}
    text = folder.text(FILE) if folder.file(FILE) is not None else _text_of(options.get(KEY))
    if text is None:
        return None
    reason = _refusal(text, folder, tokenizer)
    if reason is not None:
        notes.append(f"the chat template is not carried over: {reason}")
        return None
    content = folder.json(TOKENIZER)
    entries = added_entries(folder, content, folder.path / TOKENIZER)
    special = {name: number for name, number, is_special, *_ in entries if is_special is True}
    variables = {role: token_name(options.get(role)) for role in ROLES}
    variables = {role: name for role, name in variables.items() if name is not None}
    return ChatTemplate(text, special, variables)


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
    if not isinstance(tokenizer, ByteBPETokenizer) or tokenizer.prefix_space:
        return (
            "chats need byte-level BPE without `add_prefix_space`, so that the parts of a prompt "
            f"between special tokens can be tokenized alone. Received: {tokenizer.title}"
        )
    content = folder.json(TOKENIZER)
    for name, _, is_special, _, token in added_entries(folder, content, folder.path / TOKENIZER):
        rules = [rule for rule in RULES if token.get(rule)]
        if is_special is True and rules and name in text:
            return f"its token {name!r} is found by the rule `{rules[0]}`"
    return None
