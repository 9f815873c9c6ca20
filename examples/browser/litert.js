/** Loads LiteRT.js without an import map, because workers do not support them. */

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
    // In a worker, its script would look for the WebAssembly file beside the script of the worker.
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
