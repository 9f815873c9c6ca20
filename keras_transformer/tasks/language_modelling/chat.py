"""`Chat`: a conversation with an instruct model, whose answers arrive while they are generated."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.decoding.search import check_search
from keras_transformer.tasks.language_modelling.pipeline import TextGenerator
from keras_transformer.tasks.streams.continuation import Continuation
from keras_transformer.tasks.streams.prompts import Prompt, conversation_ids
from keras_transformer.text.chat_template import ChatTemplate

SHARE = 4  # of the context, one such part is kept free for an answer


class Chat:
    """A conversation with a language model that has a chat template.

    The keys and values of the conversation so far are kept, so that a message costs the time of
    its own tokens. If the conversation becomes too long, the oldest messages are left out, except
    for the system's: see `dropped`.

    Args:
        model: Folder of a run; a `TextGenerator`; or an .onnx file for streams of tokens, opened by
            `keras_transformer.open`.
        system: System message at the beginning of the conversation. `None`: that of the template,
            if it has one.
        search: A `Greedy` or a `Sample`. `None`: the run's own, otherwise greedy search.
        template: A `ChatTemplate`. `None`: that of the model.

    Attributes:
        messages: The conversation, a list of dictionaries of `role` and `content`.
        complete: Whether the last answer ended before its maximum length.
        dropped: Number of messages that the last prompt left out.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the model has no chat template, is an ensemble or has blocks without
            self-attention, or the file is none for streams of tokens.

    Example:
        from keras_transformer.decoding import Sample
        from keras_transformer.pipelines import Chat
        chat = Chat("runs/smollm2", system="Answer in one sentence.")
        print(chat.send("Why is the sky blue?"))
        for piece in chat.stream("And at night?"):
            print(piece, end="", flush=True)
    """

    def __init__(
        self,
        model: Any,
        system: str | None = None,
        search: Greedy | Sample | None = None,
        template: ChatTemplate | None = None,
    ):
        generator: Any = model
        if isinstance(model, str | os.PathLike):
            generator = TextGenerator.from_run(model)
        if not hasattr(generator, "kept_text"):
            raise ValueError(
                "A chat needs a language model: a run, or an .onnx or .tflite file that was "
                f"exported with --streaming. Received: {getattr(model, 'path', model)}."
            )
        template = generator.chat_template if template is None else template
        if not isinstance(template, ChatTemplate):
            raise ValueError(
                "A chat needs a run with a chat template, which `convert hf` writes for a "
                "checkpoint that has one, a file that was exported from such a run, or a "
                f"`ChatTemplate`. Received: {getattr(model, 'path', model)}, template={template!r}."
            )
        search = generator.search if search is None else search
        check_search(search, Greedy, Sample)
        self.search, self._template = search, template
        self._tokenizer, self._length = generator.target_tokenizer, generator.max_length
        self._hides_start = generator.hides_start
        self._text = generator.kept_text()
        self._silent = frozenset(template.special.values())
        self.messages: list[dict[str, str]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": system})
        self.complete, self.dropped = True, 0

    def send(self, text: str) -> str:
        """Returns the answer to a message, which is added to the conversation with it.

        Args:
            text: The message of the user.

        Raises:
            TypeError: If it is not a string.
            ValueError: If the message alone is too long for the model, or the template refuses
                the conversation.
        """
        return "".join(self.stream(text))

    def stream(self, text: str) -> Iterator[str]:
        """Yields the parts of the answer to a message as soon as they are known.

        Together they are the answer. A part never ends within a character. If the iteration is not
        finished, the conversation contains the answer until then.

        Args:
            text: The message of the user.

        Raises:
            TypeError, ValueError: See `send`.
        """
        messages = [*self.messages, {"role": "user", "content": text}]
        prompt = self._prompt(messages)  # which may refuse it
        return self._stream(messages, prompt)

    def clear(self) -> None:
        """Begins a new conversation with the same message of the system."""
        self.restart()
        self._text.forget()

    def restart(self) -> None:
        """Does the same as `clear`, but keeps the keys and values of the old conversation.

        The beginning that a new one shares with it need not be read again.
        """
        self.messages = [m for m in self.messages[:1] if m["role"] == "system"]
        self.complete, self.dropped = True, 0

    def ids(self, messages: list[dict[str, str]]) -> list[int]:
        """Returns the token ids of a prompt, without the token that begins a text.

        Args:
            messages: See `ChatTemplate.render`.
        """
        return conversation_ids(self._template, messages, self._tokenizer, self._hides_start)

    def _prompt(self, messages):
        """Returns the ids of a prompt, and counts the oldest messages that have no place in it."""
        first = int(messages[0]["role"] == "system")
        limit = self.search.limit(None, self._length)
        room = max(1, min(limit, self._length // SHARE))
        self.dropped = 0
        while True:
            kept = messages[:first] + messages[first + self.dropped :]
            ids = self.ids(kept)
            if len(ids) + room <= self._length:
                return ids
            if len(kept) == first + 1:
                raise ValueError(
                    f"The message is too long: its prompt has {len(ids)} tokens, and the model has "
                    f"{self._length} positions, of which {room} are for the answer."
                )
            self.dropped += 2  # a message and its answer

    def _stream(self, messages, ids):
        self.complete = False
        self.messages = [*messages, {"role": "assistant", "content": ""}]
        prompt = Prompt(ids, silent=self._silent)
        answer = Continuation(self._text, prompt, self.search, self._tokenizer)
        with contextlib.closing(answer):
            for part in filter(None, answer):
                self.messages[-1]["content"] += part
                yield part
        self.complete = answer.complete
