/**
 * The worker of `client.js`: it answers each message with one, in order, and reports a download.
 *
 * A classic worker: LiteRT.js loads its WebAssembly with `importScripts`, which modules lack.
 */

let translator;

const commands = {
  async load({ url }) {
    const { Translator } = await import("./translate.js");
    translator = await Translator.load(url, (share) => postMessage({ share }));
    return translator.metadata;
  },
  async translate({ sentence }) {
    const begin = performance.now();
    const translation = await translator.translate(sentence);
    return { ...translation, milliseconds: performance.now() - begin };
  },
};

onmessage = async ({ data: { command, ...request } }) => {
  try {
    postMessage({ result: await commands[command](request) });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};
