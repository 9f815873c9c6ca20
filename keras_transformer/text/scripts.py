"""The tokenizer of sacreBLEU that suits the script of a text; needs no other package."""

import unicodedata

TOKENIZERS = ("13a", "none", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores200")
# Beginnings of the names of letters that are written without spaces between words.
HAN = ("CJK ",)
KANA = ("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA")
WITHOUT_SPACES = (*HAN, *KANA, "THAI ", "LAO ", "KHMER ", "MYANMAR ")


def tokenizer_for(references: list[str]) -> str:
    """Returns the tokenizer of sacreBLEU that suits the script of references.

    It is `"13a"`, which splits text at spaces and punctuation, unless most letters belong to a
    script without spaces between words. Then it is `"zh"` for Chinese, and `"char"` for Japanese,
    Thai, Lao, Khmer and Burmese. None of them needs another package.

    Args:
        references: List of strings.
    """
    letters = [character for text in references for character in text if character.isalpha()]
    names = [unicodedata.name(character, "") for character in letters]
    spaceless = [name for name in names if name.startswith(WITHOUT_SPACES)]
    if 2 * len(spaceless) <= len(letters):
        return "13a"
    # Japanese text always has kana.
    han = sum(name.startswith(HAN) for name in spaceless)
    return "zh" if han >= 0.95 * len(spaceless) else "char"
