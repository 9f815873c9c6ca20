"""The pages of `--help`: each option has a text, in a group, and each example is a command."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import COMPLETION, EXIT_CODES, SECTIONS, cli
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.training.settings.packaged import CONFIGS, packaged


def commands(group, *names):
    """All commands and groups of commands, by their names on the command line."""
    yield names, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *names, name)


COMMANDS = {" ".join(names): command for names, command in commands(cli)}


def page(name):
    return CliRunner().invoke(cli, [*name.split(), "--help"], terminal_width=80).stdout


def sections(name):
    """The headings of a page, each with the options below it."""
    found = {}
    for line in page(name).splitlines():
        if re.fullmatch(r"[A-Z].*:", line):
            options = found.setdefault(line[:-1], [])
        elif option := re.match(r"  (?:-h, )?(--[\w-]+)", line):
            options.append(option[1])
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_that_starts_like_a_sentence(name):
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert re.match("[A-Z].*", parameter.help or ""), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_lists_every_option_once_and_ends_with_an_example(name):
    listed = [option for options in sections(name).values() for option in options]
    params = [param for param in COMMANDS[name].params if isinstance(param, click.Option)]
    assert sorted(listed) == sorted([*(param.opts[-1] for param in params), "--help"])
    (heading,) = re.findall(r"^Examples?:$", page(name), re.MULTILINE)
    *_, example = page(name).partition(f"\n{heading}\n")
    assert example and max(map(len, example.splitlines())) <= 80
    assert not re.search(r"^\S", example, re.MULTILINE), "the last section"


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_a_command(name):
    for line in COMMANDS[name].example.replace("\\\n", "").splitlines():
        if line.startswith("# "):  # what the next line is for
            assert line.endswith(":")
            continue
        words = shlex.split(line.rpartition("| ")[2].partition(" < ")[0])
        assert words.pop(0) == "keras-transformer"
        command = cli
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        assert command is COMMANDS[name] or isinstance(COMMANDS[name], click.Group)
        values, rest, _ = command.make_parser(click.Context(command)).parse_args(words)
        assert not rest
        for param in command.params:
            assert not param.required or values.get(param.name)


def test_options_are_grouped_by_use():
    assert list(sections("translate")) == [
        *(
            "Input and output",
            "Words of the outputs",
            "Languages",
            "Answers",
            "Documents",
            "Search",
            "Sampling",
            "Sizes",
            "Other options",
        ),
        "Examples",
    ]
    assert sections("translate")["Sampling"] == [
        *("--sample", "--temperature", "--top-k", "--top-p", "--seed", "--min-p")
    ]
    assert list(sections("export litert")) == [
        *("Search", "Words of the outputs", "Quantisation"),
        "Quality limits of a quantised model",
        *("Contents of the file", "Shapes", "Check of the export", "Other options"),
        "Examples",
    ]
    assert list(sections("average")) == ["Options", "Example"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_page_has_several_examples(name):
    if len(page(name).splitlines()) > 60 and name:
        assert COMMANDS[name].example.count("# ") >= 2


GROUPS = [name for name in COMMANDS if isinstance(COMMANDS[name], click.Group)]


@pytest.mark.parametrize("name", GROUPS)
def test_a_list_of_commands_has_the_first_sentences_in_full(name):
    text = " ".join(page(name).split())
    assert "..." not in text.partition("Options:")[2]
    for command in COMMANDS[name].commands.values():
        if command.name in COMMANDS[name].commands:
            first, *_ = " ".join(command.help.split("\n\n")[0].split()).partition("\n")
            assert f"{command.name} {first}" in re.sub(r" +", " ", text), command.name


def test_commands_are_listed_in_the_order_of_work():
    text = page("")
    places = [text.index(f"\n{heading}:\n") for heading in SECTIONS]
    assert places == sorted(places)
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", text[: text.index("Exit codes")], re.MULTILINE)
    assert listed == [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(cli.commands)
    order = [listed.index(name) for name in ("train", "evaluate", "predict", "export", "convert")]
    assert order == sorted(order)


def test_a_second_name_of_a_command_is_explained_once():
    assert re.search("translate +Another name of predict.", page(""))
    assert page("").count("Answer each input line") == 1
    assert "`predict` and `translate` are two names of this command" in page("predict")


@pytest.mark.parametrize("name", COMMANDS)
def test_limits_are_in_words_and_in_one_pair_of_brackets(name):
    text = " ".join(page(name).split())
    assert not re.search(r"x[<>]|[<>]=?x|2147483|IntRange|FloatRange", text)
    assert "] [" not in text.partition("Options:")[0] or "]  [" not in page(name)
    for parameter in COMMANDS[name].params:
        assert not isinstance(parameter.type, (click.IntRange, click.FloatRange)), parameter.name


@pytest.mark.parametrize(
    ("number", "limits", "good", "bad"),
    [
        (LimitedNumber(int, 1), "at least 1", ("1", "7"), ("0", "-3")),
        (LimitedNumber(float, above=0), "above 0", ("0.1",), ("0", "-1", "inf", "nan")),
        (LimitedNumber(float, 0, 1), "from 0 to 1", ("0", "0.5", "1"), ("1.1", "-0.1", "nan")),
        (LimitedNumber(float, most=5), "at most 5", ("-9", "5"), ("5.5", "inf")),
        (LimitedNumber(int, 0, 2**31 - 1), "at least 0", ("0", "2147483647"), ("-1", "2147483648")),
        (LimitedNumber(int, -(2**31), 2**31 - 1), "", ("-9", "0"), ("2147483648",)),
        (LimitedNumber(float), "", ("-1e30",), ("inf",)),
    ],
)
def test_a_number_has_limits(number, limits, good, bad):
    assert number.limits == limits
    for text in good:
        assert number.convert(text, None, None) == float(text)
    for text in bad:
        with pytest.raises(click.BadParameter, match="must be .* Received|is not a finite"):
            number.convert(text, None, None)


def test_train_names_the_configurations_of_the_package():
    text = page("train")
    assert len(packaged()) == len(list(CONFIGS.glob("*.toml"))) > 20
    for name, description in packaged().items():
        assert re.search(rf"^  {name}  +\S", text, re.MULTILINE) and 4 < len(description) < 100
    assert packaged()["demo"] == "English to German phrases from Unicode's locale data"


def test_exit_codes_and_completion_are_explained():
    text = page("")
    for code, meaning in EXIT_CODES:
        assert re.search(rf"^  {code} +{meaning[:9]}", text, re.MULTILINE)
    for shell, line in COMPLETION:
        assert f"  {shell.ljust(4)}  {line}\n" in text  # in one line, so that it can be pasted


@pytest.mark.parametrize("shell", [shell for shell, _ in COMPLETION])
def test_a_shell_completes_commands_and_options(shell):
    """With the variable that the lines for the start files set."""
    (line,) = (line for name, line in COMPLETION if name == shell)
    variable, instruction = re.search(r"(\w+)=(\w+) keras-transformer", line).groups()

    def complete(words, **more):
        env = {variable: more.pop("way"), "COMP_WORDS": f"keras-transformer {words}", **more}
        return CliRunner().invoke(cli, [], prog_name="keras-transformer", env=env).stdout

    assert "keras-transformer" in complete("", way=instruction)
    way = instruction.replace("source", "complete")
    assert "evaluate" in complete("ev", way=way, COMP_CWORD="ev" if shell == "fish" else "1")
    option = "--be" if shell == "fish" else "2"
    assert "--beam" in complete("translate --be", way=way, COMP_CWORD=option)
