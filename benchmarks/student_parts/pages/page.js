/** What `browser.py` calls: an engine is loaded, then it translates one batch many times. */

let translate;
let texts;

globalThis.students = {
  /** Loads an engine's module; returns what it makes of the texts. */
  async load(module, files, batch) {
    texts = batch;
    translate = await (await import(module)).load(files, batch.length);
    return translate(texts);
  },
  async run(steps) {
    for (let step = 0; step < steps; step += 1) await translate(texts);
  },
};
