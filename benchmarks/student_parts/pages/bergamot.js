/** The browsers' engine in WebAssembly, without the queue that collects its batches. */

import { TranslatorBacking } from "/bergamot/translator.js";

const PAIR = { from: "en", to: "de" };

class Local extends TranslatorBacking {
  async loadModelRegistery() {
    return [{ ...PAIR, files: {} }];
  }
}

const read = async (url) => (await fetch(url)).arrayBuffer();

export async function load([model, vocabulary, lists]) {
  const { exports: engine } = await new Local({ cacheSize: 0 }).loadWorker();
  await engine.loadTranslationModel(PAIR, {
    model: await read(model),
    shortlist: lists ? await read(lists) : new ArrayBuffer(0),
    vocabs: [await read(vocabulary)],
  });
  return async (texts) => {
    const requests = texts.map((text) => ({ text, html: false, qualityScores: false }));
    const responses = await engine.translate({ models: [PAIR], texts: requests });
    return responses.map(({ target }) => target.text);
  };
}
