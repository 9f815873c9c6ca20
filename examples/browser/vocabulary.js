/** Vocabularies of a .tflite file: conversion of text to the ids of its model and back. */

import { ByteBpe } from "./byte-bpe.js";
import { UNUSED } from "./model-proto.js";
import { SentencePiece } from "./sentencepiece.js";
import { readJson } from "./unicode.js";
import { WordPiece } from "./wordpiece.js";

const BYTES_PER_TOKEN = 64; // maximum
const CODE = /^>>.*?<</s; // of a target language, such as ">>deu<<"

/**
 * SentencePiece vocabulary of one language with the ids of the model: SentencePiece's own, or those of a table,
 * because models of other projects number their tokens differently.
 */
export class Vocabulary {
  /**
   * @param {Uint8Array} bytes A serialized ModelProto.
   * @param {object=} table A `PieceTable` as the Python package writes it.
   */
  constructor(bytes, table) {
    this.sentencePiece = new SentencePiece(bytes);
    this.table = table;
    this.bytesPerToken = BYTES_PER_TOKEN;
    this.startsWithBos = Boolean(table?.starts_with_bos);
    if (!table) return;
    for (const name of ["languages", "steps"]) {
      if (table[name]) throw new Error(`This page cannot use the vocabulary: it has ${name}.`);
    }
    this.places = new Map(table.ids.map((id, place) => [id, place]).filter(([id]) => id >= 0));
    const names = Object.entries(table.names).map(([id, name]) => [name, Number(id)]);
    // Pieces that SentencePiece never encodes, such as letters that only the other language has.
    const { pieces, types } = this.sentencePiece;
    this.unused = new Map(pieces.map((piece, place) => [piece, place]).filter(
      ([, place]) => types[place] === UNUSED,
    ));
    this.codes = new Map(names.filter(([name]) => name.startsWith(">>") && name.endsWith("<<")));
  }

  /** Returns tokens, `{ id, piece }`, without tokens for the beginning or the end. */
  encode(text) {
    if (!this.table) return this.sentencePiece.encode(text);
    const code = this.codes.size ? text.match(CODE)?.[0] : undefined;
    const unknown = this.table.unk_id;
    const first = code === undefined ? [] : [{ id: this.codes.get(code) ?? unknown, piece: code }];
    const rest = this.sentencePiece.encode(text.slice(code?.length ?? 0));
    const placeOf = ({ id, piece }) =>
      id === this.sentencePiece.unknown ? this.unused.get(piece) ?? id : id;
    const idOf = (place) => (this.table.ids[place] < 0 ? unknown : this.table.ids[place]);
    return [...first, ...rest.map((token) => ({ id: idOf(placeOf(token)), piece: token.piece }))];
  }

  /** Returns the tokens of a word of a text. */
  encodeWord(word) {
    return this.encode(word);
  }

  /** Decodes ids to text. Ids without a piece in the table are skipped, as padding is. */
  decode(ids) {
    if (!this.table) return this.sentencePiece.decode(ids);
    const { pad_id: pad, bos_id: start } = this.table;
    const written = ids.filter((id) => id !== pad && id !== start && this.places.has(id));
    return this.sentencePiece.decode(written.map((id) => this.places.get(id)));
  }

  /** Returns the piece of an id, for display. */
  pieceOf(id) {
    const place = this.table ? this.places.get(id) : id;
    return this.sentencePiece.pieces[place] ?? this.table?.names[id] ?? "";
  }
}

const SHARED = "tokenizer", SEPARATE = ["source", "target"]; // names of members, without endings

/** The kinds of vocabularies, by the ending of the member that identifies each. */
const KINDS = {
  ".model": (members, name) => {
    const table = members[`${name}.ids.json`] && readJson(members, `${name}.ids.json`);
    return new Vocabulary(members[`${name}.model`], table);
  },
  ".wordpiece.json": readWith(WordPiece, ".wordpiece.json"),
  ".bpe.json": readWith(ByteBpe, ".bpe.json"),
};

function readWith(kind, ending) {
  return (members, name) =>
    new kind(readJson(members, name + ending), readJson(members, `${name}.unicode.json`));
}

const endingOf = (members, name) => Object.keys(KINDS).find((ending) => members[name + ending]);

/** Returns true if the members of a file's archive include vocabularies. */
export function hasVocabularies(members) {
  const has = (name) => endingOf(members, name) !== undefined;
  return has(SHARED) || SEPARATE.every(has);
}

/** Returns the vocabularies `{ source, target }` of a file's archive; often they are the same. */
export function readVocabularies(members) {
  const names = endingOf(members, SHARED) ? [SHARED] : SEPARATE;
  const read = (name) => KINDS[endingOf(members, name)](members, name);
  const [source, target = source] = names.map(read);
  return { source, target };
}
