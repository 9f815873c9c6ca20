import Foundation

/// Byte-level BPE, the tokenizer of GPT-2, RoBERTa, BART and Llama 3. It mirrors `ByteBpe.kt` in
/// `examples/android`, which is tested.
public final class ByteBpe: Vocabulary {
  public let startsWithBos: Bool
  public let bytesPerToken: Int
  private let pieces: Pieces
  private let prefixSpace: Bool
  private let wholeWords: Set<Key>
  private let words: NSRegularExpression
  private let found: NSRegularExpression?
  private let composer: Composer?
  private let ranks: [Key: Int]  // of pieces that merges make, by the first pair of each

  /// - Parameters:
  ///   - vocabulary: The `tokenizer.bpe.json` of a .tflite file.
  ///   - tables: Its `tokenizer.unicode.json`.
  init(_ vocabulary: Fields, _ tables: Fields) throws {
    pieces = try Pieces(vocabulary)
    startsWithBos = try vocabulary.get("starts_with_bos")
    prefixSpace = try vocabulary.get("prefix_space")
    let whole = vocabulary.values["whole_words"] as? [String] ?? []
    wholeWords = Set(whole.map { Key($0.utf8) })
    words = try NSRegularExpression(pattern: tables.get("words"))
    found = try pattern(of: vocabulary.values["found"] as? [String] ?? [])
    let merges: [[String]] = try vocabulary.get("merges")
    let order = merges.enumerated().map { (Key($1.joined().utf8), $0) }
    ranks = Dictionary(order, uniquingKeysWith: { first, _ in first })
    let sizes = merges.map { bytes(of: $0.joined()).count }
    bytesPerToken = max(64, sizes.max() ?? 1)
    switch vocabulary.values["normalization"] as? String {
    case nil: composer = nil
    case "nfc": composer = try Composer(tables)
    case let form?: throw VocabularyError.unknownNormalization(form)
    }
  }

  public func encode(_ text: String) -> [Int] { tokens(text).map(\.id) }

  /// Returns the tokens of a text, without tokens for the beginning or the end.
  public func tokens(_ text: String) -> [Token] {
    let units = text as NSString
    let all = NSRange(location: 0, length: units.length)
    var tokens: [Token] = []
    var at = 0
    for match in found?.matches(in: text, range: all) ?? [] {
      let begin = match.range.location
      let piece = units.substring(with: match.range)
      tokens += self.tokens(units.substring(with: NSRange(at..<begin)), offset: at)
      at = begin + match.range.length
      let isSpace = piece.utf8.allSatisfy { $0 == 32 || (9...13).contains($0) }
      tokens.append(
        Token(id: pieces.id(of: Key(piece.utf8))!, begin: isSpace ? at : begin, end: at))
    }
    return tokens + self.tokens(units.substring(from: at), offset: at)
  }

  /// Decodes ids to text. Bytes that are no UTF-8 become U+FFFD.
  public func decode(_ ids: [Int]) -> String {
    String(decoding: pieces.written(ids).flatMap { bytes(of: $0) }, as: UTF8.self)
  }

  /// Returns the tokens of a text between found tokens that begins at an offset.
  private func tokens(_ part: String, offset: Int) -> [Token] {
    guard let first = part.unicodeScalars.first else { return [] }
    var points = composer?.compose(part) ?? placed(part)
    if prefixSpace && first != " " {
      points.insert(Placed(scalar: " ", begin: 0, end: 0), at: 0)
    }
    let composed = text(of: points.map(\.scalar)) as NSString
    let all = NSRange(location: 0, length: composed.length)
    var number = 0
    return words.matches(in: composed as String, range: all).flatMap { match -> [Token] in
      let word = composed.substring(with: match.range)
      let own = points[number..<number + word.unicodeScalars.count]
      number += own.count
      let end = own.map(\.end).max()!
      let begin = own.filter { $0.scalar != " " }.map(\.begin).min() ?? end
      return split(word).map {
        Token(id: pieces.id(of: $0)!, begin: offset + min(begin, end), end: offset + end)
      }
    }
  }

  /// Returns the pieces of a word: neighbours are merged, the pair of the lowest rank first.
  private func split(_ word: String) -> [Key] {
    let all = word.utf8.map { Key(letters[Int($0)].utf8) }
    let whole = Key(all.joined())
    if wholeWords.contains(whole) { return [whole] }
    var symbols = all.filter { pieces.id(of: $0) != nil }  // some lack a few bytes
    func rank(_ at: Int) -> Int { ranks[symbols[at] + symbols[at + 1]] ?? Int.max }
    var order = symbols.indices.dropLast().map(rank)
    while let least = order.min(), least < Int.max {
      let best = order.firstIndex(of: least)!
      let next = symbols.remove(at: best + 1)
      symbols[best] += next
      order.remove(at: best)
      if best > 0 { order[best - 1] = rank(best - 1) }
      if best < order.count { order[best] = rank(best) }
    }
    return symbols
  }
}

/// The letter that stands for each byte: its own in Latin-1, or one from U+0100 on.
private let letters: [String] = {
  var other: UInt32 = 0x100
  return (0..<256).map { (byte: UInt32) -> String in
    let own = (0x21...0x7e).contains(byte) || (0xa1...0xff).contains(byte) && byte != 0xad
    defer { if !own { other += 1 } }
    return String(Unicode.Scalar(own ? byte : other)!)
  }
}()

private let byteOf = Dictionary(
  uniqueKeysWithValues: letters.enumerated().map { ($1.unicodeScalars.first!, UInt8($0)) })

/// Returns the bytes of a piece; one with other letters, such as a special token, is text.
private func bytes(of piece: String) -> [UInt8] {
  let own = piece.unicodeScalars.compactMap { byteOf[$0] }
  return own.count == piece.unicodeScalars.count ? own : Array(piece.utf8)
}

/// Returns the pattern that finds tokens in a text, the longest at each place, or `nil`.
private func pattern(of found: [String]) throws -> NSRegularExpression? {
  guard !found.isEmpty else { return nil }
  let sorted = found.sorted { $0.unicodeScalars.count > $1.unicodeScalars.count }
  let escaped = sorted.map { NSRegularExpression.escapedPattern(for: $0) }
  return try NSRegularExpression(pattern: escaped.joined(separator: "|"))
}
