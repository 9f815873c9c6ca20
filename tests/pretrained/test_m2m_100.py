"""M2M100 and NLLB against their arithmetic in NumPy, and their languages."""

import json

import marian_in_numpy as marian
import numpy as np
import opus_folders
import pytest
import sentencepiece
import seq2seq_folders
from marks import slow
from seq2seq_folders import NLLB_CODES, pieces, write_folder

from keras_transformer import Beam, Greedy, TransformerConfig, from_pretrained
from keras_transformer.decoding import SearchOptions, Shortlist
from keras_transformer.decoding.generation import Generation
from keras_transformer.pretrained.families.m2m_100 import LANGUAGES
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import strings

PAD, END = 1, 2
ENGLISH = {"m2m100": "en", "nllb": "eng_Latn", "nllb_legacy": "eng_Latn"}
GERMAN = {"m2m100": "de", "nllb": "deu_Latn", "nllb_legacy": "deu_Latn"}


def rows_of(settings, first, second, place, lengths=(7, 3, 1), seed=0):
    """Returns random sources as the pipeline takes them, and as Hugging Face's models do."""
    texts = opus_folders.random_tokens(settings, lengths, seed)
    ours = np.insert(texts, 0, [[first], [second]], axis=1)
    theirs = np.insert(texts, 0, second, axis=1)
    if place == "after":
        theirs = np.pad(texts, [(0, 0), (0, 1)], constant_values=PAD)
        theirs[range(len(texts)), (texts != PAD).sum(1)] = second
    return ours.astype("int32"), theirs


@pytest.mark.parametrize("name", [slow("m2m100"), "nllb_legacy"])
def test_logits_states_and_searches(name, tmp_path):
    settings, tensors = write_folder(tmp_path, name)
    checkpoint = read_checkpoint(tmp_path)
    model, languages = checkpoint.model, checkpoint.tokenizers.languages
    first, second = languages.prefix
    place = "after" if name == "nllb_legacy" else "before"
    ours, theirs = rows_of(settings, first, second, place)
    target = opus_folders.random_tokens(settings, (5, 4, 2), 1, start=END)
    target[:, 1] = first
    states, logits = marian.forward(tensors, settings, theirs, target)
    real = theirs != PAD
    found, allowed = model.encode(ours)
    np.testing.assert_array_equal(allowed[:, 0, : theirs.shape[1]], real)
    found = found.numpy()[:, : theirs.shape[1]]
    np.testing.assert_allclose(found[real], states[real], rtol=0, atol=1e-5)
    found = model({"source": ours, "target": target}, training=False)
    np.testing.assert_allclose(found, logits, rtol=0, atol=1e-4)
    tokens, scores = (
        x.numpy() for x in checkpoint.search(model, ours, SearchOptions(cache_length=6))[:2]
    )
    assert (tokens[:, 0, 0] == first).all()
    shown = [[int(token) for token in row if token != PAD] for row in tokens[:, 0]]
    for row, expected, source in zip(shown, scores[:, 0], theirs, strict=True):
        score = 0.0
        for number in range(1, len(row)):
            logits = marian.forward(
                tensors, settings, source[None], np.array([[END, *row[:number]]])
            )
            last = logits[1][0, -1]
            score += last[row[number]] - np.logaddexp.reduce(last)
        assert score / len(row) == pytest.approx(float(expected), abs=1e-4)  # the first is free


@pytest.mark.parametrize("name", [slow("m2m100"), slow("nllb"), "nllb_legacy"])
def test_ids_have_the_tokens_of_languages_in_front(name, tmp_path):
    write_folder(tmp_path, name)
    checkpoint = read_checkpoint(tmp_path)
    source, target = checkpoint.tokenizers
    first = 4 + len(pieces()[3:])  # id of the first language
    codes = [*LANGUAGES["m2m100"].split()] if name == "m2m100" else NLLB_CODES
    english, german = (first + codes.index(side[name]) for side in (ENGLISH, GERMAN))
    spm = sentencepiece.SentencePieceProcessor(model_proto=seq2seq_folders.spm())
    ids = [3 if number == 0 else number + 1 for number in spm.encode("a dog ж runs")]
    assert source.encode(["a dog ж runs"]).to_list() == [[german, english, *ids, END]]
    assert source.sample(["a dog ж runs"], 0.1, 1)[0][:2] == [german, english]
    assert target.encode(["a dog"]).to_list()[0][0] == german
    assert target.decode([[german, *ids, END]]).numpy()[0].decode() == "a dog  \u2047  runs"
    french = checkpoint.tokenizers.with_languages(target=codes[3]).source.encode([""])
    assert french.to_list() == [[first + 3, english, END]]
    place = "after" if name == "nllb_legacy" else "before"
    assert checkpoint.model.config.head.rules.language_codes == place


def test_a_language_is_chosen_when_it_is_needed(tmp_path):
    write_folder(tmp_path, "nllb")
    (tmp_path / "tokenizer_config.json").write_text('{"src_lang": "eng_Latn"}')
    translator = from_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"`target_language` must be chosen, because .* ace_Arab"):
        translator(["a dog"])
    with pytest.raises(ValueError, match=r"`target_language` must be one of the 4 .* deu_Latn, "):
        translator.with_languages(target="deu")
    german = translator.with_languages(target="deu_Latn")
    assert german.encode(["a"])[0].numpy()[0, 0] == german.tokenizers.languages.ids["deu_Latn"]
    assert german.with_search(Beam(2)).tokenizers.languages.target == "deu_Latn"
    settings = json.loads((tmp_path / "config.json").read_text())
    number = german.tokenizers.languages.ids["fra_Latn"]
    (tmp_path / "config.json").write_text(json.dumps({**settings, "forced_bos_token_id": number}))
    assert read_checkpoint(tmp_path).tokenizers.languages.target == "fra_Latn"
    chosen = read_checkpoint(tmp_path, target_language="deu_Latn").tokenizers.languages
    assert (chosen.source, chosen.target) == ("eng_Latn", "deu_Latn")
    with pytest.raises(ValueError, match=r"A shortlist is for one pair of languages"):
        german.with_shortlist(Shortlist(1, 1, [0] * (settings["vocab_size"] + 1), []))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["m2m100", "nllb_legacy"])
def test_one_graph_serves_all_languages_and_limits(name, tmp_path, monkeypatch):
    """Translators that differ in languages or limits trace no graphs of their own."""
    write_folder(tmp_path, name)
    translator, traces, lines = from_pretrained(tmp_path), [], ["a dog runs", "", "the cat"]
    codes = [*translator.tokenizers.languages.ids]
    translate, score = strings._translate, strings.score
    monkeypatch.setattr(
        strings, "_translate", lambda *a, **b: traces.append(1) or translate(*a, **b)
    )
    monkeypatch.setattr(strings, "score", lambda *a, **b: traces.append(1) or score(*a, **b))
    outputs = {}
    for number in range(100):
        pair = codes[number % len(codes)], codes[7 * number // 3 % len(codes)]
        search = Greedy(max_length=5 + number % 3)
        chosen = translator.with_languages(*pair).with_search(search)
        (aligned, *_), scores = chosen.align(lines), chosen.score(lines, lines)
        outputs[(*pair, search)] = chosen(lines), aligned.target, scores
    assert len(traces) == 3
    assert len({str(value) for value in outputs.values()}) > 10
    for source, target, search in [*outputs][:2]:
        tokenizers = translator.tokenizers.with_languages(source, target)
        alone = type(translator)(translator.model, tokenizers, search=search)
        texts, aligned, scores = outputs[source, target, search]
        assert alone(lines) == texts and alone.align(lines)[0].target == aligned
        for one, other in zip(alone.score(lines, lines), scores, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert one.tokens == other.tokens


def test_a_model_without_languages_refuses_them(tmp_path):
    opus_folders.write_folder(tmp_path)
    with pytest.raises(ValueError, match=r"`target_language` has no effect: the languages are"):
        from_pretrained(tmp_path).with_languages(target="de")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "tokenizer_config.json",
            '{"src_lang": "xyz"}',
            r"`src_lang` must be one of the languages",
        ),
        ("special_tokens_map.json", "{}", r"must have tokens of languages, such as deu_Latn or"),
        ("sentencepiece.bpe.model", "x", r"sentencepiece\.bpe\.model: not a SentencePiece model"),
    ],
)
def test_damaged_vocabularies_are_reported(file, content, message, tmp_path):
    write_folder(tmp_path, "nllb")
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_ids_of_a_language_beyond_the_vocabulary_are_reported(tmp_path):
    write_folder(tmp_path, "m2m100")
    (tmp_path / "vocab.json").write_text('{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 90}')
    with pytest.raises(ValueError, match=r"vocab\.json: ids must be numbered without a gap"):
        read_checkpoint(tmp_path)


@pytest.mark.slow
def test_words_of_an_alignment_do_not_contain_languages(tmp_path):
    write_folder(tmp_path, "nllb")
    (alignment,) = from_pretrained(tmp_path).align(["a dog"])
    assert alignment.source[0] == "eng_Latn" and alignment.source[-1] == "</s>"
    assert alignment.target[0] == "deu_Latn"
    assert alignment.weights.shape == (len(alignment.target), len(alignment.source))
    assert all(source in (0, 1) for source, _ in alignment.words())


def test_a_training_from_a_run_keeps_the_languages(tmp_path):
    write_folder(tmp_path / "hf", "nllb_legacy")
    checkpoint = read_checkpoint(tmp_path / "hf")
    generation = Generation.from_dict(checkpoint.generation.of_vocabulary().to_dict())
    source, target = checkpoint.tokenizers
    fields = {name: getattr(source, name) for name in ("vocab_size", "pad_id", "bos_id", "eos_id")}
    new = generation.configure(TransformerConfig(**fields, target_vocab_size=target.vocab_size))
    ours = checkpoint.model.config
    assert new.head.rules == ours.head.rules and new.head.rules.language_codes == "after"
    assert new.tokens.bos_id == ours.tokens.bos_id == END


def test_a_training_from_bart_keeps_the_start(tmp_path):
    write_folder(tmp_path, "bart", forced_bos_token_id=0)
    checkpoint = read_checkpoint(tmp_path)
    tokenizer = checkpoint.tokenizers.source
    new = checkpoint.generation.of_vocabulary().configure(
        TransformerConfig(vocab_size=99, pad_id=1, bos_id=0, eos_id=END)
    )
    assert (tokenizer.bos_id, new.tokens.bos_id, checkpoint.model.config.tokens.bos_id) == (
        0,
        END,
        END,
    )
    assert new.head.rules.forced_bos_id == 0
