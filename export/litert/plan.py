"""The plan of a call: which signature of a .tflite file runs which sentences."""

# What a call costs, in rows, besides its rows. Seen, for greedy search with one and two threads,
# float32 and int8, models of 5 and 60 million parameters: 1 to 4 (one 7), with a beam 0.1 to 0.5.
OVERHEAD = 2


def plan(lengths, signatures):
    """Divides sources among signatures, so that sources of similar length go together.

    A call takes as long as its signature is large, however few of its rows are used: each call gets
    the batch size that costs least for a sentence.

    Args:
        lengths: Number of tokens of each source, none above the longest signature's.
        signatures: List of `FixedSignature`.

    Returns:
        List of pairs: a `FixedSignature` and the numbers of at most `batch_size` sources.
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
