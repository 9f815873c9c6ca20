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
  func encode(_ text: String) -> [Int]

  /// Decodes ids to text, up to the token for the end.
  func decode(_ ids: [Int]) -> String
}

public enum VocabularyError: Error {
  case missing(String)  // a member of the file, or a field of one: export the file again
  case damaged
  case unsupported  // a kind of vocabulary that this program cannot read
  case unknownNormalization(String)
}

/// The vocabularies of the texts that go in and come out; often they are the same.
struct Vocabularies {
  let source: Vocabulary
  let target: Vocabulary
}

/// Returns the vocabularies of a file's archive, whose kinds the names of its members show.
func readVocabularies(_ members: [String: Data]) throws -> Vocabularies {
  if members.keys.contains(where: { $0.hasPrefix("source.") }) {
    return try Vocabularies(
      source: readVocabulary(members, "source"), target: readVocabulary(members, "target"))
  }
  let vocabulary = try readVocabulary(members, "tokenizer")
  return Vocabularies(source: vocabulary, target: vocabulary)
}

/// Returns the vocabulary whose members' names begin with `name`.
private func readVocabulary(_ members: [String: Data], _ name: String) throws -> Vocabulary {
  func fields(_ ending: String) throws -> Fields? {
    let member = "\(name).\(ending).json"
    return members[member] == nil ? nil : try Fields(members, member)
  }
  func tables() throws -> Fields { try Fields(members, "\(name).unicode.json") }
  if let vocabulary = try fields("wordpiece") { return try WordPiece(vocabulary, tables()) }
  if let vocabulary = try fields("bpe") { return try ByteBpe(vocabulary, tables()) }
  guard let model = members["\(name).model"] else { throw VocabularyError.missing("\(name).model") }
  let pieces = try SentencePiece(model)
  return try fields("ids").map { try NumberedPieces(pieces, $0) } ?? pieces
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
