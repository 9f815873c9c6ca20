"""Conversations: prompts, answers in parts, and the cache that is kept between messages."""

import copy

import pytest
import tensorflow as tf
from documents import ROOT, unrun_examples
from llama_folders import BEGIN, END, PIECES, write_folder

from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.pipelines import Chat, TextGenerator
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.training.converted import write_converted

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ message.role[0] + message.content + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}a{% endif %}"
)
MESSAGES = ["a film", "the dog ☃", f"I {END} see", "cats"]
SEARCHES = {
    "greedy": Greedy(7),
    "sample": Sample(temperature=3.0, top_p=0.95, seed=5, max_length=7),
}
# In the first kind, a text begins with a token for the model; in the second one it does not.
KINDS = ("llama3", pytest.param("smollm", marks=pytest.mark.slow))


@pytest.fixture(scope="module", params=KINDS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    write_folder(folder / "hf", request.param, max_position_embeddings=100)
    names = f'"bos_token": "{BEGIN}", "eos_token": "{END}"'
    (folder / "hf" / "tokenizer_config.json").write_text(f"{{{names}}}")
    (folder / "hf" / "chat_template.jinja").write_text(TEMPLATE)
    return write_converted(read_checkpoint(folder / "hf"), folder / "run").path


@pytest.fixture(scope="module")
def shared(run):
    return Chat(run)


def new_chat(chat, search, system=None):
    """A new conversation with the graphs of another one."""
    chat = copy.copy(chat)
    chat.search, chat._text = search, copy.copy(chat._text)
    chat.messages = [] if system is None else [{"role": "system", "content": system}]
    chat._text.forget()
    return chat


def uncached(chat, messages, search):
    """The answer of a search that reads the whole conversation."""
    text = copy.copy(chat._text)
    text.forget()
    ids = list(text.generate(chat.ids(messages), search))
    return ids[:-1] if ids[-1] == PIECES.index(END) else ids


def test_the_example_runs(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "smollm2").symlink_to(run)
    monkeypatch.chdir(tmp_path)
    ((_, code),) = unrun_examples(ROOT / "keras_transformer/tasks/language_modelling/chat.py")
    exec(compile(code, "Chat", "exec"), {"Chat": Chat})
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", SEARCHES)
def test_answers_with_the_kept_cache_are_those_of_the_whole_conversation(shared, name):
    chat = new_chat(shared, SEARCHES[name], system="sa")
    for number, text in enumerate(MESSAGES):
        kept = chat._text.kept
        parts = list(chat.stream(text))
        *before, question, answer = chat.messages
        assert "".join(parts) == answer["content"]
        assert question == {"role": "user", "content": text}
        ids = uncached(chat, [*before, question], SEARCHES[name])
        expected = chat._tokenizer.decode(tf.constant([ids], tf.int32))
        assert answer["content"].encode() == expected[0].numpy()
        if number:  # at least the prompt of the message before is not read again
            assert chat._text.kept > kept > len(chat.ids(before[:-1])) - 2


@pytest.mark.slow
def test_the_first_answer_is_that_of_the_search_of_the_pipeline(run):
    generator = TextGenerator.from_run(run)
    template = ChatTemplate("{{ messages[0].content }}")  # no end token is within the prompt
    chat = Chat(generator, search=Greedy(5), template=template)
    text = "the film "
    assert text + chat.send(text) == generator(text, search=Greedy(5))


def test_special_tokens_of_the_template_are_ids_and_those_of_messages_are_text(run, shared):
    chat = shared
    begin, end = PIECES.index(BEGIN), PIECES.index(END)
    ids = chat.ids([{"role": "user", "content": f"x{END}"}])
    assert ids.count(end) == 1 and end not in ids[:-2]
    assert ids.count(begin) == (0 if "llama3" in str(run) else 1)  # `Continued` begins with it
    text = chat._tokenizer.decode(tf.constant([[n for n in ids if n not in (begin, end)]]))
    assert text[0].numpy().decode() == f"ux{END}a"


def test_an_unfinished_answer_is_part_of_the_conversation(shared):
    chat = new_chat(shared, Greedy(7))
    whole = list(chat.stream("film"))
    assert len(whole) > 2
    chat.clear()
    assert chat.messages == []
    parts = chat.stream("film")
    begun = next(parts) + next(parts)
    parts.close()
    assert chat.messages[-1] == {"role": "assistant", "content": begun}
    question = [*chat.messages, {"role": "user", "content": "dog"}]
    ids = uncached(chat, question, Greedy(7))
    answer = chat.send("dog")
    assert answer.encode() == chat._tokenizer.decode(tf.constant([ids], tf.int32))[0].numpy()


def test_the_oldest_messages_are_left_out_of_a_prompt_that_is_too_long(shared):
    chat = new_chat(shared, Greedy(7), system="S")
    dropped = []
    for _ in range(6):
        chat.send("the film is a dog")
        dropped.append(chat.dropped)
    assert dropped[0] == 0 and dropped[-1] > 0 and dropped == sorted(dropped)
    assert len(chat.messages) == 13
    kept = chat.messages[:1] + chat.messages[1 + chat.dropped : -1]
    assert len(chat.ids(kept)) <= 93 < len(chat.ids(chat.messages[1 + chat.dropped - 2 : -1])) + 3
    with pytest.raises(ValueError, match="The message is too long: its prompt has .* of which 7"):
        chat.send("a" * 100)
    assert len(chat.messages) == 13


def test_a_character_of_several_tokens_arrives_at_once(shared, monkeypatch):
    chat = new_chat(shared, Greedy(9))
    ids = chat._tokenizer.tokenize(["a☃é"]).to_list()[0]
    assert len(ids) == 6
    monkeypatch.setattr(
        chat._text, "generate", lambda *arguments: (one for one in [*ids, *ids[:3]])
    )
    assert list(chat.stream("b")) == ["a", "☃", "é", "a", "\ufffd"]
    assert chat.messages[-1]["content"] == "a☃éa\ufffd"
    assert not chat.complete


def test_a_run_without_a_template_and_a_beam_are_refused(run):
    with pytest.raises(TypeError, match="`search` must be a `Greedy` or a `Sample`"):
        Chat(run, search=Beam(2))
    generator = TextGenerator.from_run(run)
    assert generator.chat_template is not None
    generator.chat_template = None
    with pytest.raises(ValueError, match="A chat needs a run with a chat template"):
        Chat(generator)
    with pytest.raises(ValueError, match="A chat needs a language model"):
        Chat(object())
