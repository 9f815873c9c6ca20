/// Token ids of a sentence; `truncated` is true if it was longer than the model's maximum length.
struct Source {
  let ids: [Int]
  let truncated: Bool
}

/// Encodes a sentence, truncated as in the Python package.
///
/// - Parameters:
///   - longest: Maximum number of tokens, including the beginning and the end of the sentence.
///   - bos: Token before the sentence, if the vocabulary has one there.
///   - eos: Token after the sentence.
/// - Returns: Ids that end in `eos`; none if there is nothing to translate.
func source(of sentence: String, _ vocabulary: Vocabulary, longest: Int, bos: Int, eos: Int)
  -> Source
{
  let limit = vocabulary.bytesPerToken * longest  // longer texts are truncated before
  let words = vocabulary.encode(beginning(of: sentence, bytes: limit))
  let begin = vocabulary.startsWithBos ? [bos] : []
  let left = longest - begin.count - 1
  let truncated = words.count > left || sentence.utf8.count > limit
  if words.isEmpty && !truncated { return Source(ids: [], truncated: false) }
  return Source(ids: begin + words.prefix(left) + [eos], truncated: truncated)
}

/// Returns the beginning of a text, at most `bytes` bytes in UTF-8, without an incomplete character.
private func beginning(of text: String, bytes: Int) -> String {
  guard var end = text.utf8.index(text.startIndex, offsetBy: bytes, limitedBy: text.endIndex) else {
    return text
  }
  while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
  return String(text.unicodeScalars[..<end])
}
