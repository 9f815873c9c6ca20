"""Generated passages of three facts, each with a question about one. Nothing is downloaded.

The answers are phrases from Unicode's locale data (CLDR, through Babel), as in the token
classification demo. Neither the name in a question nor the kind of fact is enough to find the
answer: one of the other facts is about the same name, and one is of the same kind, but about
    another name.
"""

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.demos.entities import Entities

HELD_OUT = 1000  # questions in validation and in test each; at most a tenth of all

NAMES = (
    "Arvo", "Belis", "Corda", "Dalen", "Ekron", "Fenix", "Galor", "Hexa", "Iluna", "Jovin",
    "Kesta", "Lumar", "Mirko", "Nadir", "Orion", "Pelta", "Quanto", "Ravel", "Sirius", "Tamar",
)  # fmt: skip
# Kinds of facts: type of the answer, statements, and questions.
FACTS = (
    ("DATE", ("NAME was founded on ANSWER.", "The founding of NAME was on ANSWER."),
     ("When was NAME founded?", "On what date was the founding of NAME?")),
    ("MONEY", ("NAME charges ANSWER for a licence.", "A licence of NAME costs ANSWER."),
     ("What does NAME charge for a licence?", "How much is a licence of NAME?")),
    ("COUNTRY", ("NAME has its seat in ANSWER.", "The seat of NAME is ANSWER."),
     ("Where does NAME have its seat?", "Which country is the seat of NAME?")),
    ("LANGUAGE", ("People at NAME speak ANSWER.", "The language of NAME is ANSWER."),
     ("What do people at NAME speak?", "Which language has NAME?")),
    ("DURATION", ("NAME trains newcomers for ANSWER.", "Training at NAME takes ANSWER."),
     ("How long does NAME train newcomers?", "How long is the training at NAME?")),
    ("MEASURE", ("NAME ships ANSWER a day.", "Every day ANSWER leave the gates of NAME."),
     ("How much does NAME ship a day?", "What leaves the gates of NAME every day?")),
)  # fmt: skip


def draw_questions(count, seed) -> list[tuple]:
    """Draws questions, no two of which have the same answers in their passages.

    Args:
        count: Number of questions.
        seed: Random seed; the same seed gives the same questions in the same order.

    Returns:
        List of tuples of the `columns` of `QuestionAnsweringTask`.
    """
    dice = Dice(seed)
    entities, seen, questions = Entities(dice), set(), []
    while len(questions) < count:
        facts = _draw_facts(dice)
        answers = [" ".join(entities.draw(kind[0])) for _, kind in facts]
        content = tuple(sorted(answers))
        if content in seen or len({*answers}) < len(answers):
            continue
        seen.add(content)
        questions.append(_write(dice, facts, answers))
    return questions


def _draw_facts(dice):
    """Draws three pairs of a name and a kind of fact; the question is about the first.

    The second pair has the same kind, the third the same name.
    """
    asked, other = dice.some(NAMES, 2)
    kind, another = dice.some(FACTS, 2)
    return [(asked, kind), (other, kind), (asked, another)]


def _write(dice, facts, answers):
    """Returns the question, its passage, the first byte of the answer, and the answer in a list."""
    passage, byte = "", 0
    for number in dice.some(range(len(facts)), len(facts)):
        name, kind = facts[number]
        before, after = dice.pick(kind[1]).replace("NAME", name).split("ANSWER")
        passage += f" {before}" if passage else before
        byte = len(passage.encode()) if number == 0 else byte
        passage += answers[number] + after
    name, kind = facts[0]
    question = dice.pick(kind[2]).replace("NAME", name)
    return question, passage, byte, [answers[0]]


def open_facts(settings) -> MemoryData:
    """Generates the questions that a `[data]` section describes.

    No two passages have the same combination of answers, so that splits do not share any.

    Args:
        settings: The section, a `FactsData`, or an object with its attributes.
    """
    held_out = min(HELD_OUT, settings.examples // 10)
    examples = draw_questions(settings.examples, settings.seed)
    splits = {
        "validation": examples[:held_out],
        "test": examples[held_out : 2 * held_out],
        "train": examples[2 * held_out :],
    }
    return MemoryData(splits, "generated passages with phrases from Unicode's locale data")
