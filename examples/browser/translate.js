/** A .tflite file of `keras-transformer export litert` as a translator, run by LiteRT.js. */

import { readArchive } from "./archive.js";
import { loadLiteRt } from "./litert.js";
import { hasVocabularies, readVocabularies } from "./vocabulary.js";

const FORMAT = 2; // of the metadata in the file
const BYTES_PER_TOKEN = 64; // no token has more
const WARMING = 2000; // milliseconds that the calls before the first translation may take

export class Translator {
  /**
   * @param {string} url Where the .tflite file is.
   * @param {(share: number) => void} report Called with the share of the file that has arrived.
   */
  static async load(url, report = () => {}) {
    // Both at once, yet the download to its end: its reports would hide why the runtime is missing.
    const [arrived, runtime] = await Promise.allSettled([download(url, report), loadLiteRt()]);
    for (const { status, reason } of [arrived, runtime]) if (status === "rejected") throw reason;
    const [bytes, litert] = [arrived.value, runtime.value];
    const { metadata, vocabularies } = readMembers(bytes, url);
    // On the processor: its kernels are the ones that the export was checked with.
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
      .filter((each) => each.beam_size === null)
      .sort((one, other) => one.source_length - other.source_length);
    const single = this.signatures.filter((each) => each.batch_size === 1);
    if (single.at(-1)?.source_length !== metadata.max_length) {
      throw new Error("The model cannot search greedily for one sentence: export it again.");
    }
  }

  /**
   * Returns the `text`, its `score`, whether the sentence was `cut`, and the `source` and `target`
   * pieces; if the model tells it, also the `alignment`, a row of weights over the source pieces
   * for each target piece.
   */
  async translate(sentence) {
    const [translation] = await this.translateAll([sentence]);
    return translation;
  }

  /** The same for a list of sentences, as many at a time as the file has signatures for. */
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

  /** The signature for most sentences at a time, and of these the shortest that holds them. */
  choose(count, length) {
    const fitting = this.signatures.filter(
      (each) => each.batch_size <= count && each.source_length >= length,
    );
    const most = Math.max(...fitting.map((each) => each.batch_size));
    return fitting.find((each) => each.batch_size === most);
  }

  /** A row of the outputs as a translation. */
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

  /** Tokens of a sentence, as the Python package cuts them: the end of the sentence is the last. */
  encode(sentence) {
    const { max_length: longest, tokens: special } = this.metadata;
    const bytes = new TextEncoder().encode(sentence);
    const limit = BYTES_PER_TOKEN * longest;
    // As a stream, so that half a character at the limit is left out.
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
   * Runs the model until calls no longer become faster. A browser compiles WebAssembly that runs
   * often a second time, in the background: until then calls take up to ten times as long. What one
   * signature runs, the others run as well.
   */
  async warmUp() {
    const shortest = this.signatures.find((each) => each.batch_size === 1);
    const row = this.sample(shortest.source_length);
    const end = performance.now() + WARMING;
    const times = [];
    const fastest = (calls) => Math.min(...calls); // any one may have been interrupted
    do {
      const begin = performance.now();
      await this.run(shortest, [row]);
      times.push(performance.now() - begin);
    } while (
      performance.now() < end &&
      !(fastest(times.slice(-5)) > 0.8 * fastest(times.slice(0, -5))) // of none: Infinity
    );
  }

  /** Tokens of a given length, such as a sentence has. */
  sample(length) {
    const { tokens: special, vocab_size: size } = this.metadata;
    const ids = [...Array(size).keys()].filter((id) => !Object.values(special).includes(id));
    return [...ids.slice(0, length - 1), special.eos].map((id) => ({ id }));
  }

  /** The outputs of a signature by name, as typed arrays. */
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
      // Tensors lie in WebAssembly's memory, which nobody tidies up.
      for (const tensor of [input, ...Object.values(outputs)]) tensor.delete();
    }
  }
}

async function download(url, report) {
  const silence = () => ({ status: "the server does not answer" });
  // The browser asks whether the file is still the same: a new export shall be seen.
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
    if (expected) report(Math.min(1, received / expected)); // a packed response grows on arrival
  }
}

function readMembers(bytes, url) {
  const members = readArchive(bytes);
  if (!members["metadata.json"] || !hasVocabularies(members)) {
    throw new Error(
      `${url} was not written by \`keras-transformer export litert\`: it carries no vocabulary.`,
    );
  }
  const metadata = JSON.parse(new TextDecoder().decode(members["metadata.json"]));
  if (metadata.format !== FORMAT) {
    throw new Error(`${url} has format ${metadata.format}; this page reads format ${FORMAT}.`);
  }
  return { metadata, vocabularies: readVocabularies(members) };
}
