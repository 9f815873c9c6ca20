"""Loaded .tflite files of models that answer in one pass."""

from typing import Any

import numpy as np

from keras_transformer.export.litert.plan import answer_cost, plan
from keras_transformer.export.litert.runtime import LiteRTFile, check_lengths
from keras_transformer.export.runtime import padded
from keras_transformer.export.single_pass import OpenPass
from keras_transformer.tasks.answering import PassAnswering


class LiteRTSinglePass(LiteRTFile, OpenPass):
    """A loaded .tflite file of a model that answers in one pass.

    Args:
        path, num_threads, num_parallel_calls: See `LiteRTFile`.
        **options: `engines`: see `LiteRTFile`.

    Raises:
        ValueError: See `LiteRTFile`.
    """

    answers = PassAnswering

    def __init__(self, path, num_threads=None, num_parallel_calls=1, **options):
        threads = {"num_threads": num_threads, "num_parallel_calls": num_parallel_calls}
        super().__init__(path, **threads, **options)
        self.search: Any = None
        self.read_codec(self.codec_class, self.metadata)

    def answer_batch(self, examples, signature=None) -> list:
        """Returns a `Result` for each of a list of examples.

        Args:
            examples: List of inputs of the task, such as strings.
            signature: The signature to run. `None`: for each row the shortest that fits it.

        Raises:
            ValueError: If the model refuses an example, such as an image of the wrong size.
        """
        return super().answer_batch(examples, signature=signature)

    def run(self, signature=None, **inputs) -> dict[str, np.ndarray]:
        """Runs the model on its inputs.

        Args:
            signature: The signature to run. `None`: for each row the shortest that fits it.
            **inputs: Arrays `[R, ...]`, with R at least 1, by their names in the file.

        Returns:
            Dictionary of the outputs, arrays `[R, ...]`. Rows that differ in length are padded with
            the values that the file returns for an invalid row.

        Raises:
            ValueError: If a row is longer than every signature.
        """
        inputs = {name: np.asarray(value) for name, value in inputs.items()}
        signatures, lengths = self._choices(signature), self.codec.lengths(inputs)
        check_lengths(lengths, signatures)
        rows: list[dict[str, np.ndarray]] = [{} for _ in lengths]
        for signature, chosen in plan(lengths, signatures, answer_cost):
            batch = self._batch(signature, inputs, chosen)
            outputs = self.run_signature(signature.name, **batch)
            for place, number in enumerate(chosen):
                rows[number] = {name: output[place] for name, output in outputs.items()}
        return {
            name: padded([row[name] for row in rows], self.codec.nothing.get(name, 0))
            for name in rows[0]
        }

    def run_further(self, signature: str, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns the outputs of one of `Codec.further_signatures` for any number of rows."""
        inputs = self.further_inputs(signature, inputs)
        prefix, count = f"{self.codec.verb}_{signature}_", len(next(iter(inputs.values())))
        chosen = [one for one in self.further if one.name.startswith(prefix)]
        sizes = [chosen[0].source_length] * count
        rows: list[dict[str, np.ndarray]] = [{} for _ in range(count)]
        for one, numbers in plan(sizes, chosen, answer_cost):
            places = (numbers + numbers[:1] * one.batch_size)[: one.batch_size]
            batch = {name: values[places] for name, values in inputs.items()}
            outputs = self.run_signature(one.name, **batch)
            for place, number in enumerate(numbers):
                rows[number] = {name: output[place] for name, output in outputs.items()}
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def _batch(self, signature, inputs, chosen):
        """Returns the inputs of a full batch; missing rows are copies of the first one."""
        numbers = (chosen + chosen[:1] * signature.batch_size)[: signature.batch_size]
        shapes = self.codec.input_shapes(signature.batch_size, signature.source_length)
        batch = {}
        for name, (shape, dtype) in shapes.items():
            padding = self.codec.padding.get(name, 0)
            batch[name] = np.full(shape, padding, dtype)
            if batch[name].ndim == 1:  # a number for each row
                batch[name][:] = inputs[name][numbers]
                continue
            for row, number in zip(batch[name], numbers, strict=True):
                values = inputs[name][number]
                row[: len(values)] = values[: len(row)]
        return batch
