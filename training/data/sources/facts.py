"""Generated passages of three facts, with a question about one: nothing to download.

The answers are phrases of Unicode's locale data (CLDR, through Babel), those of the labelling demo.
A name alone does not tell the answer, and neither does its kind: other facts of a passage are about
the same name, and others about another name are of the same kind.
"""

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.entities import Entities
from keras_transformer.training.data.sources.memory import MemoryData

HELD_OUT = 1000  # questions for validation, and as many for the test, or a tenth of all

NAMES = (
    "Arvo", "Belis", "Corda", "Dalen", "Ekron", "Fenix", "Galor", "Hexa", "Iluna", "Jovin",
    "Kesta", "Lumar", "Mirko", "Nadir", "Orion", "Pelta", "Quanto", "Ravel", "Sirius", "Tamar",
)  # fmt: skip
# Of each kind of fact: the type of its answer, statements, and questions.
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


def draw_questions(count, seed):
    """Draws questions, no two of which have the same answers in their passages.

    Args:
        count: How many.
        seed: The same seed gives the same questions in the same order.

    Returns:
        List of tuples: the `columns` of `QuestionAnsweringTask`.
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
    """Three pairs of a name and a kind; the question is about the first.

    The second is of the same kind, the third of the same name.
    """
    asked, other = dice.some(NAMES, 2)
    kind, another = dice.some(FACTS, 2)
    return [(asked, kind), (other, kind), (asked, another)]


def _write(dice, facts, answers):
    """The question, its passage, the byte at which the answer begins, and the answer in a list."""
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


def open_facts(settings):
    """Generates the questions that a `[data]` section describes.

    The answers of a held-out passage are together in no passage to train on.

    Args:
        settings: The section, a `FactsData`, or anything with its attributes.
    """
    held_out = min(HELD_OUT, settings.examples // 10)
    examples = draw_questions(settings.examples, settings.seed)
    splits = {
        "validation": examples[:held_out],
        "test": examples[held_out : 2 * held_out],
        "train": examples[2 * held_out :],
    }
    return MemoryData(splits, "generated passages with phrases of Unicode's locale data")
