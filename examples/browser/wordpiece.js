/** WordPiece, BERT's tokenizer: conversion of text to token ids and back. */

import { classOf, specialIds, written } from "./unicode.js";

const SPACE = " ";
const CONTINUATION = "##"; // prefix of a token that continues a word

export class WordPiece {
  /**
   * @param {object} vocabulary The contents of `tokenizer.wordpiece.json`.
   * @param {object} classes The contents of `tokenizer.unicode.json`.
   */
  constructor(vocabulary, classes) {
    this.pieces = vocabulary.pieces;
    this.ids = new Map(this.pieces.map((piece, id) => [piece, id]));
    this.longestPiece = this.pieces.reduce((most, { length }) => Math.max(most, length), 0);
    this.longestWord = vocabulary.longest_word;
    this.special = specialIds(vocabulary.special, this.ids);
    this.startsWithBos = true;
    this.bytesPerToken = 64;
    this.spell = makeSpeller(vocabulary.normalizer, classes);
  }

  /**
   * Returns tokens without those for the beginning and the end: `{ id, piece, begin, end }`, where
   * `begin` and `end` are the offsets of the token's word in the text.
   */
  encode(text) {
    return this.words(text).flatMap(({ letters, begin, end }) =>
      this.split(letters).map((id) => ({ id, piece: this.pieces[id], begin, end })),
    );
  }

  /** Returns the tokens of a word of a text. */
  encodeWord(word) {
    return this.encode(word);
  }

  /** Returns the normalised words of a text, each with its letters and offsets. */
  words(text) {
    const words = [];
    let open = false, at = 0;
    for (const character of text) {
      const begin = at;
      at += character.length;
      for (const letter of this.spell(character)) {
        if (letter === SPACE) {
          open = false;
          continue;
        }
        if (!open) words.push({ letters: [], begin });
        open = true;
        words.at(-1).letters.push(letter);
        words.at(-1).end = at;
      }
    }
    return words;
  }

  /** Returns the ids of a word: the longest token that fits, then the longest for the rest. */
  split(letters) {
    const unknown = [this.special.unk];
    if (letters.length > this.longestWord) return unknown;
    const ids = [];
    for (let begin = 0; begin < letters.length;) {
      let end = Math.min(letters.length, begin + this.longestPiece);
      const mark = begin > 0 ? CONTINUATION : "";
      while (end > begin && !this.ids.has(mark + letters.slice(begin, end).join(""))) end--;
      if (end === begin) return unknown;
      ids.push(this.ids.get(mark + letters.slice(begin, end).join("")));
      begin = end;
    }
    return ids;
  }

  /** Decodes ids to text, up to the first end, with a space before each word but the first. */
  decode(ids) {
    const texts = written(ids, this.special).map((id) => this.pieces[id]).map((piece) =>
      piece.startsWith(CONTINUATION) ? piece.slice(CONTINUATION.length) : SPACE + piece,
    );
    return texts.join("").replace(/^ /, "");
  }

  /** Returns the piece of an id, for display. */
  pieceOf(id) {
    return this.pieces[id] ?? "";
  }
}

/** Returns the function from a character to its normalised letters and the spaces around them. */
function makeSpeller(options, classes) {
  const names = ["removed", "spaces", "chinese", "punctuation", "marks", "whole"];
  const is = Object.fromEntries(names.map((name) => [name, classOf(classes[name])]));
  const strips = options.strip_accents ?? options.lowercase;
  const stripped = (character) =>
    [...character.normalize("NFD")].filter((part) => !is.marks(part.codePointAt(0)));

  const lowercase = (letter) => {
    const point = letter.codePointAt(0);
    const known = classes.lowercase.find(([first, last]) => first <= point && point <= last);
    return known ? [String.fromCodePoint(point + known[2])] : [...letter.toLowerCase()];
  };

  const spell = (character) => {
    const point = character.codePointAt(0);
    if (options.clean_text && is.removed(point)) return [];
    if (is.spaces(point)) return [SPACE];
    let letters = strips && !is.whole(point) ? stripped(character) : [character];
    if (options.lowercase) letters = letters.flatMap(lowercase);
    letters = letters.flatMap((letter) =>
      is.punctuation(letter.codePointAt(0)) ? [SPACE, letter, SPACE] : [letter],
    );
    const apart = options.handle_chinese_chars && is.chinese(point);
    return apart ? [SPACE, ...letters, SPACE] : letters;
  };

  const spelled = new Map(); // of characters that have occurred
  return (character) => {
    const whole = isSurrogate(character) ? "\ufffd" : character;
    if (!spelled.has(whole)) spelled.set(whole, spell(whole));
    return spelled.get(whole);
  };
}

/** Returns true for half of a character, which is no text and is read as U+FFFD. */
function isSurrogate(character) {
  return character.length === 1 && character >= "\ud800" && character <= "\udfff";
}
