"""The section `[vocabulary]`."""

from typing import Literal

from pydantic import Field, create_model, field_validator

from keras_transformer.training.settings.fields import FROM_DATA, Files, Section


class _Vocabulary(Section):
    """One SentencePiece vocabulary for all texts (section 5.1 of the paper), or one each for source
    and target. It is learned from the training data, or copied from another run or from files.
    """

    shared: bool = Field(
        True,
        description="Whether source and target share a vocabulary. If not, each has a vocabulary "
        'of `size` tokens, which needs `model.tie = "target"` or `"none"`.',
    )

    size: int | None = Field(
        None,
        ge=8,
        description="Number of tokens, including special tokens. If omitted: 4,000, or the "
        "largest size that the training text allows if that is smaller. If the text has more "
        "different characters than that, twice their number.",
        json_schema_extra=FROM_DATA,
    )
    model_type: Literal["bpe", "unigram"] = Field(
        "bpe", description="Algorithm that learns the tokens."
    )
    split_digits: bool = Field(True, description="Whether every digit is a separate token.")
    character_coverage: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of the text's characters that the vocabulary covers. All other "
        "characters are unknown.",
    )

    @property
    def places(self):
        """List of the paths from which the vocabulary is copied. `None`: it is learned."""
        return getattr(self, "from")  # a reserved word of Python

    def description(self):
        """Returns the keys that describe the vocabulary, learned or copied, as a dictionary."""
        return self.model_dump(exclude={"from"}, exclude_none=True)

    @field_validator("from", check_fields=False)
    @classmethod
    def _one_or_two(cls, places):
        if places is not None and len(places) > 2:
            raise ValueError("must be a run, a file, or two files, for source and target")
        return places


VocabularySettings = create_model(
    "VocabularySettings",
    __base__=_Vocabulary,
    __doc__=_Vocabulary.__doc__,
    **{
        "from": (
            Files | None,
            Field(
                None,
                description="Vocabulary to copy: a run; a SentencePiece file with the special "
                "tokens pad, unk, bos and eos; or two such files, for source and target. The other "
                "keys of the section may be omitted and must not contradict it.",
            ),
        )
    },
)
