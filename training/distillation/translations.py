"""What teachers generate for many sentences: in parts, so that it goes on where it stopped."""

import json
import shutil

import numpy as np

from keras_transformer.files import remove_stale_drafts, write_text
from keras_transformer.text.lines import one_line
from keras_transformer.text.quality import best_of

PART = 1024  # sentences of a part, which is the most that a stop loses


class Parts:
    """Generated texts in files of a folder, each of which is whole or not there.

    Sentences are sorted, the longest first, so that those of a batch have about the same length and
    what does not fit into memory is seen at once.

    Args:
        folder: The folder.
        sentences: List of strings.
        references: For each the best that could be generated, or `None`; or `None` for all.
    """

    def __init__(self, folder, sentences, references=None):
        self.folder, self._sentences, self._references = folder, sentences, references
        lengths = np.array([len(sentence) for sentence in sentences])
        self.order = np.argsort(-lengths, kind="stable")

    def generate(self, searcher, search, n, batch_size, pace, shard=None):
        """Generates what is missing.

        Args:
            searcher: A `Searcher`.
            search: A `Beam`.
            n: How many outputs to choose from, by their references.
            batch_size: Sentences at a time.
            pace: The `Pace` that shows how far it is.
            shard: The `Shard` whose parts are generated. `None`: all parts.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if shard is None:  # otherwise a draft may be that of another machine
            remove_stale_drafts(self.folder)
        checked = False
        for number, begin in enumerate(range(0, len(self.order), PART)):
            part, results = self.order[begin : begin + PART], []
            if self._path(number).exists() or shard is not None and not shard.owns(number):
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
            write_text(self._path(number), json.dumps(results, ensure_ascii=False))

    def read(self):
        """Returns for each sentence its text and whether it was cut, when all parts are there.

        Raises:
            ValueError: If a part is damaged.
        """
        results = [None] * len(self.order)
        for number, begin in enumerate(range(0, len(self.order), PART)):
            places, path = self.order[begin : begin + PART], self._path(number)
            try:
                rows = [(str(text), bool(cut)) for text, cut in json.loads(path.read_text("utf-8"))]
                if len(rows) != len(places):
                    raise ValueError(f"{len(rows)} of {len(places)} texts")
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{path} is damaged ({error}): remove it; the same command generates it again."
                ) from error
            for place, row in zip(places, rows, strict=True):
                results[place] = row
        return results

    def remove(self):
        """Removes all parts."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number):
        return self.folder / f"part-{number:06d}.json"

    def _chosen(self, place, outputs):
        """The text that the student learns, and whether its source was cut."""
        reference = self._references[place] if self._references else None
        texts = [output.text for output in outputs]
        text = texts[0] if reference is None else best_of(texts, reference)
        return one_line(text), outputs[0].truncated
