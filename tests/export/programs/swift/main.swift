import Foundation

// Reads lines and prints an answer for each, by the first argument; the second is a .tflite file.
//
// - `translate`: a sentence; its translation, score and flags, with tabs between them.
// - `tokens`: `t` and a text in hexadecimal UTF-16, or `r` and ids with spaces. The ids, and the ids for
//   a model of at most 7 tokens and whether the text was truncated for it; for WordPiece and byte-level
//   BPE also the begins and ends of the tokens. For a row, its text in hexadecimal UTF-8.

let mode = CommandLine.arguments[1]
let path = CommandLine.arguments[2]
let input = FileHandle.standardInput.readDataToEndOfFile()
let lines = String(decoding: input, as: UTF8.self).split(
  separator: "\n", omittingEmptySubsequences: false
).map(String.init)

func translate(_ translator: Translator, _ line: String) throws -> String {
  let found = try translator.translate(line)
  return "\(found.text)\t\(found.score)\t\(found.truncated)\t\(found.complete)"
}

func answer(_ vocabularies: Vocabularies, _ line: String) -> String {
  let words = line.dropFirst().split(separator: " ")
  if line.first == "r" {
    let text = vocabularies.target.decode(words.map { Int($0)! })
    return text.utf8.map { String(format: "%02x", $0) }.joined()
  }
  let text = String(decoding: words.map { UInt16($0, radix: 16)! }, as: UTF16.self)
  let vocabulary = vocabularies.source
  let marks = CommandLine.arguments.dropFirst(3).map { Int($0)! }
  let short = source(of: text, vocabulary, longest: 7, bos: marks[0], eos: marks[1])
  let tokens =
    (vocabulary as? WordPiece)?.tokens(text) ?? (vocabulary as? ByteBpe)?.tokens(text) ?? []
  let places = tokens.map { [$0.begin, $0.end] }
  return "[\(vocabulary.encode(text)), \(short.ids), \(short.truncated), \(places)]"
}

do {
  if mode == "translate" {
    let translator = try Translator(path: path)
    for line in lines { print(try translate(translator, line)) }
  } else {
    let file = try Data(contentsOf: URL(fileURLWithPath: path))
    let vocabularies = try readVocabularies(readArchive(file))
    for line in lines { print(answer(vocabularies, line)) }
  }
} catch {
  FileHandle.standardError.write(Data("\(error)\n".utf8))
  exit(1)
}
