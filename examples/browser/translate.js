/** Translator that runs a .tflite file of `keras-transformer export litert` with LiteRT.js. */

import { readArchive } from "./archive.js";
import { loadLiteRt } from "./litert.js";
import { hasVocabularies, readVocabularies } from "./vocabulary.js";

const FORMAT = 2; // of the metadata in the file
const BYTES_PER_TOKEN = 64; // maximum; longer texts are truncated before they are tokenized
const WARMING = 2000; // maximum time of the warm-up, in milliseconds

export class Translator {
  /**
   * @param {string} url Address of the .tflite file.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report = () => {}) {
    // Both at the same time. The download is finished even if the runtime is missing, because its
    // progress reports would replace the error message.
    const [arrived, runtime] = await Promise.allSettled([download(url, report), loadLiteRt()]);
    for (const { status, reason } of [arrived, runtime]) if (status === "rejected") throw reason;
    const [bytes, litert] = [arrived.value, runtime.value];
    const { metadata, vocabularies } = readMembers(bytes, url);
    // On the CPU, because the export was checked with its kernels.
    const compiling = litert.loadAndCompile(bytes, { accelerator: "wasm" });
    const model = await compiling.catch((cause) => {
      throw new Error(`LiteRT.js cannot read ${url}: ${cause.message ?? cause}`, { cause });
    });
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
    this.signatures = metadata.signatures
      .filter((signature) => signature.beam_size === null)
      .sort((one, other) => one.source_length - other.source_length);
    const single = this.signatures.filter((signature) => signature.batch_size === 1);
    if (single.at(-1)?.source_length !== metadata.max_length) {
      throw new Error(
        "The file has no greedy signature for a single sentence: export it with batch size 1.",
      );
    }
  }

  /**
   * Returns the `text`, its `score`, `cut`, which is true if the sentence was truncated, and the
   * `source` and `target` tokens. If the model returns it, `alignment` has a row of weights over
   * the source tokens for each target token.
   */
  async translate(sentence) {
    const [translation] = await this.translateAll([sentence]);
    return translation;
  }

  /** Returns the results of `translate` for a list of sentences, computed in batches. */
  async translateAll(sentences) {
    const encoded = sentences.map((sentence) => this.encode(sentence));
    const blank = { text: "", score: 0, source: [], target: [] };
    const translations = encoded.map(({ cut }) => ({ ...blank, cut }));
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
  read({ tokens, cut }, signature, outputs, row) {
    const rowOf = (array) => {
      const size = array.length / signature.batch_size;
      return array.subarray(row * size, (row + 1) * size);
    };
    const ids = [...rowOf(outputs.tokens).subarray(0, outputs.length[row])];
    const weights = outputs.alignment && rowOf(outputs.alignment);
    return {
      text: this.target.decode(ids),
      score: outputs.score[row],
      cut,
      source: tokens.map(({ piece }) => piece),
      target: ids.map((id) => this.target.pieceOf(id)),
      alignment: weights && ids.map((_, position) => {
        const begin = position * signature.source_length;
        return weights.subarray(begin, begin + tokens.length);
      }),
    };
  }

  /** Returns the tokens of a sentence with its end, truncated as in the Python package. */
  encode(sentence) {
    const { max_length: longest, tokens: special } = this.metadata;
    const bytes = new TextEncoder().encode(sentence);
    const limit = BYTES_PER_TOKEN * longest;
    // Decoded as a stream, so that an incomplete character at the limit is dropped.
    const text = new TextDecoder().decode(bytes.subarray(0, limit), { stream: true });
    const words = this.source.encode(text);
    const cut = words.length + 1 > longest || bytes.length > limit;
    const end = { id: special.eos, piece: this.source.pieceOf(special.eos) };
    return {
      tokens: [...words.slice(0, longest - 1), end],
      cut,
      empty: words.length === 0 && !cut,
    };
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
    return [...ids.slice(0, length - 1), special.eos].map((id) => ({ id }));
  }

  /** Returns the outputs of a signature by name, as typed arrays. */
  async run(signature, rows) {
    const shape = [signature.batch_size, signature.source_length];
    const source = new Int32Array(shape[0] * shape[1]).fill(this.metadata.tokens.pad);
    rows.forEach((tokens, row) => source.set(tokens.map(({ id }) => id), row * shape[1]));
    const input = new this.litert.Tensor(source, shape);
    let outputs = {};
    try {
      outputs = await this.model.run(signature.name, { source: input });
      const arrays = Object.entries(outputs).map(([name, tensor]) => [name, tensor.toTypedArray()]);
      return Object.fromEntries(arrays);
    } finally {
      // Tensors are in WebAssembly's memory, which is not garbage-collected.
      for (const tensor of [input, ...Object.values(outputs)]) tensor.delete();
    }
  }
}

async function download(url, report) {
  const silence = () => ({ status: "the server does not answer" });
  // "no-cache" makes the browser check whether the file has changed, after a new export.
  const response = await fetch(url, { cache: "no-cache" }).catch(silence);
  if (!response.ok) {
    const make = "Write it with: keras-transformer export litert RUN examples/browser/model.tflite";
    throw new Error(`There is no model at ${url} (${response.status}). ${make}`);
  }
  const expected = Number(response.headers.get("Content-Length"));
  const chunks = [];
  let received = 0;
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(chunks).arrayBuffer());
    chunks.push(value);
    received += value.length;
    // The length of a compressed response is less than that of its contents.
    if (expected) report(Math.min(1, received / expected));
  }
}

function readMembers(bytes, url) {
  const members = readArchive(bytes);
  if (!members["metadata.json"] || !hasVocabularies(members)) {
    throw new Error(
      `${url} was not written by \`keras-transformer export litert\`: it contains no vocabulary.`,
    );
  }
  const metadata = JSON.parse(new TextDecoder().decode(members["metadata.json"]));
  if (metadata.format !== FORMAT) {
    throw new Error(`${url} has format ${metadata.format}; this page reads format ${FORMAT}.`);
  }
  return { metadata, vocabularies: readVocabularies(members) };
}
