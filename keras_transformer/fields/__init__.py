"""Fields: each one turns a column of a data set into tensors."""

from keras_transformer.fields.field import Field
from keras_transformer.fields.floats import Floats
from keras_transformer.fields.frames import Frames
from keras_transformer.fields.images import Images
from keras_transformer.fields.labels import LabelNumbers, Labels, LabelSets, TokenLabels
from keras_transformer.fields.series import Series
from keras_transformer.fields.spans import Spans
from keras_transformer.fields.tokens import Tokens

__all__ = [
    "Field",
    "Frames",
    "Images",
    "LabelSets",
    "LabelNumbers",
    "Labels",
    "Floats",
    "Series",
    "Spans",
    "TokenLabels",
    "Tokens",
]
