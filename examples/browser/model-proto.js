/** Reader of SentencePiece model files, protobuf messages of `sentencepiece_model.proto`. */

import { last, readMessage, text } from "./protobuf.js";

export const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5; // SentencePiece.Type
export const UNIGRAM = 1, BPE = 2; // TrainerSpec.ModelType

/**
 * Returns the fields of a ModelProto that this page needs.
 *
 * @throws If the file is damaged, or the page does not support this kind of model.
 */
export function readModel(bytes) {
  try {
    return readFields(readMessage(bytes));
  } catch (cause) {
    if (cause instanceof RangeError) throw new Error("The vocabulary is damaged.", { cause });
    throw cause;
  }
}

function readFields(model) {
  const trainer = readMessage(last(model, 2));
  const normalizer = readMessage(last(model, 3));
  const denormalizer = readMessage(last(model, 5));
  const pieces = (model[1] ?? []).map(readPiece);
  const type = last(trainer, 3) ?? UNIGRAM;
  const types = new Set(pieces.map((piece) => piece.type));
  refuseIf({
    "is neither a BPE nor a unigram model": ![UNIGRAM, BPE].includes(type),
    "encodes unknown characters as bytes (byte_fallback)": last(trainer, 35) === 1,
    "has user-defined pieces":
      [...types].some((kind) => ![NORMAL, UNKNOWN, CONTROL, UNUSED].includes(kind)),
    "is a BPE model with unused pieces": type === BPE && types.has(UNUSED),
    "has no unknown piece": !types.has(UNKNOWN),
    "does not treat white space in the usual way":
      last(trainer, 24) === 1 || [3, 4, 5].some((field) => last(normalizer, field) === 0),
    "has rules for decoding (denormalizer)": (last(denormalizer, 2)?.length ?? 0) > 0,
  });
  return {
    pieces,
    type,
    charsmap: last(normalizer, 2) ?? new Uint8Array(),
    unknownSurface: trainer[44] ? text(last(trainer, 44)) : " ⁇ ",
  };
}

function readPiece(bytes) {
  const fields = readMessage(bytes);
  const score = last(fields, 2);
  return {
    piece: text(last(fields, 1)),
    score: score ? new DataView(score.buffer, score.byteOffset).getFloat32(0, true) : 0,
    type: last(fields, 3) ?? NORMAL,
  };
}

function refuseIf(conditions) {
  const reason = Object.keys(conditions).find((name) => conditions[name]);
  if (reason) throw new Error(`This page cannot use the vocabulary: it ${reason}.`);
}
