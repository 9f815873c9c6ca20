"""Data diversification: pairs of several teachers in both directions, each of them once."""

import pytest
from distillations import LONG, call, lines, settings_of, write_run
from marks import slow
from pipelines import SIZES, tokenizer, with_larger_weights

from keras_transformer import Beam, Transformer, TransformerConfig, Translator
from keras_transformer.pipelines import Run
from keras_transformer.training.distillation.teachers import Searcher, open_backward
from keras_transformer.training.settings.toml import load_settings


def pairs_of(run, name="train"):
    files = [run / "distillation" / f"{name}.{side}" for side in ("source", "target")]
    return list(zip(*map(lines, files), strict=True))


def test_backward_teachers_generate_sources_for_the_given_targets(folder, tmp_path, reader):
    run, more = tmp_path / "run", tmp_path / "more"
    more.write_text("the cat\n\na big dog\n")
    metadata, shown = call(folder, run, backward=[folder / "two"], monolingual_targets=[more])
    sources, targets = lines(folder / "train.a"), lines(folder / "train.b")
    forward = [(source, source[::-1]) for source in sources]
    backward = [(target[::-1], target) for target in [*targets, "the cat", "a big dog"]]
    expected = list(dict.fromkeys([*forward, *backward]))
    assert pairs_of(run) == expected and len(forward) < len(expected) <= 24
    assert reader.opened == ["one", "two"] and "two, translated back, beam 3" in shown.getvalue()
    metadata = metadata["distilled"]
    assert metadata["backward"] == [{"run": str(folder / "two")}] and metadata["separate"] is False
    counts = [metadata[name] for name in ("sentences", "monolingual", "kept", "duplicates")]
    assert counts == [24, 2, len(expected), 24 - len(expected)]


def test_separate_teachers_give_a_pair_each_and_equal_pairs_are_learned_once(
    folder, tmp_path, reader
):
    """Teachers agree on short sentences."""
    reader.change = staticmethod(lambda names, text: f"{names} {text}" if len(text) > 9 else "same")
    teachers = ["one", "two"], [folder / "two", folder / "one"]
    call(folder, tmp_path / "run", *teachers[0], backward=teachers[1], separate=True)
    sources, targets = lines(folder / "train.a"), lines(folder / "train.b")
    expected = [(text, reader.change(name, text)) for name in ("one", "two") for text in sources]
    expected += [(reader.change(name, text), text) for name in ("two", "one") for text in targets]
    assert reader.opened == ["one", "two", "two", "one"]
    assert pairs_of(tmp_path / "run") == list(dict.fromkeys(expected))
    assert len(set(expected)) < len(expected)
    call(folder, tmp_path / "ensembles", *teachers[0], backward=teachers[1])
    assert reader.opened[4:] == ["one+two", "two+one"]


def test_original_pairs_that_a_teacher_generated_are_learned_once(folder, tmp_path, reader):
    sources = lines(folder / "train.a")
    references = [text[::-1] if place % 2 else "cat" for place, text in enumerate(sources)]
    (tmp_path / "b").write_text("\n".join(references) + "\n")
    settings = settings_of(folder, f"data.train_target={tmp_path}/b")
    run, backward = tmp_path / "run", [folder / "two"]
    call(folder, run, settings=settings, backward=backward, original=2.0)
    pairs, original = pairs_of(run), pairs_of(run, "original")
    every = set(zip(sources, references, strict=True))
    assert set(original) == every - set(pairs) and 0 < len(original) < len(every)
    assert load_settings(run / "config.toml").data.train_weights == [1.0, 2.0]
    (tmp_path / "b").write_text("".join(f"{text[::-1]}\n" for text in sources))
    call(folder, tmp_path / "none", settings=settings, backward=backward, original=2.0)
    data = load_settings(tmp_path / "none" / "config.toml").data
    assert len(data.train_source) == 1 and data.train_weights is None


def test_a_generated_source_is_compared_with_the_original_source(folder, tmp_path, reader):
    """The fake's three outputs end in none, one and two letters x."""
    targets = lines(folder / "train.b")
    sources = [f"{text[::-1]} {'x' * (place % 3)}".strip() for place, text in enumerate(targets)]
    (tmp_path / "a").write_text("\n".join(sources) + "\n")
    options = {"best_of": 3, "own_vocabulary": True, "backward": [folder / "two"]}
    settings = settings_of(folder, f"data.train_source={tmp_path}/a")
    call(folder, tmp_path / "run", forward=(), settings=settings, **options)
    expected = list(dict.fromkeys(zip(sources, targets, strict=True)))
    assert pairs_of(tmp_path / "run") == expected and reader.opened == ["two"]


def test_targets_too_long_for_a_backward_teacher_are_left_out(folder, tmp_path, reader):
    """Even with `truncate_source`, because the source of the rest would be missing."""
    more = tmp_path / "more"
    more.write_text(f"{LONG}\nthe cat\n")
    settings = settings_of(folder, "data.truncate_source=true")
    options = {"settings": settings, "monolingual": [more], "monolingual_targets": [more]}
    call(folder, tmp_path / "run", backward=[folder / "two"], **options)
    pairs = pairs_of(tmp_path / "run")
    assert (LONG, LONG[::-1]) in pairs and ("tac eht", "the cat") in pairs
    assert (LONG[::-1], LONG) not in pairs


@pytest.mark.parametrize("stop", [slow(5), 8])
def test_both_directions_resume(folder, tmp_path, reader, stop):
    """Six batches of two sentences for each direction, in parts of four sentences."""
    options = {"batch_size": 2, "backward": [folder / "two"], "original": 1.0}
    call(folder, tmp_path / "whole", **options)
    assert reader.calls == 12
    reader.calls, reader.stop = 0, stop
    with pytest.raises(KeyboardInterrupt):
        call(folder, tmp_path / "run", **options)
    reader.calls, reader.stop, reader.opened = 0, None, []
    call(folder, tmp_path / "run", **options)
    assert reader.calls == 12 - (stop - 1) // 2 * 2
    assert reader.opened == (["two"] if stop > 6 else ["one", "two"]), "a model is not needed"
    for path in (tmp_path / "whole" / "distillation").iterdir():
        assert (tmp_path / "run" / "distillation" / path.name).read_text() == path.read_text()


@pytest.mark.slow
def test_outputs_of_other_directions_are_not_mixed(folder, tmp_path, reader):
    run, two = tmp_path / "run", [folder / "two"]
    call(folder, run, backward=two)
    cases = {
        "other backward teachers.*targets": {},
        "other backward teachers, or": {"backward": [folder / "one"]},
        "another value of `separate`": {"backward": [*two, *two], "separate": True},
        "other targets": {"backward": two, "monolingual_targets": [folder / "train.b"]},
    }
    for message, options in cases.items():
        with pytest.raises(ValueError, match=f"was started with .*{message}"):
            call(folder, run, **options)
    call(folder, run, backward=two)


@pytest.mark.slow
def test_a_backward_teacher_may_have_another_vocabulary(folder, tmp_path):
    config = TransformerConfig(vocab_size=31, **SIZES)
    pipeline = Translator(with_larger_weights(Transformer(config)), tokenizer(31))
    run = Run(tmp_path / "back")
    write_run(run, pipeline)
    text = '[data]\nsource = "none"\nsource_language = "xx"\ntarget_language = "en"\n'
    run.config.write_text(f"{text}[vocabulary]\nsize = 31\n")
    (teacher,) = open_backward([run.path], settings_of(folder))
    targets = lines(folder / "train.b")[:3]
    outputs = [best.text for best, *_ in Searcher([teacher])(targets, Beam(2))]
    assert outputs == [best.text for best, *_ in pipeline.n_best(targets, 1, Beam(2))]
    run.config.write_text(text.replace("xx", "yy").replace("en", "xx").replace("yy", "en"))
    with pytest.raises(ValueError, match="back translates from en to xx, as the student does: a"):
        open_backward([run.path], settings_of(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forward": ()}, "`teachers` must not be empty without backward teachers"),
        ({"separate": True}, "`separate` has no effect: it needs two or more teachers of a"),
        ({"monolingual_targets": ["train.b"]}, "`monolingual_targets` needs a backward teacher"),
        (
            {"forward": (), "backward": ["two"], "monolingual": ["train.b"]},
            "`monolingual` needs a teacher that translates sources",
        ),
        ({"forward": (), "backward": ["two"]}, "needs a vocabulary of its own .`--vocabulary own`"),
    ],
)
def test_options_without_effect_are_reported(folder, tmp_path, reader, options, message):
    options = {
        key: [folder / name for name in value] if isinstance(value, list) else value
        for key, value in options.items()
    }
    with pytest.raises(ValueError, match=message):
        call(folder, tmp_path / "run", **options)
