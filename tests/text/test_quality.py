"""BLEU of scripts with and without spaces between words."""

import pytest
import sacrebleu

from keras_transformer.cli.main import cli
from keras_transformer.tasks import TASKS
from keras_transformer.text.quality import score, single_words
from keras_transformer.text.scripts import TOKENIZERS, tokenizer_for

JAPANESE = ["今日はとても良い天気ですね。", "彼女は図書館で本を読んでいます。"]
CHINESE = ["今天天气非常好。", "她正在图书馆看书。"]
THAI = ["วันนี้อากาศดีมาก", "เธออ่านหนังสือในห้องสมุด"]
KOREAN = ["오늘은 날씨가 아주 좋네요.", "그녀는 도서관에서 책을 읽고 있어요."]
GERMAN = ["Heute ist sehr schönes Wetter.", "Sie liest ein Buch über 東京."]


@pytest.mark.parametrize(
    ("texts", "tokenizer"),
    [(JAPANESE, "char"), (CHINESE, "zh"), (THAI, "char"), (KOREAN, "13a"), (GERMAN, "13a")],
)
def test_the_tokenizer_of_bleu_follows_the_script(texts, tokenizer):
    assert tokenizer_for(texts) == tokenizer
    scores = score(texts, texts)
    assert scores["bleu"] == pytest.approx(100) and f"tok:{tokenizer}|" in scores["bleu_signature"]
    assert "bleu_warning" not in scores
    shuffled = [text[::-1] for text in texts]
    expected = sacrebleu.BLEU(tokenize=tokenizer, force=True).corpus_score(shuffled, [texts])
    assert score(shuffled, texts)["bleu"] == expected.score < 100


def test_texts_without_letters_keep_the_default():
    assert tokenizer_for([]) == tokenizer_for(["1 2 3", ""]) == "13a"


def test_references_of_one_token_are_a_warning():
    scores = score(JAPANESE, JAPANESE, tokenize="none")
    assert scores["bleu"] == 0 and scores["exact_match"] == 100
    assert scores["bleu_warning"].startswith(
        "every reference is a single token for BLEU's tokenizer none, so BLEU is 0 whatever"
    )
    assert single_words(["3141", "59"]) == TASKS["translation"].doubt(["3141", "59"]) != ""
    assert single_words(["3141", "5 9"]) == TASKS["classification"].doubt(["a"]) == ""


def test_an_unknown_or_missing_tokenizer_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="`tokenize` must be one of 13a.*Received: 'spm'"):
        score(["a"], ["a"], tokenize="spm")

    def missing(**options):
        raise RuntimeError("a page\nof text")

    monkeypatch.setattr(sacrebleu, "BLEU", missing)
    for name, remedy in (("ja-mecab", r"sacrebleu\[ja\]"), ("ko-mecab", r"sacrebleu\[ko\]")):
        with pytest.raises(ValueError, match=f"tokenizer {name} is not available: .*{remedy}"):
            score(["a"], ["a"], tokenize=name)
    with pytest.raises(ValueError, match="tokenizer flores200 is not available: sacreBLEU downl"):
        score(["a"], ["a"], tokenize="flores200")


def test_evaluate_offers_all_tokenizers():
    (option,) = [p for p in cli.commands["evaluate"].params if p.name == "tokenize"]
    assert tuple(option.type.choices) == TOKENIZERS
