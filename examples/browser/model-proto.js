/** Reader of SentencePiece model files, protobuf messages of `sentencepiece_model.proto`. */

export const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5; // SentencePiece.Type
export const UNIGRAM = 1, BPE = 2; // TrainerSpec.ModelType

/**
 * Returns the fields of a ModelProto that this page needs.
 *
 * @throws If the file is damaged, or the page does not support this kind of model.
 */
export function readModel(bytes) {
  const model = readMessage(bytes);
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

const text = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Returns the last value of a field, which counts, or `undefined` if the field is missing. */
const last = (fields, number) => fields[number]?.at(-1);

/** Returns a list of values for each field of a message in protobuf's wire format. */
function readMessage(bytes = new Uint8Array()) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (!(byte & 128)) return value;
    }
  };
  const take = (length) => bytes.subarray(at, (at += length));
  const read = { 0: varint, 1: () => take(8), 2: () => take(varint()), 5: () => take(4) };
  const fields = {};
  while (at < bytes.length) {
    const key = varint();
    const value = read[key % 8]?.();
    if (value === undefined || at > bytes.length) throw new Error("The vocabulary is damaged.");
    (fields[Math.floor(key / 8)] ??= []).push(value);
  }
  return fields;
}
