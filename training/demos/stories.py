"""Generated stories of people, places and things, with questions about them.

There are five kinds of questions, as in the first three, the sixth and the seventh task of bAbI
(Weston et al., 2015, "Towards AI-Complete Question Answering"). They need one, two or three
supporting facts, an answer of yes or no, or counting. Names and sentences are our own, and stories
are shorter: at most 10 sentences for one fact and for yes or no, 20 for two facts and for counting,
and 30 for three facts.
"""

import dataclasses
from typing import Any

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.tasks.story_questions.answers import with_known_answers

TESTED = 1000  # questions of each kind in the test split

PEOPLE = ("Ida", "Emil", "Nora", "Otto")
PLACES = ("garden", "harbour", "library", "bakery", "attic", "station")
THINGS = ("lamp", "ticket", "basket")
GO = ("{} went to the {}.", "{} walked to the {}.", "{} hurried to the {}.")
TAKE = ("{} picked up the {}.", "{} took the {}.")
DROP = ("{} put down the {}.", "{} left the {} there.")
NUMBERS = ("none", "one", "two", "three")
QUESTIONS_OF_STORY = 5
# Sentences of a story for each kind of question; a question follows each fifth of them.
LENGTHS = {"one_fact": 10, "two_facts": 20, "three_facts": 30, "yes_no": 10, "counting": 20}
WALKS_ONLY = ("one_fact", "yes_no")  # kinds of questions whose stories have no things


@dataclasses.dataclass
class World:
    """The people and things of a story, and the sentences so far.

    Attributes:
        sentences: The sentences.
        place: For each person, the place and the number of the sentence that tells it, from 1.
        held: For each thing that somebody has, the person.
        moves: For each person, the numbers of the sentences that tell what the person has.
        history: For each thing, its places: tuples of a place and the numbers of the supporting
            sentences, the newest last.
    """

    sentences: list = dataclasses.field(default_factory=list)
    place: dict = dataclasses.field(default_factory=dict)
    held: dict = dataclasses.field(default_factory=dict)
    moves: dict = dataclasses.field(default_factory=dict)
    history: dict = dataclasses.field(default_factory=dict)

    def go(self, dice, person) -> None:
        """Adds a sentence: a person goes to another place, with everything the person has."""
        here = self.place.get(person, ("",))[0]
        place = dice.pick([place for place in PLACES if place != here])
        number = self._tell(dice.pick(GO).format(person, place))
        self.place[person] = place, number
        for thing in [thing for thing in self.held if self.held[thing] == person]:
            taken = self.history[thing][-1][1][0]
            self.history[thing].append((place, (taken, number)))

    def take(self, dice, person, thing) -> None:
        """Adds a sentence: a person takes a thing, which is from now on where the person is."""
        number = self._tell(dice.pick(TAKE).format(person, thing))
        place, told = self.place[person]
        self.held[thing] = person
        self.moves.setdefault(person, []).append(number)
        history = self.history.setdefault(thing, [])
        history[-1:] = [(place, (number, told))]  # it was put down here, if it was seen before

    def drop(self, dice, person, thing) -> None:
        """Adds a sentence: a person puts a thing down."""
        number = self._tell(dice.pick(DROP).format(person, thing))
        del self.held[thing]
        self.moves.setdefault(person, []).append(number)
        place, told = self.place[person]
        self.history[thing][-1] = place, (number, told)

    def _tell(self, sentence):
        self.sentences.append(sentence)
        return len(self.sentences)

    def advance(self, dice, walks_only) -> None:
        """Adds one sentence to the story."""
        person = dice.pick(PEOPLE)
        own = [thing for thing in THINGS if self.held.get(thing) == person]
        free = [
            thing
            for thing in THINGS
            if thing not in self.held
            and (thing not in self.history or self.history[thing][-1][0] == self._place_of(person))
        ]
        chance = dice.random()
        if walks_only or self._place_of(person) is None or chance < 0.5:
            self.go(dice, person)
        elif free and (chance < 0.85 or not own):
            self.take(dice, person, dice.pick(free))
        elif own:
            self.drop(dice, person, dice.pick(own))
        else:
            self.go(dice, person)

    def _place_of(self, person):
        return self.place.get(person, (None,))[0]


def _one_fact(world, dice):
    person = dice.pick([*world.place])
    place, number = world.place[person]
    return f"Where is {person}?", place, (number,)


def _two_facts(world, dice):
    if not world.history:
        return None
    thing = dice.pick([*world.history])
    place, support = world.history[thing][-1]
    return f"Where is the {thing}?", place, support


def _three_facts(world, dice):
    """A question about the place of a thing before another one, where it was only once."""
    possible = []
    for thing, history in world.history.items():
        places = [place for place, _ in history]
        for before, (place, support) in zip(history, history[1:], strict=False):
            if places.count(place) == 1:
                possible.append((thing, place, before[0], (*before[1], support[1])))
    if not possible:
        return None
    thing, place, answer, support = dice.pick(possible)
    return f"Where was the {thing} before the {place}?", answer, support


def _yes_no(world, dice):
    person = dice.pick([*world.place])
    place, number = world.place[person]
    is_yes = dice.random() < 0.5
    asked = place if is_yes else dice.pick([other for other in PLACES if other != place])
    return f"Is {person} in the {asked}?", "yes" if is_yes else "no", (number,)


def _counting(world, dice):
    if not world.moves:
        return None
    person = dice.pick([*world.moves])
    count = [*world.held.values()].count(person)
    return f"How many things does {person} have?", NUMBERS[count], tuple(world.moves[person])


ASK: dict[str, Any] = {
    "one_fact": _one_fact,
    "two_facts": _two_facts,
    "three_facts": _three_facts,
    "yes_no": _yes_no,
    "counting": _counting,
}


def draw_questions(kind, count, seed) -> list[tuple]:
    """Draws questions of one kind, no two of which are the same about the same story.

    Args:
        kind: A key of `ASK`.
        count: Number of questions.
        seed: Random seed; the same seed gives the same questions in the same order.

    Returns:
        List of tuples of the `columns` of `StoryQuestionsTask`.
    """
    dice, drawn = Dice(seed), {}
    while len(drawn) < count:
        world = World()
        for number in range(1, LENGTHS[kind] + 1):
            world.advance(dice, kind in WALKS_ONLY)
            if number % (LENGTHS[kind] // QUESTIONS_OF_STORY):
                continue
            asked = ASK[kind](world, dice)
            if asked is not None:
                question, answer, support = asked
                numbers = " ".join(map(str, sorted({*support})))
                story = "\n".join(world.sentences)
                drawn.setdefault((story, question), (answer, kind, numbers))
    return [(*texts, *rest) for texts, rest in drawn.items()][:count]


def open_stories(settings) -> MemoryData:
    """Generates the questions that a `[data]` section describes; no two splits share one.

    Args:
        settings: The section, a `StoriesData`, or an object with its attributes.
    """
    splits: dict[str, list[tuple]] = {"train": [], "validation": [], "test": []}
    trained, validated = settings.questions, settings.questions // 10
    for kind in dict.fromkeys(settings.kinds or ASK):
        seed = 1000 * settings.seed + [*ASK].index(kind)
        drawn = draw_questions(kind, trained + TESTED, seed)
        splits["test"] += drawn[:TESTED]
        splits["validation"] += drawn[TESTED : TESTED + validated]
        splits["train"] += drawn[TESTED + validated :]
    pair = with_known_answers(splits["train"], splits["validation"])
    splits["train"], splits["validation"] = pair
    return MemoryData(splits, "generated stories of people, places and things")
