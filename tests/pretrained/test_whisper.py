"""Whisper against its arithmetic and its rules in NumPy; prompts, files and their errors."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy
import whisper_folders
from marks import slow
from searching import by_beam
from whisper_folders import END, GENERATION, IDS, PIECES, SPACE, START

from keras_transformer import Greedy
from keras_transformer.decoding import SearchOptions
from keras_transformer.decoding.constraints import with_rules_of
from keras_transformer.decoding.predictor import NEVER, Vocabulary
from keras_transformer.decoding.rules import Rules
from keras_transformer.pretrained import whisper_prompt
from keras_transformer.pretrained.byte_bpe import lost_first_merge
from keras_transformer.pretrained.families.whisper import Whisper
from keras_transformer.pretrained.files.folder import CheckpointFolder
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.pretrained.trimming import restrict
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.tasks.speech_recognition.training import SpeechRecognitionTraining

FIRST = IDS["<|0.00|>"]
TIMES = {"return_timestamps": True}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("whisper")


@pytest.fixture(scope="module")
def checkpoint(place):
    settings, tensors = whisper_folders.write_folder(place / "hf")
    return read_checkpoint(place / "hf"), settings, tensors


def frames_of(settings, rows=2, seed=0):
    shape = rows, 2 * settings["max_source_positions"], settings["num_mel_bins"]
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def ids(*names):
    return tuple(IDS[f"<|{name}|>"] for name in names)


def test_states_and_logits(checkpoint):
    read, settings, tensors = checkpoint
    frames = frames_of(settings)
    target = np.random.default_rng(1).integers(0, len(PIECES), (2, 5))
    states, logits = whisper_folders.forward(tensors, settings, frames, target)
    np.testing.assert_allclose(read.model.encode(frames)[0], states, rtol=0, atol=1e-5)
    ours = read.model({"source": frames, "target": target}, training=False)
    np.testing.assert_allclose(ours, logits, rtol=0, atol=1e-4)


def test_untied_output_weights(tmp_path):
    settings, tensors = whisper_folders.write_folder(tmp_path, tie_word_embeddings=False)
    frames, target = frames_of(settings), np.array([[3, 5], [9, 2]])
    ours = read_checkpoint(tmp_path).model({"source": frames, "target": target})
    expected = whisper_folders.forward(tensors, settings, frames, target)[1]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)


def allowed_tokens(output, prompt, generation, logits):
    """The tokens that may follow, token by token as OpenAI's rules have them."""
    written, suppressed = output[len(prompt) :], {IDS[START], *generation["suppress_tokens"]}
    if not written:
        suppressed |= {*generation["begin_suppress_tokens"]}
    allowed = {*range(len(PIECES))} - suppressed
    if not generation["return_timestamps"]:
        return allowed
    allowed -= {*ids("notimestamps")}
    times = [token for token in written if token >= FIRST]
    if not written:
        most = FIRST + generation["max_initial_timestamp_index"]
        return {token for token in allowed if FIRST <= token <= most}
    is_time = [token >= FIRST for token in written]
    if is_time[-1] and (len(written) == 1 or is_time[-2]):
        allowed = {token for token in allowed if token < FIRST}
    elif is_time[-1]:
        allowed = {token for token in allowed if token >= IDS[END]}
    if times:
        least = times[-1] if is_time[-1] and not (len(written) == 1 or is_time[-2]) else None
        least = times[-1] + 1 if least is None else least
        allowed = {token for token in allowed if token < FIRST or token >= least}
    later = [token for token in allowed if token >= FIRST]
    words = [token for token in allowed if token < FIRST]
    if later and (not words or np.logaddexp.reduce(logits[later]) > logits[words].max()):
        return {*later}
    return allowed


@pytest.mark.parametrize("timestamps", [False, True])
@pytest.mark.parametrize("count", range(6))
def test_allowed_tokens_after_any_beginning(count, timestamps, checkpoint):
    config, rng = checkpoint[0].model.config, np.random.default_rng(count)
    prompt, generation = (
        config.head.rules.prompt_ids,
        {**GENERATION, "return_timestamps": timestamps},
    )
    if timestamps:
        prompt = prompt[:-1]
        changes = {"prompt_ids": prompt, "timestamp_id": FIRST, "max_first_timestamp": 1}
        suppressed = {*config.head.rules.suppressed_ids, *ids("notimestamps")}
        config = dataclasses.replace(config, suppressed_ids=tuple(suppressed), **changes)
    rows, index = (9, 4), len(prompt) + count
    words = rng.integers(0, IDS[END], (*rows, count))
    times = FIRST + np.sort(rng.integers(0, 8, (*rows, count)), axis=-1)
    written = np.where(rng.random((*rows, count)) < 0.5, words, times)
    # Whatever stands at later positions has no effect.
    tokens = np.full((*rows, 12), FIRST + 9)
    tokens[..., :index] = np.concatenate([np.tile(prompt, (*rows, 1)), written], axis=-1)
    logits = rng.normal(size=(*rows, len(PIECES))).astype("float32")
    logits[..., FIRST:] += rng.choice([-9, -2, 0], (*rows, 1))
    vocabulary = Vocabulary.of(config)
    rules = Rules(with_rules_of(vocabulary, None), vocabulary, 12)
    found = rules.apply(logits, tokens.astype("int32"), (), index).numpy() > NEVER / 2
    for place in np.ndindex(*rows):
        output = tokens[place][:index].tolist()
        expected = allowed_tokens(output, prompt, generation, logits[place])
        assert expected and {*np.flatnonzero(found[place]).tolist()} == expected


def greedy_in_python(tensors, settings, generation, frames, prompt):
    output = [*prompt]
    while len(output) < settings["max_target_positions"] - 1:
        target = np.array([[IDS[START], *output]])
        logits = whisper_folders.forward(tensors, settings, frames[None], target)[1][0, -1]
        allowed = sorted(allowed_tokens(output, prompt, generation, logits))
        output.append(allowed[int(np.argmax(logits[allowed]))])
        if output[-1] == IDS[END]:
            break
    return output


def opened(folder, timestamps):
    """Returns a checkpoint for German recordings, and what the references need."""
    rules = {"return_timestamps": timestamps}
    settings, tensors = whisper_folders.write_folder(folder, rules)
    read = read_checkpoint(folder, source_language="de")
    prompt = ids("de", "transcribe") + (() if timestamps else ids("notimestamps"))
    assert read.model.config.head.rules.prompt_ids == prompt
    return read, settings, tensors, {**GENERATION, **rules}, prompt


@pytest.mark.parametrize("timestamps", [pytest.param(False, marks=pytest.mark.slow), True])
def test_greedy_search_follows_the_rules(timestamps, tmp_path):
    read, settings, tensors, generation, prompt = opened(tmp_path, timestamps)
    frames = frames_of(settings, 3)
    tokens = read.search(read.model, frames, SearchOptions(cache_length=12))[0].numpy()[:, 0]
    for row, output in zip(frames, tokens, strict=True):
        expected = greedy_in_python(tensors, settings, generation, row, prompt)
        assert output[: len(expected)].tolist() == expected
        assert (output[len(expected) :] == read.model.config.tokens.pad_id).all()


@pytest.mark.slow
def test_beams_follow_the_rules_and_prompts_do_not_count(tmp_path, timestamps=True):
    read, settings, tensors, generation, prompt = opened(tmp_path, timestamps)
    frames, pad, how = frames_of(settings, 5), read.model.config.tokens.pad_id, {"cache_length": 12}
    single = by_beam(read.model, frames, size=1, **how)[0]
    tokens = read.search(read.model, frames, SearchOptions(**how))[0]
    np.testing.assert_array_equal(single, tokens)
    how |= {"size": 3, "length_penalty": 1.0, "normalization": "power"}
    found, scores = by_beam(read.model, frames, **how)
    for output, row, score in zip(found[:, 0].numpy(), frames, scores[:, 0], strict=True):
        output, total = output[output != pad].tolist(), 0.0
        for place in range(len(prompt), len(output)):
            target = np.array([[IDS[START], *output[:place]]])
            logits = whisper_folders.forward(tensors, settings, row[None], target)[1][0, -1]
            assert output[place] in allowed_tokens(output[:place], prompt, generation, logits)
            total += logits[output[place]] - np.logaddexp.reduce(logits)
        assert float(score) == pytest.approx(total / (len(output) - len(prompt)), abs=1e-4)


def test_training_reads_the_prompt_but_does_not_learn_it(checkpoint):
    read, _, _ = checkpoint
    training = SpeechRecognitionTraining(read.tokenizers, read.model.config)
    text, pad, end = read.tokenizers.target.encode(["a dog", "a"]), IDS["<|nospeech|>"], IDS[END]
    inputs, labels = training.assemble(np.zeros((2, 14, 5)), text.to_tensor(pad))
    prompt = ids("en", "transcribe", "notimestamps")
    (*words, last), (letter, _) = text.to_list()
    assert last == end and len(words) > 1
    assert inputs["target"].numpy()[0].tolist() == [IDS[START], *prompt, *words]
    assert labels.numpy()[0].tolist() == [pad] * 3 + [*words, end]
    rest = [pad] * (len(words) - 1)
    assert inputs["target"].numpy()[1].tolist() == [IDS[START], *prompt, letter, *rest]
    assert labels.numpy()[1].tolist() == [pad] * 3 + [letter, end, *rest]


CHOICES = {
    "default": ({}, {}, ("en", "transcribe", "notimestamps")),
    "named": ({"language": "<|de|>"}, {}, ("de", "transcribe", "notimestamps")),
    "named in English": (
        {"language": "French"},
        {"target_language": "English"},
        ("fr", "translate", "notimestamps"),
    ),
    "chosen by name": (
        {},
        {"source_language": "German", "target_language": "german"},
        ("de", "transcribe", "notimestamps"),
    ),
    "translation": (
        {"language": "fr", "task": "translate"},
        {},
        ("fr", "translate", "notimestamps"),
    ),
    "chosen": ({"language": "de"}, {"source_language": "fr"}, ("fr", "transcribe", "notimestamps")),
    "both": (
        {"task": "transcribe"},
        {"source_language": "de", "target_language": "en"},
        ("de", "translate", "notimestamps"),
    ),
    "same": (
        {"task": "translate"},
        {"source_language": "en", "target_language": "en"},
        ("en", "transcribe", "notimestamps"),
    ),
    "forced": (
        {"forced_decoder_ids": [[1, IDS["<|fr|>"]], [2, IDS["<|translate|>"]]]},
        {},
        ("fr", "translate", "notimestamps"),
    ),
    "chosen, not forced": (
        {"forced_decoder_ids": [[1, IDS["<|fr|>"]], [2, IDS["<|translate|>"]]]},
        {"source_language": "de"},
        ("de", "transcribe", "notimestamps"),
    ),
    "timestamps": (TIMES, {"source_language": "de"}, ("de", "transcribe")),
    "english": ({"is_multilingual": False, "forced_decoder_ids": None}, {}, ("notimestamps",)),
    "old": ({"no_timestamps_token_id": None}, {}, ("en", "transcribe")),
    "detected": (
        {"language": "fr"},
        {"source_language": "auto"},
        ("en", "transcribe", "notimestamps"),
    ),
    "null": (
        {"is_multilingual": None, "return_timestamps": None},
        {},
        ("en", "transcribe", "notimestamps"),
    ),
    "detected, translated": ({}, {"target_language": "en"}, ("en", "translate", "notimestamps")),
}
DETECTED = ("default", "old", "null", "detected", "detected, translated")


@pytest.mark.parametrize("name", CHOICES)
def test_prompts(name, place, checkpoint):
    generation, options, expected = CHOICES[name]
    path = place / "hf" / "generation_config.json"
    path.write_text(json.dumps({**GENERATION, **generation}))
    try:
        family = Whisper(CheckpointFolder(place / "hf"))
        family.choose_languages(options.get("source_language"), options.get("target_language"))
        own = family.generation()
    finally:
        path.write_text(json.dumps(GENERATION))
    rules = own.rules
    assert rules.prompt_ids == ids(*expected)
    assert rules.detect_language == (name in DETECTED)
    has_languages = name != "english"
    assert rules.language_ids == (ids("en", "de", "fr") if has_languages else ())
    assert rules.task_ids == (ids("translate", "transcribe") if has_languages else ())
    assert rules.first_suppressed_ids == (SPACE, IDS[END])
    assert rules.timestamp_id == (None if name == "old" else FIRST)
    assert (rules.no_timestamps_id,) == ((None,) if name == "old" else ids("notimestamps"))
    assert family.notes == [] and own.notes == ()


@pytest.mark.parametrize(
    ("limit", "expected"), [(6, 6), (13, 9), (None, 9)], ids=["short", "long", "none"]
)
def test_the_limit_does_not_count_the_prompt(limit, expected, place, checkpoint):
    path = place / "hf" / "generation_config.json"
    path.write_text(json.dumps({**GENERATION, "max_length": limit}))
    try:
        family = Whisper(CheckpointFolder(place / "hf"))
        assert family.generation().search == Greedy(expected)  # new tokens
    finally:
        path.write_text(json.dumps(GENERATION))


def test_texts_have_neither_timestamps_nor_prompts(checkpoint):
    tokenizer = checkpoint[0].tokenizers.target
    dog = tokenizer.tokenize(["a dog<|0.02|>"]).to_list()[0]
    assert max(dog) < IDS[END]  # a timestamp that is written out is ordinary text
    row = [*ids("de", "transcribe", "0.00"), *dog, *ids("0.50", "0.50"), *dog, IDS[END], 5]
    saved = Tokenizers.from_files(Tokenizers.of(tokenizer).files().get).target
    for one in (tokenizer, saved):
        assert one.decode([row]).numpy()[0].decode() == "a dog<|0.02|>" * 2
    assert (tokenizer.pad_id, tokenizer.bos_id) == (IDS["<|nospeech|>"], IDS[START])


@pytest.mark.parametrize("piece", ["a", "missing"])
def test_tokens_that_are_no_text_are_no_pieces_of_texts(piece, checkpoint):
    tokenizer = checkpoint[0].tokenizers.target
    files = tokenizer.files()
    content = {**json.loads(files[".bpe.json"]), "no_text": [piece]}
    with pytest.raises(ValueError, match=f"`no_text` must be pieces that are .*'{piece}'"):
        type(tokenizer).from_files({".bpe.json": json.dumps(content).encode()})


def test_an_id_without_a_token_is_no_text(tmp_path):
    """Older files lack the timestamps; GPT-2's vocabulary ends with an empty piece in Whisper's."""
    whisper_folders.write_folder(tmp_path)
    whisper_folders.write_vocabulary(tmp_path, FIRST)
    vocabulary = json.loads((tmp_path / "vocab.json").read_text())
    last = next(piece for piece, number in vocabulary.items() if number == IDS[END] - 1)
    assert last not in [first + second for first, second in whisper_folders.MERGES[:-1]]
    merges = (tmp_path / "merges.txt").read_text().splitlines()[:-1]
    (tmp_path / "merges.txt").write_text("\n".join(merges) + "\n")
    vocabulary[""] = vocabulary.pop(last)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = Whisper(CheckpointFolder(tmp_path)).tokenizers(None).target
    assert tokenizer.vocab_size == len(PIECES)
    assert tokenizer.decode([[IDS[END] - 1, IDS["a"], len(PIECES) - 1]]).numpy()[0].decode() == "a"


@pytest.mark.parametrize("named", [True, slow(False)])
def test_a_smaller_vocabulary_keeps_prompts_and_timestamps(named, tmp_path):
    whisper_folders.write_folder(tmp_path, TIMES)
    whisper_folders.write_vocabulary(tmp_path, None if named else FIRST)
    read = read_checkpoint(tmp_path, source_language="fr")
    tokenizer = read.tokenizers.target
    needed = tokenizer.needed(tokenizer.used(["a dog"]))
    smaller, (kept, _) = restrict(read, needed, needed)
    config, rules = smaller.model.config, smaller.generation
    assert len(kept) < len(PIECES)
    assert [kept[number] for number in config.head.rules.prompt_ids] == [*ids("fr", "transcribe")]
    assert [kept[number] for number in config.head.rules.first_suppressed_ids] == [SPACE, IDS[END]]
    assert kept[config.head.rules.timestamp_id :] == [*range(FIRST, len(PIECES))]
    assert rules.configure(config) == config


def changed(name, **fields):
    """Returns a function that changes fields of a JSON file."""

    def change(folder):
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return change


def without(tensor):
    def change(folder):
        path = folder / "model.safetensors"
        tensors = safetensors.numpy.load_file(path)
        del tensors[tensor]
        safetensors.numpy.save_file(tensors, path)

    return change


def more(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    bias = np.zeros(12, "float32")
    safetensors.numpy.save_file(
        {**tensors, "model.encoder.layers.0.self_attn.k_proj.bias": bias}, path
    )


CONFIG, RULES, SOUND = "config.json", "generation_config.json", "preprocessor_config.json"
ERRORS = {
    "another model": (
        changed(CONFIG, architectures=["WhisperForAudioClassification"]),
        r"config.json: `architectures` must be WhisperForConditionalGeneration alone",
    ),
    "other heads": (changed(CONFIG, decoder_ffn_dim=18), r"`decoder_ffn_dim` must be"),
    "filters": (changed(SOUND, feature_size=80), r"`feature_size` must be 5, `num_mel_bins`"),
    "length": (changed(SOUND, chunk_length=30), r"`chunk_length` must be 0.14, the time of"),
    "rate": (changed(SOUND, sampling_rate=8000), r"`sampling_rate` must be 16000"),
    "a long window": (changed(SOUND, n_fft=10**6), r"`n_fft` must be at most 4096"),
    "dither": (changed(SOUND, dither=0.1), r"`dither` must be 0.0"),
    "an odd window": (changed(SOUND, n_fft=401), r"`window_length` must be even"),
    "positions": (
        changed(CONFIG, max_target_positions=14),
        r"model.decoder.embed_positions.weight must have the shape \[14, 12\]",
    ),
    "conv": (changed(CONFIG, num_mel_bins=6), r"`feature_size` must be 6"),
    "no tensor": (without("model.encoder.conv2.bias"), r"tensor model.encoder.conv2.bias is miss"),
    "unused tensor": (more, r"Unused: model.encoder.layers.0.self_attn.k_proj.bias"),
    "suppressed": (
        changed(RULES, suppress_tokens=[1, len(PIECES)]),
        r"generation_config.json: `suppress_tokens` must be a list of some of the \d+ token ids",
    ),
    "suppressed first": (changed(RULES, begin_suppress_tokens=3), r"`begin_suppress_tokens` must"),
    "languages": (changed(RULES, lang_to_id={"<|en|>": -1}), r"`lang_to_id` must be some of"),
    "language": (changed(RULES, language="tlh"), r"`language` must be one of the languages in"),
    "names": (
        changed(RULES, lang_to_id={"<|en|>": IDS["<|de|>"]}),
        r"`lang_to_id` must be ids that have these names in the vocabulary, like `task_to_id`",
    ),
    "task": (changed(RULES, task="sing"), r"`task_to_id` must be the id of the task 'sing'"),
    "forced": (
        changed(RULES, forced_decoder_ids=[[2, 5]]),
        r"`forced_decoder_ids` must be pairs of 1, 2, \.\.\.",
    ),
    "timestamps": (
        changed(RULES, no_timestamps_token_id=None, **TIMES),
        r"`no_timestamps_token_id` must be the id of",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_damaged_files(name, tmp_path):
    change, message = ERRORS[name]
    whisper_folders.write_folder(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)


def without_first_merge(folder):
    """Removes the first merge, whose token has the id before that of the second one's."""
    version, first, *others = (folder / "merges.txt").read_text("utf-8").split("\n")
    (folder / "merges.txt").write_text("\n".join([version, *others]), "utf-8")
    return first


def test_a_lost_first_merge_is_put_back(checkpoint, tmp_path):
    """Readers skipped the first line of the first `merges.txt`, which has no version."""
    whisper_folders.write_folder(tmp_path)
    first = without_first_merge(tmp_path)
    read = read_checkpoint(tmp_path)
    (note,) = (note for note in read.notes if "merge" in note)
    assert note.endswith(f"the first merge, {first!r}, is missing and was put back")
    both = read.tokenizers.source, checkpoint[0].tokenizers.source
    assert both[0].identity() == both[1].identity()
    assert not any("merge" in note for note in checkpoint[0].notes)


def test_only_a_first_merge_is_put_back():
    ids, merges = {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, [("ab", "c")]
    assert lost_first_merge(ids, merges) == ("a", "b")
    assert lost_first_merge(ids, [("a", "b"), *merges]) is None
    assert lost_first_merge(ids, []) is None
    assert lost_first_merge({**ids, "ab": 5}, merges) is None  # not before the second one
    assert lost_first_merge({**ids, "ac": 6}, merges) is None  # two tokens that no merge makes
    assert lost_first_merge({**ids, "ab": 3.0}, merges) is None


def without_settings(folder, *names):
    """Removes settings from `generation_config.json`."""
    path = folder / "generation_config.json"
    kept = {key: x for key, x in json.loads(path.read_text()).items() if key not in names}
    path.write_text(json.dumps(kept))


def test_languages_that_only_the_vocabulary_names(checkpoint, tmp_path):
    """Checkpoints that were fine-tuned in 2022 and 2023 have no `lang_to_id`."""
    whisper_folders.write_folder(tmp_path, {"is_multilingual": None})
    names = "lang_to_id", "task_to_id", "no_timestamps_token_id"
    without_settings(tmp_path, *names)
    read = read_checkpoint(tmp_path, source_language="german")
    whole, ours = checkpoint[0].generation.rules, read.generation.rules
    for name in ("language_ids", "no_timestamps_id", "timestamp_id"):
        assert getattr(ours, name) == getattr(whole, name)
    assert {*ours.task_ids} == {*whole.task_ids}
    assert ours.prompt_ids == ids("de", "transcribe", "notimestamps")
    (note,) = (note for note in read.notes if "lang_to_id" in note)
    rule = "languages and tasks are those of the vocabulary"
    assert note.endswith(f"generation_config.json has no `lang_to_id`: {rule}")
    (tmp_path / "generation_config.json").unlink()  # as in the first months
    assert read_checkpoint(tmp_path).generation.rules.language_ids == whole.language_ids


def test_a_vocabulary_for_english_alone_has_no_languages(tmp_path, monkeypatch):
    monkeypatch.setattr(whisper_prompt, "ENGLISH_SIZE", len(PIECES))
    whisper_folders.write_folder(tmp_path)
    without_settings(tmp_path, "lang_to_id", "task_to_id", "is_multilingual", "forced_decoder_ids")
    read = read_checkpoint(tmp_path)
    assert read.generation.rules.language_ids == () and not any(
        "lang_to_id" in n for n in read.notes
    )


def test_a_vocabulary_without_a_token_for_padding(tmp_path):
    whisper_folders.write_folder(tmp_path)
    path = tmp_path / "added_tokens.json"
    path.write_text(path.read_text().replace("<|nospeech|>", "<|other|>"))
    with pytest.raises(ValueError, match=r"`pad_token_id` must be a token of its own, if the"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("generation", "options", "message"),
    [
        ({}, {"source_language": "dutch"}, r"`source_language` must be one of the 3 languages"),
        ({}, {"target_language": "de"}, r"`target_language` must be the source language, for tran"),
        (
            {},
            {"source_language": "de", "target_language": "fr"},
            r"`target_language` must be the source language, for transcripts, or 'en'",
        ),
        (
            {"is_multilingual": False},
            {"source_language": "en"},
            r"`source_language` must be None for a checkpoint without `lang_to_id`",
        ),
    ],
)
def test_languages_that_cannot_be_chosen(generation, options, message, tmp_path):
    whisper_folders.write_folder(tmp_path, generation)
    with pytest.raises(ValueError, match=message):
        read_checkpoint(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_suppressed_ids": (-1,)}, r"`first_suppressed_ids` must be ids of the"),
        ({"timestamp_id": IDS[END]}, r"`timestamp_id` must be above `eos_id`"),
        (
            {"timestamp_id": None, "no_timestamps_id": None},
            r"`max_first_timestamp` has no effect without",
        ),
        ({"timestamp_id": None}, r"`no_timestamps_id` must be .* needs `timestamp_id`"),
        (
            {"prompt_ids": ids("en", "notimestamps", "transcribe")},
            r"and comes last in `prompt_ids`",
        ),
        ({"language_ids": (len(PIECES),)}, r"`language_ids` must be ids of the"),
        ({"prompt_ids": ids("transcribe")}, r"`prompt_ids` must begin with one of `language_ids`"),
        ({"prompt_ids": ids("en")}, r"`prompt_ids` must contain one of `task_ids` after"),
        ({"language_ids": (), "detect_language": True}, r"`detect_language` has no effect without"),
    ],
)
def test_options_of_rules(options, message, checkpoint):
    config = dataclasses.replace(checkpoint[0].model.config, detect_language=False)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config, **options)
