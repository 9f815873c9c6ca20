/** Texts as rows of token ids within the limits of a model. */

/**
 * Returns the tokens of a text with those of its beginning and its end, truncated as in the Python
 * package: `tokens`; `truncated`, which is true if it was truncated; and `empty`, if there are no others.
 */
export function encodeText(vocabulary, text, { max_length: longest, tokens: special }) {
  const [beginning, isTruncated] = beginningOf(text, vocabulary.bytesPerToken * longest);
  return framed(vocabulary, vocabulary.encode(beginning), longest, special, isTruncated);
}

/** Returns the beginning of a text, at most `limit` bytes of UTF-8, and whether the text is longer. */
export function beginningOf(text, limit) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return [text, false];
  // Decoded as a stream, so that an incomplete character at the limit is dropped.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return [decoder.decode(bytes.subarray(0, limit), { stream: true }), true];
}

/** Returns tokens between those of the beginning and the end, as `encodeText` does. */
export function framed(vocabulary, words, longest, special, isTruncated = false) {
  const mark = (id) => ({ id, piece: vocabulary.pieceOf(id) });
  const begin = vocabulary.startsWithBos ? [mark(special.bos)] : [];
  const most = longest - begin.length - 1;
  const truncated = words.length > most || isTruncated;
  return {
    tokens: [...begin, ...words.slice(0, most), mark(special.eos)],
    truncated,
    empty: words.length === 0 && !truncated,
  };
}

/**
 * Returns the outputs of a model for rows of ids, which are padded; see `run` in `model.js`.
 *
 * @param {object} file The result of `loadModel`.
 * @param {object} shape A shape of the file, with a row for each of `rows`.
 * @param {number[][]} rows Ids of the tokens of each row.
 * @param {object=} controls Further inputs, `[array, dimensions]` by name.
 */
export function runRows(file, shape, rows, controls = {}) {
  const dimensions = [shape.batch_size, shape.source_length];
  const source = new Int32Array(dimensions[0] * dimensions[1]).fill(file.metadata.tokens.pad);
  rows.forEach((ids, row) => source.set(ids, row * dimensions[1]));
  return file.run(shape, { source: [source, dimensions], ...controls });
}
