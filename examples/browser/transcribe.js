/** Recogniser of speech that runs a file of `keras-transformer export`. */

import { loadModel } from "./model.js";

const TASK = "speech_recognition";
const REFUSED = -1e9; // score of a recording that the model does not accept
const DETECTED = -1; // in place of the id of a language

/**
 * Returns whether nobody speaks in a recording, by the thresholds in the metadata of the file.
 *
 * @param {object} outputs The outputs of the file.
 * @param {?object} thresholds `silence` of the metadata; null for a model without these numbers.
 */
export function isSilence(outputs, thresholds) {
  if (!thresholds) return false;
  return outputs.no_speech[0] > thresholds.no_speech_threshold &&
    outputs.mean_log_probability[0] < thresholds.log_probability_threshold;
}

export class Transcriber {
  /**
   * @param {string} url Address of the .tflite or .onnx file.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report) {
    return new Transcriber(await loadModel(url, report));
  }

  /** @param {object} file The result of `loadModel`. */
  constructor(file) {
    this.file = file;
    this.metadata = file.metadata;
    const { task, speech } = file.metadata;
    if (task !== TASK) throw new Error(`This page cannot use a model for ${task}.`);
    this.sampleRate = speech.sample_rate;
    this.shortest = speech.hop_length; // samples of a recording, and of the longest one
    this.longest = Math.round(speech.max_seconds * speech.sample_rate);
  }

  /**
   * Returns the `text` of a recording, empty if nobody speaks, its `score`, and `complete`, which is
   * false if the output reached its maximum length, so that text is missing or the model repeated
   * itself.
   *
   * @param {Float32Array} samples One channel at `sampleRate`, from -1 to 1.
   * @param {object=} choices Some of `language`, a code or "auto", `task`, and `timestamps`, a
   *   boolean, for a model with these choices. The others are the defaults of the file.
   */
  async transcribe(samples, choices = {}) {
    const { length } = samples, seconds = (count) => Number((count / this.sampleRate).toFixed(2));
    if (length > this.longest) {
      throw new Error(
        `The recording lasts ${seconds(length)} s, and the model reads at most ` +
        `${seconds(this.longest)} s: cut it into parts.`,
      );
    }
    if (length < this.shortest) throw new Error(`The recording is too short: ${length} samples.`);
    const shape = this.file.shapeFor(1, length);
    const padded = new Float32Array(shape.source_length);
    padded.set(samples);
    const number = (value) => [Int32Array.of(value), [1]];
    const inputs = { samples: [padded, [1, padded.length]], lengths: number(length) };
    const numbers = this.numbersOf(choices);
    for (const [name, value] of Object.entries(numbers)) inputs[name] = number(value);
    const outputs = await this.file.run(shape, inputs);
    const score = outputs.score[0];
    if (!(score > REFUSED)) throw new Error("The recording has samples that are not numbers.");
    const complete = outputs.complete[0] === 1;
    if (isSilence(outputs, this.metadata.silence)) return { text: "", score, complete };
    const ids = [...outputs.tokens.subarray(this.promptLength(numbers), outputs.length[0])];
    const text = this.file.vocabularies.target.decode(ids);
    return { text, score, complete };
  }

  /** Returns the numbers of the choices that the model has, for the inputs of these names. */
  numbersOf(chosen) {
    const { languages = {}, tasks = {}, no_timestamps_id: without = null, ...defaults } =
      this.metadata.choices ?? {};
    const known = { language: { ...languages, auto: DETECTED }, task: tasks };
    const names = [
      ...(Object.keys(languages).length ? ["language"] : []),
      ...(Object.keys(tasks).length ? ["task"] : []),
      ...(without === null ? [] : ["timestamps"]),
    ];
    const stranger = Object.keys(chosen).find((name) => !names.includes(name));
    if (stranger) throw new Error(`The model has no choice of ${stranger}.`);
    return Object.fromEntries(names.map((name) => {
      const value = chosen[name] ?? defaults[name];
      const number = name === "timestamps" ? Number(value) : known[name][value];
      if (number === undefined) throw new Error(`The model does not know the ${name} ${value}.`);
      return [name, number];
    }));
  }

  /** Returns the number of tokens with which an output begins and that are not part of the text. */
  promptLength({ timestamps }) {
    const { prompt_length: length, choices } = this.metadata;
    return choices ? choices.prompt.length + Number(timestamps === 0) : length;
  }
}
