"""A SavedModel behind FastAPI: texts in, translations out, by TensorFlow alone.

MODEL=serving/demo/1 uvicorn app:app --port 8000
"""

import os
import typing

import fastapi
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


@app.get("/health")
def health() -> dict[str, str]:
    """Answers when the model is loaded."""
    return {"status": "ok"}


@app.post("/translate")
def answer(request: Request) -> list[Translation]:
    """Translates texts, as one batch. FastAPI calls this function in a thread of its own."""
    try:
        outputs = translate(sentences=tf.constant(request.texts))
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise fastapi.HTTPException(422, "a text is not Unicode") from error
    names = ("translation", "score", "truncated", "complete")
    rows = zip(*(outputs[name].numpy().tolist() for name in names), strict=True)
    return [
        Translation(text=text.decode(), score=score, truncated=truncated, complete=complete)
        for text, score, truncated, complete in rows
    ]
