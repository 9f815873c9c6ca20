"""Generated texts, and how often a letter occurs in each: the kind of data `letters`."""

import random
from typing import ClassVar, Literal

from pydantic import Field

from keras_transformer.training import MemoryData, register_source
from keras_transformer.training.settings.data_sections import TokenData


class LetterData(TokenData):
    """Texts of random letters, and how often one of them occurs."""

    columns: ClassVar = ("text", "number")

    source: Literal["letters"] = Field(description="The kind of data.")
    letter: str = Field("a", description="The letter that is counted.")

    def open(self, columns):
        drawn, examples = random.Random(1), {}
        for split in ("train", "validation", "test"):
            texts = [" ".join(drawn.choices("abcd", k=drawn.randint(1, 6))) for _ in range(64)]
            examples[split] = [(text, str(text.count(self.letter))) for text in texts]
        return MemoryData(examples, f"random letters, of which {self.letter} counts")


register_source(LetterData)
