/**
 * .tflite files of `keras-transformer export litert`, run by LiteRT.js. See `model.js`.
 *
 * The package is loaded without an import map, because workers do not support them.
 */

import { readArchive } from "./archive.js";

const PACKAGES = new URL("node_modules/@litertjs/", import.meta.url);
let loading;

export const runtime = {
  title: "LiteRT.js",
  suffix: ".tflite",
  command: "keras-transformer export litert",
  format: 3,
  recognizes: (bytes) => String.fromCharCode(...bytes.subarray(4, 8)) === "TFL3",
  unpack: readArchive,
  start: loadLiteRt,
  open,
};

/** Returns the module `@litertjs/core` with its WebAssembly loaded; always the same one. */
export function loadLiteRt() {
  loading ??= load().catch((cause) => {
    loading = undefined; // the next call tries again
    throw cause;
  });
  return loading;
}

async function load() {
  const litert = await importPackage("core", { "@litertjs/wasm-utils": "wasm-utils" });
  const folder = new URL("core/wasm/", PACKAGES).href;
  // In a worker, its script would look for the WebAssembly file beside the script of the worker.
  globalThis.Module = { locateFile: (name) => folder + name };
  await litert.loadLiteRt(folder);
  return litert;
}

const entryOf = (name) => new URL(`${name}/dist/index.js`, PACKAGES).href;

/**
 * Imports a package that imports other packages by name. The names, which only the import map of a
 * page could resolve, are replaced by addresses.
 */
async function importPackage(name, packages) {
  const response = await fetch(entryOf(name));
  if (!response.ok) throw new Error(`${entryOf(name)}: ${response.status}`);
  let code = await response.text();
  for (const [specifier, folder] of Object.entries(packages)) {
    code = code.replaceAll(`"${specifier}"`, JSON.stringify(entryOf(folder)));
  }
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function open(litert, bytes, metadata) {
  // On the CPU, because the export was checked with its kernels.
  const model = await litert.loadAndCompile(bytes, { accelerator: "wasm" });
  if (metadata.streaming) {
    return { search: metadata.search, stream: () => streamOf(litert, model, metadata) };
  }
  return signaturesOf(litert, model, metadata);
}

/** Returns the keys and values of a text; see `stream` in `model.js`. */
function streamOf(litert, model, { signatures, streaming, max_length: longest, tokens }) {
  const known = [...signatures].sort((one, other) =>
    one.target_length - other.target_length || other.source_length - one.source_length);
  const single = (count) => count === 1;
  let heads = [], room = 0; // positions of the arrays
  return {
    async next(inputs, read, settings) {
      const text = new Int32Array(longest).fill(tokens.pad);
      text.set(inputs.slice(1));
      for (let at = read; ;) {
        const unread = inputs.length - at;
        const signature = known.find(({ source_length: size, target_length: length }) =>
          length >= Math.min(at + size, inputs.length) && single(size) === single(unread));
        const { source_length: size, target_length: length } = signature;
        const start = Math.min(at, longest - size), count = Math.min(size, inputs.length - start);
        heads = streaming.heads.map((sizes, place) => resized(heads[place], sizes, room, length));
        room = length;
        const outputs = await run(litert, model, signature, {
          ...settings,
          text: [text, [1, longest]],
          count: [Int32Array.of(inputs.length - 1), [1]],
          start: [Int32Array.of(start), [1]],
          ...pastOf(heads, streaming.heads, length),
        });
        streaming.heads.forEach(([batch, groups, width], place) => {
          const part = outputs[`new_${place}`];
          for (let row = 0; row < batch * groups; row++) {
            const begin = row * size * width;
            heads[place].set(
              part.subarray(begin, begin + count * width), (row * length + start) * width,
            );
          }
        });
        at = start + count;
        if (at === inputs.length) return outputs.token[0];
      }
    },
  };
}

/** Returns an array of heads for some number of positions, which begins like another one. */
function resized(array, [batch, groups, width], before, length) {
  if (array !== undefined && before === length) return array;
  const result = new Float32Array(batch * groups * length * width);
  const common = Math.min(before, length) * width;
  for (let row = 0; row < batch * groups && array !== undefined; row++) {
    const begin = row * before * width;
    result.set(array.subarray(begin, begin + common), row * length * width);
  }
  return result;
}

const pastOf = (heads, sizes, length) => Object.fromEntries(heads.map((array, place) => {
  const [batch, groups, width] = sizes[place];
  return [`past_${place}`, [array, [batch, groups, length, width]]];
}));

/** Returns the model of a file whose signatures have fixed shapes. */
export function signaturesOf(litert, model, { signatures, beam }) {
  const greedy = signatures.filter((signature) => signature.beam_size === null);
  const chosen = (greedy.length > 0 ? greedy : [...signatures])
    .sort((one, other) => one.source_length - other.source_length);
  if (!chosen.some((signature) => signature.batch_size === 1)) {
    throw new Error("The file has no signature for a single input: export it with batch size 1.");
  }
  // Only models that answer in one pass have outputs of length 1.
  const generates = signatures.some(({ target_length: length }) => length > 1);
  const search = greedy.length > 0 ? { search: "greedy" } : { ...beam, search: "beam" };
  return {
    search: generates ? search : null,
    shapeFor: (count, length) => choose(chosen, count, length),
    run: (shape, inputs) => (shape.unrolled ? repeat : run)(litert, model, shape, inputs),
  };
}

/** Returns the signature with the largest batch to fill, and of these the shortest that fits. */
function choose(signatures, count, length) {
  const fitting = signatures.filter(
    (signature) => signature.batch_size <= count && signature.source_length >= length,
  );
  const most = Math.max(...fitting.map((signature) => signature.batch_size));
  return fitting.find((signature) => signature.batch_size === most);
}

/** Returns the outputs of a signature for inputs `[array, dimensions]` by name. */
async function run(litert, model, { name }, given) {
  const inputs = tensorsOf(litert, given);
  let outputs = {};
  try {
    outputs = await model.run(name, inputs);
    return arraysOf(outputs);
  } finally {
    free(inputs, outputs);
  }
}

/**
 * Returns the outputs of a search whose loop is here: `encode` returns a state, and `step`, which
 * takes the state and returns what changes of it, is repeated. The state stays with the runtime.
 */
async function repeat(litert, model, { unrolled }, given) {
  const inputs = tensorsOf(litert, given);
  let state = {};
  let outputs = {};
  try {
    state = await model.run(unrolled.encode, inputs);
    for (;;) {
      outputs = await model.run(unrolled.step, { ...inputs, ...state });
      if (outputs.running.toTypedArray()[0] === 0) return arraysOf(outputs);
      for (const { name, changes } of unrolled.state) {
        if (changes) [state[name], outputs[name]] = [outputs[name], state[name]];
      }
      free(outputs);
      outputs = {};
    }
  } finally {
    free(inputs, state, outputs);
  }
}

function tensorsOf(litert, given) {
  const tensors = {};
  for (const [name, [array, shape]] of Object.entries(given)) {
    tensors[name] = new litert.Tensor(array, shape);
  }
  return tensors;
}

const arraysOf = (tensors) => Object.fromEntries(
  Object.entries(tensors).map(([name, tensor]) => [name, tensor.toTypedArray()]),
);

/** Tensors are in WebAssembly's memory, which is not garbage-collected. */
function free(...groups) {
  for (const tensors of groups) {
    for (const tensor of Object.values(tensors)) tensor.delete();
  }
}
