/** Vocabularies of a .tflite file: conversion of text to the ids of its model and back. */

import { UNUSED } from "./model-proto.js";
import { SentencePiece } from "./sentencepiece.js";

const CODE = /^>>.*?<</s; // of a target language, such as ">>deu<<"

/**
 * Vocabulary of one language with the ids of the model: SentencePiece's own, or those of a table,
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
    if (!table) return;
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

/** Returns true if the members of a file's archive include vocabularies. */
export function hasVocabularies(members) {
  const has = (name) => Boolean(members[`${name}.model`]);
  return has(SHARED) || SEPARATE.every(has);
}

/** Returns the vocabularies `{ source, target }` of a file's archive; often they are the same. */
export function readVocabularies(members) {
  const read = (name) => {
    const table = members[`${name}.ids.json`];
    const content = table && JSON.parse(new TextDecoder().decode(table));
    return new Vocabulary(members[`${name}.model`], content);
  };
  const names = members[`${SHARED}.model`] ? [SHARED] : SEPARATE;
  const [source, target = source] = names.map(read);
  return { source, target };
}
