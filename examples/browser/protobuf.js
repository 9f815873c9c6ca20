/** Protobuf's wire format, of SentencePiece's models and of .onnx files. */

/**
 * Returns a list of values for each field of a message, by the number of the field: numbers, and
 * parts of `bytes` for everything else.
 *
 * @throws {RangeError} If the message is damaged.
 */
export function readMessage(bytes = new Uint8Array()) {
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
    if (value === undefined || at > bytes.length) throw new RangeError("The message is damaged.");
    (fields[Math.floor(key / 8)] ??= []).push(value);
  }
  return fields;
}

/** Returns the last value of a field, which counts, or `undefined` if the field is missing. */
export const last = (fields, number) => fields[number]?.at(-1);

/** Returns the value of a field of text. */
export const text = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
