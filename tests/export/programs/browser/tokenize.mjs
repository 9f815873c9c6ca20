/** `node tokenize.mjs PAGE < request`: runs the page's modules on sentences, ids and files. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(`${process.argv[2]}/${name}`).href);
const { readArchive } = await load("archive.js");
const { Classifier } = await load("classify.js");
const { signaturesOf } = await load("litert.js");
const { SentencePiece } = await load("sentencepiece.js");
const { Transcriber } = await load("transcribe.js");
const { Translator } = await load("translate.js");
const { Vocabulary, readVocabularies } = await load("vocabulary.js");

const commands = {
  tokenize({ model, sentences, rows }) {
    const vocabulary = new SentencePiece(readFileSync(model));
    return {
      ids: sentences.map((sentence) => vocabulary.encode(sentence).map(({ id }) => id)),
      texts: rows.map((row) => vocabulary.decode(row)),
    };
  },
  truncated({ model, sentences, metadata }) {
    const source = new Vocabulary(readFileSync(model));
    const file = signaturesOf(null, null, metadata);
    const translator = new Translator({ ...file, metadata, vocabularies: { source } });
    return sentences.map((sentence) => {
      const { tokens, truncated, empty } = translator.encode(sentence);
      return [tokens.map(({ id }) => id), truncated, empty];
    });
  },
  /** Returns the ids, offsets and tokens of sentences, and the texts of rows of target ids. */
  vocabularies({ files, sentences, rows }) {
    const members = Object.entries(files).map(([name, path]) => [name, readFileSync(path)]);
    const { source, target } = readVocabularies(Object.fromEntries(members));
    const encoded = sentences.map((sentence) => source.encode(sentence));
    return {
      ids: encoded.map((tokens) => tokens.map(({ id }) => id)),
      places: encoded.map((tokens) => tokens.map(({ begin, end }) => [begin, end])),
      pieces: encoded.map((tokens) => tokens.map(({ piece }) => piece)),
      texts: rows.map((row) => target.decode(row)),
      names: rows.map((row) => row.map((id) => target.pieceOf(id))),
    };
  },
  /** Returns answers and the rows that went into a model whose probabilities depend on the ids. */
  async answer({ files, metadata, method, texts }) {
    const members = Object.entries(files).map(([name, path]) => [name, readFileSync(path)]);
    const vocabularies = readVocabularies(Object.fromEntries(members));
    const count = metadata.labels.length, sources = [];
    const model = {
      run(name, { source: { values } }) {
        sources.push([name, [...values]]);
        const ids = metadata.task === "token_classification" ? [...values] : [values.reduce((a, b) => a + b)];
        const rows = ids.map((id) => [...Array(count).keys()].map((label) => Number(label === id % count)));
        return { probabilities: new Tensor(Float32Array.from(rows.flat())) };
      },
    };
    const file = signaturesOf({ Tensor }, model, metadata);
    const classifier = new Classifier({ ...file, metadata, vocabularies });
    const answers = [];
    for (const text of texts) answers.push(await classifier[method](text));
    return { answers, sources };
  },
  /** Returns transcripts, or errors, and the inputs that a model got which emits given tokens. */
  async transcribe({ files, metadata, tokens, calls, numbers = {} }) {
    const members = Object.entries(files).map(([name, path]) => [name, readFileSync(path)]);
    const vocabularies = readVocabularies(Object.fromEntries(members));
    const given = [];
    const model = {
      run(name, inputs) {
        const values = Object.entries(inputs).map(([key, tensor]) => [key, [...tensor.values]]);
        given.push([name, Object.fromEntries(values)]);
        const ids = Int32Array.from(tokens);
        const outputs = {
          tokens: ids, length: [tokens.length], score: [-2], complete: [1], ...numbers,
        };
        return Object.fromEntries(Object.entries(outputs).map(([key, x]) => [key, new Tensor(x)]));
      },
    };
    const file = signaturesOf({ Tensor }, model, metadata);
    const transcriber = new Transcriber({ ...file, metadata, vocabularies });
    const texts = [];
    for (const [count, choices] of calls) {
      const samples = new Float32Array(count).fill(0.5);
      const result = await transcriber.transcribe(samples, choices).catch(({ message }) => message);
      texts.push(result.text ?? result);
    }
    return { texts, given };
  },
  /** Returns the normalised letters of characters, with spaces around words. */
  spell({ files, ranges }) {
    const members = Object.entries(files).map(([name, path]) => [name, readFileSync(path)]);
    const { source } = readVocabularies(Object.fromEntries(members));
    return ranges.map(([first, last]) => {
      let text = "";
      for (let point = first; point <= last; point++) {
        text += source.spell(String.fromCodePoint(point)).join("");
      }
      return text;
    });
  },
  /** Returns the addresses that the worker of `client.js` gets for those that a page gives it. */
  async addresses({ page, urls }) {
    const { WorkerTranslator } = await load("client.js");
    const addresses = [];
    globalThis.document = { baseURI: page };
    globalThis.Worker = class {
      postMessage({ url }) {
        addresses.push(url);
        this.onmessage({ data: { result: {} } });
      }
    };
    for (const url of urls) await WorkerTranslator.load(url);
    return addresses;
  },
  async unpack({ file }) {
    const members = Object.entries(await readArchive(readFileSync(file)));
    return members.map(([name, bytes]) => [name, Buffer.from(bytes).toString("hex")]);
  },
};

class Tensor {
  constructor(values) {
    this.values = values;
  }
  toTypedArray() {
    return this.values;
  }
  delete() {}
}

const { command, ...request } = JSON.parse(readFileSync(0, "utf8"));
try {
  console.log(JSON.stringify({ result: await commands[command](request) }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
