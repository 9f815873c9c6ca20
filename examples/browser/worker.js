/**
 * The worker of `client.js`. It answers messages in order and reports the progress of a download.
 *
 * It is a classic worker, because LiteRT.js loads its WebAssembly with `importScripts`, which
 * module workers do not have.
 */

let loaded;

const commands = {
  async load({ url, kind }) {
    const { Translator, Transcriber } = await import(`./${kind}.js`);
    loaded = await (Translator ?? Transcriber).load(url, (share) => postMessage({ share }));
    return loaded.metadata;
  },
  translate: ({ sentence }) => timed(() => loaded.translate(sentence)),
  transcribe: ({ samples, choices }) => timed(() => loaded.transcribe(samples, choices)),
};

async function timed(run) {
  const begin = performance.now();
  const result = await run();
  return { ...result, milliseconds: performance.now() - begin };
}

onmessage = async ({ data: { command, ...request } }) => {
  try {
    postMessage({ result: await commands[command](request) });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};
