/**
 * Conversion of text to token ids and back, with the same ids as SentencePiece itself.
 *
 * It supports the models that `keras-transformer train` writes: BPE and unigram models with
 * SentencePiece's defaults for white space and a normalisation that is compiled into the model. It
 * refuses models with byte fallback or user-defined symbols, and does not sample. Unused pieces of
 * a unigram model are never encoded, but are decoded.
 */

import { BPE, CONTROL, NORMAL, UNKNOWN, readModel } from "./model-proto.js";
import { SPACE, makeNormalizer } from "./normalizer.js";

const UNKNOWN_PENALTY = 10; // unigram: by how much an unknown piece scores below the lowest score

export class SentencePiece {
  /** @param {Uint8Array} bytes A serialized ModelProto, the `tokenizer.model` of a run. */
  constructor(bytes) {
    const model = readModel(bytes);
    this.pieces = model.pieces.map(({ piece }) => piece);
    this.types = model.pieces.map(({ type }) => type);
    this.unknown = this.types.indexOf(UNKNOWN);
    this.unknownSurface = model.unknownSurface;
    this.normalize = makeNormalizer(model.charsmap);
    const entries = model.pieces.map(({ piece, score }, id) => [piece, { id, score }]);
    const vocabulary = new Map(entries.filter((_, id) => this.types[id] === NORMAL));
    this.segment = model.type === BPE ? segmentBpe(vocabulary) : segmentUnigram(vocabulary);
    this.idOf = (piece) => vocabulary.get(piece)?.id ?? this.unknown;
  }

  /** Returns tokens, `{ id, piece }`, without tokens for the beginning or the end. */
  encode(text) {
    const tokens = [];
    for (const piece of this.segment(this.normalize(text))) {
      const id = this.idOf(piece);
      const last = tokens.at(-1);
      // A run of unknown characters is one token.
      if (id === this.unknown && last?.id === id) last.piece += piece;
      else tokens.push({ id, piece });
    }
    return tokens;
  }

  /** Decodes ids to text. Control pieces (padding, beginning, end) are skipped. */
  decode(ids) {
    let text = "";
    for (const id of ids) {
      if (this.types[id] === CONTROL) continue;
      let piece = id === this.unknown ? this.unknownSurface : this.pieces[id];
      if (text === "" && piece.startsWith(SPACE)) piece = piece.slice(1);
      text += piece.replaceAll(SPACE, " ");
    }
    return text;
  }
}

/**
 * Byte-pair encoding: merges the neighbours whose joined piece has the best score, the leftmost
 * first, until no neighbours form a piece.
 */
function segmentBpe(vocabulary) {
  const scoreOf = (left, right) => vocabulary.get(left + right)?.score ?? -Infinity;
  return (text) => {
    const symbols = [...text]; // characters, not UTF-16 units
    const scores = symbols.slice(1).map((symbol, at) => scoreOf(symbols[at], symbol));
    for (;;) {
      let best = 0;
      for (let at = 1; at < scores.length; at++) if (scores[at] > scores[best]) best = at;
      if (!(scores[best] > -Infinity)) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
      scores.splice(best, 1);
      if (best > 0) scores[best - 1] = scoreOf(symbols[best - 1], symbols[best]);
      if (best < scores.length) scores[best] = scoreOf(symbols[best], symbols[best + 1]);
    }
  };
}

/** The unigram model: the segmentation with the largest sum of scores (Viterbi). */
function segmentUnigram(vocabulary) {
  let lowest = Infinity;
  let longest = 0; // in characters
  for (const [piece, { score }] of vocabulary) {
    lowest = Math.min(lowest, score);
    longest = Math.max(longest, [...piece].length);
  }
  const unknownScore = Math.fround(lowest - UNKNOWN_PENALTY);
  return (text) => {
    const symbols = [...text];
    const ends = [{ score: 0 }]; // the best segmentation up to each position
    const offer = (at, from, score) => {
      if (ends[at] && !(score > ends[at].score)) return;
      ends[at] = { from, score: Math.fround(score) }; // SentencePiece sums in float32
    };
    symbols.forEach((symbol, from) => {
      const before = ends[from].score;
      for (let at = from + 1, piece = ""; at <= Math.min(from + longest, symbols.length); at++) {
        piece += symbols[at - 1];
        const known = vocabulary.get(piece);
        if (known) offer(at, from, before + known.score);
      }
      if (!vocabulary.has(symbol)) offer(from + 1, from, Math.fround(before + unknownScore));
    });
    const pieces = [];
    for (let at = symbols.length; at > 0; at = ends[at].from) {
      pieces.unshift(symbols.slice(ends[at].from, at).join(""));
    }
    return pieces;
  };
}
