/** Classes of code points, as a .tflite file lists them: browsers differ in their Unicode versions. */

/** Returns the function that tells whether a list of `[first, last]` includes a code point. */
export function classOf(ranges) {
  const sorted = [...ranges].sort(([one], [other]) => one - other);
  return (point) => {
    let low = 0, high = sorted.length; // the first range that begins after the code point
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle][0] > point) high = middle;
      else low = middle + 1;
    }
    return low > 0 && point <= sorted[low - 1][1];
  };
}

/** Returns a JSON member of a file's archive, or throws with the reason and the name. */
export function readJson(members, name) {
  if (!members[name]) throw new Error(`The file has no ${name}: export it again.`);
  try {
    return JSON.parse(new TextDecoder().decode(members[name]));
  } catch (cause) {
    throw new Error(`The vocabulary is damaged: ${name} is not JSON.`, { cause });
  }
}

/**
 * Returns the ids up to the first one of the end, without those of padding and of the beginning.
 */
export function written(ids, { pad, bos, eos }) {
  const end = ids.indexOf(eos);
  return (end < 0 ? ids : ids.slice(0, end)).filter((id) => id !== pad && id !== bos);
}

/** Returns the ids of special tokens by their roles, `pad`, `unk`, `bos`, `eos` and others. */
export function specialIds(special, ids) {
  const entries = Object.entries(special).map(([role, piece]) => [role, ids.get(piece)]);
  const missing = entries.find(([, id]) => id === undefined);
  if (missing) throw new Error(`The vocabulary is damaged: it has no token for ${missing[0]}.`);
  return Object.fromEntries(entries);
}
