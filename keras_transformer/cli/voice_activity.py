"""The option `--voice-activity`: a detector of speech in front of a recogniser."""

from typing import Any

import click

from keras_transformer.cli.help import option


class DetectorType(click.ParamType):
    """A detector with its settings, such as `silero,threshold=0.6`."""

    name = "detector"

    def convert(self, value, param, ctx) -> Any:
        """Returns the detector."""
        from keras_transformer.tasks.speech_recognition.voice_activity.silero import parse

        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


VOICE_ACTIVITY = option(
    "--voice-activity",
    type=DetectorType(),
    metavar="DETECTOR",
    group="Answers",
    help="In speech recognition: read only the parts of a recording in which this detector "
    "finds speech. DETECTOR is silero, or silero with settings, such as "
    "silero,threshold=0.6,speech_pad_ms=200. Further settings are min_silence_duration_ms and "
    "min_speech_duration_ms. Times refer to the whole recording.  [default: read everything]",
)
