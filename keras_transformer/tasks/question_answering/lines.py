"""Lines of text as questions and passages."""


def parse(line):
    """Returns the question and the passage of a line, a pair; such a pair stays as it is.

    Raises:
        ValueError: If there is no tab: what the line must be.
    """
    if not isinstance(line, str):
        return line
    question, tab, passage = line.partition("\t")
    if not tab:
        raise ValueError("must be a question, a tab and a passage. Received: no tab.")
    return question, passage
