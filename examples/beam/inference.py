"""A SavedModel in an Apache Beam pipeline: files of lines in, files of answers out.

    keras-transformer export saved-model runs/demo serving/demo
    pip install apache-beam tensorflow-text
    python examples/beam/inference.py --model serving/demo/1 --input 'in-*.txt' --output out/answers

Beam's `RunInference` loads the model once in each process, makes batches, and is restarted by the
runner where a worker fails. On this machine the DirectRunner runs it; the same file runs on
Dataflow, Flink or Spark with the options of that runner, such as `--runner=DataflowRunner
--project=... --temp_location=gs://...`. There the model and the files lie in a place that all
workers read, and `requirements.txt` of the workers has both packages.

Each line of the output is the input, a tab and the answer. Beam keeps no order: the inputs tell
which answer is whose. The model is loaded as in any other program; nothing of keras_transformer is
needed.
"""

import argparse

import apache_beam as beam
import tensorflow as tf
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions


class SavedModelHandler(ModelHandler):
    """Loader and caller of a version of a SavedModel for `RunInference`.

    Args:
        path: The folder of a version, such as `serving/demo/1`.
        batch_size: Most lines of a batch; a batch is decoded until its longest output has ended.
    """

    def __init__(self, path, batch_size=32):
        super().__init__(max_batch_size=batch_size)
        self._path = path

    def load_model(self):
        """Returns the signature that answers strings."""
        import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)

        self._model = tf.saved_model.load(self._path)  # kept: it owns the variables
        return self._model.signatures["serving_default"]

    def run_inference(self, batch, model, inference_args=None):
        """Yields a `PredictionResult` for each line: a dictionary of the outputs of the model."""
        outputs = model(sentences=tf.constant(list(batch)))
        columns = {name: value.numpy() for name, value in outputs.items()}
        for number, line in enumerate(batch):
            yield PredictionResult(line, {name: value[number] for name, value in columns.items()})


def as_line(result, output):
    """Returns an input, a tab and its answer."""
    answer = result.inference[output]
    return f"{result.example}\t{answer.decode() if isinstance(answer, bytes) else answer}"


def main(arguments=None):
    """Answers the lines of files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="Folder of a version of a SavedModel.")
    parser.add_argument("--input", required=True, help="Files of lines, a pattern.")
    parser.add_argument("--output", required=True, help="Beginning of the names of the results.")
    parser.add_argument("--answer", default="translation", help="Output of the model to write.")
    parser.add_argument("--batch-size", type=int, default=32)
    known, rest = parser.parse_known_args(arguments)
    options = PipelineOptions(rest)
    options.view_as(SetupOptions).save_main_session = True
    with beam.Pipeline(options=options) as pipeline:
        (
            pipeline
            | "read" >> beam.io.ReadFromText(known.input)
            | "answer" >> RunInference(SavedModelHandler(known.model, known.batch_size))
            | "format" >> beam.Map(as_line, known.answer)
            | "write" >> beam.io.WriteToText(known.output)
        )


if __name__ == "__main__":
    main()
