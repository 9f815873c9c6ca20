// node bergamot.mjs PACKAGE MODEL.bin VOCAB.spm [SHORTLIST] < LINES: translates line by line, as
// browsers do.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

const [folder, model, vocabulary, lists] = process.argv.slice(2);
const {BatchTranslator, TranslatorBacking} = await import(pathToFileURL(join(folder, 'translator.js')));

function buffer(file) {
  const bytes = readFileSync(file);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

class Local extends TranslatorBacking {
  async loadModelRegistery() {
    return [{from: 'en', to: 'de', files: {}}];
  }
  async loadTranslationModel() {
    const shortlist = lists ? buffer(lists) : new ArrayBuffer(0);
    return {model: buffer(model), shortlist, vocabs: [buffer(vocabulary)]};
  }
}

const options = {workers: 1, batchSize: 1};
const translator = new BatchTranslator(options, new Local(options));
for (const text of readFileSync(0, 'utf8').split('\n')) {
  const response = await translator.translate({from: 'en', to: 'de', text, html: false});
  console.log(response.target.text);
}
await translator.delete();
process.exit(0);
