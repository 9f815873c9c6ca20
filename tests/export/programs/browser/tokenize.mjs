/** `node tokenize.mjs PAGE < request`: what the page's modules make of sentences, ids and files. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(`${process.argv[2]}/${name}`).href);
const { readArchive } = await load("archive.js");
const { SentencePiece } = await load("sentencepiece.js");
const { Translator } = await load("translate.js");

const commands = {
  tokenize({ model, sentences, rows }) {
    const vocabulary = new SentencePiece(readFileSync(model));
    return {
      ids: sentences.map((sentence) => vocabulary.encode(sentence).map(({ id }) => id)),
      texts: rows.map((row) => vocabulary.decode(row)),
    };
  },
  cut({ model, sentences, facts }) {
    const translator = new Translator(null, null, facts, new SentencePiece(readFileSync(model)));
    return sentences.map((sentence) => {
      const { tokens, cut, empty } = translator.encode(sentence);
      return [tokens.map(({ id }) => id), cut, empty];
    });
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
