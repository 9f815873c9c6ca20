import Foundation

private let space: Unicode.Scalar = " "
private let continuation = "##"  // prefix of a token that continues a word

/// WordPiece, BERT's tokenizer. It mirrors `WordPiece.kt` in `examples/android`, which is tested.
public final class WordPiece: Vocabulary {
  private struct Word {
    var letters: [Unicode.Scalar]
    let begin: Int
    var end: Int
  }

  public let startsWithBos = true
  public let bytesPerToken = 64
  private let pieces: Pieces
  private let longestWord: Int
  private let speller: Speller

  /// - Parameters:
  ///   - vocabulary: The `tokenizer.wordpiece.json` of a .tflite file.
  ///   - tables: Its `tokenizer.unicode.json`.
  init(_ vocabulary: Fields, _ tables: Fields) throws {
    pieces = try Pieces(vocabulary)
    longestWord = try vocabulary.get("longest_word")
    speller = try Speller(Fields(vocabulary.get("normalizer")), tables)
  }

  public func encode(_ text: String) -> [Int] { tokens(text).map(\.id) }

  /// Returns the tokens of a text, without tokens for the beginning or the end.
  public func tokens(_ text: String) -> [Token] {
    words(text).flatMap { word in
      split(word.letters).map { Token(id: $0, begin: word.begin, end: word.end) }
    }
  }

  public func decode(_ ids: [Int]) -> String {
    // Scalars, because a character of Swift includes the marks after it.
    let joined = pieces.written(ids).flatMap { piece -> [Unicode.Scalar] in
      let scalars = Array(piece.unicodeScalars)
      let continues = scalars.starts(with: continuation.unicodeScalars)
      return continues ? Array(scalars.dropFirst(2)) : [space] + scalars
    }
    return text(of: joined.first == space ? joined.dropFirst() : joined[...])
  }

  private func words(_ text: String) -> [Word] {
    var words: [Word] = []
    var open = false
    for character in placed(text) {
      for letter in speller.spell(character.scalar) {
        if letter != space {
          if !open { words.append(Word(letters: [], begin: character.begin, end: 0)) }
          words[words.count - 1].letters.append(letter)
          words[words.count - 1].end = character.end
        }
        open = letter != space
      }
    }
    return words
  }

  /// Returns the ids of a word: the longest token that fits, then the longest for the rest.
  private func split(_ letters: [Unicode.Scalar]) -> [Int] {
    guard letters.count <= longestWord else { return [pieces.unknown] }
    var ids: [Int] = []
    var begin = 0
    while begin < letters.count {
      let mark = begin > 0 ? continuation : ""
      func id(_ end: Int) -> Int? {
        pieces.id(of: Key((mark + text(of: letters[begin..<end])).utf8))
      }
      let ends = stride(from: letters.count, to: begin, by: -1)
      guard let end = ends.first(where: { id($0) != nil }) else { return [pieces.unknown] }
      ids.append(id(end)!)
      begin = end
    }
    return ids
  }
}

/// BERT's normalisation: a code point becomes letters, with spaces around words of their own.
private struct Speller {
  let cleans: Bool
  let lowers: Bool
  let strips: Bool
  let separatesChinese: Bool
  let classes: [String: Points]
  let lowercase: [[Int]]

  init(_ options: Fields, _ tables: Fields) throws {
    cleans = try options.get("clean_text")
    lowers = try options.get("lowercase")
    separatesChinese = try options.get("handle_chinese_chars")
    strips = options.values["strip_accents"] as? Bool ?? lowers
    let names = ["removed", "spaces", "chinese", "punctuation", "marks", "whole"]
    classes = try Dictionary(
      uniqueKeysWithValues: names.map { name in (name, Points(try tables.get(name))) })
    lowercase = try tables.get("lowercase")
  }

  func spell(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
    func belongs(_ name: String, _ letter: Unicode.Scalar) -> Bool {
      classes[name]!.contains(letter)
    }
    if cleans && belongs("removed", scalar) { return [] }
    if belongs("spaces", scalar) { return [space] }
    var letters = [scalar]
    if strips && !belongs("whole", scalar) {
      letters = decomposed(scalar).filter { !belongs("marks", $0) }
    }
    if lowers { letters = letters.flatMap(lower) }
    letters = letters.flatMap { belongs("punctuation", $0) ? [space, $0, space] : [$0] }
    let apart = separatesChinese && belongs("chinese", scalar)
    return apart ? [space] + letters + [space] : letters
  }

  private func lower(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
    let point = Int(scalar.value)
    if let known = lowercase.first(where: { $0[0] <= point && point <= $0[1] }) {
      return [Unicode.Scalar(UInt32(point + known[2]))!]
    }
    return Array(scalar.properties.lowercaseMapping.unicodeScalars)
  }
}
