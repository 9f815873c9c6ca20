import Foundation

/// A token of a text. Its word has the UTF-16 units from `begin` to `end` of the text, exclusive.
public struct Token {
  public let id: Int
  public let begin: Int
  public let end: Int
}

/// Conversion of text to token ids and back.
public protocol Vocabulary {
  /// Whether an encoded text begins with the token `bos` of the metadata.
  var startsWithBos: Bool { get }

  /// Maximum number of bytes of a text that become one token, but for unknown words and spaces.
  var bytesPerToken: Int { get }

  /// Returns the token ids of a text, without tokens for the beginning or the end.
  func encode(_ text: String) throws -> [Int]

  /// Decodes ids to text, up to the token for the end.
  func decode(_ ids: [Int]) throws -> String
}

public enum VocabularyError: Error {
  case missing(String)  // a member of the file, or a field of one: export the file again
  case unknownNormalization(String)
}

/// Returns the WordPiece or byte-level BPE vocabulary of a file's archive, or `nil` if it has another.
func readVocabulary(_ members: [String: Data]) throws -> Vocabulary? {
  func tables() throws -> Fields { try Fields(members, "tokenizer.unicode.json") }
  if members["tokenizer.wordpiece.json"] != nil {
    return try WordPiece(Fields(members, "tokenizer.wordpiece.json"), tables())
  }
  if members["tokenizer.bpe.json"] != nil {
    return try ByteBpe(Fields(members, "tokenizer.bpe.json"), tables())
  }
  return nil
}

/// The fields of a JSON object.
struct Fields {
  let values: [String: Any]

  init(_ members: [String: Data], _ name: String) throws {
    guard let json = members[name],
      let values = try JSONSerialization.jsonObject(with: json) as? [String: Any]
    else { throw VocabularyError.missing(name) }
    self.values = values
  }

  init(_ values: [String: Any]) { self.values = values }

  func get<Value>(_ name: String) throws -> Value {
    guard let value = values[name] as? Value else { throw VocabularyError.missing(name) }
    return value
  }
}

/// The UTF-8 of a piece. Swift's strings are equal if their normal forms are; these are not.
typealias Key = [UInt8]

/// The tokens of a vocabulary with their ids, and those with a role.
struct Pieces {
  let pieces: [String]
  let unknown: Int
  private let ids: [Key: Int]
  private let eos: Int
  private let silent: Set<Int>

  init(_ vocabulary: Fields) throws {
    pieces = try vocabulary.get("pieces")
    let special: [String: String] = try vocabulary.get("special")
    let entries = pieces.enumerated().map { (Key($1.utf8), $0) }
    let ids = Dictionary(entries, uniquingKeysWith: { first, _ in first })
    func named(_ role: String) throws -> Int {
      guard let piece = special[role], let id = ids[Key(piece.utf8)] else {
        throw VocabularyError.missing(role)
      }
      return id
    }
    self.ids = ids
    unknown = try named("unk")
    eos = try named("eos")
    let noText = vocabulary.values["no_text"] as? [String] ?? []  // such as timestamps
    silent = try Set([named("pad"), named("bos")] + noText.compactMap { ids[Key($0.utf8)] })
  }

  func id(of piece: Key) -> Int? { ids[piece] }

  /// Returns the pieces that are written: no padding, no beginning, nothing from the end on.
  func written(_ row: [Int]) -> [String] {
    row.prefix { $0 != eos }.filter { !silent.contains($0) }.map { pieces[$0] }
  }
}
