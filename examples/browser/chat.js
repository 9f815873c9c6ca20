/** Conversations with an instruct model in a file of `keras-transformer export ... --streaming`. */

import { ChatTemplate } from "./chat-template.js";
import { KeptText } from "./kept-text.js";
import { loadModel } from "./model.js";

const SHARE = 4; // one in so many positions is left to an answer
const UNFINISHED = /\ufffd+$/u; // bytes that are no character, perhaps not yet

export class Chat {
  /**
   * @param {string} url Address of the .onnx or .tflite file.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report = () => {}) {
    const file = await loadModel(url, report), streaming = file.metadata.streaming;
    if (!streaming) throw new Error(`${url} holds no chats: export it with --streaming.`);
    if (!streaming.chat_template) throw new Error(`${url} holds no chat template.`);
    return new Chat(file, await ChatTemplate.load(streaming.chat_template));
  }

  /**
   * @param {object} file The result of `loadModel`.
   * @param {ChatTemplate} template The template.
   */
  constructor(file, template) {
    this.metadata = file.metadata;
    this.vocabulary = file.vocabularies.target;
    this.template = template;
    this.search = file.metadata.search; // may be changed
    this.silent = new Set(template.special.values());
    this.text = new KeptText(file);
    this.messages = [];
    this.dropped = 0; // oldest messages that the model does not see
    this.complete = true; // whether the last answer ended before its maximum length
  }

  /** Begins a new conversation. */
  clear() {
    this.messages = [];
    this.dropped = 0;
    this.complete = true;
  }

  /**
   * Yields the parts of the answer to a message, which together are the answer. If the iteration is
   * not finished, the conversation contains the answer until then. After an error, the conversation
   * is as before the message.
   *
   * @param {string} content The message of the user.
   */
  async *stream(content) {
    const { messages, dropped, complete } = this;
    try {
      yield* this.answer(content);
    } catch (error) {
      Object.assign(this, { messages, dropped, complete });
      throw error;
    }
  }

  async *answer(content) {
    const messages = [...this.messages, { role: "user", content }];
    const prompt = this.prompt(messages); // which may refuse it
    const answer = { role: "assistant", content: "" };
    this.messages = [...messages, answer];
    this.complete = false;
    const ids = [];
    const rest = (whole) => whole.slice(answer.content.length);
    for await (const token of this.text.generate(prompt, this.search)) {
      if (token === this.metadata.tokens.eos) {
        this.complete = true;
        break;
      }
      if (this.silent.has(token)) continue;
      ids.push(token);
      const whole = this.vocabulary.decode(ids);
      const part = whole.startsWith(answer.content) ? rest(whole.replace(UNFINISHED, "")) : "";
      answer.content += part;
      if (part) yield part;
    }
    const part = ids.length ? rest(this.vocabulary.decode(ids)) : "";
    answer.content += part;
    if (part) yield part;
  }

  /** Returns the ids of a prompt, and counts the oldest messages that have no place in it. */
  prompt(messages) {
    const first = messages[0].role === "system" ? 1 : 0, longest = this.metadata.max_length;
    const most = this.search.max_length ?? longest;
    const room = Math.max(1, Math.min(most, longest, Math.floor(longest / SHARE)));
    for (this.dropped = 0; ; this.dropped += 2) { // a message and its answer
      const kept = [...messages.slice(0, first), ...messages.slice(first + this.dropped)];
      const ids = this.ids(kept);
      if (ids.length + room <= longest) return ids;
      if (kept.length === first + 1) {
        throw new Error(
          `The message is too long: its prompt has ${ids.length} tokens, and the model has ` +
          `${longest} positions, of which ${room} are for the answer.`,
        );
      }
    }
  }

  /** Returns the ids of a conversation, without the token that begins a text. */
  ids(messages) {
    const ids = this.template.parts(messages).flatMap((part) =>
      (typeof part === "number" ? [part] : this.vocabulary.encode(part).map(({ id }) => id)));
    const begins = !this.metadata.streaming.hides_start && ids[0] === this.metadata.tokens.bos;
    return begins ? ids.slice(1) : ids;
  }
}
