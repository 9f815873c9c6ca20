import Foundation

private let space = Key("\u{2581}".utf8)  // as SentencePiece writes a space

/// Conversion of text to token ids and back, with the same ids as SentencePiece itself. It mirrors
/// `SentencePiece.kt` in `examples/android`.
///
/// It supports the models that `keras-transformer train` writes: BPE and unigram models with
/// SentencePiece's defaults for white space and a normalisation that is compiled into the model. It
/// refuses other models.
public final class SentencePiece: Vocabulary {
  private struct Piece {
    let text: Key
    let score: Float
    let type: UInt64

    init(_ message: Message) throws {
      guard let text = message.bytes(1) else { throw VocabularyError.damaged }
      self.text = Key(text)
      score = message.bytes(2).map { Float(bitPattern: number(in: $0, at: 0)) } ?? 0
      type = message.number(3) ?? normal
    }
  }

  public let startsWithBos = false
  public let bytesPerToken = 64
  private let pieces: [Piece]
  private let unknown: Int
  private let unknownSurface: Key
  private let vocabulary: [Key: Int]
  private let unused: [Key: Int]  // never encoded, such as letters that only the other language has
  private let normalizer: Normalizer
  private let isBpe: Bool
  private let longest: Int  // of the pieces, in code points
  private let unknownScore: Float

  /// - Parameter model: The `tokenizer.model` of a .tflite file.
  init(_ model: Data) throws {
    let message = try Message(Key(model)[...])
    let trainer = try message.message(2)
    let normalization = try message.message(3)
    let kind = trainer.number(3) ?? unigram
    let pieces = try message.all(1).map { try Piece(Message($0)) }
    func ids(_ type: UInt64) -> [Key: Int] {
      let own = pieces.enumerated().filter { $1.type == type }.map { ($1.text, $0) }
      return Dictionary(own, uniquingKeysWith: { _, last in last })
    }
    guard let unknown = pieces.firstIndex(where: { $0.type == unknownType }),
      kind == unigram || kind == bpe, trainer.number(35) != 1, trainer.number(24) != 1,
      pieces.allSatisfy({ [normal, unknownType, control, unusedType].contains($0.type) }),
      !(3...5).contains(where: { normalization.number($0) == 0 }),
      try message.message(5).bytes(2) == nil
    else { throw VocabularyError.unsupported }
    self.pieces = pieces
    self.unknown = unknown
    unknownSurface = trainer.bytes(44).map { Key($0) } ?? Key(" \u{2047} ".utf8)
    vocabulary = ids(normal)
    unused = ids(unusedType)
    normalizer = Normalizer(normalization.bytes(2))
    isBpe = kind == bpe
    longest = vocabulary.keys.map { characters(of: $0).count }.max() ?? 0
    // SentencePiece subtracts 10 from the smallest score.
    unknownScore = (vocabulary.values.map { pieces[$0].score }.min() ?? 0) - 10
  }

  public func encode(_ text: String) -> [Int] { segment(text).map { vocabulary[$0] ?? unknown } }

  /// Returns the ids like `encode`, but for an unknown token the id of the unused piece that it is.
  func places(_ text: String) -> [Int] {
    segment(text).map { vocabulary[$0] ?? unused[$0] ?? unknown }
  }

  /// Decodes ids to text. Control pieces (padding, beginning, end) are skipped.
  public func decode(_ ids: [Int]) -> String {
    var text = ""
    for id in ids where pieces[id].type != control {
      var piece = (id == unknown ? unknownSurface : pieces[id].text)[...]
      if text.isEmpty && piece.starts(with: space) { piece = piece.dropFirst(space.count) }
      // Scalars, because a character of Swift includes the marks after it.
      for scalar in String(decoding: piece, as: UTF8.self).unicodeScalars {
        text.unicodeScalars.append(scalar == "\u{2581}" ? " " : scalar)
      }
    }
    return text
  }

  /// Returns the pieces of a text. A run of unknown characters is one.
  private func segment(_ text: String) -> [Key] {
    let letters = characters(of: normalizer.normalize(text))
    var result: [Key] = []
    var isUnknown = false
    for piece in isBpe ? byPairs(letters) : byScores(letters) {
      let isNew = vocabulary[piece] == nil
      if isUnknown && isNew { result[result.count - 1] += piece } else { result.append(piece) }
      isUnknown = isNew
    }
    return result
  }

  /// Byte-pair encoding: merges the neighbours with the best score, the leftmost first.
  private func byPairs(_ letters: [Key]) -> [Key] {
    var symbols = letters
    func score(_ at: Int) -> Float {
      vocabulary[symbols[at] + symbols[at + 1]].map { pieces[$0].score } ?? -.infinity
    }
    var scores = symbols.indices.dropLast().map(score)
    while let best = scores.max(), best > -.infinity {
      let at = scores.firstIndex(of: best)!
      symbols[at] += symbols.remove(at: at + 1)
      scores.remove(at: at)
      if at > 0 { scores[at - 1] = score(at - 1) }
      if at < scores.count { scores[at] = score(at) }
    }
    return symbols
  }

  /// The unigram model: the segmentation with the largest sum of scores (Viterbi).
  private func byScores(_ letters: [Key]) -> [Key] {
    var scores = [0] + Array(repeating: -Float.infinity, count: letters.count)
    var begins = Array(repeating: 0, count: letters.count + 1)
    func offer(_ begin: Int, _ end: Int, _ score: Float) {
      guard scores[begin] + score > scores[end] else { return }
      scores[end] = scores[begin] + score
      begins[end] = begin
    }
    for begin in letters.indices {
      var piece = Key()
      for end in begin..<min(begin + longest, letters.count) {
        piece += letters[end]
        if let id = vocabulary[piece] { offer(begin, end + 1, pieces[id].score) }
      }
      if vocabulary[letters[begin]] == nil { offer(begin, begin + 1, unknownScore) }
    }
    let ends = sequence(first: letters.count, next: { begins[$0] }).prefix { $0 > 0 }
    return ends.map { Key(letters[begins[$0]..<$0].joined()) }.reversed()
  }
}

private let normal: UInt64 = 1
private let unknownType: UInt64 = 2
private let control: UInt64 = 3
private let unusedType: UInt64 = 5
private let unigram: UInt64 = 1
private let bpe: UInt64 = 2

/// Normalises text as in training: applies the rules of the model and puts "▁" before every word.
///
/// The rules are `[size of the trie, uint32][trie][replacements, each ending in a zero byte]`; the trie
/// is a double array in the format of Darts-clone.
private struct Normalizer {
  private let rules: Key

  init(_ rules: ArraySlice<UInt8>?) { self.rules = Key(rules ?? []) }

  func normalize(_ text: String) -> Key {
    let words = rewrite(Key(text.utf8)).split(separator: 0x20)
    var result = words.reduce(into: Key()) { $0 += space + $1 }
    while result.suffix(space.count) == space[...] { result.removeLast(space.count) }
    return result
  }

  private func rewrite(_ text: Key) -> Key {
    if rules.isEmpty { return text }
    var result = Key()
    var at = 0
    while at < text.count {
      if let rule = longestRule(text, at) {
        let replacement = rules[(4 + Int(number(in: rules[...], at: 0)) + rule.offset)...]
        result += replacement.prefix { $0 != 0 }
        at = rule.end
      } else {
        let end = min(at + length(ofCharacter: text[at]), text.count)
        result += text[at..<end]
        at = end
      }
    }
    return result
  }

  /// Returns the end of the longest rule that matches at `begin`, and its replacement's offset.
  private func longestRule(_ text: Key, _ begin: Int) -> (end: Int, offset: Int)? {
    var rule: (end: Int, offset: Int)?
    var at = children(node(0))
    for end in begin..<text.count {
      let byte = UInt32(text[end])
      let next = node(at ^ byte)
      if next & 0x8000_00ff != byte { break }
      at = at ^ byte ^ children(next)
      if next & 0x100 != 0 { rule = (end + 1, Int(node(at) & 0x7fff_ffff)) }
    }
    return rule
  }

  private func node(_ at: UInt32) -> UInt32 { number(in: rules[...], at: 4 + 4 * Int(at)) }

  private func children(_ node: UInt32) -> UInt32 { (node >> 10) << ((node & 0x200) >> 6) }

  private func length(ofCharacter first: UInt8) -> Int {
    switch first {
    case 0...0x7f: return 1
    case 0x80...0xdf: return 2
    case 0xe0...0xef: return 3
    default: return 4
    }
  }
}

/// The fields of a message in protobuf's wire format.
private struct Message {
  private var numbers: [Int: UInt64] = [:]
  private var contents: [Int: [ArraySlice<UInt8>]] = [:]

  init(_ bytes: ArraySlice<UInt8>) throws {
    var rest = bytes
    func take(_ count: UInt64) throws -> ArraySlice<UInt8> {
      guard count <= rest.count else { throw VocabularyError.damaged }
      defer { rest = rest.dropFirst(Int(count)) }
      return rest.prefix(Int(count))
    }
    func varint() throws -> UInt64 {
      var value: UInt64 = 0
      for shift in stride(from: UInt64(0), to: 64, by: 7) {
        let byte = try take(1).first!
        value |= UInt64(byte & 127) << shift
        if byte < 128 { break }
      }
      return value
    }
    while !rest.isEmpty {
      let key = try varint()
      let field = Int(key >> 3)
      switch key & 7 {
      case 0: numbers[field] = try varint()
      case 1: contents[field, default: []].append(try take(8))
      case 2: contents[field, default: []].append(try take(varint()))
      case 5: contents[field, default: []].append(try take(4))
      default: throw VocabularyError.damaged
      }
    }
  }

  func all(_ field: Int) -> [ArraySlice<UInt8>] { contents[field] ?? [] }

  func bytes(_ field: Int) -> ArraySlice<UInt8>? { all(field).last }

  func number(_ field: Int) -> UInt64? { numbers[field] }

  func message(_ field: Int) throws -> Message { try Message(bytes(field) ?? []) }
}

/// Returns the 32-bit number at an offset, the least significant byte first.
private func number(in bytes: ArraySlice<UInt8>, at offset: Int) -> UInt32 {
  (0..<4).reduce(0) { $0 | UInt32(bytes[bytes.startIndex + offset + $1]) << (8 * UInt32($1)) }
}

/// Returns the UTF-8 of each code point.
private func characters(of text: Key) -> [Key] {
  String(decoding: text, as: UTF8.self).unicodeScalars.map { Key(String($0).utf8) }
}
