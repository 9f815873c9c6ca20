"""Positions of image patches: sinusoids of row and column."""

from __future__ import annotations

from typing import Any

from keras_transformer.lazy_keras import keras, np, ops
from keras_transformer.positions.tables import Sinusoidal, sinusoids
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class SinusoidalGrid(Sinusoidal):
    """Adds sinusoids of the row and the column to the patches of a `PatchEmbedding`.

    The first half of the features are the `sinusoids` of the row, the second half those of the
    column, both of width `d_model / 2`. Class tokens have no row or column, so nothing is added to
    them. The arguments are the same as for `Sinusoidal`.

    Differs from the paper, whose sequences have only one axis.

    Reference: Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words", appendix D.4.
    """

    kind = "sinusoidal_grid"

    def check(self, embedding: keras.Layer) -> None:  # noqa: D102
        if not hasattr(embedding, "patch_size"):
            raise ValueError(
                "`position` of tokens must have a single axis; `SinusoidalGrid` is only for a "
                f"`PatchEmbedding`. Received by {embedding.name!r}: a `SinusoidalGrid`."
            )
        if embedding.d_model % 4:
            raise ValueError(
                "`d_model` must be divisible by 4 for sinusoidal positions of row and column, "
                f"which come in pairs of sine and cosine. Received: d_model={embedding.d_model}."
            )

    def table(self, length: int, d_model: int) -> Any:
        """Returns `None`: there is no encoding of positions in a row."""

    def embed(self, embedding: keras.Layer, start: Tensor, tokens: Tensor) -> Tensor:  # noqa: D102
        rows, columns = embedding.grid
        table = self.grid_table(rows, columns, embedding.d_model)  # [R * Q, D]
        table = np.pad(table, ((embedding.class_tokens, 0), (0, 0)))  # [class_tokens + R * Q, D]
        return ops.cast(table, embedding.compute_dtype)

    def grid_table(self, rows: int, columns: int, d_model: int) -> np.ndarray:
        """Returns the encoding of all patches in row-major order, `[rows * columns, d_model]`."""
        of_rows, of_columns = (
            sinusoids(count + self.offset, d_model // 2, self.layout, self.endpoint)[self.offset :]
            for count in (rows, columns)
        )
        row, column = np.divmod(np.arange(rows * columns), columns)
        return np.concatenate([of_rows[row], of_columns[column]], axis=1)
