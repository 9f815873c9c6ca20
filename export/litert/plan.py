"""Assignment of sentences to the signatures of a .tflite file."""

# Constant cost of a call, in units of the cost of a row. Measured for greedy search with one and
# two threads, float32 and int8, models of 5 and 60 million parameters: 1 to 4 (7 once), with a beam
# 0.1 to 0.5.
OVERHEAD = 2


def plan(lengths, signatures) -> list:
    """Assigns sources to signatures so that sources of similar length share a batch.

    The time of a call depends on the size of its signature, not on the number of rows that are
    used. Every call therefore gets the batch size with the lowest cost per sentence.

    Args:
        lengths: Number of tokens of each source, at most that of the longest signature.
        signatures: List of `FixedSignature`s.

    Returns:
        List of pairs: a `FixedSignature` and the indices of at most `batch_size` sources.
    """
    calls = []
    left = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    while left:
        longest = lengths[left[0]]
        width = min(
            signature.source_length
            for signature in signatures
            if signature.source_length >= longest
        )
        chosen = min(
            (signature for signature in signatures if signature.source_length == width),
            key=lambda signature: (
                (signature.batch_size + OVERHEAD) / min(signature.batch_size, len(left))
            ),
        )
        calls.append((chosen, left[: chosen.batch_size]))
        left = left[chosen.batch_size :]
    return calls
