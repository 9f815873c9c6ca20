"""`Listing`, the row of a family of checkpoints in the table of the documentation."""

import typing


class Listing(typing.NamedTuple):
    """Facts about the checkpoints of a family, from which the table in the documentation is made.

    Attributes:
        names: Dictionary from headings of `page` to the names of the models that they describe, as
            anchors and tuples.
        page: Page of the documentation that describes the family.
        files: Files of the vocabulary, in Markdown; empty if there is none.
        exports: Names of the formats for which `export` accepts such a model beside SavedModel,
            LiteRT and ONNX, which accept all.
        tried: Names of the published models whose trained weights were compared with another
            program. Empty: only random weights were.
    """

    names: dict[str, tuple[str, ...]]
    page: str
    files: str = ""
    exports: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
