"""A second implementation of Marian's arithmetic in NumPy, position by position.

It shares no code with the package. `Marian` computes in floating point, `SaturatingMarian` in the
integers of the browsers' engine. `tests/pretrained/marian/test_reference.py` compares both with
outputs of the engines themselves for a student trained by Marian.
"""

import math

import numpy as np


class Marian:
    """A post-norm model with a self-attention or an SSRU decoder.

    Args:
        weights: Arrays by Marian's names.
        settings: The dictionary of `special:model.yml`.
        dtype: The dtype of the computation.
        end, unknown: Ids of the vocabulary.
    """

    def __init__(self, weights, settings, dtype=np.float32, end=0, unknown=1):
        self.end, self.unknown = end, unknown
        self.weights = {
            name: np.asarray(array, dtype)
            for name, array in weights.items()
            if name != "special:model.yml"
        }
        self.settings, self.dtype = settings, dtype
        # for example "v1.12.0 65bf82ff 2023-02-21 09:56:29 -0800"
        version = settings.get("version", "").split(" ")[0]
        numbers = version.removeprefix("v").split(".")
        known = version.startswith("v1.")
        self.has_old_gelu = known and [int(number) for number in numbers] < [1, 12, 3]
        self.heads = settings["transformer-heads"]
        self.recurrent = settings.get("transformer-decoder-autoreg", "self-attention") == "rnn"
        tables = [
            next(self.weights[name] for name in (f"{side}_Wemb", "Wemb") if name in self.weights)
            for side in ("encoder", "decoder")
        ]
        self.source_table, self.target_table = tables
        self.width = tables[0].shape[1]

    def product(self, x, name):
        return x @ self.weights[name]

    def rows(self, table, ids):
        return table[ids]

    def affine(self, x, weight, bias):
        return self.product(x, weight) + self.weights[bias][0]

    def output(self, x):
        """Returns the logits of hidden states `[T, D]`."""
        if "decoder_ff_logit_out_Wt" in self.weights:
            product = x @ self.weights["decoder_ff_logit_out_Wt"].T
        elif "decoder_ff_logit_out_W" in self.weights:
            product = x @ self.weights["decoder_ff_logit_out_W"]
        else:
            product = x @ self.target_table.T
        return product + self.weights["decoder_ff_logit_out_b"][0]

    def norm(self, x, prefix):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.dtype(1e-6))
        return x * self.weights[f"{prefix}_ln_scale"][0] + self.weights[f"{prefix}_ln_bias"][0]

    def positions(self, first, count):
        half = self.width // 2
        angles = np.array(
            [
                [t * math.exp(-i * math.log(10000) / (half - 1)) for i in range(half)]
                for t in range(first, first + count)
            ]
        )
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(self.dtype)

    def attend(self, query, keys, values):
        """Attends from queries `[T, D]` to keys `[S, D]`, all projected, without a mask."""
        size = query.shape[1] // self.heads
        out = np.zeros_like(query)
        for h in range(self.heads):
            part = slice(h * size, (h + 1) * size)
            scores = query[:, part] @ keys[:, part].T / self.dtype(math.sqrt(size))
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, part] = weights / weights.sum(-1, keepdims=True) @ values[:, part]
        return out

    def activation(self, x):
        name = self.settings["transformer-ffn-activation"]
        if name == "relu":
            return np.maximum(x, 0)
        if name == "swish":
            return x / (1 + np.exp(-x))
        if self.has_old_gelu:
            return x / (1 + np.exp(-1.702 * x))
        error = np.vectorize(math.erf)
        return (x * (1 + error(x / math.sqrt(2))) / 2).astype(self.dtype)

    def feed(self, x, prefix):
        hidden = self.activation(self.affine(x, f"{prefix}_ffn_W1", f"{prefix}_ffn_b1"))
        change = self.affine(hidden, f"{prefix}_ffn_W2", f"{prefix}_ffn_b2")
        return self.norm(x + change, f"{prefix}_ffn_ffn")

    def project(self, x, prefix, letter):
        return self.affine(x, f"{prefix}_W{letter}", f"{prefix}_b{letter}")

    def leave(self, x, attended, prefix):
        return self.norm(x + self.project(attended, prefix, "o"), f"{prefix}_Wo")

    def encode(self, source):
        """Encodes ids as the memory `[S, D]`."""
        x = self.rows(self.source_table, source) * self.dtype(math.sqrt(self.width))
        x = x + self.positions(0, len(source))
        for layer in range(1, self.settings["enc-depth"] + 1):
            prefix = f"encoder_l{layer}_self"
            query, key, value = (self.project(x, prefix, letter) for letter in "qkv")
            x = self.leave(x, self.attend(query, key, value), prefix)
            x = self.feed(x, f"encoder_l{layer}")
        return x

    def begin(self, source):
        """Returns each layer's keys and values of the memory, and the initial state."""
        memory = self.encode(source)
        layers = range(1, self.settings["dec-depth"] + 1)
        heads = [
            [self.project(memory, f"decoder_l{layer}_context", letter) for letter in "kv"]
            for layer in layers
        ]
        empty = np.zeros((1 if self.recurrent else 0, self.width), self.dtype)
        return heads, [(empty, empty) for _ in layers]

    def step(self, last, index, heads, state):
        """Takes one more token, `None` at the start; returns log-probabilities `[V]` and state."""
        x = np.zeros((1, self.width), self.dtype)
        if last is not None:
            x = self.rows(self.target_table, [last]) * self.dtype(math.sqrt(self.width))
        x = x + self.positions(index, 1)
        after = []
        for number, (keys, values) in enumerate(heads):
            prefix = f"decoder_l{number + 1}"
            mix = self.recur if self.recurrent else self.attend_back
            x, layer_state = mix(
                x, f"{prefix}_{'rnn' if self.recurrent else 'self'}", state[number]
            )
            after.append(layer_state)
            query = self.project(x, f"{prefix}_context", "q")
            x = self.leave(x, self.attend(query, keys, values), f"{prefix}_context")
            x = self.feed(x, prefix)
        logits = self.output(x)[0]
        shifted = logits - logits.max()
        return shifted - np.log(np.exp(shifted).sum()), after

    def recur(self, x, prefix, state):
        forget = 1 / (1 + np.exp(-self.affine(x, f"{prefix}_Wf", f"{prefix}_bf")))
        cell = forget * state[0] + (1 - forget) * self.product(x, f"{prefix}_W")
        return self.norm(x + np.maximum(cell, 0), f"{prefix}_ffn"), (cell, cell)

    def attend_back(self, x, prefix, state):
        query, key, value = (self.project(x, prefix, letter) for letter in "qkv")
        keys, values = (
            np.concatenate([old, new]) for old, new in zip(state, (key, value), strict=True)
        )
        return self.leave(x, self.attend(query, keys, values), prefix), (keys, values)

    def greedy(self, source, longest=None, allowed=None):
        """Returns ids with the end and the sum of log-probabilities; never emits unknown.

        `allowed`: boolean `[V]`, the ids that may be emitted; with it the sum has no meaning.
        """
        heads, state = self.begin(source)
        tokens, total = [], 0.0
        while not tokens or tokens[-1] != self.end and len(tokens) < (longest or 3 * len(source)):
            scores, state = self.step(tokens[-1] if tokens else None, len(tokens), heads, state)
            scores[self.unknown] = -np.inf
            if allowed is not None:
                scores[~allowed] = -np.inf
            tokens.append(int(scores.argmax()))
            total += float(scores[tokens[-1]])
        return tokens, total

    def beam(self, source, size, normalize, longest=None):
        """Returns `size` triples of ids, sum and normalised score, the best first.

        A finished hypothesis leaves the beam, which is narrower from then on.
        """
        heads, state = self.begin(source)
        running, ended = [((), 0.0, state)], []
        index, longest = 0, longest or 3 * len(source)
        while running and index < longest:
            continuations, states = [], []
            for parent, (tokens, total, state) in enumerate(running):
                scores, state = self.step(tokens[-1] if tokens else None, index, heads, state)
                scores[self.unknown] = -np.inf
                states.append(state)
                best = np.argsort(-scores, kind="stable")[:size]
                continuations += [(total + float(scores[i]), parent, int(i)) for i in best]
            continuations.sort(key=lambda one: -one[0])
            before, running, index = running, [], index + 1
            for total, parent, token in continuations[: size - len(ended)]:
                tokens = (*before[parent][0], token)
                if token == self.end:
                    ended.append((tokens, total, total / len(tokens) ** normalize))
                else:
                    running.append((tokens, total, states[parent]))
        ended += [(tokens, total, total / index**normalize) for tokens, total, _ in running]
        return sorted(ended, key=lambda one: -one[2])


class SaturatingMarian(Marian):
    """The browsers' engine with `int8shiftAlphaAll`: unsigned activations, signed weights.

    Each pair of neighbouring products is added in 16 bits with saturation.

    Args:
        weights: Arrays by Marian's names; an int8 matrix is a pair of `[in, out]`, or `[V, D]` for
            `Wemb`, and its multiplier; `<name>_QuantMultA` are numbers.
        settings, end, unknown: As for `Marian`.
    """

    def __init__(self, weights, settings, end=0, unknown=1):
        self.packed, plain = {}, {}
        for name, value in weights.items():
            if isinstance(value, tuple):
                matrix, multiplier = value
                self.packed[name] = _Packed(matrix.T if name == "Wemb" else matrix, multiplier)
                value = matrix / np.float32(multiplier)
            plain[name] = value
        self.multipliers = {
            name: np.float32(value) for name, value in plain.items() if "Quant" in name
        }
        super().__init__(plain, settings, np.float32, end, unknown)

    def product(self, x, name):
        return self.packed[name].times(
            x, float(np.ravel(self.multipliers[f"{name}_QuantMultA"])[0])
        )

    def output(self, x):
        multiplier = float(np.ravel(self.multipliers["none_QuantMultA"])[0])
        return self.packed["Wemb"].times(x, multiplier) + self.weights["decoder_ff_logit_out_b"][0]


class _Packed:
    """An int8 matrix `[in, out]` with its multiplier."""

    def __init__(self, matrix, multiplier):
        matrix = matrix.astype(np.int32)
        self.even, self.odd = matrix[0::2], matrix[1::2]
        self.sums = matrix.sum(0)
        self.multiplier = float(np.float32(multiplier))

    def times(self, x, multiplier):
        unit = np.float32(1) / (np.float32(multiplier) * np.float32(self.multiplier))
        shift = np.float32(-127) * unit * self.sums.astype(np.float32)  # the engine adds this bias
        out = np.zeros((len(x), len(self.sums)), np.float32)
        for row, numbers in enumerate(np.clip(np.rint(x * np.float32(multiplier)), -127, 127)):
            numbers = numbers.astype(np.int32) + 127
            pairs = numbers[0::2, None] * self.even + numbers[1::2, None] * self.odd
            total = np.clip(pairs, -(2**15), 2**15 - 1).sum(0)
            out[row] = total.astype(np.float32) * unit + shift
        return out
