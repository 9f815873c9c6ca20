"""Lines of text as pairs of texts."""


def parse(line) -> tuple[str, str]:
    """Returns the query and the passage in a line; a pair is returned unchanged.

    Raises:
        ValueError: If there is no tab. The error is the end of a sentence about the line.
    """
    if not isinstance(line, str):
        return line
    query, tab, passage = line.partition("\t")
    if not tab:
        raise ValueError("must be a query, a tab and a passage. Received: no tab.")
    return query, passage
