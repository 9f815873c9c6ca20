"""The task of all speech peers: a recording, and a model of Whisper's shape that never ends."""

import dataclasses

SAMPLE_RATE = 16_000
SECONDS = 30  # of the recording, as long as Whisper's window
POSITIONS = {"encoder": 1500, "decoder": 448}
MEL_FILTERS, KERNEL = 80, 3
END, START = "<|endoftext|>", "<|startoftranscript|>"
TASKS = ("translate", "transcribe")
CODES = "en", *(f"x{number}" for number in range(98))  # only the number of the others matters


def special_of(codes, seconds):
    """Returns Whisper's special tokens for some languages, with timestamps up to `seconds`."""
    return [
        END, START, *(f"<|{code}|>" for code in codes), *(f"<|{task}|>" for task in TASKS),
        "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>",
        *(f"<|{number / 50:.2f}|>" for number in range(50 * seconds + 1)),
    ]  # fmt: skip


SPECIAL = special_of(CODES, SECONDS)
PROMPT = "<|en|>", "<|transcribe|>", "<|notimestamps|>"  # after the start


@dataclasses.dataclass(frozen=True)
class Speech:
    """A model of Whisper's architecture.

    Args:
        name: Name of the shape.
        d_model, num_layers, num_heads: Sizes; `num_layers` blocks each in encoder and decoder.
        text_tokens: Number of tokens of text in the vocabulary; special tokens come after them.
        tokens: Number of tokens of text that every output has.
        seed: Seed of weights and recording.
    """

    name: str
    d_model: int
    num_layers: int
    num_heads: int
    text_tokens: int = 50_257
    tokens: int = 64
    seed: int = 1

    @property
    def d_ff(self):
        """Inner width of the feed-forward networks."""
        return 4 * self.d_model

    @property
    def vocab_size(self):
        """Number of tokens in the vocabulary."""
        return self.text_tokens + len(SPECIAL)

    def id_of(self, special):
        """Returns the id of a special token."""
        return self.text_tokens + SPECIAL.index(special)

    def samples(self):
        """Returns the recording, noise whose loudness varies, float32 `[N]` from -1 to 1."""
        import numpy as np  # here, so that a process that only starts workers does not load it

        count = SAMPLE_RATE * SECONDS
        noise = np.random.default_rng(self.seed).normal(0, 0.1, count)
        loudness = 1 + np.sin(2 * np.pi * np.arange(count) / (0.7 * SAMPLE_RATE))
        return np.clip(loudness * noise, -1, 1).astype("float32")

    def flops(self):
        """Returns the operations of a transcription in matrix products and convolutions, by part.

        A multiplication and an addition count as two. The Fourier transform of the features is left
        out, because libraries compute it in different ways. The prompt is read with one pass of the
        decoder for each of its tokens or with one in all, which takes the same products, except
        that the logits are needed only after the last one.
        """
        width, source = self.d_model, POSITIONS["encoder"]
        block = source * (4 * width**2 + 2 * width * self.d_ff) + 2 * source**2 * width
        convolutions = 2 * source * KERNEL * MEL_FILTERS * width + source * KERNEL * width**2
        crossed = 2 * source * width**2 * self.num_layers
        steps = len(PROMPT) + self.tokens
        step = self.num_layers * (6 * width**2 + 2 * width * self.d_ff + 2 * source * width)
        logits = self.tokens * width * self.vocab_size
        return {
            "encoder": 2 * (convolutions + self.num_layers * block + crossed),
            "decoder": 2 * (steps * step + logits),
        }


SHAPES = {
    "whisper-tiny": Speech("whisper-tiny", d_model=384, num_layers=4, num_heads=6),
    "whisper-base": Speech("whisper-base", d_model=512, num_layers=6, num_heads=8),
    # For the tests. whisper.cpp knows the number of text tokens and the length of the recording.
    "smoke": Speech("smoke", d_model=16, num_layers=1, num_heads=2, tokens=5),
}
