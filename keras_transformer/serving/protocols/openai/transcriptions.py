"""OpenAI's transcriptions."""

from starlette.responses import JSONResponse, PlainTextResponse, Response

from keras_transformer.serving.bodies import content_type, form, value_of
from keras_transformer.serving.protocols.openai.base import OpenAI
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.work import Work
from keras_transformer.tasks.speech_recognition.subtitles import subrip, webvtt

SUBTITLES = {"srt": subrip, "vtt": webvtt}  # in this protocol, json has no times


class Transcriptions(OpenAI):
    """`/v1/audio/transcriptions`."""

    @classmethod
    def fits(cls, service) -> bool:  # noqa: D102
        return service.task == "speech_recognition"

    def routes(self):  # noqa: D102
        return [("POST", "/v1/audio/transcriptions", self.transcribe)]

    async def transcribe(self, call) -> Response:
        """Returns the text of a recording."""
        body = await call.body()
        if content_type(call.request) != "multipart/form-data":
            raise Refusal(415, "the body must be multipart/form-data.")
        fields = await form(call.request, body)
        self.service.check_name(value_of(fields, "model", str, ...))
        for name in ("prompt", "stream", "include", "chunking_strategy"):
            if fields.get(name) not in (None, "", "false", "auto"):
                raise Refusal(400, f"`{name}` is not supported.")
        if value_of(fields, "temperature", str, "0") not in ("0", "0.0"):
            raise Refusal(400, "`temperature` must be 0: nothing is sampled.")
        shape = value_of(fields, "response_format", str, "json")
        timed = shape in (*SUBTITLES, "verbose_json")
        if shape not in ("json", "text") and not timed:
            raise Refusal(400, f"`response_format` {shape} is not supported.")
        language = value_of(fields, "language", str)
        settings = (("timestamps", True),) if timed else ()
        inputs = self.service.inputs_of([value_of(fields, "file", bytes, ...)])
        (result,) = await call.answer(Work((language, None), settings=settings), inputs)
        if shape == "text":
            return PlainTextResponse(f"{result.text}\n")
        if shape in SUBTITLES:
            return PlainTextResponse(SUBTITLES[shape](result.segments))
        if shape == "json":
            return JSONResponse({"text": result.text})
        segments = [
            {"id": number, "start": segment.start, "end": segment.end, "text": segment.text}
            for number, segment in enumerate(result.segments)
        ]
        duration = segments[-1]["end"] if segments else 0.0
        return JSONResponse(
            {
                "task": "transcribe",
                "language": result.language or "",
                "duration": duration,
                "text": result.text,
                "segments": segments,
            }
        )
