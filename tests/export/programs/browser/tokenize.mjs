/** `node tokenize.mjs PAGE < request`: runs the page's modules on sentences, ids and files. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(`${process.argv[2]}/${name}`).href);
const { readArchive } = await load("archive.js");
const { SentencePiece } = await load("sentencepiece.js");
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
  cut({ model, sentences, metadata }) {
    const source = new Vocabulary(readFileSync(model));
    const translator = new Translator(null, null, metadata, { source, target: source });
    return sentences.map((sentence) => {
      const { tokens, cut, empty } = translator.encode(sentence);
      return [tokens.map(({ id }) => id), cut, empty];
    });
  },
  /** Returns the ids and tokens of sentences, and the texts of rows of target ids. */
  vocabularies({ files, sentences, rows }) {
    const members = Object.entries(files).map(([name, path]) => [name, readFileSync(path)]);
    const { source, target } = readVocabularies(Object.fromEntries(members));
    const encoded = sentences.map((sentence) => source.encode(sentence));
    return {
      ids: encoded.map((tokens) => tokens.map(({ id }) => id)),
      pieces: encoded.map((tokens) => tokens.map(({ piece }) => piece)),
      texts: rows.map((row) => target.decode(row)),
      names: rows.map((row) => row.map((id) => target.pieceOf(id))),
    };
  },
  unpack({ file }) {
    const members = Object.entries(readArchive(readFileSync(file)));
    return members.map(([name, bytes]) => [name, Buffer.from(bytes).toString("hex")]);
  },
};

const { command, ...request } = JSON.parse(readFileSync(0, "utf8"));
try {
  console.log(JSON.stringify({ result: commands[command](request) }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
