"""Instruct models of Llama's and Mistral's layout with SentencePiece, as TowerInstruct and EuroLLM.

Nothing here is shared with the package.
"""

import json
import random
import re

import llama_folders
import safetensors.numpy
import sentencepiece_bpe_folders as pieces

START, STOP = "<|im_start|>", "<|im_end|>"
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
INSTRUCT = (
    "{{ bos_token }}{% for m in messages %}{{ m['role'][0] + ' ' + m['content'] }}"
    "{% if m['role'] != 'user' %}{{ ' ' + eos_token }}{% endif %}{% endfor %}"
)
PLAIN = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
TEMPLATES = {"chatml": CHATML, "instruct": INSTRUCT, "plain": PLAIN}
SIZE = len(pieces.pieces())
ADDED = {START: SIZE, STOP: SIZE + 1}
TEXTS = (
    *("a dog", "  two  spaces ", "café", "☃", "▁x", "\n\nline", "", " ", "the film", "ＡＢ"),
    *("very  good\t", "<0x0A>", "🙂"),
)


def conversations(count=25):
    """Random conversations, which end with a message of the user."""
    dice = random.Random(1)
    rows = []
    for _ in range(count):
        messages = [{"role": "system", "content": dice.choice(TEXTS)}] * (dice.random() < 0.4)
        for number in range(2 * dice.randint(0, 2) + 1):
            text = "".join(dice.choices(TEXTS, k=dice.randint(0, 4)))
            messages.append({"role": ("user", "assistant")[number % 2], "content": text})
        rows.append(messages)
    return rows


def rendered(name, messages):
    """The text of a conversation in a template, written a second time."""
    if name == "plain":
        return "".join(f"{m['role']}: {m['content']}\n" for m in messages)
    if name == "instruct":
        ends = [f" {STOP}" * (m["role"] != "user") for m in messages]
        parts = zip(messages, ends, strict=True)
        return "<s>" + "".join(f"{m['role'][0]} {m['content']}{end}" for m, end in parts)
    turns = (f"{START}{m['role']}\n{m['content']}{STOP}\n" for m in messages)
    return f"{''.join(turns)}{START}assistant\n"


def ids_of(text, scheme):
    """The ids of a prompt by SentencePiece: texts between special tokens are tokenised alone."""
    special = {"<s>": 1, **ADDED}
    ids = []
    for place, part in enumerate(re.split("(<s>|<\\|im_start\\|>|<\\|im_end\\|>)", text)):
        if place % 2:
            ids.append(special[part])
        elif part:
            is_bare = scheme == "first" and place > 0
            ids += pieces.ids_of([part], "never" if is_bare else scheme)[0]
    return ids


def write_folder(folder, kind="prepend", template="chatml", special=True, legacy=None, **changes):
    """Writes a checkpoint with a `tokenizer.model` or a kind of tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**llama_folders.SIZES, **llama_folders.LLAMA, "vocab_size": SIZE + 2}
    settings |= {"bos_token_id": 1, "eos_token_id": ADDED[STOP], **changes}
    safetensors.numpy.save_file(llama_folders.tensors_of(settings), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))

    def entry(name):
        is_special = special or name != START
        return {"content": name, "special": is_special, "normalized": False, **pieces.EXACT}

    names = {"<unk>": 0, "<s>": 1, "</s>": 2, **ADDED}
    options = {
        "added_tokens_decoder": {str(number): entry(name) for name, number in names.items()},
        **{"bos_token": "<s>", "eos_token": STOP, "unk_token": "<unk>"},
        "chat_template": TEMPLATES[template], "clean_up_tokenization_spaces": False,
        "tokenizer_class": "LlamaTokenizer" if kind == "model" else "PreTrainedTokenizerFast",
        **({} if legacy is None else {"legacy": legacy}),
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    if kind == "model":
        (folder / "tokenizer.model").write_bytes(pieces.model())
        return
    content = pieces.tokenizer_json(kind)
    content["added_tokens"] += [{"id": number, **entry(name)} for name, number in ADDED.items()]
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")
