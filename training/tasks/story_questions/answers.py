"""A split for validation without answers that training does not know."""

import collections


def with_known_answers(training: list, validation: list) -> tuple[list, list]:
    """Returns both splits after exchanging rows, so that training has all answers.

    A model has one output for each answer of its training data, so that it could neither give
    another answer nor have a loss for it. A row of validation with another answer changes places
    with the last row of training whose answer training has once more; without such a row it stays.

    Args:
        training, validation: Rows in the columns of `StoryQuestionsTask`; the third is the answer.
    """
    training, validation = [*training], [*validation]
    counts = collections.Counter(row[2] for row in training)
    for place, row in enumerate(validation):
        if counts[row[2]]:
            continue
        others = range(len(training) - 1, -1, -1)
        other = next((n for n in others if counts[training[n][2]] > 1), None)
        if other is not None:
            counts.subtract({training[other][2]: 1, row[2]: -1})
            training[other], validation[place] = row, training[other]
    return training, validation
