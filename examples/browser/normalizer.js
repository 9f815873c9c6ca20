export const SPACE = "▁";

/**
 * Returns the function that brings text into the form that the model was trained on: the rules of
 * the model, one space between words, and "▁" for every space and before the first word.
 */
export function makeNormalizer(charsmap) {
  const rewrite = charsmap.length ? makeRewriter(charsmap) : (text) => text;
  return (text) => {
    const words = rewrite(text).split(" ").filter((word) => word !== "");
    // A "▁" that somebody typed at the end is a space to SentencePiece, too.
    return words.map((word) => SPACE + word).join("").replace(/▁+$/, "");
  };
}

/**
 * The rules of a model, of which the longest wins at each position of the UTF-8 text:
 * `[size of the trie, uint32][trie][replacements, each ending in a zero byte]`.
 *
 * The trie is a double array as Darts-clone makes it. A node, a uint32, has a label (bits 0 to 7,
 * and bit 31, which no byte has), whether a rule ends with it (bit 8), and how far its children are
 * (bits 10 to 30, times 256 with bit 9). The child without a label says where the replacement is.
 */
function makeRewriter(charsmap) {
  // A copy, since a Uint32Array must begin at a multiple of four.
  const { buffer } = new Uint8Array(charsmap);
  const size = new DataView(buffer).getUint32(0, true);
  const trie = new Uint32Array(buffer, 4, size / 4);
  const replacements = new Uint8Array(buffer, 4 + size);
  const children = (node) => (node >>> 10) << ((node & 0x200) >>> 6);

  const longestRule = (bytes, begin) => {
    let found;
    let at = children(trie[0]);
    for (let end = begin; end < bytes.length; end++) {
      const node = trie[at ^ bytes[end]];
      if ((node & 0x800000ff) !== bytes[end]) break;
      at ^= bytes[end] ^ children(node);
      if (node & 0x100) found = { end: end + 1, replacement: trie[at] & 0x7fffffff };
    }
    return found;
  };

  return (text) => {
    const bytes = new TextEncoder().encode(text);
    const result = [];
    for (let at = 0; at < bytes.length;) {
      const rule = longestRule(bytes, at);
      const begin = at;
      at = rule ? rule.end : at + lengthOfCharacter(bytes[at]);
      if (!rule) result.push(...bytes.subarray(begin, at));
      for (let from = rule?.replacement; replacements[from]; from++) {
        result.push(replacements[from]);
      }
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(result));
  };
}

/** Bytes of a UTF-8 character, by its first one. */
function lengthOfCharacter(byte) {
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
