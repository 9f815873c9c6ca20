"""The task of speech recognition."""

import itertools
import time
from typing import Any

from keras_transformer.tasks.incomplete import count_incomplete
from keras_transformer.tasks.speech_recognition.config import SpeechTransformerConfig
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Metric, Task

OF_CTC = {"answers": "ctc_", "needs": "ctc_weight"}  # of metrics of the best path


class SpeechRecognitionTask(Task):
    """Recognition of speech by a `SpeechTransformer`; see `Task`."""

    name = "speech_recognition"
    columns = ("audio", "text")
    file_columns = ("path of a recording", "text")
    texts = {"source": ("text",)}
    sources = ("speech_files", "tfds_speech", "morse_demo", "spoken_demo")
    training = (
        "keras_transformer.training.tasks.speech_recognition.training:SpeechRecognitionTraining"
    )
    config_class = SpeechTransformerConfig
    metrics = {
        "loss": LOSS,
        "perplexity": PERPLEXITY,
        "token_accuracy": TOKEN_ACCURACY,
        "wer": Metric("word error rate", higher_is_better=False, of_answers=True),
        "cer": Metric("character error rate", higher_is_better=False, of_answers=True, drawn=False),
        "ctc_wer": Metric(
            "word error rate with CTC", higher_is_better=False, of_answers=True, **OF_CTC
        ),
        "ctc_cer": Metric(
            "character error rate with CTC",
            higher_is_better=False,
            of_answers=True,
            drawn=False,
            **OF_CTC,
        ),
    }
    evaluation_options = ("search", "report_incomplete")
    has_frames = True
    # A fortieth of the rates that Whisper was trained with, as its authors advise, is 4e-5 for the
    # smallest model and 4e-6 for the largest.
    tuning_rate = 1e-5
    unused = ("training.subword_sampling",)

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.speech_recognition.pipeline import SpeechRecognizer

        return SpeechRecognizer

    def require(self, settings) -> None:  # noqa: D102
        if settings.training.validate_sentences:
            from keras_transformer.tasks.speech_recognition.metrics import load_jiwer

            load_jiwer()

    def validated(self, pipeline, settings) -> dict[str, Any]:
        """Returns the pipeline and, if the run learns CTC, one that takes the best path.

        Outputs that begin with a prompt have no best path.
        """
        from keras_transformer.decoding import BestPath

        if not settings.training.ctc_weight or pipeline.model.config.head.rules.prompt_ids:
            return {"": pipeline}
        return {"": pipeline, "ctc_": pipeline.with_search(BestPath())}

    def measure(self, pipeline, inputs, references) -> dict[str, Any]:
        """Returns `wer` and `cer`; see `Task.measure`.

        A recording shorter than a frame, which training leaves out, has an empty transcript.
        """
        from keras_transformer.tasks.speech_recognition.metrics import error_rates
        from keras_transformer.tasks.speech_recognition.samples import samples_of

        speech = pipeline.codec.speech
        samples = [
            samples_of(recording, speech.sample_rate, f"recording {number}")
            for number, recording in enumerate(inputs, start=1)
        ]
        readable = [len(one) >= speech.hop_length for one in samples]
        texts = iter(pipeline([*itertools.compress(samples, readable)]))
        texts = [next(texts) if fits else "" for fits in readable]
        rates = error_rates(texts, references)
        return {name: rates[name] for name in ("wer", "cer")}

    def evaluate(self, pipeline, columns, search=None, report_incomplete=None) -> dict[str, Any]:
        """Transcribes recordings and counts the errors.

        Args:
            pipeline: A `SpeechRecognizer`.
            columns: List of recordings, and list of their texts.
            search: A `Greedy`, `Beam` or `BestPath`. `None`: the default search of the pipeline.
            report_incomplete: Function that is called with the number of each recording, from 1,
                whose output reached its maximum length. `None`: none.

        Returns:
            Dictionary of `wer` and `cer`, the word and character error rates as fractions, over the
            whole corpus; `wer_signature`, how they are computed; `recordings`, their number;
            `seconds`, the time of the computation; `audio_seconds`, the time of the recordings;
            `real_time_factor`, the quotient of both; `search`, its name; and `incomplete`, the
            number of transcripts that reached their maximum length.
        """
        from keras_transformer.tasks.speech_recognition.metrics import error_rates

        recordings, references = columns
        pipeline = pipeline if search is None else pipeline.with_search(search)
        results, count, seconds = [], 0, 0.0
        for group in pipeline.in_groups(recordings):
            begin = time.perf_counter()
            results += pipeline.transcribe(group)
            seconds += time.perf_counter() - begin  # without reading, which a group may need twice
            count += sum(map(len, group))
            del group  # before the next one is read
        audio = count / pipeline.sample_rate
        return {
            **error_rates([result.text for result in results], references),
            "recordings": len(results),
            "seconds": round(seconds, 3),
            "audio_seconds": round(audio, 3),
            "real_time_factor": round(seconds / audio, 4) if audio else 0.0,
            "search": str(pipeline.search),
            "incomplete": count_incomplete(results, report_incomplete),
        }
