/**
 * The worker of `client.js`. It answers messages in order and reports the progress of a download.
 *
 * It is a classic worker, because LiteRT.js loads its WebAssembly with `importScripts`, which
 * module workers do not have.
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
