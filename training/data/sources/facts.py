"""Generated passages of several facts, with a question about one: nothing to download."""

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
    ("DATE", ("NAME was founded on DATE.", "The founding of NAME was on DATE."),
     ("When was NAME founded?", "On what date was the founding of NAME?")),
    ("MONEY", ("NAME charges DATE for a licence.", "A licence of NAME costs DATE."),
     ("What does NAME charge for a licence?", "How much is a licence of NAME?")),
    ("COUNTRY", ("NAME has its seat in DATE.", "The seat of NAME is DATE."),
     ("Where does NAME have its seat?", "Which country is the seat of NAME?")),
    ("LANGUAGE", ("People at NAME speak DATE.", "The language of NAME is DATE."),
     ("What do people at NAME speak?", "Which language has NAME?")),
    ("DURATION", ("NAME trains newcomers for DATE.", "Training at NAME takes DATE."),
     ("How long does NAME train newcomers?", "How long is the training at NAME?")),
    ("MEASURE", ("NAME ships DATE a day.", "Every day DATE leave the gates of NAME."),
     ("How much does NAME ship a day?", "What leaves the gates of NAME every day?")),
)  # fmt: skip


def draw_questions(count, seed):
    """Draws questions, no two of which have the same facts.

    Args:
        count: How many.
        seed: The same seed gives the same questions in the same order.

    Returns:
        List of pairs of strings: see `QuestionAnsweringTask`.
    """
    dice = Dice(seed)
    entities, seen, questions = Entities(dice), set(), []
    while len(questions) < count:
        facts = dice.some([(name, kind) for name in dice.some(NAMES, 2) for kind in FACTS], 4)
        answers = [" ".join(entities.draw(kind[0])) for _, kind in facts]
        content = tuple(sorted(answers))
        if content in seen:
            continue
        seen.add(content)
        asked, passage, byte = dice.below(len(facts)), "", 0
        for number, ((name, kind), answer) in enumerate(zip(facts, answers, strict=True)):
            before, after = dice.pick(kind[1]).replace("NAME", name).split("DATE")
            passage += f" {before}" if passage else before
            byte = len(passage.encode()) if number == asked else byte
            passage += answer + after
        name, kind = facts[asked]
        question = dice.pick(kind[2]).replace("NAME", name)
        questions.append((f"{question}\t{passage}", f"{byte}\t{answers[asked]}"))
    return questions


def open_facts(settings):
    """Generates the questions that a `[data]` section describes; no facts are in two splits.

    Args:
        settings: The section, a `FactsData`, or anything with its attributes.
    """
    examples = draw_questions(settings.examples, settings.seed)
    held_out = min(HELD_OUT, len(examples) // 10)
    splits = {
        "validation": examples[:held_out],
        "test": examples[held_out : 2 * held_out],
        "train": examples[2 * held_out :],
    }
    return MemoryData(splits, "generated passages with phrases of Unicode's locale data")
