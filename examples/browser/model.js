/** A .tflite file of `keras-transformer export litert`: loading it, encoding texts, running it. */

import { readArchive } from "./archive.js";
import { loadLiteRt } from "./litert.js";
import { hasVocabularies, readVocabularies } from "./vocabulary.js";

const FORMAT = 3; // of the metadata in the file

/**
 * Returns `{ litert, model, metadata, vocabularies }` of a file.
 *
 * @param {string} url Address of the .tflite file.
 * @param {(share: number) => void} report Called with the share of the file that has been loaded.
 */
export async function loadModel(url, report = () => {}) {
  // Both at the same time. The download is finished even if the runtime is missing, because its
  // progress reports would replace the error message.
  const [arrived, runtime] = await Promise.allSettled([download(url, report), loadLiteRt()]);
  for (const { status, reason } of [arrived, runtime]) if (status === "rejected") throw reason;
  const [bytes, litert] = [arrived.value, runtime.value];
  const { metadata, vocabularies } = await readMembers(bytes, url);
  // On the CPU, because the export was checked with its kernels.
  const compiling = litert.loadAndCompile(bytes, { accelerator: "wasm" });
  const model = await compiling.catch((cause) => {
    throw new Error(`LiteRT.js cannot read ${url}: ${cause.message ?? cause}`, { cause });
  });
  return { litert, model, metadata, vocabularies };
}

/**
 * Returns the tokens of a text with those of its beginning and its end, truncated as in the Python
 * package: `tokens`; `truncated`, which is true if it was truncated; and `empty`, if there are no others.
 */
export function encodeText(vocabulary, text, { max_length: longest, tokens: special }) {
  const [beginning, isTruncated] = beginningOf(text, vocabulary.bytesPerToken * longest);
  return framed(vocabulary, vocabulary.encode(beginning), longest, special, isTruncated);
}

/** Returns the beginning of a text, at most `limit` bytes of UTF-8, and whether the text is longer. */
export function beginningOf(text, limit) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return [text, false];
  // Decoded as a stream, so that an incomplete character at the limit is dropped.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return [decoder.decode(bytes.subarray(0, limit), { stream: true }), true];
}

/** Returns tokens between those of the beginning and the end, as `encodeText` does. */
export function framed(vocabulary, words, longest, special, isTruncated = false) {
  const mark = (id) => ({ id, piece: vocabulary.pieceOf(id) });
  const begin = vocabulary.startsWithBos ? [mark(special.bos)] : [];
  const most = longest - begin.length - 1;
  const truncated = words.length > most || isTruncated;
  return {
    tokens: [...begin, ...words.slice(0, most), mark(special.eos)],
    truncated,
    empty: words.length === 0 && !truncated,
  };
}

/** Returns the outputs of a signature for rows of ids and `controls`, as `runArrays` does. */
export function runRows(file, signature, rows, controls = {}) {
  const shape = [signature.batch_size, signature.source_length];
  const source = new Int32Array(shape[0] * shape[1]).fill(file.metadata.tokens.pad);
  rows.forEach((ids, row) => source.set(ids, row * shape[1]));
  return runArrays(file, signature.name, { source: [source, shape], ...controls });
}

/** Returns the outputs of a signature for inputs `[array, shape]` by name, typed arrays by name. */
export async function runArrays({ litert, model }, name, given) {
  const inputs = {};
  let outputs = {};
  try {
    for (const [key, [array, shape]] of Object.entries(given)) {
      inputs[key] = new litert.Tensor(array, shape);
    }
    outputs = await model.run(name, inputs);
    const arrays = Object.entries(outputs).map(([name, tensor]) => [name, tensor.toTypedArray()]);
    return Object.fromEntries(arrays);
  } finally {
    // Tensors are in WebAssembly's memory, which is not garbage-collected.
    for (const tensors of [inputs, outputs]) {
      for (const tensor of Object.values(tensors)) tensor.delete();
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

async function readMembers(bytes, url) {
  const members = await readArchive(bytes);
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
