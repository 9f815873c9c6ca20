"""Runs a SavedModel in an Apache Beam pipeline on files of lines.

    keras-transformer export saved-model runs/demo serving/demo
    pip install apache-beam tensorflow-text
    python examples/beam/inference.py --model serving/demo/1 --input 'in-*.txt' --output out/answers

Beam's `RunInference` loads the model once in each process and makes batches; if a worker fails, the
runner restarts it. By default, the DirectRunner runs the pipeline on this machine. The same program
runs on Dataflow, Flink or Spark with the options of that runner, such as `--runner=DataflowRunner
--project=... --temp_location=gs://...`. The model and the files must then be in a location that all
workers can read, and the workers' `requirements.txt` must name both packages.

Each line of the output is the input, a tab and the answer, because Beam does not keep the order.
The program does not need keras_transformer.
"""

import argparse

import apache_beam as beam
import tensorflow as tf
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions


class SavedModelHandler(ModelHandler):
    """Loader and caller of a version of a SavedModel for `RunInference`.

    Args:
        path: Folder of a version, such as `serving/demo/1`.
        batch_size: Maximum number of lines in a batch. A batch takes as long as its longest output.
    """

    def __init__(self, path, batch_size=32):
        super().__init__(max_batch_size=batch_size)
        self._path = path

    def load_model(self):
        """Returns the signature that takes strings."""
        import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)

        self._model = tf.saved_model.load(self._path)  # kept, because it owns the variables
        return self._model.signatures["serving_default"]

    def run_inference(self, batch, model, inference_args=None):
        """Yields a `PredictionResult` with a dictionary of the model's outputs for each line."""
        outputs = model(sentences=tf.constant(list(batch)))
        columns = {name: value.numpy() for name, value in outputs.items()}
        for number, line in enumerate(batch):
            yield PredictionResult(line, {name: value[number] for name, value in columns.items()})


def as_line(result, output):
    """Returns a result as a line: input, tab, answer."""
    answer = result.inference[output]
    return f"{result.example}\t{answer.decode() if isinstance(answer, bytes) else answer}"


def main(arguments=None):
    """Runs the model on the lines of files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="Folder of a version of a SavedModel.")
    parser.add_argument("--input", required=True, help="Pattern of the input files.")
    parser.add_argument("--output", required=True, help="Prefix of the output files.")
    parser.add_argument("--answer", default="translation", help="Output of the model to write.")
    parser.add_argument("--batch-size", type=int, default=32, help="Maximum lines in a batch.")
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
