"""The source lengths that an export has graphs of fixed shape for."""


def default_lengths(max_length):
    """Returns few source lengths, each at most four times the one before: 16, 64, ..., the limit.

    Filling up costs little: the encoder runs once, in parallel; the decoder runs token by token.
    """
    lengths = [16 * 4**power for power in range(10)]
    return [length for length in lengths if length < max_length] + [max_length]
