"""A second implementation of the Transformer in float64 NumPy with loops, from the paper.

It shares no code with the package. A function takes its weights as a dict of arrays whose keys are
the names of sublayers, `self_attention/query/kernel`, and its masks as boolean arrays where True
means "may attend". Sizes: B batch, T target or query, S source or key, D d_model, H heads.
"""

import math
import types

import numpy as np


def scope(weights, name):
    """Returns the weights below sublayer `name`, with that prefix removed from their keys."""
    scoped = {key[len(name) + 1 :]: w for key, w in weights.items() if key.startswith(name + "/")}
    if not scoped:
        raise KeyError(f"no weight below {name!r} in {sorted(weights)}")
    return scoped


def softmax(scores):
    """Softmax of one row of numbers; the weights are 0 if all scores are -inf."""
    if np.all(scores == -np.inf):
        return np.zeros_like(scores)
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


def scaled_dot_product(query, key, head):
    """Returns the score of one query and one key in Eq. 1."""
    return query @ key / len(query) ** 0.5


def attention(
    query,
    key,
    value,
    allowed,
    score=scaled_dot_product,
    bias=None,
    key_vectors=None,
    value_vectors=None,
):
    """Eq. 1, one query of one head at a time. Returns [B, T, H, Kv] and weights [B, H, T, S].

    Keys and values may have fewer heads, each shared by several neighbouring heads of queries.

    A different `score` is a function of a query, a key and the number of their head; `bias` [H, T,
    S] is added to the scores; `key_vectors` [T, S, K] and `value_vectors` [T, S, Kv] are added to
    the keys and values that a query sees.
    """
    batch, targets, heads, _ = query.shape
    sources, shared = key.shape[1], heads // key.shape[2]
    out = np.zeros((batch, targets, heads, value.shape[-1]))
    weights = np.zeros((batch, heads, targets, sources))
    for b, t, h in np.ndindex(batch, targets, heads):
        keys, values = key[b, :, h // shared].copy(), value[b, :, h // shared].copy()
        keys += 0 if key_vectors is None else key_vectors[t]
        values += 0 if value_vectors is None else value_vectors[t]
        scores = np.array([score(query[b, t, h], keys[s], h) for s in range(sources)])
        scores += 0 if bias is None else bias[h, t]
        scores[~allowed[b, t]] = -np.inf
        weights[b, h, t] = softmax(scores)
        for s in range(sources):
            out[b, t, h] += weights[b, h, t, s] * values[s]
    return out, weights


def dense(weights, x):
    return x @ weights["kernel"] + weights.get("bias", 0.0)


def split_heads(x, num_heads):
    """Converts [B, T, H*K] to [B, T, H, K]: head h takes the h-th K neighbouring features."""
    size = x.shape[-1] // num_heads
    return np.stack([x[..., h * size : (h + 1) * size] for h in range(num_heads)], axis=2)


def multi_head(
    weights, x, memory, allowed, num_heads, turn=lambda heads: heads, groups=None, **options
):
    """Section 3.2.2: `Concat(head_1 .. head_h) W^O`; `turn` rotates queries and keys.

    `groups` is the number of key and value heads; `None`: as many as query heads.
    """
    query = split_heads(dense(scope(weights, "query"), x), num_heads)
    key = split_heads(dense(scope(weights, "key"), memory), groups or num_heads)
    if any(name.startswith("query_norm/") for name in weights):
        query = each_head(scope(weights, "query_norm"), query)
        key = each_head(scope(weights, "key_norm"), key)
    query, key = turn(query), turn(key)
    value = split_heads(dense(scope(weights, "value"), memory), groups or num_heads)
    heads, attended = attention(query, key, value, allowed, **options)
    concatenated = np.concatenate([heads[:, :, h] for h in range(num_heads)], axis=-1)
    return dense(scope(weights, "output"), concatenated), attended


def each_head(weights, heads):
    """Each head [B, T, K] of [B, T, H, K] normalised by itself."""
    return np.stack([layer_norm(weights, heads[:, :, h]) for h in range(heads.shape[2])], axis=2)


def activate(x, activation):
    if activation == "relu":
        return np.where(x > 0, x, 0.0)
    if activation == "silu":
        return x / (1 + np.exp(-x))
    if activation == "gelu":
        return np.vectorize(lambda z: z * 0.5 * (1 + math.erf(z / 2**0.5)))(x)
    if activation == "gelu_tanh":
        curve = np.vectorize(lambda z: math.tanh((2 / math.pi) ** 0.5 * (z + 0.044715 * z**3)))
        return x * 0.5 * (1 + curve(x))
    raise ValueError(activation)


def feed_forward(weights, x, activation="relu"):
    """Eq. 2: `max(0, x W_1 + b_1) W_2 + b_2`; with a gate Eq. 6 of Shazeer (2020)."""
    if "gate/kernel" in weights:
        gate = activate(dense(scope(weights, "gate"), x), activation)
        return dense(scope(weights, "outer"), gate * dense(scope(weights, "inner"), x))
    return dense(scope(weights, "outer"), activate(dense(scope(weights, "inner"), x), activation))


def layer_norm(weights, x, epsilon=1e-6):
    """Ba et al. (2016); with `scale` as the only weight Eq. 4 of Zhang and Sennrich (2019)."""
    out = np.zeros_like(x)
    for b, t in np.ndindex(x.shape[:2]):
        row = x[b, t]
        if "scale" in weights:
            out[b, t] = row / ((row @ row) / len(row) + epsilon) ** 0.5 * weights["scale"]
            continue
        variance = ((row - row.mean()) ** 2).mean()
        out[b, t] = (row - row.mean()) / (variance + epsilon) ** 0.5
    return out if "scale" in weights else out * weights["gamma"] + weights.get("beta", 0.0)


def sinusoids(length, d_model, layout="interleaved", endpoint=False):
    """Section 3.5, one number at a time: sine at even features, cosine at odd ones.

    The layout of halves has all sines first, in d_model / 2 features; with the endpoint the
    slowest wave has a rate of exactly 1 / 10000 (tensor2tensor).
    """
    table = np.zeros((length, d_model))
    for position, feature in np.ndindex(length, d_model):
        i = feature // 2 if layout == "interleaved" else feature % (d_model // 2)
        is_sine = feature % 2 == 0 if layout == "interleaved" else feature < d_model // 2
        angle = position / 10000 ** (2 * i / (d_model - 2 if endpoint else d_model))
        table[position, feature] = math.sin(angle) if is_sine else math.cos(angle)
    return table


def rotation(position, rate, scaling):
    """The angle of a position; Llama 3.1 and YaRN slow down long waves, and some in part."""
    if scaling is None:
        return position * rate
    if scaling.kind == "linear" or 2 * math.pi / rate > scaling.long_wave:
        return position * rate / scaling.factor
    if 2 * math.pi / rate < scaling.short_wave:
        return position * rate
    if scaling.kind == "yarn":
        octaves = math.log2(scaling.long_wave / scaling.short_wave)
        share = math.log2(scaling.long_wave * rate / (2 * math.pi)) / octaves
        return position * ((1 - share) * rate / scaling.factor + share * rate)
    turns = scaling.long_wave * rate / (2 * math.pi)
    share = (turns - 1) / (scaling.long_wave / scaling.short_wave - 1)
    return position * ((1 - share) * rate / scaling.factor + share * rate)


def rotated(heads, base=10000, scaling=None):
    """Rotary positions: each pair of features as a complex number, times e^(i angle)."""
    out, half = np.zeros(heads.shape), heads.shape[-1] // 2
    for b, t, h, i in np.ndindex(*heads.shape[:3], half):
        point = complex(heads[b, t, h, i], heads[b, t, h, i + half])
        point *= np.exp(1j * rotation(t, 1 / base ** (i / half), scaling))
        point *= scaling.scale if scaling is not None and scaling.kind == "yarn" else 1
        out[b, t, h, i], out[b, t, h, i + half] = point.real, point.imag
    return out


def clipped(table, length, causal):
    """Shaw et al. (2018): a vector for every query and key by their distance, [T, S, K]."""
    farthest = len(table) - 1 if causal else len(table) // 2
    vectors = np.zeros((length, length, table.shape[-1]))
    for i, j in np.ndindex(length, length):
        distance = min(i - j, farthest) if i >= j else max(i - j, -farthest)
        if not causal:
            vectors[i, j] = table[distance + farthest]
        elif i >= j:
            vectors[i, j] = table[distance]
    return vectors


def t5_bucket(query, key, buckets, farthest, causal):
    """Raffel et al. (2020): the bucket of a distance; logarithms are compared in integers."""
    first, distance = 0, query - key
    if not causal:
        buckets //= 2
        first, distance = (buckets if key > query else 0), abs(distance)
    exact = buckets // 2
    if distance < exact:
        return first + max(distance, 0)
    step, steps = 0, buckets - exact
    # (distance / exact)^steps >= (farthest / exact)^(step + 1)
    while (
        step + 1 < steps
        and distance**steps * exact ** (step + 1) >= farthest ** (step + 1) * exact**steps
    ):
        step += 1
    return first + exact + step


def t5_bias(table, length, farthest, causal):
    """Returns T5's bias for every query and key, [H, T, S], from its table [buckets, H]."""
    bias = np.zeros((table.shape[1], length, length))
    for h, i, j in np.ndindex(bias.shape):
        bias[h, i, j] = table[t5_bucket(i, j, len(table), farthest, causal), h]
    return bias


def alibi(slopes, length):
    """Press et al. (2022): -m |i - j|, one number at a time, [H, T, S]."""
    bias = np.zeros((len(slopes), length, length))
    for h, i, j in np.ndindex(bias.shape):
        bias[h, i, j] = -slopes[h] * abs(i - j)
    return bias


def binary(length, d_model):
    """Returns the binary digits of a position, lowest first, -1 for 0; 16 digits, repeated."""
    table = np.zeros((length, d_model))
    for position, feature in np.ndindex(length, d_model):
        digit = f"{position:016b}"[::-1][feature % 16]
        table[position, feature] = {"0": -1, "1": 1}[digit]
    return table


def score_of(weights, kind):
    """Returns the score of that name for one query and key of a head, with the layer's weights."""
    if kind == "general":
        return lambda query, key, h: query @ weights["score_matrix"][h] @ key
    if kind == "additive":
        matrices, vector = (weights["score_query"], weights["score_key"]), weights["score_vector"]
        return lambda query, key, h: (
            vector[h, 0, 0] @ np.tanh(query @ matrices[0][h] + key @ matrices[1][h])
        )
    return {"dot_product": lambda query, key, h: query @ key}.get(kind, scaled_dot_product)


def relation(weights, position, length, causal, num_heads):
    """Returns the effect of a position on a self-attention, as arguments of `multi_head`."""
    if position.kind == "rotary":
        return {"turn": lambda heads: rotated(heads, position.base, position.scaling)}
    if position.kind == "alibi":
        return {"bias": alibi(SLOPES[num_heads], length)}
    if position.kind == "t5":
        return {"bias": t5_bias(weights["distance_bias"], length, position.distance, causal)}
    if position.kind == "relative":
        names = {"key_vectors": "relative_keys", "value_vectors": "relative_values"}
        return {key: clipped(weights[name], length, causal) for key, name in names.items()}
    return {}


# ALiBi's slopes from the authors' code.
SLOPES = {3: [1 / 16, 1 / 256, 1 / 4]}


def attention_of_kind(weights, x, memory, allowed, num_heads, kind=None, causal=False):
    """Multi-head attention with the score and, for self-attention, the position of a config."""
    if kind is None:
        return multi_head(weights, x, memory, allowed, num_heads)
    kind = of_block(kind, 0)
    options = {}
    if memory is x:
        options = relation(weights, kind.position, x.shape[1], causal, num_heads)
    options["groups"] = kind.groups
    if memory is x and kind.window is not None:
        near = [[abs(i - j) <= kind.window for j in range(len(x[0]))] for i in range(len(x[0]))]
        allowed = allowed & np.array(near)
    score = score_of(weights, kind.score.kind)
    return multi_head(weights, x, memory, allowed, num_heads, score=score, **options)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def ssru(weights, x, real=None, causal=True):
    """Kim et al. (2019), one position at a time; positions not `real` [B, T] are skipped."""
    assert causal
    matrix = weights["candidate/kernel"]
    forget, bias = weights["forget/kernel"], weights["forget/bias"]
    out = np.zeros(x.shape)
    for b in range(x.shape[0]):
        state = np.zeros(x.shape[2])
        for t in range(x.shape[1]):
            if real is None or real[b, t]:
                keep = sigmoid(x[b, t] @ forget + bias)
                state = keep * state + (1 - keep) * (x[b, t] @ matrix)
            out[b, t] = np.maximum(state, 0)
    return out


def lstm(weights, x, real, causal):
    """Hochreiter and Schmidhuber (1997) with a forget gate; see `both_directions`."""

    def step(name, x, state):
        (h, c), units = state, len(state[0])
        gates = x @ weights[f"{name}_input/kernel"] + h @ weights[f"{name}_recurrent_kernel"]
        i, f, g, o = (gates + weights[f"{name}_bias"]).reshape(4, units)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    return both_directions(weights, x, real, causal, step, 2)


def gru(weights, x, real, causal):
    """Cho et al. (2014), with the reset gate after the product; see `both_directions`."""

    def step(name, x, state):
        (h,), units = state, len(state[0])
        of_input = x @ weights[f"{name}_input/kernel"] + weights[f"{name}_input/bias"]
        of_state = h @ weights[f"{name}_recurrent_kernel"] + weights[f"{name}_bias"]
        x_z, x_r, x_n = of_input.reshape(3, units)
        h_z, h_r, h_n = of_state.reshape(3, units)
        z = sigmoid(x_z + h_z)
        return (z * h + (1 - z) * np.tanh(x_n + sigmoid(x_r + h_r) * h_n),)

    return both_directions(weights, x, real, causal, step, 1)


def both_directions(weights, x, real, causal, step, count):
    """Runs a recurrence over the `real` positions [B, T] of each row, forwards and backwards."""
    outputs = []
    for name in ("forward",) if causal else ("forward", "backward"):
        units = weights[f"{name}_recurrent_kernel"].shape[0]
        out = np.zeros((*x.shape[:2], units))
        for b in range(x.shape[0]):
            state = (np.zeros(units),) * count
            for t in range(x.shape[1]) if name == "forward" else reversed(range(x.shape[1])):
                if real[b, t]:
                    state = step(name, x[b, t], state)
                out[b, t] = state[0]
        outputs.append(out)
    return np.concatenate(outputs, axis=-1)


def embedding(weights, tokens, position="sinusoidal", start=0, zero_start=False):
    """Sections 3.4 and 3.5: a row of the table times sqrt(d_model), plus its position.

    With `zero_start` the row is zero at position 0, as in Marian's decoders.
    """
    table = weights["table"]
    d_model = table.shape[1]
    out = np.zeros((*tokens.shape, d_model))
    length = start + tokens.shape[1]
    if position == "sinusoidal":
        positions = sinusoids(length, d_model)
    elif position == "learned":
        positions = weights["positions"]
    elif position == "binary":
        positions = binary(length, d_model)
    else:
        positions = np.zeros((length, d_model))
    for b, t in np.ndindex(tokens.shape):
        out[b, t] = table[tokens[b, t]] * d_model**0.5
        if zero_start and start + t == 0:
            out[b, t] = 0
        out[b, t] += positions[start + t]
    return out


def residual(weights, name, x, sublayer, norm, epsilon):
    """Section 3.1, `LayerNorm(x + Sublayer(x))`; pre-norm is `x + Sublayer(LayerNorm(x))`.

    With a layer scale, each feature of the sublayer's output has a learned factor.
    """
    factors = weights.get(f"{name}_scale/scale")
    if factors is not None:
        unscaled = sublayer
        sublayer = lambda x: unscaled(x) * factors  # noqa: E731
    if not any(key.startswith(name + "_norm/") for key in weights):
        return x + sublayer(x)  # the first block of ModernBERT
    norm_weights = scope(weights, name + "_norm")
    if norm == "post":
        return layer_norm(norm_weights, x + sublayer(x), epsilon)
    return x + sublayer(layer_norm(norm_weights, x, epsilon))


def encoder_block(
    weights,
    x,
    allowed,
    num_heads,
    activation="relu",
    norm="post",
    epsilon=1e-6,
    record=None,
    kind=None,
    causal=False,
):
    """Figure 1, left. `allowed` is [B, S, S]; attention weights go into the dict `record`.

    `kind` has a position, a window and a score; `None`: no position, and Eq. 1.
    """
    record = {} if record is None else record

    def self_attention(x):
        out, record["self_attention"] = attention_of_kind(
            scope(weights, "self_attention"), x, x, allowed, num_heads, kind, causal
        )
        return out

    def position_wise(x):
        return feed_forward(scope(weights, "feed_forward"), x, activation)

    x = residual(weights, "self_attention", x, self_attention, norm, epsilon)
    return residual(weights, "feed_forward", x, position_wise, norm, epsilon)


def decoder_block(
    weights,
    x,
    memory,
    allowed,
    memory_allowed,
    num_heads,
    activation="relu",
    norm="post",
    epsilon=1e-6,
    record=None,
    kind=None,
):
    """Figure 1, right. `allowed` is [B, T, T] before causality, `memory_allowed` [B, T, S].

    With weights of an SSRU, the SSRU replaces the self-attention.
    """
    record = {} if record is None else record
    length = x.shape[1]
    causal = np.array([[s <= t for s in range(length)] for t in range(length)])

    def self_attention(x):
        out, record["self_attention"] = attention_of_kind(
            scope(weights, "self_attention"), x, x, allowed & causal, num_heads, kind, True
        )
        return out

    def cross_attention(x):
        out, record["cross_attention"] = attention_of_kind(
            scope(weights, "cross_attention"), x, memory, memory_allowed, num_heads, kind
        )
        return out

    def position_wise(x):
        return feed_forward(scope(weights, "feed_forward"), x, activation)

    if any(path.startswith("ssru/") for path in weights):
        x = residual(weights, "ssru", x, lambda x: ssru(scope(weights, "ssru"), x), norm, epsilon)
    else:
        x = residual(weights, "self_attention", x, self_attention, norm, epsilon)
    x = residual(weights, "cross_attention", x, cross_attention, norm, epsilon)
    return residual(weights, "feed_forward", x, position_wise, norm, epsilon)


def of_block(kind, number):
    """Returns a block's settings: no window if it is global, otherwise the local position."""
    if kind is None or isinstance(kind, types.SimpleNamespace):
        return kind
    every = getattr(kind.window, "global_every", None)
    is_global = kind.window is None or (every and number % every == 0)
    position = kind.position if is_global else kind.window.position or kind.position
    return types.SimpleNamespace(
        position=position,
        window=None if is_global else kind.window.size,
        groups=kind.block.attention.num_key_value_heads,
        score=kind.block.attention.score,
    )


def with_shared_bias(block, weights):
    """Returns the weights of a block, with T5's table of the first block if it has none."""
    table = weights.get("block_0/self_attention/distance_bias")
    return block if table is None else {"self_attention/distance_bias": table, **block}


def encoder(
    weights,
    x,
    allowed,
    num_layers,
    num_heads,
    norm="post",
    record=None,
    final_norm=None,
    embedding_norm=False,
    kind=None,
    **options,
):
    record = {} if record is None else record
    if embedding_norm:
        x = layer_norm(scope(weights, "embedding_norm"), x, options.get("epsilon", 1e-6))
    for n in range(num_layers):
        inner = record[f"block_{n}"] = {}
        block = with_shared_bias(scope(weights, f"block_{n}"), weights)
        x = encoder_block(
            block,
            x,
            allowed,
            num_heads,
            norm=norm,
            record=inner,
            kind=of_block(kind, n),
            **options,
        )
    if final_norm or (final_norm is None and norm == "pre"):
        x = layer_norm(scope(weights, "norm"), x, options.get("epsilon", 1e-6))
    return x


def decoder(
    weights,
    x,
    memory,
    allowed,
    memory_allowed,
    num_layers,
    num_heads,
    norm="post",
    record=None,
    final_norm=None,
    embedding_norm=False,
    kind=None,
    **options,
):
    record = {} if record is None else record
    if embedding_norm:
        x = layer_norm(scope(weights, "embedding_norm"), x, options.get("epsilon", 1e-6))
    for n in range(num_layers):
        x = decoder_block(
            with_shared_bias(scope(weights, f"block_{n}"), weights),
            x,
            memory,
            allowed,
            memory_allowed,
            num_heads,
            norm=norm,
            record=record.setdefault(f"block_{n}", {}),
            kind=of_block(kind, n),
            **options,
        )
    if final_norm or (final_norm is None and norm == "pre"):
        x = layer_norm(scope(weights, "norm"), x, options.get("epsilon", 1e-6))
    return x


def everyone(queries, keys_allowed):
    """Converts [B, S] of allowed keys to [B, T, S]: the same keys for each query."""
    return np.stack([keys_allowed] * queries, axis=1)


def embedding_scopes(weights, tie):
    """Returns the weights of the source embedding, target embedding and output projection."""
    if tie == "all":
        shared = scope(weights, "embedding")
        return shared, shared, shared["table"].T
    source, target = scope(weights, "source_embedding"), scope(weights, "target_embedding")
    if tie == "target":
        return source, target, target["table"].T
    return source, target, scope(weights, "output")["kernel"]


def transformer(weights, config, source, target, record=None):
    """Figure 1 as a whole: returns logits [B, T, V] before the softmax."""
    record = {} if record is None else record
    source_weights, target_weights, projection = embedding_scopes(weights, config.head.tie)
    options = {
        "num_heads": config.encoder.block.attention.num_heads,
        "activation": config.encoder.block.activation,
        "norm": config.encoder.block.norm.kind,
        "final_norm": config.encoder.final_norm,
        "embedding_norm": config.encoder.embedding_norm,
        "epsilon": config.encoder.block.normalization.epsilon,
    }
    memory = encoder(
        scope(weights, "encoder"),
        embedding(source_weights, source, config.encoder.position.kind),
        everyone(source.shape[1], source != config.tokens.pad_id),
        config.num_layers,
        record=record.setdefault("encoder", {}),
        kind=config.encoder,
        **options,
    )
    x = decoder(
        scope(weights, "decoder"),
        embedding(
            target_weights,
            target,
            config.encoder.position.kind,
            zero_start=config.head.decoder_start == "zeros",
        ),
        memory,
        # Padding comes after a target, where causality hides it from every real position.
        everyone(target.shape[1], np.ones(target.shape, bool)),
        everyone(target.shape[1], source != config.tokens.pad_id),
        config.decoder.num_layers or config.num_layers,
        record=record.setdefault("decoder", {}),
        kind=config.decoder,
        **options,
    )
    return x @ projection


def greedy(logits_of, source, max_length, bos_id, eos_id, pad_id):
    """Greedy decoding without a cache: every step runs the whole model on the prefix.

    `logits_of(source, target)` returns [B, T, V]. Returns tokens [B, max_length] and, for each
    sentence, the sum of the log-probabilities of its tokens, eos included.
    """
    batch = len(source)
    prefixes = [[bos_id] for _ in range(batch)]
    scores = np.zeros(batch)
    ended = [False] * batch
    for _ in range(max_length):
        logits = np.asarray(logits_of(source, np.array(prefixes, "int32")), "float64")
        for b in range(batch):
            row = logits[b, -1]
            best = int(np.argmax(row))
            if ended[b]:
                prefixes[b].append(pad_id)
                continue
            scores[b] += row[best] - row.max() - math.log(np.exp(row - row.max()).sum())
            prefixes[b].append(best)
            ended[b] = best == eos_id
        if all(ended):
            break
    tokens = np.full((batch, max_length), pad_id)
    for b in range(batch):
        tokens[b, : len(prefixes[b]) - 1] = prefixes[b][1:]
    return tokens, scores


def log_probabilities(logits):
    """Float64 log-softmax over the last axis."""
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def normalized(total, length, normalization, length_penalty):
    """Score of a hypothesis of `length` tokens whose log-probabilities add up to `total`."""
    if normalization == "gnmt":  # Wu et al. (2016), Eq. 14
        return total / ((5 + length) ** length_penalty / (5 + 1) ** length_penalty)
    if normalization == "power":
        return total / length**length_penalty
    return total / length if normalization == "average" else total


def beam(logits_of, source, beam_size, score, min_length, max_length, bos_id, eos_id, pad_id):
    """Beam search for one sentence, without a cache and without stopping early.

    `logits_of(source, target)` returns [B, T, V]; `score(total, length)` normalises. Returns all
    hypotheses as pairs of score and tokens: finished ones first, the best of each kind first.
    """
    running, ended = [(0.0, [bos_id])], []
    for length in range(1, max_length + 1):
        prefixes = np.array([prefix for _, prefix in running], "int32")
        sources = np.repeat(source[None], len(running), axis=0)
        rows = log_probabilities(logits_of(sources, prefixes))[:, -1]
        forbidden = {bos_id, pad_id} - {eos_id} | ({eos_id} if length < min_length else set())
        candidates = [
            (total + row[token], [*prefix, token])
            for (total, prefix), row in zip(running, rows, strict=True)
            for token in range(len(row))
            if token not in forbidden
        ]
        candidates.sort(reverse=True)
        ended += [
            (score(total, length), prefix[1:])
            for total, prefix in candidates[:beam_size]
            if prefix[-1] == eos_id
        ]
        running = [candidate for candidate in candidates if candidate[1][-1] != eos_id][:beam_size]
        if len(ended) >= beam_size:
            return sorted(ended, reverse=True)
    cut = [(score(total, max_length), prefix[1:]) for total, prefix in running]
    return sorted(ended, reverse=True) + sorted(cut, reverse=True)


def beam_by_score(
    log_probabilities_of, source, beam_size, score, max_length, bos_id, eos_id, excluded=()
):
    """Beam search for one sentence as in Hugging Face's `generate(early_stopping=False)`.

    `log_probabilities_of(source, target, last)` returns [B, V] for the token after `target`;
    `last` tells whether that token is the last. Returns the best `beam_size` pairs of score and
    tokens.
    """
    running, ended = [(0.0, [bos_id])], []
    for length in range(1, max_length + 1):
        prefixes = np.array([prefix for _, prefix in running], "int32")
        rows = log_probabilities_of(
            np.repeat(source[None], len(running), axis=0), prefixes, length == max_length
        )
        candidates = [
            (total + row[token], [*prefix, token])
            for (total, prefix), row in zip(running, rows, strict=True)
            for token in range(len(row))
            if token not in excluded and row[token] > -np.inf
        ]
        candidates.sort(reverse=True)
        over = [prefix[-1] == eos_id or length == max_length for _, prefix in candidates]
        ended += [
            (score(total, length), prefix[1:])
            for (total, prefix), is_over in list(zip(candidates, over, strict=True))[:beam_size]
            if is_over
        ]
        ended = sorted(ended, reverse=True)[:beam_size]
        running = [c for c, is_over in zip(candidates, over, strict=True) if not is_over]
        running = running[:beam_size]
        if not running:
            break
        if len(ended) == beam_size and score(running[0][0], length) <= ended[-1][0]:
            break
    return ended
