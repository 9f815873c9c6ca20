/**
 * Translator that runs a .tflite file of `keras-transformer export litert` with LiteRT.js.
 *
 * The search is greedy, or the beam of a file that has only a beam.
 */

import { encodeText, framed, loadModel, runRows } from "./model.js";

const WARMING = 2000; // maximum time of the warm-up, in milliseconds
const PAGES = { speech_recognition: "speech.html" }; // for models of other tasks

export class Translator {
  /**
   * @param {string} url Address of the .tflite file.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report = () => {}) {
    const { litert, model, metadata, vocabularies } = await loadModel(url, report);
    const translator = new Translator(litert, model, metadata, vocabularies);
    await translator.warmUp();
    return translator;
  }

  constructor(litert, model, metadata, { source, target }) {
    this.litert = litert;
    this.model = model;
    this.metadata = metadata;
    this.source = source;
    this.target = target;
    const { task, signatures } = metadata;
    // Only models that answer in one pass have outputs of length 1.
    if (signatures.every(({ target_length: length }) => length === 1)) {
      const hint = PAGES[task] ? `: open ${PAGES[task]}` : "";
      throw new Error(`This page cannot use a model for ${task}${hint}.`);
    }
    const greedy = signatures.filter((signature) => signature.beam_size === null);
    this.signatures = (greedy.length > 0 ? greedy : [...signatures])
      .sort((one, other) => one.source_length - other.source_length);
    const single = this.signatures.filter((signature) => signature.batch_size === 1);
    if (single.at(-1)?.source_length !== metadata.max_length) {
      throw new Error(
        "The file has no signature for a single sentence: export it with batch size 1.",
      );
    }
  }

  /**
   * Returns the `text`, its `score`, `truncated`, which is true if the sentence was truncated,
   * `complete`, which is false if the output reached its maximum length, so that text is missing or
   * the model repeated itself, and the `source` and `target` tokens. If the model returns it, `alignment` has a row of weights over
   * the source tokens for each target token.
   */
  async translate(sentence) {
    const [translation] = await this.translateAll([sentence]);
    return translation;
  }

  /** Returns the results of `translate` for a list of sentences, computed in batches. */
  async translateAll(sentences) {
    const encoded = sentences.map((sentence) => this.encode(sentence));
    const blank = { text: "", score: 0, complete: true, source: [], target: [] };
    const translations = encoded.map(({ truncated }) => ({ ...blank, truncated }));
    const length = (number) => encoded[number].tokens.length;
    const waiting = [...encoded.keys()].filter((number) => !encoded[number].empty);
    waiting.sort((one, other) => length(other) - length(one)); // the longest first
    while (waiting.length > 0) {
      const signature = this.choose(waiting.length, length(waiting[0]));
      const numbers = waiting.splice(0, signature.batch_size);
      const outputs = await this.run(signature, numbers.map((number) => encoded[number].tokens));
      numbers.forEach((number, row) => {
        translations[number] = this.read(encoded[number], signature, outputs, row);
      });
    }
    return translations;
  }

  /** Returns the signature with the largest batch to fill, and of these the shortest that fits. */
  choose(count, length) {
    const fitting = this.signatures.filter(
      (signature) => signature.batch_size <= count && signature.source_length >= length,
    );
    const most = Math.max(...fitting.map((signature) => signature.batch_size));
    return fitting.find((signature) => signature.batch_size === most);
  }

  /** Returns a row of the outputs as a translation. */
  read({ tokens, truncated }, signature, outputs, row) {
    const count = signature.n_best ?? 1; // hypotheses of a row, the best one first
    const best = row * count;
    const rowOf = (array) => {
      const size = array.length / (signature.batch_size * count);
      return array.subarray(best * size, (best + 1) * size);
    };
    const ids = [...rowOf(outputs.tokens).subarray(0, outputs.length[best])];
    const weights = outputs.alignment && rowOf(outputs.alignment);
    return {
      text: this.target.decode(ids),
      score: outputs.score[best],
      truncated,
      complete: outputs.complete[best] === 1,
      source: tokens.map(({ piece }) => piece),
      target: ids.map((id) => this.target.pieceOf(id)),
      alignment: weights && ids.map((_, position) => {
        const begin = position * signature.source_length;
        return weights.subarray(begin, begin + tokens.length);
      }),
    };
  }

  /** Returns the tokens of a sentence; see `encodeText`. */
  encode(sentence) {
    return encodeText(this.source, sentence, this.metadata);
  }

  /**
   * Runs the model until calls no longer become faster.
   *
   * Browsers compile WebAssembly code that runs often a second time, in the background. Until then
   * calls take up to ten times as long. One signature is enough, because all run the same code.
   */
  async warmUp() {
    const shortest = this.signatures.find((signature) => signature.batch_size === 1);
    const row = this.sample(shortest.source_length);
    const end = performance.now() + WARMING;
    const times = [];
    const fastest = (calls) => Math.min(...calls); // others may have been interrupted
    do {
      const begin = performance.now();
      await this.run(shortest, [row]);
      times.push(performance.now() - begin);
    } while (
      performance.now() < end &&
      !(fastest(times.slice(-5)) > 0.8 * fastest(times.slice(0, -5))) // Infinity without calls
    );
  }

  /** Returns the tokens of a made-up sentence of a given length. */
  sample(length) {
    const { tokens: special, vocab_size: size } = this.metadata;
    const ids = [...Array(size).keys()].filter((id) => !Object.values(special).includes(id));
    return framed(this.source, ids.map((id) => ({ id })), length, special).tokens;
  }

  /** Returns the outputs of a signature by name, as typed arrays. */
  async run(signature, rows) {
    const ids = rows.map((tokens) => tokens.map(({ id }) => id));
    return runRows(this, signature, ids, controlsOf(signature, ids, this.metadata));
  }
}

/** Returns the inputs of a beam besides the source: the longest output of a row, and a penalty. */
function controlsOf(signature, rows, { beam, max_length: longest }) {
  if (signature.beam_size === null) return {};
  const limits = rows.map(({ length }) => {
    const wanted = Math.min(beam.max_length ?? longest, length + (beam.extra_length ?? longest));
    return Math.min(Math.max(wanted, beam.min_length), longest);
  });
  return {
    max_length: [Int32Array.from(limits), [limits.length]],
    length_penalty: [Float32Array.of(beam.length_penalty), [1]],
  };
}
