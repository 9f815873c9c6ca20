/** The inputs of a search besides the source: limits, penalties and seeds. */

const UNLIMITED = 2 ** 30; // new tokens of a sample, limited by the model alone

/** Functions from a search, rows of ids, the longest output and numbers of rows to inputs. */
const INPUTS = {
  greedy: () => ({}),

  /** The maximum length of the output of each row, and the penalty. */
  beam(search, rows, longest) {
    const { max_length: most, min_length: least, length_penalty } = search;
    const limits = rows.map(({ length }) => {
      const wanted = Math.min(most ?? longest, bySource(search, length, longest));
      return Math.min(Math.max(wanted, least), longest);
    });
    return {
      max_length: ofRows(Int32Array.from(limits)),
      length_penalty: ofRows(Float32Array.of(length_penalty)),
    };
  },

  /** The settings of each row, and its seed: the seed of the search and the number of the row. */
  sample(search, rows, longest, numbers) {
    const { temperature, top_k, top_p, min_p, repetition_penalty, seed, max_length: most } = search;
    const same = (kind, value) => ofRows(new kind(rows.length).fill(value));
    return {
      temperature: same(Float32Array, temperature),
      top_k: same(Int32Array, top_k),
      top_p: same(Float32Array, top_p),
      min_p: same(Float32Array, min_p),
      repetition_penalty: same(Float32Array, repetition_penalty),
      seed: [Int32Array.from(numbers.flatMap((number) => [seed, number])), [rows.length, 2]],
      max_length: same(Int32Array, most ?? UNLIMITED),
    };
  },
};

/** The maximum length of an output by the length of its source: the product is in float32. */
function bySource({ max_length_ratio: ratio, extra_length: extra }, length, longest) {
  if (ratio == null) return length + (extra ?? longest);
  return Math.max(Math.ceil(Math.fround(Math.fround(ratio) * length)), 1) + (extra ?? 0);
}

const ofRows = (array) => [array, [array.length]];

/**
 * Returns the inputs of the search of a file, `[array, dimensions]` by name.
 *
 * @param {object} file The result of `loadModel`.
 * @param {number[][]} rows Ids of the tokens of each row.
 * @param {number[]} numbers A number for each row, on which the sample of the row depends.
 */
export function searchInputs({ search, metadata }, rows, numbers) {
  const inputs = INPUTS[search.search];
  if (!inputs) throw new Error(`This page does not know the search ${search.search}.`);
  return inputs(search, rows, metadata.max_length, numbers);
}
