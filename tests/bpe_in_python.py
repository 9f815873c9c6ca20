"""GPT-2's tokenizer as its paper's code has it: the pattern letter by letter, and pairs by rank.

It shares nothing with the package: no table of code points, no TensorFlow, no SentencePiece. The
patterns of Llama 3, Qwen2 and Mistral Nemo are regular expressions here.
"""

import collections
import unicodedata

import regex

CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


# As they stand in the checkpoints' files.
REGEXES = {
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+"
    r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+"
    r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def letters_of_bytes():
    """The letter of each byte: its own of Latin-1 if one can see it, or one from U+0100 on."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    seen += range(ord("®"), ord("ÿ") + 1)
    table, next_letter = {}, 256
    for byte in range(256):
        table[byte] = chr(byte if byte in seen else next_letter)
        next_letter += byte not in seen
    return table


LETTERS = letters_of_bytes()


def kind(letter):
    if letter in SPACES:
        return "space"
    return {"L": "letter", "N": "number"}.get(unicodedata.category(letter)[0], "other")


def run_of(text, begin, wanted):
    """The end of the run of letters of a kind."""
    end = begin
    while end < len(text) and kind(text[end]) == wanted:
        end += 1
    return end


def words(text):
    """The matches of the pattern, each alternative tried in its order."""
    found, place = [], 0
    while place < len(text):
        end = next((place + len(c) for c in CONTRACTIONS if text.startswith(c, place)), place)
        for wanted in ("letter", "number", "other"):
            if end == place:
                begin = place + (text[place] == " ")
                end = run_of(text, begin, wanted)
                end = end if end > begin else place
        if end == place:
            end = run_of(text, place, "space")
            if end < len(text) and end - place > 1:
                end -= 1
        found.append(text[place:end])
        place = end
    return found


def words_of(text, pattern):
    """The words of a text by the pattern with a name; SmolLM's texts are split at digits first."""
    if pattern in REGEXES:
        return regex.findall(REGEXES[pattern], text)
    if pattern == "gpt2_digits":
        return [word for part in regex.split(r"(\p{N})", text) for word in words(part)]
    return words(text)


def pre_tokenizer(pattern):
    """The `pre_tokenizer` of a tokenizer.json."""
    last = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    first = {"type": "Split", "behavior": "Isolated", "invert": False}
    first["pattern"] = {"Regex": REGEXES.get(pattern)}
    if pattern == "gpt2_digits":
        first, last = {"type": "Digits", "individual_digits": True}, {**last, "use_regex": True}
    return {"type": "Sequence", "pretokenizers": [first, last]}


def merge(word, ranks, known=None):
    """The tokens of a word: the pair of the lowest rank becomes one, again and again.

    Bytes whose letter is not known are dropped first, so that their neighbours may merge.
    """
    tokens = [LETTERS[byte] for byte in word.encode() if known is None or LETTERS[byte] in known]
    while len(tokens) > 1:
        pairs = list(zip(tokens, tokens[1:], strict=False))
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            return tokens
        place, merged = 0, []
        while place < len(tokens):
            size = 2 if tuple(tokens[place : place + 2]) == best else 1
            merged.append("".join(tokens[place : place + size]))
            place += size
        tokens = merged
    return tokens


def tokens(text, ranks, known=None):
    """The tokens of a text; `ranks` has the place of each pair in the list of merges."""
    return [token for word in words(text) for token in merge(word, ranks, known)]


def learn(texts, count):
    """Merges as byte-pair encoding learns them: the most frequent pair, again and again."""
    counts = collections.Counter(word for text in texts for word in words(text))
    split = {word: [LETTERS[byte] for byte in word.encode()] for word in counts}
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, parts in split.items():
            for pair in zip(parts, parts[1:], strict=False):
                pairs[pair] += counts[word]
        if not pairs:
            break
        merges.append(min(pairs, key=lambda pair: (-pairs[pair], pair)))
        ranks = {merges[-1]: 0}
        for word, parts in split.items():
            split[word] = _joined(parts, ranks)
    return merges


def _joined(parts, ranks):
    place, merged = 0, []
    while place < len(parts):
        size = 2 if tuple(parts[place : place + 2]) in ranks else 1
        merged.append("".join(parts[place : place + size]))
        place += size
    return merged


def vocabulary(merges, special):
    """The tokens in the order of their ids: special ones, bytes, and what merges make."""
    return [*special, *LETTERS.values(), *("".join(pair) for pair in merges)]
