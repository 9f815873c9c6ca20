export const SPACE = "▁";

/**
 * Returns the function that normalises text as in training: it applies the rules of the model and
 * puts "▁" before every word instead of spaces.
 */
export function makeNormalizer(charsmap) {
  const rewrite = charsmap.length ? makeRewriter(charsmap) : (text) => text;
  return (text) => {
    const words = rewrite(text).split(" ").filter((word) => word !== "");
    // SentencePiece also treats a typed "▁" at the end as a space.
    return words.map((word) => SPACE + word).join("").replace(/▁+$/, "");
  };
}

/**
 * Returns the function that applies the rules of a model, at each position of the UTF-8 text the
 * longest one that matches.
 *
 * The rules are `[size of the trie, uint32][trie][replacements, each ending in a zero byte]`. The
 * trie is a double array in the format of Darts-clone. A node, a uint32, has a label (bits 0 to 7,
 * and bit 31, which is 0 for a byte), a flag that a rule ends with it (bit 8), and the offset of
 * its children (bits 10 to 30, times 256 if bit 9 is set). The child without a label contains the
 * offset of the replacement.
 */
function makeRewriter(charsmap) {
  // A copy, because a Uint32Array must begin at a multiple of four.
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

/** Returns the number of bytes of a UTF-8 character from its first byte. */
function lengthOfCharacter(byte) {
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
