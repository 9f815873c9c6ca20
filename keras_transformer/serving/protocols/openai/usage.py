"""Numbers of tokens of a request, which OpenAI's API calls its usage."""

import asyncio
from typing import Any


async def token_counts(model: Any, texts: list[str]) -> list[int] | None:
    """Returns the number of tokens that the model reads of each text.

    Args:
        model: The `Answering`.
        texts: List of strings.

    Returns:
        `None` if the model is an export, whose tokenizer is within its graph.
    """
    if model.tokenizers is None or not texts:
        return [] if model.tokenizers is not None else None
    encode, most = model.tokenizers.source.encode, model.max_length
    lengths = await asyncio.to_thread(lambda: encode(texts).row_lengths().numpy().tolist())
    return [length if most is None else min(length, most) for length in lengths]


def usage_of(read: list[int] | None, written: list[int] | None = None) -> dict[str, Any]:
    """Returns the field `usage` of a response; none if the numbers are not known.

    Args:
        read: Numbers of tokens of the prompts.
        written: Numbers of tokens of the completions. `None`: there are none.
    """
    if read is None:
        return {}
    usage = {"prompt_tokens": sum(read), "total_tokens": sum(read) + sum(written or [])}
    if written is not None:
        usage["completion_tokens"] = sum(written)
    return {"usage": usage}
