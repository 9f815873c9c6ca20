/** The composed normal form, with the same result in every browser. */

import { classOf } from "./unicode.js";

/**
 * Returns the function from a text to its composed characters, `{ text, begin, end }`, where `begin`
 * and `end` are offsets in the text. Characters that were composed or moved share those of a group:
 * a character and the marks after it.
 *
 * @param {object} classes `ordered`, `seconds` and `apart`; see docs/litert_files.md.
 */
export function makeComposer(classes) {
  const [isOrdered, isSecond, isApart] = ["ordered", "seconds", "apart"].map((name) =>
    classOf(classes[name]),
  );
  const joins = (part) => isOrdered(part.codePointAt(0)) || isSecond(part.codePointAt(0));

  return (text) => {
    const groups = [];
    let end = 0;
    for (const character of text) {
      const begin = end;
      end += character.length;
      const whole = isApart(character.codePointAt(0)) || isSyllable(character);
      for (const part of whole ? [character] : character.normalize("NFD")) {
        if (groups.length > 0 && joins(part)) {
          groups.at(-1).parts.push(part);
          groups.at(-1).end = end;
        } else groups.push({ parts: [part], begin, end });
      }
    }
    return groups.flatMap(({ parts, begin, end }) =>
      [...composed(parts, isApart)].map((character) => ({ text: character, begin, end })),
    );
  };
}

/** Returns the normal form of parts; those that must stay as they are divide the others. */
function composed(parts, isApart) {
  let result = "", open = "";
  for (const part of parts) {
    if (isApart(part.codePointAt(0))) {
      result += open.normalize("NFC") + part;
      open = "";
    } else open += part;
  }
  return result + open.normalize("NFC");
}

/** Returns true for a Korean syllable, which is not decomposed. */
function isSyllable(character) {
  return character >= "\uac00" && character <= "\ud7a3";
}
