/**
 * The chat template of an instruct model: the messages of a conversation as texts and ids of tokens.
 *
 * A template is a program that comes with a checkpoint. It is interpreted, not executed, by the
 * package `@huggingface/jinja`, in the worker of the page.
 */

const PACKAGE = new URL("node_modules/@huggingface/jinja/dist/index.js", import.meta.url);
// Characters that Unicode reserves for programs, one of which marks what a user has written.
const MARKERS = Array.from({ length: 32 }, (_, number) => String.fromCodePoint(0xfdd0 + number));

export class ChatTemplate {
  /** @param {object} values The `chat_template` in the metadata of a file. */
  static async load(values) {
    const jinja = await import(PACKAGE.href).catch((cause) => {
      const advice = "run `npm install` in the folder of this page";
      throw new Error(`@huggingface/jinja is missing or damaged: ${advice}.`, { cause });
    });
    return new ChatTemplate(jinja, values);
  }

  constructor(jinja, { template, special, variables, spaces }) {
    if (spaces !== "each") {
      throw new Error(`This page cannot use the chat template: its spaces are "${spaces}".`);
    }
    this.special = new Map(Object.entries(special));
    this.variables = variables;
    this.template = new jinja.Template(template);
    const names = [...this.special.keys()].sort((one, other) => other.length - one.length);
    this.names = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
  }

  /**
   * Returns texts, and between them the ids of special tokens, with the beginning of an answer.
   *
   * Special tokens of the template become ids. The same characters in a message are ordinary text.
   *
   * @param {{ role: string, content: string }[]} messages The conversation.
   */
  parts(messages) {
    const written = messages.map(({ content }) => content).join("");
    const marker = MARKERS.find((mark) => !written.includes(mark));
    if (marker === undefined) throw new Error("The messages contain all reserved characters.");
    const marked = messages.map(({ role, content }) => ({ role, content: this.mark(content, marker) }));
    const text = this.render(marked);
    const pieces = this.names ? text.split(new RegExp(`(${this.names})`, "u")) : [text];
    return pieces
      .map((piece, place) => (place % 2 ? this.special.get(piece) : piece.replaceAll(marker, "")))
      .filter((part) => part !== "");
  }

  render(messages) {
    const given = { messages, add_generation_prompt: true, tools: null, documents: null };
    try {
      return this.template.render({ ...this.variables, ...given });
    } catch (cause) {
      const reason = String(cause?.message ?? cause).split("\n")[0];
      throw new Error(`The chat template refuses the conversation: ${reason}`, { cause });
    }
  }

  /** Returns a text in which no special token is found, and none begins at the end. */
  mark(content, marker) {
    if (!this.names) return content;
    const split = (name) => {
      const [first, ...rest] = [...name];
      return first + marker + rest.join("");
    };
    let text = content.replace(new RegExp(this.names, "gu"), split);
    for (const name of this.special.keys()) {
      for (let size = name.length - 1; size > 0; size--) {
        if (!text.endsWith(name.slice(0, size))) continue;
        const cut = text.length - size + 1;
        text = text.slice(0, cut) + marker + text.slice(cut);
        break;
      }
    }
    return text;
  }
}
