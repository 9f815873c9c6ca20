/** .onnx files of `keras-transformer export onnx`, run by ONNX Runtime Web. See `model.js`. */

import { last, readMessage, text } from "./protobuf.js";

const FOLDER = new URL("node_modules/onnxruntime-web/dist/", import.meta.url);
const SCRIPT = "ort.wasm.bundle.min.mjs", WASM = "ort-wasm-simd-threaded.wasm";
const METADATA_PROPS = 14, KEY = 1, VALUE = 2; // fields of ModelProto and StringStringEntryProto
const IR_VERSION = 8; // first byte of a ModelProto: the tag of `ir_version`
const TEXT = "metadata.json"; // all other members are in Base64
const LARGEST = 32; // rows of a batch, so that their memory stays small
const SLOW = ["int8", "int4"]; // weights in blocks, of a file for streams of tokens
const TYPES = { Int32Array: "int32", Float32Array: "float32" };

export const runtime = {
  title: "ONNX Runtime Web",
  suffix: ".onnx",
  command: "keras-transformer export onnx",
  format: 1,
  recognizes,
  unpack,
  start,
  open,
  advice,
};

/** ONNX Runtime Web multiplies by weights in blocks after it has converted all of them, in each step. */
function advice({ streaming, quantize }) {
  if (!streaming || !SLOW.includes(quantize)) return null;
  return `An .onnx file in ${quantize} is slow in browsers. Export a .tflite file in int8 instead: ` +
    "keras-transformer export litert RUN model.tflite --streaming --quantize int8";
}

function recognizes(bytes) {
  return bytes[0] === IR_VERSION;
}

/** Returns the module `onnxruntime-web`, which loads its WebAssembly when it opens a file. */
async function start() {
  const ort = await import(new URL(SCRIPT, FOLDER).href);
  const wasm = new URL(WASM, FOLDER).href;
  const { ok, status } = await fetch(wasm, { method: "HEAD" });
  if (!ok) throw new Error(`${wasm}: ${status}`);
  ort.env.logLevel = "error";
  // The server has the package in a folder of its own. More threads would need SharedArrayBuffer.
  Object.assign(ort.env.wasm, { numThreads: 1, wasmPaths: { wasm } });
  return ort;
}

/** Returns the members that a model holds in its `metadata_props`: bytes by name. */
function unpack(bytes) {
  if (!recognizes(bytes)) return {};
  const entries = (readMessage(bytes)[METADATA_PROPS] ?? []).map((entry) => {
    const fields = readMessage(entry);
    const name = text(last(fields, KEY)), value = last(fields, VALUE);
    return [name, name === TEXT ? value : fromBase64(text(value))];
  });
  return Object.fromEntries(entries);
}

const fromBase64 = (value) => Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0));

/** Opens a model whose graph takes any number of rows of any length. */
async function open(ort, bytes, metadata) {
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  return {
    search: metadata.search ?? null,
    shapeFor: (count, length) => ({
      batch_size: Math.min(count, LARGEST), source_length: length,
    }),
    run: (shape, inputs) => run(ort, session, inputs),
    stream: metadata.streaming && (() => streamOf(ort, session, metadata.streaming)),
  };
}

/** Returns the keys and values of a text; see `stream` in `model.js`. */
function streamOf(ort, session, { heads: sizes }) {
  let heads = sizes.map(([batch, groups, size]) =>
    new ort.Tensor("float32", new Float32Array(0), [batch, groups, 0, size]));
  return {
    async next(inputs, read, settings) {
      const past = heads.map((tensor) => first(ort, tensor, read));
      const text = Int32Array.from(inputs.slice(1));
      const given = { text: [text, [1, text.length]], ...settings };
      const tensors = Object.fromEntries(past.map((tensor, place) => [`past_${place}`, tensor]));
      const outputs = await session.run({ ...tensorsOf(ort, given), ...tensors });
      heads = past.map((_, place) => outputs[`present_${place}`]);
      return outputs.token.data[0];
    },
  };
}

/** Returns the heads of the first positions. */
function first(ort, tensor, count) {
  const [batch, groups, length, size] = tensor.dims;
  if (length === count) return tensor;
  const data = new Float32Array(batch * groups * count * size);
  for (let row = 0; row < batch * groups; row++) {
    const begin = row * length * size;
    data.set(tensor.data.subarray(begin, begin + count * size), row * count * size);
  }
  return new ort.Tensor("float32", data, [batch, groups, count, size]);
}

async function run(ort, session, inputs) {
  const outputs = await session.run(tensorsOf(ort, inputs));
  return Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, data]));
}

/** Returns the tensors of arrays `[array, dimensions]` by name. */
function tensorsOf(ort, inputs) {
  return Object.fromEntries(Object.entries(inputs).map(([name, [array, dimensions]]) =>
    [name, new ort.Tensor(TYPES[array.constructor.name], array, dimensions)]));
}
