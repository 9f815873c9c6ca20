"""The protocol of LibreTranslate, version 1.6: translation of texts."""

from typing import Any

from babel import Locale, UnknownLocaleError
from starlette.responses import JSONResponse, Response

from keras_transformer.serving.bodies import FORMS, content_type, form, json_object, value_of
from keras_transformer.serving.languages import ServedLanguages
from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.work import DocumentWork, Work

TEXT, HTML = "text", "html"


class LibreTranslate(Protocol):
    """`/translate`, `/languages` and `/frontend/settings`; `/detect` is refused."""

    key_in_body = True

    def __init__(self, service):
        super().__init__(service)
        self.languages = ServedLanguages.of(service.model, service.options)

    @classmethod
    def fits(cls, service) -> bool:  # noqa: D102
        return service.task == "translation"

    def routes(self):  # noqa: D102
        return [
            ("POST", "/translate", self.translate),
            ("GET", "/languages", self.list_languages),
            ("POST", "/detect", self.detect),
            ("GET", "/frontend/settings", self.settings),
        ]

    def error(self, refusal):  # noqa: D102
        return {"error": refusal.message}

    async def translate(self, call) -> Response:
        """Translates a text or a list of texts."""
        body = await self._fields(call)
        texts = value_of(body, "q", (str, list), ...)
        source, target = (value_of(body, name, str, ...) for name in ("source", "target"))
        shape = value_of(body, "format", str, TEXT)
        if shape not in (TEXT, HTML):
            raise Refusal(400, f"the format {shape} is not supported: use text or html.")
        if str(body.get("alternatives") or "0") != "0":
            raise Refusal(400, "`alternatives` must be 0: there is one translation of a text.")
        languages = self.languages.chosen(source, target)
        work = self._html(languages) if shape == HTML else Work(languages)
        inputs = self.service.inputs_of([texts] if isinstance(texts, str) else texts)
        translations = [result.text for result in await call.answer(work, inputs)]
        return JSONResponse(
            {"translatedText": translations[0] if isinstance(texts, str) else translations}
        )

    def _html(self, languages):
        """Returns the work for pages of HTML and fragments of them.

        Raises:
            Refusal: If the server does not have the packages for it.
        """
        from keras_transformer.documents.sentences import SentenceSplitter

        try:
            SentenceSplitter()("")
        except ValueError as error:
            raise Refusal(501, f"the format html is not available: {error}") from None
        fixed = None if self.languages.codes else self.languages.source
        return DocumentWork(languages, format=HTML, sentence_language=fixed)

    async def detect(self, call) -> Response:
        """Refuses to detect a language."""
        call.check_key((await self._fields(call)).get("api_key"))
        raise Refusal(501, "this server does not detect languages.")

    async def list_languages(self, call) -> Response:
        """Returns the languages, with the targets of each."""
        call.check_key(call.request.query_params.get("api_key"))
        return JSONResponse(
            [
                {"code": code, "name": name_of(code), "targets": targets}
                for code, targets in self.languages.listed()
            ]
        )

    async def settings(self, call) -> Response:
        """Returns what LibreTranslate's page reads before it shows anything."""
        call.check_key(call.request.query_params.get("api_key"))
        chosen = {
            name: {"code": code, "language": name_of(code)}
            for name in ("source", "target")
            if (code := getattr(self.languages, name)) is not None
        }
        return JSONResponse(
            {
                "apiKeys": self.service.key is not None,
                "charLimit": self.service.options.max_characters,
                "frontendTimeout": 500,
                "keyRequired": self.service.key is not None,
                "language": chosen,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
            }
        )

    async def _fields(self, call) -> dict[str, Any]:
        """Returns the fields of a body, JSON or a form, after checking its key."""
        body, kind = await call.body(), content_type(call.request)
        if kind in FORMS:
            fields = await form(call.request, body)
        elif kind in ("application/json", ""):
            fields = json_object(body)
        else:
            raise Refusal(415, f"the body must be JSON or a form. Received: {kind}.")
        call.check_key(value_of(fields, "api_key", str))
        return fields


def name_of(code: str) -> str:
    """Returns the English name of a language, or its code if that has no name."""
    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (ValueError, UnknownLocaleError):
        return code
