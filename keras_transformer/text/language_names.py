"""English names of languages, by which users choose them instead of their codes."""

import difflib
from collections.abc import Container
from typing import Any

# Of the languages of Whisper, by its codes: the name in CLDR, then others of ISO 639-2. Whisper has
# the former code of Javanese, which now is jv.
NAMES = {
    "af": ("afrikaans",), "am": ("amharic",), "ar": ("arabic",), "as": ("assamese",),
    "az": ("azerbaijani",), "ba": ("bashkir",), "be": ("belarusian",), "bg": ("bulgarian",),
    "bn": ("bangla", "bengali"), "bo": ("tibetan",), "br": ("breton",), "bs": ("bosnian",),
    "ca": ("catalan", "valencian"), "cs": ("czech",), "cy": ("welsh",), "da": ("danish",),
    "de": ("german",), "el": ("greek",), "en": ("english",), "es": ("spanish", "castilian"),
    "et": ("estonian",), "eu": ("basque",), "fa": ("persian", "farsi"), "fi": ("finnish",),
    "fo": ("faroese",), "fr": ("french",), "gl": ("galician",), "gu": ("gujarati",),
    "ha": ("hausa",), "haw": ("hawaiian",), "he": ("hebrew",), "hi": ("hindi",),
    "hr": ("croatian",), "ht": ("haitian creole", "haitian"), "hu": ("hungarian",),
    "hy": ("armenian",), "id": ("indonesian",), "is": ("icelandic",), "it": ("italian",),
    "ja": ("japanese",), "jw": ("javanese",), "ka": ("georgian",), "kk": ("kazakh",),
    "km": ("khmer", "central khmer"), "kn": ("kannada",), "ko": ("korean",), "la": ("latin",),
    "lb": ("luxembourgish", "letzeburgesch"), "ln": ("lingala",), "lo": ("lao",),
    "lt": ("lithuanian",), "lv": ("latvian",), "mg": ("malagasy",), "mi": ("māori", "maori"),
    "mk": ("macedonian",), "ml": ("malayalam",), "mn": ("mongolian",), "mr": ("marathi",),
    "ms": ("malay",), "mt": ("maltese",), "my": ("burmese", "myanmar"), "ne": ("nepali",),
    "nl": ("dutch", "flemish"), "nn": ("norwegian nynorsk", "nynorsk"), "no": ("norwegian",),
    "oc": ("occitan",), "pa": ("punjabi", "panjabi"), "pl": ("polish",),
    "ps": ("pashto", "pushto"), "pt": ("portuguese",),
    "ro": ("romanian", "moldavian", "moldovan"), "ru": ("russian",), "sa": ("sanskrit",),
    "sd": ("sindhi",), "si": ("sinhala", "sinhalese"), "sk": ("slovak",), "sl": ("slovenian",),
    "sn": ("shona",), "so": ("somali",), "sq": ("albanian",), "sr": ("serbian",),
    "su": ("sundanese",), "sv": ("swedish",), "sw": ("swahili",), "ta": ("tamil",),
    "te": ("telugu",), "tg": ("tajik",), "th": ("thai",), "tk": ("turkmen",), "tl": ("tagalog",),
    "tr": ("turkish",), "tt": ("tatar",), "uk": ("ukrainian",), "ur": ("urdu",), "uz": ("uzbek",),
    "vi": ("vietnamese",), "yi": ("yiddish",), "yo": ("yoruba",), "yue": ("cantonese",),
    "zh": ("chinese", "mandarin"),
}  # fmt: skip
CODES = {name: code for code, names in NAMES.items() for name in names}


def code_of(language: Any, codes: Container[str]) -> Any:
    """Returns the code of a language, given its code, its token or an English name.

    Args:
        language: Such as `"de"`, `"<|de|>"` or `"german"`, in any case.
        codes: Codes of the languages that a model has.

    Returns:
        One of the codes, or `language` as it is if the model does not have it.

    Example:
        >>> from keras_transformer.text.language_names import code_of
        >>> code_of("German", {"de", "en"}), code_of("dutch", {"de", "en"})
        ('de', 'dutch')
    """
    if not isinstance(language, str) or language in codes:
        return language
    word = language.strip().lower().removeprefix("<|").removesuffix("|>")
    code = CODES.get(word, word)
    return code if code in codes else language


def close_names(language: Any, codes: Container[str], count: int) -> list[str]:
    """Returns the names most similar to a misspelt one, with their codes: `"german (de)"`.

    Args:
        language: What a user wrote.
        codes: See `code_of`.
        count: Maximum number of names.
    """
    names = [name for name, code in CODES.items() if code in codes]
    close = difflib.get_close_matches(str(language).lower(), names, count)
    return [f"{name} ({CODES[name]})" for name in close]
