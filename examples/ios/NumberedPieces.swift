/// SentencePiece with the ids of a model that numbers its tokens in another way, such as one that was
/// converted from OPUS-MT. A text may begin with the code of a target language, such as ">>deu<<". It
/// mirrors `NumberedPieces.kt` in `examples/android`.
public final class NumberedPieces: Vocabulary {
  public let startsWithBos: Bool
  public let bytesPerToken: Int
  private let pieces: SentencePiece
  private let ids: [Int]
  private let places: [Int: Int]
  private let unknown: Int
  private let silent: Set<Int>
  private let codes: [Key: Int]

  /// - Parameter table: The `tokenizer.ids.json` of a .tflite file.
  init(_ pieces: SentencePiece, _ table: Fields) throws {
    guard table.values["languages"] == nil, table.values["steps"] == nil else {
      throw VocabularyError.unsupported  // tokens of languages or steps come before the text
    }
    self.pieces = pieces
    bytesPerToken = pieces.bytesPerToken
    startsWithBos = table.values["starts_with_bos"] as? Bool ?? false
    ids = try table.get("ids")
    let known = ids.enumerated().filter { $1 >= 0 }.map { ($1, $0) }
    places = Dictionary(known, uniquingKeysWith: { _, last in last })
    unknown = try table.get("unk_id")
    silent = try [table.get("pad_id"), table.get("bos_id")]
    let names: [String: String] = try table.get("names")
    let named = names.compactMap { id, name in Int(id).map { (Key(name.utf8), $0) } }
    codes = Dictionary(
      named.filter { $0.0.starts(with: begin) && $0.0.suffix(2) == end },
      uniquingKeysWith: { _, last in last })
  }

  public func encode(_ text: String) -> [Int] {
    let code = codes.isEmpty ? nil : codeBefore(Key(text.utf8))
    let first = code.map { [codes[$0] ?? unknown] } ?? []
    let rest = String(decoding: Key(text.utf8).dropFirst(code?.count ?? 0), as: UTF8.self)
    return first + pieces.places(rest).map { ids[$0] >= 0 ? ids[$0] : unknown }
  }

  /// Decodes ids to text. Ids without a piece in the table are skipped, as padding is.
  public func decode(_ ids: [Int]) -> String {
    pieces.decode(ids.filter { !silent.contains($0) }.compactMap { places[$0] })
  }
}

private let begin = Key(">>".utf8)
private let end = Key("<<".utf8)[...]

/// Returns the code of a language with which a text begins, or `nil`. Bytes, because a character of
/// Swift includes the marks after it.
private func codeBefore(_ text: Key) -> Key? {
  guard text.starts(with: begin) else { return nil }
  let ends = (begin.count..<max(begin.count, text.count - 1)).first { text[$0..<$0 + 2] == end }
  return ends.map { Key(text[..<($0 + 2)]) }
}
