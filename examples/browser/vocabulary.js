/** What a .tflite file carries to turn text into the ids of its model and back. */

import { UNUSED } from "./model-proto.js";
import { SentencePiece } from "./sentencepiece.js";

const CODE = /^>>.*?<</s; // of a target language, such as ">>deu<<"

/**
 * The pieces of one language under the ids that the model has for them: those of SentencePiece, or
 * those of a table, as models of other projects number their pieces themselves.
 */
export class Vocabulary {
  /**
   * @param {Uint8Array} bytes A serialised ModelProto.
   * @param {object=} table What a `PieceTable` of the Python package writes.
   */
  constructor(bytes, table) {
    this.sentencePiece = new SentencePiece(bytes);
    this.table = table;
    if (!table) return;
    this.places = new Map(table.ids.map((id, place) => [id, place]).filter(([id]) => id >= 0));
    const names = Object.entries(table.names).map(([id, name]) => [name, Number(id)]);
    // Pieces that SentencePiece puts into no text, such as letters that only the other language has.
    const { pieces, types } = this.sentencePiece;
    this.unused = new Map(pieces.map((piece, place) => [piece, place]).filter(
      ([, place]) => types[place] === UNUSED,
    ));
    this.codes = new Map(names.filter(([name]) => name.startsWith(">>") && name.endsWith("<<")));
  }

  /** Returns tokens, `{ id, piece }`, without any mark of the beginning or the end. */
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

  /** Joins pieces into text. What the table has no piece for gives nothing, as padding does. */
  decode(ids) {
    if (!this.table) return this.sentencePiece.decode(ids);
    const { pad_id: pad, bos_id: start } = this.table;
    const written = ids.filter((id) => id !== pad && id !== start && this.places.has(id));
    return this.sentencePiece.decode(written.map((id) => this.places.get(id)));
  }

  /** The piece of an id, for people to look at. */
  pieceOf(id) {
    const place = this.table ? this.places.get(id) : id;
    return this.sentencePiece.pieces[place] ?? this.table?.names[id] ?? "";
  }
}

const SHARED = "tokenizer", SEPARATE = ["source", "target"]; // names of members, without endings

/** Whether the members of a file's archive have vocabularies. */
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
