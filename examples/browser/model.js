/**
 * Loads a file that `keras-transformer export` has written, with the runtime for its format.
 *
 * A runtime is a module whose `runtime` is an object with
 * - `title`, `suffix` and `command`: its name, the ending of its files, the command that writes them;
 * - `format`: version of the metadata that it reads;
 * - `recognizes(bytes)`: whether a file begins like one of its own;
 * - `unpack(bytes)`: the metadata and the vocabularies of a file, bytes by name, `{}` without any,
 *   or a promise of them; a `RangeError` if the file is damaged;
 * - `start()`: a promise of its package, which is imported only if such a file is opened;
 * - `open(library, bytes, metadata)`: a promise of the model in a file, an object with
 *   - `search`: the search of a model that generates text, its kind under `search` with its
 *     settings (see `search.js`); null if the model answers in one pass;
 *   - `shapeFor(count, length)`: the shape of a batch for at most `count` inputs, of which the
 *     longest has `length`: an object with `batch_size` and `source_length`;
 *   - `run(shape, inputs)`: a promise of the outputs, typed arrays by name, for inputs
 *     `[array, dimensions]` by name;
 *   - `stream()`, of a file that was exported with `--streaming`: the keys and values of a text, an
 *     object with `next(inputs, read, settings)`: a promise of the token after the ids `inputs`, of
 *     which the first `read` ones were also the first ones of the call before; `settings` are
 *     inputs of the file;
 * - `advice(metadata)`, which a runtime may leave out: a better form for a file that is slow, or null.
 *
 * A new runtime is a module, and an entry in `RUNTIMES`.
 */

import { runtime as litert } from "./litert.js";
import { runtime as onnx } from "./onnx.js";
import { hasVocabularies, readVocabularies } from "./vocabulary.js";

const RUNTIMES = [litert, onnx];

/**
 * Returns the model in a file, as `open` above, with its `metadata`, which include the `advice`, and
 * its `vocabularies`.
 *
 * @param {string} url Address of the file.
 * @param {(share: number) => void} report Called with the share of the file that has been loaded.
 */
export async function loadModel(url, report = () => {}) {
  let runtime, starting;
  // The package arrives while the file does. The download is finished even if the package is
  // missing, because its progress reports would replace the error message.
  const bytes = await download(url, report, (head) => {
    runtime = runtimeOf(url, head);
    starting = start(runtime);
    starting.catch(() => {});
  });
  const library = await starting;
  const { metadata, vocabularies } = await readMembers(runtime, bytes, url);
  const opening = runtime.open(library, bytes, metadata);
  const model = await opening.catch((cause) => {
    throw new Error(`${runtime.title} cannot read ${url}: ${cause.message ?? cause}`, { cause });
  });
  const advice = runtime.advice?.(metadata) ?? null;
  return { ...model, metadata: { ...metadata, advice }, vocabularies };
}

/** Returns the runtime for a file with these first bytes, or if they are damaged, for its name. */
function runtimeOf(url, head) {
  const runtime = RUNTIMES.find(({ recognizes }) => recognizes(head)) ?? named(url);
  if (runtime) return runtime;
  const suffixes = RUNTIMES.map(({ suffix }) => suffix).join(" or ");
  throw new Error(`${url} is not a file that this page can read: ${suffixes}.`);
}

const named = (url) =>
  RUNTIMES.find(({ suffix }) => String(url).split(/[?#]/)[0].endsWith(suffix));

function start(runtime) {
  return runtime.start().catch((cause) => {
    const advice = "run `npm install` in the folder of this page";
    throw new Error(`${runtime.title} is missing or damaged: ${advice}.`, { cause });
  });
}

/** Returns the bytes of a file; `begin` is called with the first of them. */
async function download(url, report, begin) {
  const silence = () => ({ status: "the server does not answer" });
  // "no-cache" makes the browser check whether the file has changed, after a new export.
  const response = await fetch(url, { cache: "no-cache" }).catch(silence);
  if (!response.ok) {
    const { command, suffix } = named(url) ?? RUNTIMES[0];
    const name = named(url) ? `${url}`.split(/[?#]/)[0].split("/").at(-1) : `model${suffix}`;
    const make = `Write it with: ${command} RUN examples/browser/${name}`;
    throw new Error(`There is no model at ${url} (${response.status}). ${make}`);
  }
  const expected = Number(response.headers.get("Content-Length"));
  const chunks = [];
  let received = 0;
  for (const reader = response.body.getReader(); ;) {
    const { done, value = new Uint8Array() } = await reader.read();
    if (chunks.length === 0) begin(value);
    if (done) return new Uint8Array(await new Blob(chunks).arrayBuffer());
    chunks.push(value);
    received += value.length;
    // The length of a compressed response is less than that of its contents.
    if (expected) report(Math.min(1, received / expected));
  }
}

async function readMembers(runtime, bytes, url) {
  const members = await Promise.resolve(bytes).then(runtime.unpack).catch((cause) => {
    const damaged = cause instanceof RangeError; // of a reader that comes to the end of the bytes
    throw damaged ? new Error(`${url} is damaged: its contents cannot be read.`, { cause }) : cause;
  });
  if (!members["metadata.json"] || !hasVocabularies(members)) {
    throw new Error(`${url} was not written by \`${runtime.command}\`: it contains no vocabulary.`);
  }
  const metadata = JSON.parse(new TextDecoder().decode(members["metadata.json"]));
  if (metadata.format !== runtime.format) {
    throw new Error(`${url} has format ${metadata.format}; this page reads format ${runtime.format}.`);
  }
  return { metadata, vocabularies: readVocabularies(members) };
}
