/** Byte-level BPE, the tokenizer of GPT-2, RoBERTa, BART and Llama 3: text to token ids and back. */

import { makeComposer } from "./nfc.js";
import { specialIds, written } from "./unicode.js";

const SPACE = " ";
const BYTES_PER_TOKEN = 64;
const LETTERS = lettersOfBytes();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));

export class ByteBpe {
  /**
   * @param {object} vocabulary The contents of `tokenizer.bpe.json`.
   * @param {object} unicode The contents of `tokenizer.unicode.json`.
   */
  constructor(vocabulary, unicode) {
    this.pieces = vocabulary.pieces;
    this.ids = new Map(this.pieces.map((piece, id) => [piece, id]));
    this.special = specialIds(vocabulary.special, this.ids);
    this.startsWithBos = vocabulary.starts_with_bos;
    this.prefixSpace = vocabulary.prefix_space;
    this.wholeWords = new Set(vocabulary.whole_words ?? []);
    this.noText = new Set(vocabulary.no_text ?? []); // such as timestamps
    this.ranks = new Map(); // of the pieces that merges make, by the first pair of each
    for (const [number, pair] of vocabulary.merges.entries()) {
      const piece = pair.join("");
      if (!this.ranks.has(piece)) this.ranks.set(piece, number);
    }
    this.bytesPerToken = BYTES_PER_TOKEN;
    for (const piece of this.ranks.keys()) {
      this.bytesPerToken = Math.max(this.bytesPerToken, bytesOf(piece).length);
    }
    this.pattern = new RegExp(unicode.words, "gu");
    this.found = patternOf(vocabulary.found ?? []);
    if (![undefined, "nfc"].includes(vocabulary.normalization)) {
      throw new Error(`This page cannot normalise texts by ${vocabulary.normalization}.`);
    }
    this.compose = vocabulary.normalization ? makeComposer(unicode) : placed;
  }

  /**
   * Returns tokens without those for the beginning and the end: `{ id, piece, begin, end }`, where
   * `begin` and `end` are the offsets of the token's word in the text, without a space before it.
   */
  encode(text) {
    const parts = [];
    let at = 0;
    for (const match of this.found ? text.matchAll(this.found) : []) {
      parts.push(this.encodePart(text.slice(at, match.index), at), this.foundToken(match));
      at = match.index + match[0].length;
    }
    return [...parts, this.encodePart(text.slice(at), at)].flat();
  }

  /** Returns the tokens of a word of a text; `first` is true at the very beginning of the text. */
  encodeWord(word, first) {
    return this.encode(first ? word : SPACE + word);
  }

  foundToken({ 0: piece, index }) {
    const end = index + piece.length;
    const begin = /^[ \t\n\v\f\r]*$/.test(piece) ? end : index;
    return { id: this.ids.get(piece), piece, begin, end };
  }

  /** Returns the tokens of a text between found tokens that begins at an offset. */
  encodePart(text, offset) {
    if (text === "") return [];
    const added = this.prefixSpace && !text.startsWith(SPACE);
    // A space that is added has no place of its own.
    const space = added ? [{ text: SPACE, begin: 0, end: 0 }] : [];
    const characters = [...space, ...this.compose(text)];
    const composed = characters.map((character) => character.text).join("");
    const tokens = [];
    let number = 0;
    for (const [word] of composed.matchAll(this.pattern)) {
      const own = characters.slice(number, number + [...word].length);
      number += own.length;
      const end = own.at(-1).end;
      const begin = own.find((character) => character.text !== SPACE)?.begin ?? end;
      for (const piece of this.split(word)) {
        const id = this.ids.get(piece);
        tokens.push({ id, piece, begin: offset + begin, end: offset + end });
      }
    }
    return tokens;
  }

  /** Returns the pieces of a word: neighbours are merged, the pair of the lowest rank first. */
  split(word) {
    const letters = [...new TextEncoder().encode(word)].map((byte) => LETTERS[byte]);
    const whole = letters.join("");
    if (this.wholeWords.has(whole)) return [whole];
    const symbols = letters.filter((letter) => this.ids.has(letter)); // some lack a few bytes
    const rankOf = (at) => this.ranks.get(symbols[at] + symbols[at + 1]) ?? Infinity;
    const ranks = symbols.slice(1).map((_, at) => rankOf(at));
    for (;;) {
      let best = 0;
      for (let at = 1; at < ranks.length; at++) if (ranks[at] < ranks[best]) best = at;
      if (!(ranks[best] < Infinity)) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
      ranks.splice(best, 1);
      if (best > 0) ranks[best - 1] = rankOf(best - 1);
      if (best < ranks.length) ranks[best] = rankOf(best);
    }
  }

  /** Decodes ids to text, up to the first end. Bytes that are no UTF-8 become U+FFFD. */
  decode(ids) {
    const pieces = written(ids, this.special).map((id) => this.pieces[id]);
    const bytes = pieces.filter((piece) => !this.noText.has(piece)).flatMap((piece) => [...bytesOf(piece)]);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }

  /** Returns the piece of an id, for display. */
  pieceOf(id) {
    return this.pieces[id] ?? "";
  }
}

/** Returns the characters of a text, `{ text, begin, end }`. */
function placed(text) {
  let end = 0;
  return [...text].map((character) => {
    end += character.length;
    return { text: character, begin: end - character.length, end };
  });
}

/** Returns the pattern that finds tokens in a text, the longest at each place, if there are any. */
function patternOf(found) {
  if (found.length === 0) return undefined;
  const sorted = [...found].sort((one, other) => [...other].length - [...one].length);
  return new RegExp(sorted.map((token) => token.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "gu");
}

/** Returns the bytes of a piece; one with other letters, such as a special token, is text. */
function bytesOf(piece) {
  const letters = [...piece];
  if (!letters.every((letter) => BYTES.has(letter))) return new TextEncoder().encode(piece);
  return Uint8Array.from(letters, (letter) => BYTES.get(letter));
}

/** Returns the letter that stands for each byte: its own in Latin-1, or one from U+0100 on. */
function lettersOfBytes() {
  const isOwn = (byte) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
  let other = 0x100;
  return [...Array(256).keys()].map((byte) => String.fromCodePoint(isOwn(byte) ? byte : other++));
}
