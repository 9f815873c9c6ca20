"""Conversations with models whose vocabulary is SentencePiece's, as TowerInstruct and EuroLLM."""

import itertools
import json

import chat_folders as folders
import pytest
import tensorflow as tf
from click.testing import CliRunner
from marks import slow
from test_hugging_face import SCRIPT, run_python

from keras_transformer.cli.main import cli
from keras_transformer.decoding import Greedy
from keras_transformer.pipelines import Chat
from keras_transformer.pretrained.chat import writes
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.streams.prompts import conversation_ids
from keras_transformer.training.converted import write_converted

SCHEMES = ("prepend", "first", "always", "never")
# Checkpoints with `tokenizer.model` alone, by `legacy`, and what they do.
OF_MODELS = {True: "prepend", False: "first"}


def prompts(path, conversations):
    """Returns the ids of the prompts of conversations by this package."""
    checkpoint = read_checkpoint(path)
    assert not [note for note in checkpoint.notes if "chat" in note]
    tokenizer = checkpoint.tokenizers.source
    try:
        return [conversation_ids(checkpoint.chat, m, tokenizer, True) for m in conversations]
    finally:
        checkpoint.chat.close()


@pytest.mark.parametrize("name", ["chatml", slow("instruct"), slow("plain")])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_parts_between_special_tokens_are_tokenized_alone(scheme, name, tmp_path):
    folders.write_folder(tmp_path, scheme, name)
    conversations = folders.conversations(6)
    expected = [folders.ids_of(folders.rendered(name, m), scheme) for m in conversations]
    assert prompts(tmp_path, conversations) == expected


@pytest.mark.parametrize("legacy", OF_MODELS)
def test_a_model_file_follows_legacy(legacy, tmp_path):
    folders.write_folder(tmp_path, "model", legacy=legacy)
    conversations = folders.conversations(6)
    texts = [folders.rendered("chatml", m) for m in conversations]
    expected = [folders.ids_of(text, OF_MODELS[legacy]) for text in texts]
    assert prompts(tmp_path, conversations) == expected


def test_marks_of_turns_need_not_be_special(tmp_path):
    folders.write_folder(tmp_path, special=False)
    (ids,) = prompts(tmp_path, [[{"role": "user", "content": "a dog"}]])
    assert ids.count(folders.ADDED[folders.START]) == 2
    folders.write_folder(tmp_path, template="plain", special=False)
    with pytest.raises(ValueError, match=r"be written by the chat template\. .*'<\|im_start\|>'"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("template", "name", "found"),
    [
        ("a<|x|>b", "<|x|>", True),
        ("a\n\nb", "\n\n", False),
        ("a  b", "  ", False),
        ("a", "b", False),
    ],
)
def test_white_space_of_a_template_is_no_mark(template, name, found):
    assert writes(template, name) == found


def test_tokens_that_are_found_after_a_normalizer_are_refused(tmp_path):
    folders.write_folder(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"normalized": false', '"normalized": true'))
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.chat is None
    assert "its token '<|im_start|>' is found by the rule `normalized`" in checkpoint.notes[-1]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["prepend", "first"])
def test_the_kept_cache_does_not_change_answers(scheme, tmp_path):
    folders.write_folder(tmp_path / "hf", scheme, max_position_embeddings=120)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run").path
    chat, search = Chat(run, search=Greedy(7)), Greedy(7)
    for text in ("a dog", "  the film ☃", f"I {folders.STOP} see"):
        answer = "".join(chat.stream(text))
        alone = chat._text.another()
        ids = list(alone.generate(chat.ids(chat.messages[:-1]), search))
        ids = [token for token in ids if token not in chat._silent]
        expected = chat._tokenizer.decode(tf.constant([ids], tf.int32))[0].numpy()
        assert answer.encode() == expected


@pytest.mark.slow
def test_each_line_of_a_file_is_a_conversation_of_its_own(tmp_path):
    folders.write_folder(tmp_path / "hf", max_position_embeddings=120)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run").path
    command = ["chat", str(run), "--max-output", "6", "--message", "Translate:\n{text}"]
    lines = ["a dog", "", "the film {text}", "a dog"]
    done = CliRunner().invoke(cli, command, input="\n".join(lines) + "\n")
    assert done.exit_code == 0, done.output
    expected = []
    for line in lines:
        answer = Chat(run, search=Greedy(6)).send(f"Translate:\n{line}") if line else ""
        expected.append(" ".join(answer.split("\n")).strip())
    assert done.stdout.split("\n")[:-1] == expected and expected[0] == expected[3]
    done = CliRunner().invoke(cli, [*command, "--json"], input="a dog\n")
    assert set(json.loads(done.stdout)) == {"content", "complete"}


def test_a_message_without_a_place_for_the_line_is_refused(tmp_path):
    done = CliRunner().invoke(cli, ["chat", str(tmp_path), "--message", "Translate this"])
    assert done.exit_code == 2 and "--message must contain {text}" in done.output


@pytest.mark.slow
def test_prompts_are_those_of_transformers(tmp_path):
    conversations, paths = folders.conversations(), []
    for scheme, name in itertools.product(SCHEMES, folders.TEMPLATES):
        paths.append(tmp_path / f"{scheme}-{name}")
        folders.write_folder(paths[-1], scheme, name)
    paths.append(tmp_path / "first")
    folders.write_folder(paths[-1], "model", legacy=False)
    cases = {str(path): conversations for path in paths}
    place = run_python(SCRIPT.with_name("hugging_face_chats.py"), cases)
    if place is None:
        pytest.skip("torch and transformers are missing: see test_hugging_face.py")
    theirs = json.loads((place / "ids.json").read_text())
    for path in paths:
        assert prompts(path, conversations) == theirs[str(path)], path.name
