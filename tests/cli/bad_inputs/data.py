"""Wrong data: corpora, sentences, references."""

from . import emptied, fails, removed, spoiled, usage

TRAIN = "train CONFIG.toml --output NEW"

CORPORA = [
    fails(TRAIN, "train.en: cannot be read: No such file", removed("DATA/train.en")),
    fails(TRAIN, "train.de: cannot be read: No such file", removed("DATA/train.de")),
    fails(TRAIN, "val.en: cannot be read", removed("DATA/val.en")),
    fails(
        TRAIN,
        "at least one line without an empty column",
        emptied("DATA/train.en"),
        emptied("DATA/train.de"),
    ),
    fails(
        TRAIN,
        "at least one line without an empty column",
        spoiled("DATA/val.en", b"\n \n"),
        spoiled("DATA/val.de", b"\n \n"),
    ),
    fails(TRAIN, "same number of lines.*Received", spoiled("DATA/train.de", b"one\n")),
    fails(TRAIN, "same number of lines", emptied("DATA/val.de")),
    fails(TRAIN, "train.en, line 2: must be UTF-8", spoiled("DATA/train.en", b"a\n\xff\n")),
    fails(TRAIN, "val.de, line 1: must be UTF-8.*0xfe", spoiled("DATA/val.de", b"\xfe")),
    fails(
        f"{TRAIN} --set data.train_source=a.gz",
        "a.gz",
        spoiled("a.gz", b"\x1f\x8b\x08 cut"),
    ),
    fails(f"{TRAIN} --set data.train_source=DATA", "DATA: cannot be read: Is a directory"),
    fails(f"{TRAIN} --set vocabulary.size=9999", "`vocabulary.size` must be at most.*size=9999"),
    fails(
        "train x.toml --output NEW",
        "no_such_dataset",
        spoiled(
            "x.toml",
            b'[data]\nsource = "tfds"\nname = "no_such_dataset"\n'
            b'source_language = "en"\ntarget_language = "de"\n',
        ),
    ),
    fails(f"{TRAIN} --set model.vectors=nowhere", "nowhere: cannot be read: No such file"),
    fails(
        f"{TRAIN} --set model.vectors=a.txt",
        "a.txt, line 1: must have [0-9]+ values, as many as `d_model`. Received: 2",
        spoiled("a.txt", b"the 1 2\n"),
    ),
    fails(
        "train x.toml --output NEW",
        "xx",
        spoiled("x.toml", b'[data]\nsource = "cldr"\ntarget_language = "xx"\n'),
    ),
]

SENTENCES = [
    fails(
        "evaluate RUN --source IN.txt --reference LONG.txt",
        "IN.txt has 3 lines, LONG.txt has 4: line n of one must belong to line n of the other",
    ),
    fails("evaluate RUN --source BYTES.txt --reference IN.txt", "BYTES.txt, line 2: not UTF-8"),
    fails(
        "evaluate RUN --source a.txt --reference b.txt",
        "must hold at least one",
        spoiled("a.txt", b""),
        spoiled("b.txt", b""),
    ),
    usage("evaluate RUN --source nowhere --reference IN.txt", "'nowhere' does not exist"),
    fails("evaluate RUN", "`split` must be one of train, validation.*Received: split='test'"),
    usage("evaluate RUN --split tset", "--split must be one of train, validation.*'tset'"),
    fails("score RUN --source IN.txt --target LONG.txt", "IN.txt has 3 lines, LONG.txt has 4"),
    fails(
        "translate RUN --strict",
        r"line 1: not UTF-8 \(byte 0xff at position 2\)\.$",
        stdin=b"a\xff\nin 3 days\n",
    ),
    usage("score RUN --source nowhere --target IN.txt", "'nowhere' does not exist"),
    fails("export litert RUN x.tflite --sentences BYTES.txt", "BYTES.txt, line 2: not UTF-8"),
    usage(
        "export litert RUN x.tflite --sentences a.txt",
        "at least one sentence that is not empty",
        spoiled("a.txt", b"\n\n"),
    ),
    usage(
        "export saved-model RUN NEW --sentences a.txt",
        "at least one sentence that is not empty",
        spoiled("a.txt", b""),
    ),
    usage(
        "export ctranslate2 RUN NEW --sentences a.txt",
        "at least one sentence that is not empty",
        spoiled("a.txt", b" \n"),
    ),
    fails(
        "export litert RUN x.tflite --quantize int8 --sentences IN.txt --references LONG.txt",
        "IN.txt has 3 lines, LONG.txt has 4",
    ),
    usage(
        "export litert RUN x.tflite --quantize int8_static --calibration a.txt",
        "--calibration must contain real sentences",
        spoiled("a.txt", b"\n"),
    ),
    usage("export litert RUN x.tflite --tokenizer", "--tokenizer needs.*unigram"),
]

CONLL = (
    b'[task]\nkind = "token_classification"\n[data]\nsource = "conll"\ntrain = "a.conll"\n'
    b'validation = "b.conll"\n'
)


def conll(match, train, validation=b"a B-X\n", settings=CONLL):
    """A training run with two CoNLL files."""
    files = {"x.toml": settings, "a.conll": train, "b.conll": validation}
    changes = (spoiled(name, content) for name, content in files.items())
    return fails("train x.toml --output NEW", match, *changes)


LABELLED = [
    conll("a.conll, line 2: I-X must follow B-X or I-X. Received: I-X after O", b"a O\nb I-X\n"),
    conll("a.conll, line 1: must have at least 2 columns.*Received: 1", b"a\n"),
    conll("b.conll, line 1: the label must be one of those in the training data: .*'B-Y'",
          b"a B-X\n", b"a B-Y\n"),
    conll("b.conll, line 1: must be UTF-8", b"a B-X\n", b"\xff O\n"),
    conll("a.conll must contain at least one sentence", b"\n"),
    conll("`column` must not be 0", b"a B-X\n", settings=CONLL + b"column = 0\n"),
    conll("provides words and labels: translation needs", b"a B-X\n",
          settings=CONLL.replace(b"token_classification", b"translation")),
    conll("`training.subword_sampling` must be 0 for token_classification", b"a B-X\n",
          settings=CONLL + b"[training]\nsubword_sampling = 0.1\n"),
]  # fmt: skip

SQUAD = (
    b'[task]\nkind = "question_answering"\n[data]\nsource = "squad"\ntrain = "a.json"\n'
    b'validation = "b.json"\n[training]\nlabel_smoothing = 0\n'
)
PARAGRAPH = (
    b'{"data": [{"paragraphs": [{"context": "It was in May.", "qas": [{"id": "q7", "question": '
    b'"When?", "answers": [{"text": "May", "answer_start": 10}]}]}]}]}'
)


def squad(match, train=PARAGRAPH, validation=PARAGRAPH, settings=SQUAD):
    """A training run with two files in SQuAD's format."""
    files = {"x.toml": settings, "a.json": train, "b.json": validation}
    changes = (spoiled(name, content) for name, content in files.items())
    return fails("train x.toml --output NEW", match, *changes)


QUESTIONS = [
    squad("a.json must be JSON in UTF-8", PARAGRAPH[:-9]),
    squad("b.json must be JSON in UTF-8", validation=b"\xff"),
    squad(r"a.json, article 1, paragraph 1, question 1 \(q7\), answer 1: `text` must be in the "
          "passage at `answer_start`.*'May' at 9, where the passage has ' Ma'",
          PARAGRAPH.replace(b"10", b"9")),
    squad("b.json, article 1, paragraph 1: must have the field `context`",
          validation=PARAGRAPH.replace(b"context", b"text")),
    squad(r"question 1 \(q7\): must have an answer.*SQuAD 2.0, are not supported",
          PARAGRAPH.replace(b'{"text": "May", "answer_start": 10}', b"")),
    squad("`training.label_smoothing` must be 0 for question_answering",
          settings=SQUAD.replace(b"smoothing = 0", b"smoothing = 0.1")),
]  # fmt: skip

CASES = [*CORPORA, *SENTENCES, *LABELLED, *QUESTIONS]
