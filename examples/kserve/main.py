"""A SavedModel behind KServe's Python server: protocols V1 and V2, by TensorFlow alone.

python main.py --model_name translator --model_dir serving/demo/1
"""

import argparse
import asyncio
import typing
import uuid

import kserve
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)
from kserve.errors import InvalidInput
from kserve.utils.numpy_codec import from_np_dtype

OUTPUTS = ("translation", "score", "truncated", "complete")


class Translator(kserve.Model):
    """Texts in, translations out.

    V1: `{"instances": ["in 17 weeks"]}`; a prediction is an object with the outputs. V2: one input
    of strings, `[B]`, and the outputs as tensors.

    Args:
        name: Name of the model in requests.
        folder: The folder with `saved_model.pb`.
    """

    def __init__(self, name: str, folder: str):
        super().__init__(name)
        self._folder = folder

    def load(self) -> bool:
        """Loads the model, and answers once, so that no request waits for the graph."""
        # A loaded model keeps its variables only as long as it is referenced.
        self._model = tf.saved_model.load(self._folder)
        self._translate = self._model.signatures["serving_default"]
        self._outputs(["a"])
        self.ready = True
        return self.ready

    async def predict(self, payload: typing.Any, headers: typing.Any = None) -> typing.Any:
        """Answers the instances of V1, or the tensor of V2, as one batch."""
        if isinstance(payload, dict):
            outputs = await asyncio.to_thread(self._outputs, payload["instances"])
            rows = zip(*(values.tolist() for values in outputs.values()), strict=True)
            return {"predictions": [_plain(dict(zip(outputs, row, strict=True))) for row in rows]}
        if len(payload.inputs) != 1 or payload.inputs[0].datatype != "BYTES":
            raise InvalidInput("the input must be one tensor of the datatype BYTES.")
        texts = payload.inputs[0].as_numpy().reshape(-1).tolist()
        tensors = []
        outputs = await asyncio.to_thread(self._outputs, texts)  # other requests go on
        for name, values in outputs.items():
            kind = from_np_dtype(values.dtype)
            tensor = kserve.InferOutput(name, list(values.shape), kind)
            tensor.set_data_from_numpy(values, binary_data=payload.from_grpc)
            tensors.append(tensor)
        return kserve.InferResponse(payload.id or str(uuid.uuid4()), self.name, tensors)

    def _outputs(self, texts):
        if not all(isinstance(text, str | bytes) for text in texts):
            raise InvalidInput("an input must be a string.")
        found = self._translate(sentences=tf.constant(texts, tf.string, [len(texts)]))
        return {name: found[name].numpy() for name in OUTPUTS}


def _plain(row):
    """Returns the outputs of a text as values of JSON."""
    return {**row, "translation": row["translation"].decode()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[kserve.model_server.parser])
    parser.add_argument("--model_dir", required=True)
    options, _ = parser.parse_known_args()
    model = Translator(options.model_name, options.model_dir)
    model.load()
    kserve.ModelServer().start([model])
