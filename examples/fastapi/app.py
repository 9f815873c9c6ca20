"""A SavedModel behind FastAPI: texts in, translations out, by TensorFlow alone.

MODEL=serving/demo/1 uvicorn app:app --port 8000
"""

import os
import typing

import fastapi
import fastapi.exceptions
import fastapi.responses
import pydantic
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)

MODEL = os.environ.get("MODEL", "serving/demo/1")
MAX_TEXTS, MAX_CHARACTERS = 32, 1000

# A loaded model keeps its variables only as long as it is referenced.
model = tf.saved_model.load(MODEL)
translate = model.signatures["serving_default"]
app = fastapi.FastAPI(title="Translations")


class Request(pydantic.BaseModel):
    """Texts to translate."""

    texts: list[typing.Annotated[str, pydantic.Field(max_length=MAX_CHARACTERS)]] = pydantic.Field(
        min_length=1, max_length=MAX_TEXTS
    )


class Translation(pydantic.BaseModel):
    """A translation, its log-probability, and whether text is missing."""

    text: str
    score: float
    truncated: bool
    complete: bool


@app.exception_handler(fastapi.exceptions.RequestValidationError)
def refuse(
    request: fastapi.Request, error: fastapi.exceptions.RequestValidationError
) -> fastapi.responses.JSONResponse:
    """Refuses a request without repeating it: FastAPI fails to repeat half a surrogate pair."""
    reasons = [{"loc": one["loc"], "msg": one["msg"]} for one in error.errors()]
    return fastapi.responses.JSONResponse({"detail": reasons}, 422)


@app.get("/health")
def health() -> dict[str, str]:
    """Answers when the model is loaded."""
    return {"status": "ok"}


@app.post("/translate")
def answer(request: Request) -> list[Translation]:
    """Translates texts, as one batch. FastAPI calls this function in a thread of its own."""
    outputs = translate(sentences=tf.constant(request.texts))
    names = ("translation", "score", "truncated", "complete")
    rows = zip(*(outputs[name].numpy().tolist() for name in names), strict=True)
    return [
        Translation(text=text.decode(), score=score, truncated=truncated, complete=complete)
        for text, score, truncated, complete in rows
    ]
