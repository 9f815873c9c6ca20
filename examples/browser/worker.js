/**
 * The worker of `client.js`. It answers messages in order, and reports the progress of a download and
 * the parts of an answer.
 *
 * It is a classic worker, because LiteRT.js loads its WebAssembly with `importScripts`, which
 * module workers do not have.
 */

let loaded;

const commands = {
  async load({ url, kind }) {
    const { Translator, Transcriber, Chat } = await import(`./${kind}.js`);
    loaded = await (Translator ?? Transcriber ?? Chat).load(url, (share) => postMessage({ share }));
    return loaded.metadata;
  },
  translate: ({ sentence }) => timed(() => loaded.translate(sentence)),
  transcribe: ({ samples, choices }) => timed(() => loaded.transcribe(samples, choices)),
  send: ({ content, begins }) => timed(() => answer(content, begins)),
};

let stopped = false;

/** Answers a message of a conversation, whose parts are posted, until `stop` is received. */
async function answer(content, begins) {
  if (begins) loaded.clear();
  const begin = performance.now();
  let first, text = "";
  stopped = false;
  for await (const part of loaded.stream(content)) {
    first ??= performance.now() - begin;
    text += part;
    postMessage({ part });
    await pause();
    if (stopped) break;
  }
  return { text, first, complete: loaded.complete, dropped: loaded.dropped };
}

/** Lets the worker receive messages; `setTimeout` would wait for 4 milliseconds. */
function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

async function timed(run) {
  const begin = performance.now();
  const result = await run();
  return { ...result, milliseconds: performance.now() - begin };
}

onmessage = async ({ data: { command, ...request } }) => {
  if (command === "stop") { // has no answer
    stopped = true;
    return;
  }
  try {
    postMessage({ result: await commands[command](request) });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};
