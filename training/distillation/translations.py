"""Outputs of the teachers, stored in parts so that an interrupted call can resume."""

import json

import numpy as np

from keras_transformer.files import json_text, remove_stale_drafts, write_text
from keras_transformer.text.lines import one_line
from keras_transformer.text.quality import best_of

PART = 1024  # sentences in a part; an interruption loses at most so many


class Parts:
    """Files of generated texts in a folder, each of them complete or absent.

    Sentences are sorted by length, the longest first. So sentences in a batch have similar lengths,
    and a search that exceeds the memory fails at the beginning.

    Args:
        folder: The folder, a `Path`.
        sentences: List of strings.
        references: List of the reference of each sentence, or `None` for a sentence without one.
            `None`: there are no references.
    """

    def __init__(self, folder, sentences, references=None):
        self.folder, self._sentences, self._references = folder, sentences, references
        lengths = np.array([len(sentence) for sentence in sentences])
        self.order = np.argsort(-lengths, kind="stable")

    def generate(self, searcher, search, n, batch_size, pace, shard=None) -> None:
        """Generates the missing parts.

        Args:
            searcher: A `Searcher`.
            search: A `Beam`.
            n: Number of outputs per sentence, of which the one closest to the reference is kept.
            batch_size: Number of sentences in a batch.
            pace: The `Pace` that shows the progress.
            shard: The `Shard` whose parts are generated. `None`: all parts.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if shard is None:  # with shards, a draft may belong to another machine
            remove_stale_drafts(self.folder)
        checked = False
        for number, part in self._parts():
            results = []
            if not self._is_missing(number, shard):
                pace.skip([self._sentences[place] for place in part])
                continue
            for first in range(0, len(part), batch_size):
                places = part[first : first + batch_size]
                batch = [self._sentences[place] for place in places]
                if not checked:
                    searcher.check(search, n, batch)
                    checked = True
                outputs = searcher(batch, search, n)
                results += map(self._chosen, places, outputs)
                pace.done(batch)
            write_text(self._path(number), json_text(results, indent=None))

    def are_complete(self, shard=None) -> bool:
        """Returns `True` if no part is missing.

        Args:
            shard: The `Shard` whose parts are wanted. `None`: all parts.
        """
        return not any(self._is_missing(number, shard) for number, _ in self._parts())

    def read(self) -> list:
        """Reads the outputs when all parts are complete.

        Returns:
            List of pairs in the order of the sentences: the text, and whether its source was
            truncated.

        Raises:
            ValueError: If a part is damaged.
        """
        results = [None] * len(self.order)
        for number, places in self._parts():
            path = self._path(number)
            try:
                rows = [
                    (str(text), bool(truncated))
                    for text, truncated in json.loads(path.read_text("utf-8"))
                ]
                if len(rows) != len(places):
                    raise ValueError(f"{len(rows)} of {len(places)} texts")
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{path} is damaged ({error}): remove it; the same command generates it again."
                ) from error
            for place, row in zip(places, rows, strict=True):
                results[place] = row
        return results

    def _parts(self):
        """Yields the number of each part and the places of its sentences."""
        for number, begin in enumerate(range(0, len(self.order), PART)):
            yield number, self.order[begin : begin + PART]

    def _is_missing(self, number, shard):
        owned = shard is None or shard.owns(number)
        return owned and not self._path(number).exists()

    def _path(self, number):
        return self.folder / f"part-{number:06d}.json"

    def _chosen(self, place, outputs):
        """Returns the text that the student learns, and whether its source was truncated."""
        reference = self._references[place] if self._references else None
        texts = [output.text for output in outputs]
        text = texts[0] if reference is None else best_of(texts, reference)
        return one_line(text), outputs[0].truncated
