/** A text of a language model that grows token by token, with the keys and values of its tokens. */

const GREEDY = -1; // the temperature of greedy search

export class KeptText {
  /** @param {object} file The result of `loadModel`, of a file that was exported with `--streaming`. */
  constructor(file) {
    const { tokens, max_length: longest } = file.metadata;
    Object.assign(this, { bos: tokens.bos, eos: tokens.eos, longest });
    this.heads = file.stream(); // of the tokens in `ids`
    this.ids = [];
  }

  /** Returns the maximum length of a text that begins with a prompt of some length. */
  limit(length, { max_length: most }) {
    return Math.min(length + (most ?? this.longest), this.longest);
  }

  /**
   * Yields the tokens that continue a prompt, with the end token if there is one.
   *
   * @param {number[]} prompt Ids without the one that begins a text.
   * @param {object} search Greedy search or sampling, as the metadata have it under `search`.
   * @param {number=} number A number on which samples depend.
   */
  async *generate(prompt, search, number = 0) {
    if (prompt.length >= this.longest) {
      throw new Error(`The prompt has ${prompt.length} tokens; the model has ${this.longest} positions.`);
    }
    const inputs = [this.bos, ...prompt], limit = this.limit(prompt.length, search);
    const settings = settingsOf(search, number, limit);
    const last = inputs.length - 1; // at least one token is read
    const different = this.ids.findIndex((id, place) => place >= last || id !== inputs[place]);
    if (different >= 0) this.ids.length = different;
    for (;;) {
      const read = this.ids.length;
      this.ids = []; // if the call fails, nothing is kept
      const token = await this.heads.next(inputs, read, settings);
      this.ids = [...inputs];
      inputs.push(token);
      yield token;
      if (token === this.eos || inputs.length > limit) return;
    }
  }
}

/** Returns the settings of a search as the inputs of a file, `[array, dimensions]` by name. */
function settingsOf(search, number, limit) {
  const free = { temperature: GREEDY, top_k: 0, top_p: 1, min_p: 0, seed: 0, repetition_penalty: 1 };
  const { temperature, top_k, top_p, min_p, seed, repetition_penalty } =
    search.search === "sample" ? search : { ...free, repetition_penalty: search.repetition_penalty ?? 1 };
  return {
    ...Object.fromEntries(
      Object.entries({ temperature, top_p, min_p, repetition_penalty })
        .map(([name, value]) => [name, [Float32Array.of(value), [1]]]),
    ),
    top_k: [Int32Array.of(top_k), [1]],
    seed: [Int32Array.of(seed, number), [1, 2]],
    limit: [Int32Array.of(limit), [1]],
  };
}
