/**
 * Translator that runs a file of `keras-transformer export`.
 *
 * Its search is that of the file; greedy if a file also has a beam.
 */

import { loadModel } from "./model.js";
import { searchInputs } from "./search.js";
import { encodeText, framed, runRows } from "./text.js";

const WARMING = 2000; // maximum time of the warm-up, in milliseconds
const USUAL = 16; // tokens of the sentence with which it is done
const PAGES = { speech_recognition: "speech.html" }; // for models of other tasks

export class Translator {
  /**
   * @param {string} url Address of the .tflite or .onnx file.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report = () => {}) {
    const translator = new Translator(await loadModel(url, report));
    await translator.warmUp();
    return translator;
  }

  /** @param {object} file The result of `loadModel`. */
  constructor(file) {
    this.file = file;
    this.metadata = file.metadata;
    this.source = file.vocabularies.source;
    this.target = file.vocabularies.target;
    if (file.stream) {
      throw new Error("This page cannot use a model for streams of tokens: open chat.html.");
    }
    if (file.search === null) {
      const { task } = this.metadata, hint = PAGES[task] ? `: open ${PAGES[task]}` : "";
      throw new Error(`This page cannot use a model for ${task}${hint}.`);
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
      const shape = this.file.shapeFor(waiting.length, length(waiting[0]));
      const numbers = waiting.splice(0, shape.batch_size);
      const rows = numbers.map((number) => encoded[number].tokens);
      const outputs = await this.run(shape, rows, numbers);
      numbers.forEach((number, row) => {
        translations[number] = this.read(encoded[number], shape, outputs, row);
      });
    }
    return translations;
  }

  /** Returns a row of the outputs as a translation. */
  read({ tokens, truncated }, shape, outputs, row) {
    const hypotheses = outputs.length.length; // the same number for each row, the best one first
    const best = row * hypotheses / shape.batch_size;
    const rowOf = (array) => {
      const size = array.length / hypotheses;
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
        const begin = position * shape.source_length;
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
   * calls take up to ten times as long. One shape is enough, because all run the same code.
   */
  async warmUp() {
    const shape = this.file.shapeFor(1, Math.min(USUAL, this.metadata.max_length));
    const row = this.sample(shape.source_length);
    const end = performance.now() + WARMING;
    const times = [];
    const fastest = (calls) => Math.min(...calls); // others may have been interrupted
    do {
      const begin = performance.now();
      await this.run(shape, [row]);
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

  /**
   * Returns the outputs for rows of tokens by name, as typed arrays.
   *
   * @param {object} shape A shape of the file, with as many rows.
   * @param {object[][]} rows The tokens of each row.
   * @param {number[]=} numbers The number of each row, on which its sample depends.
   */
  async run(shape, rows, numbers = [...rows.keys()]) {
    const ids = rows.map((tokens) => tokens.map(({ id }) => id));
    return runRows(this.file, shape, ids, searchInputs(this.file, ids, numbers));
  }
}
