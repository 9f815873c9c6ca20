"""A release of OPUS-MT: SentencePiece splits texts, and a table beside the model has the ids."""

import dataclasses
import json

import numpy as np
import pytest
from opus_folders import TARGET_TEXT, pieces
from opus_releases import TABLE, TEXTS, decoder, ids_of, release, table_of
from searching import by_greedy

from keras_transformer import Greedy, Translator
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.training.converted import settings_of, write_converted
from keras_transformer.training.factory import model_config

LIMIT = 9


@pytest.fixture
def opus(tmp_path):
    return release(tmp_path, table_of("source", "target"))


def test_ids_are_those_of_the_table(opus):
    (ids,) = opus.ids
    made = read_checkpoint(opus.path)
    for side, tokenizer in zip(("source", "target"), made.tokenizers, strict=True):
        expected = [ids_of(text, side, ids) for text in TEXTS]
        assert tokenizer.encode(TEXTS).to_list() == expected
    assert (made.tokenizers.source.unk_id, made.tokenizers.source.eos_id) == (1, 0)
    words = ids_of(TARGET_TEXT[0], "target", ids)
    assert made.tokenizers.target.decode([words]).numpy() == [TARGET_TEXT[0].encode()]
    size = len(ids)
    config = made.model.config
    assert (config.tokens.vocab_size, config.output_size) == (size + 1, size + 1)
    assert config.tokens.pad_id == config.tokens.bos_id == size
    assert made.notes == []


def test_logits_and_greedy_search_are_those_of_marian(opus, tmp_path):
    """From texts to texts: the table's ids, Marian's arithmetic, and the joined tokens."""
    (ids,) = opus.ids
    run = write_converted(read_checkpoint(opus.path), tmp_path / "run").path
    translator = Translator.from_run(run, max_length=40)
    names, size = {number: token for token, number in ids.items()}, len(ids)
    target = np.array([[size, 5, 9, 22, 7, 3]])
    expected = []
    for text in TEXTS:
        source = ids_of(text, "source", ids)
        logits = translator.model({"source": np.array([source]), "target": target}).numpy()[0]
        logits = logits.astype("float64")
        ours = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        heads, state = opus.marian.begin(source)
        for index, last in enumerate([None, *target[0, 1:]]):
            theirs, state = opus.marian.step(last, index, heads, state)
            np.testing.assert_allclose(ours[index, :size], theirs, atol=2e-5, rtol=0)
            assert ours[index, size] < -900
        tokens, _ = opus.marian.greedy(source, min(LIMIT, 3 * len(source)))
        expected.append(tokens)
    rows = [ids_of(text, "source", ids) for text in TEXTS]
    batch = np.full((len(rows), max(map(len, rows))), size)
    for row, source in zip(batch, rows, strict=True):
        row[: len(source)] = source
    found, _ = by_greedy(translator.model, batch, LIMIT)
    assert [[n for n in row if n != size] for row in found.numpy().tolist()] == expected
    names |= {0: "", ids[">>deu<<"]: ""}  # neither is text
    texts = ["".join(names[n] for n in row).replace("▁", " ").strip() for row in expected]
    assert len({*texts}) > 5
    answers = [text.strip() for text in translator(TEXTS, search=Greedy(LIMIT))]
    blank = TEXTS.index("")  # has a blank answer, without a search
    assert answers == texts[:blank] + [""] + texts[blank + 1 :]


def test_a_converted_release_can_be_trained_further(opus):
    made = read_checkpoint(opus.path)
    config = made.model.config
    ours = model_config(settings_of(config, made.tokenizers), made.tokenizers)
    same = dataclasses.replace(config, target_vocab_size=len(opus.ids[0]) + 1)  # one table, as here
    assert made.generation.configure(ours) == same and same.head.shares_vocabulary


def test_source_and_target_may_have_tables_of_their_own(tmp_path):
    names = ("opus.src.vocab.yml", "opus.trg.vocab.yml")
    tables = table_of("source"), table_of("target", seed=2)
    untied = {"tied_embeddings_all": False, "tied_embeddings": True}
    opus = release(tmp_path, *tables, names=names, **untied)
    named = read_checkpoint(opus.path)
    (tmp_path / "decoder.yml").unlink()
    for made in (named, read_checkpoint(opus.path)):
        for side, tokenizer, ids in zip(("source", "target"), made.tokenizers, tables, strict=True):
            assert tokenizer.encode(TEXTS).to_list() == [ids_of(x, side, ids) for x in TEXTS]


@pytest.mark.parametrize("form", ["beside", "elsewhere", "json", "text", "given"])
def test_where_the_table_may_be(tmp_path, form):
    ids = table_of("source", "target")
    opus, given = release(tmp_path, ids), None
    table = tmp_path / TABLE
    if form == "beside":
        (tmp_path / "decoder.yml").unlink()
    elif form == "elsewhere":  # the folder of training, which is not here
        (tmp_path / "decoder.yml").write_text(decoder(vocabs=[f"/data/{TABLE}"] * 2))
    else:
        table.unlink()
        given = [tmp_path / f"my.{form}"]
        lines = "".join(f"{token}\n" for token in ids)
        texts = {"json": json.dumps(ids), "text": lines, "given": json.dumps(ids)}
        if form == "text":
            given = [tmp_path / "my.txt"]
        elif form == "given":
            (tmp_path / "apart").mkdir()
            files = [tmp_path / "apart" / f"{side}.spm" for side in ("source", "target")]
            for file in files:
                (tmp_path / file.name).rename(file)
            given = [tmp_path / "my.json", *files]
        (tmp_path / given[0].name).write_text(texts[form], "utf-8")
    made = read_checkpoint(opus.path, vocabularies=given)
    for side, tokenizer in zip(("source", "target"), made.tokenizers, strict=True):
        assert tokenizer.encode(TEXTS).to_list() == [ids_of(text, side, ids) for text in TEXTS]


def test_the_ids_of_a_table_take_precedence(opus, tmp_path):
    """Naming the SentencePiece files alone, as for a student of browsers, does not change ids."""
    (ids,) = opus.ids
    files = [tmp_path / "source.spm", tmp_path / "target.spm"]
    made = read_checkpoint(opus.path, vocabularies=files)
    assert made.tokenizers.source.encode(TEXTS).to_list() == [
        ids_of(text, "source", ids) for text in TEXTS
    ]


def test_pieces_that_the_table_lacks_are_unknown_and_mentioned(tmp_path):
    ids = [token for token in table_of("source", "target") if token not in ("g", "▁dog")]
    opus = release(tmp_path, {token: number for number, token in enumerate(ids)})
    (ids,) = opus.ids
    made = read_checkpoint(opus.path)
    (tokens,) = made.tokenizers.source.encode(["dog"]).to_list()
    assert tokens == ids_of("dog", "source", ids) == [ids["<unk>"], ids["</s>"]]
    source, target = made.notes
    assert source.startswith(f"2 of the {len(pieces('source')) - 3} pieces of {tmp_path}/source.sp")
    assert source.endswith("such as '▁dog': they are unknown tokens, as in Marian")
    assert target.startswith("1 of the") and "target.spm" in target and "such as 'g'" in target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], r"yml has 70 tokens, the model 71 entries for them: it must be"),
        (lambda lines: [*lines, "more: 71\n"], "yml has 72 tokens, the model 71 entries"),
        (lambda lines: [*lines[:-1], "more: 71\n"], "no token has the id 70; ids must be 0 to 70"),
        (lambda lines: [*lines[:-1], "more: 4\n"], "token must occur once.* and 'more', with"),
        (lambda lines: [*lines[:-1], "</s>: 70\n"], "must occur once.*'</s>' twice, with the id"),
        (lambda lines: ["eos: 0\n", *lines[1:]], "yml: the token '</s>' is missing"),
        (lambda lines: ["a: -1\n", *lines[1:]], "ids must be whole numbers. Received: 'a': -1"),
        (lambda lines: ["a: x\n", *lines[1:]], "ids must be whole numbers. Received: 'a': x"),
        (lambda lines: ["a:\n", *lines[1:]], "ids must be whole numbers. Received: 'a': "),
        (lambda lines: ["- a\n"], "is not a table of tokens and ids: line 1 is not `token: id`"),
        (lambda lines: ["a: &a 0\n", "b: *a\n"], "line 1 is not `token: id`"),
        (lambda lines: ["a: [0]\n"], "line 1 is not `token: id`"),
        (lambda lines: ['"a: 0\n'], "ids: not YAML in line"),
        (lambda lines: ["a\x00: 0\n"], "ids: not YAML: unacceptable character"),
        (lambda lines: [], "line 1 is not `token: id`"),
        (
            lambda lines: [*lines[:2], *(f"x{n}: {n}\n" for n in range(2, 71))],
            r"\d+ of the \d+ pieces of .*source.spm are not in .*yml: these files do not belong",
        ),
    ],
)
def test_tables_that_do_not_fit_are_reported(opus, tmp_path, change, message):
    assert len(opus.ids[0]) == 71
    lines = (tmp_path / TABLE).read_text("utf-8").splitlines(keepends=True)
    (tmp_path / TABLE).write_text("".join(change(lines)), "utf-8")
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(opus.path)
    assert "\n" not in str(error.value)


def test_files_that_are_missing_or_unclear_are_reported(opus, tmp_path):
    def refused(message, given=None):
        with pytest.raises(ValueError, match=message) as error:
            read_checkpoint(opus.path, vocabularies=given)
        assert "\n" not in str(error.value)

    files = [tmp_path / "source.spm", tmp_path / "target.spm"]
    (tmp_path / "other.yml").write_text(decoder(vocabs=["source.spm", "target.spm"]))
    refused("decoder.yml and .*other.yml name different vocabularies. Choose with --vocab")
    (tmp_path / "other.yml").unlink()
    (tmp_path / "decoder.yml").write_text(decoder(vocabs=["source.spm", TABLE]))
    refused("must name two SentencePiece models or two tables of ids. Received: source.spm and op")
    (tmp_path / "decoder.yml").write_text(decoder(vocabs=["gone.yml", "gone.yml"]))
    refused("decoder.yml names a vocabulary that is missing, .*gone.yml. Put it there, or name it")
    (tmp_path / "decoder.yml").unlink()
    (tmp_path / "more.vocab.yml").write_text("a: 0\n")
    refused("several vocabularies beside it, more.vocab.yml, opus.* Name its own with --vocab")
    for table in tmp_path.glob("*vocab.yml"):
        table.unlink()
    refused("source.spm has 27 pieces, the model 71 entries for them. If the model takes", files)
    refused("`vocabularies` must be one .* Received: 3 and 0", [*files, files[0]])
    (tmp_path / TABLE).write_text("a: 0\n")
    files[0].unlink()
    files[1].rename(tmp_path / "source.bpe")
    refused("also needs source.spm and target.spm beside it. Received: none. Files of subword-nmt")
