/** Labels of texts and of their words, by a file whose model answers in one pass. */

import { loadModel } from "./model.js";
import { beginningOf, encodeText, framed, runRows } from "./text.js";

const WORDS = /[^ \t\n\v\f\r]+/g; // between ASCII white space, as in the Python package
const TASKS = ["classification", "token_classification"];
const OUTSIDE = "O"; // label of words that were truncated

export class Classifier {
  /**
   * @param {string} url Address of the .tflite or .onnx file.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report) {
    return new Classifier(await loadModel(url, report));
  }

  /** @param {object} file The result of `loadModel`. */
  constructor(file) {
    this.file = file;
    this.vocabulary = file.vocabularies.source;
    const { task } = file.metadata;
    if (!TASKS.includes(task)) throw new Error(`This page cannot use a model for ${task}.`);
  }

  /** Returns the most probable `label` of a text, its `probability`, all of them, and `truncated`. */
  async classify(text) {
    this.check("classification");
    const { tokens, truncated } = encodeText(this.vocabulary, text, this.file.metadata);
    return { ...this.choose(await this.run(tokens)), truncated };
  }

  /**
   * Returns the words of a text, `{ word, begin, end, label, probability }` each with its offsets in
   * the text, and `truncated`. Words beyond the model's limit have the label "O" and the probability 0.
   */
  async label(text) {
    this.check("token_classification");
    const { words, tokens, truncated } = this.encodeWords(text);
    const probabilities = await this.run(tokens);
    const { labels } = this.file.metadata;
    return {
      truncated,
      words: words.map(({ first, ...word }) => {
        if (first >= tokens.length - 1) return { ...word, label: OUTSIDE, probability: 0 };
        const row = probabilities.subarray(first * labels.length, (first + 1) * labels.length);
        const { label, probability } = this.choose(row);
        return { ...word, label, probability };
      }),
    };
  }

  /** Returns the words of a text with the index of the `first` token of each, and the tokens. */
  encodeWords(text) {
    const { max_length: longest, tokens: special } = this.file.metadata;
    const words = [], tokens = [];
    let isTruncated = false;
    for (const { 0: word, index } of text.matchAll(WORDS)) {
      const first = tokens.length + Number(this.vocabulary.startsWithBos);
      words.push({ word, begin: index, end: index + word.length, first });
      const [beginning, isLong] = beginningOf(word, this.vocabulary.bytesPerToken * longest);
      const own = this.vocabulary.encodeWord(beginning, index === 0);
      isTruncated ||= isLong;
      // A word without tokens, such as a zero-width space, is unknown.
      tokens.push(...(own.length ? own : [{ id: special.unk, piece: "" }]));
    }
    return { words, ...framed(this.vocabulary, tokens, longest, special, isTruncated) };
  }

  /** Returns the probabilities for tokens. */
  async run(tokens) {
    const shape = this.file.shapeFor(1, tokens.length);
    const outputs = await runRows(this.file, shape, [tokens.map(({ id }) => id)]);
    return outputs.probabilities;
  }

  choose(probabilities) {
    const best = probabilities.reduce((top, p, at) => (p > probabilities[top] ? at : top), 0);
    const label = this.file.metadata.labels[best];
    return { label, probability: probabilities[best], probabilities: [...probabilities] };
  }

  check(task) {
    if (this.file.metadata.task === task) return;
    throw new Error(`The model is for ${this.file.metadata.task}, not for ${task}.`);
  }
}
