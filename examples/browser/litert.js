/** LiteRT.js, in a page or in a worker: without an import map, which workers do not have. */

const PACKAGES = new URL("node_modules/@litertjs/", import.meta.url);
let loading;

/** Returns the module `@litertjs/core` with its WebAssembly loaded; always the same one. */
export function loadLiteRt() {
  loading ??= load();
  return loading;
}

async function load() {
  try {
    const litert = await importPackage("core", { "@litertjs/wasm-utils": "wasm-utils" });
    const folder = new URL("core/wasm/", PACKAGES).href;
    // In a worker its script would look for the WebAssembly beside that of the worker.
    globalThis.Module = { locateFile: (name) => folder + name };
    await litert.loadLiteRt(folder);
    return litert;
  } catch (cause) {
    loading = undefined; // the next call tries again
    const advice = "run `npm install` in the folder of this page";
    throw new Error(`LiteRT.js is missing or damaged: ${advice}.`, { cause });
  }
}

const entryOf = (name) => new URL(`${name}/dist/index.js`, PACKAGES).href;

/**
 * Imports a package whose own imports are names of packages, which only a page's import map could
 * resolve: their addresses replace them.
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
