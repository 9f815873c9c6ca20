"""The task `tally`; importing this module registers it and its data."""

from keras_transformer.tasks import register
from keras_transformer.tasks.task import LOSS, Task

from . import data as data
from .config import CounterConfig


class TallyTask(Task):
    """Texts, and how often a letter occurs in them, by a `Counter`."""

    name = "tally"
    columns = ("text", "number")
    sources = ("letters",)
    texts = {"source": ("text",)}
    training = f"{__package__}.training:TallyTraining"
    config_class = CounterConfig
    metrics = {"loss": LOSS}
    unit = "examples"

    def pipeline_class(self):
        from .pipeline import Counting

        return Counting

    def evaluate(self, pipeline, columns):
        texts, numbers = columns
        pairs = zip(pipeline.answer(texts), numbers, strict=True)
        errors = [abs(result.value - float(number)) for result, number in pairs]
        return {"mean_error": sum(errors) / len(errors)}


register(TallyTask())
