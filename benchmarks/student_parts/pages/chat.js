/** keras_transformer: the chat of examples/browser; an answer is JSON with its times and tokens. */

import { Chat } from "/page/chat.js";

export async function load([model]) {
  const chat = await Chat.load(model);
  return async (texts) => {
    const answers = [];
    for (const text of texts) answers.push(JSON.stringify(await answerOf(chat, text)));
    return answers;
  };
}

/** Returns the answer to a message of a new conversation, and the milliseconds of its tokens. */
async function answerOf(chat, text) {
  const { content, tokens: most } = JSON.parse(text), tokens = [];
  chat.clear();
  chat.text.ids = []; // nothing is kept from another conversation
  const ids = chat.ids([{ role: "user", content }]), times = [performance.now()];
  const search = { search: "greedy", max_length: most };
  for await (const token of chat.text.generate(ids, search)) {
    tokens.push(token);
    times.push(performance.now());
  }
  return { prompt: ids.length, tokens, times, text: chat.vocabulary.decode(tokens) };
}
