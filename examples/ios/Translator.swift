import Foundation
import SentencepieceTokenizer
import TensorFlowLite

/// A translation. `score` is the sum of the log-probabilities of its tokens; `truncated` is true if the
/// sentence was longer than the model's maximum and truncated; `complete` is false if the output
/// reached its maximum length: text is missing, or the model repeated itself.
public struct Translation {
  public let text: String
  public let score: Float
  public let truncated: Bool
  public let complete: Bool
}

public enum TranslationError: Error {
  case notAnExport  // not written by `keras-transformer export litert`, or damaged
  case otherFormat(Int)
  case otherVocabulary  // two vocabularies, or ids that differ from SentencePiece's
  case noSignature  // no greedy signature for a single sentence of this length
}

/// Translator that runs a .tflite file of `keras-transformer export litert` with LiteRT: greedy search,
/// one sentence at a time. Use it in a single thread other than the main thread.
public final class Translator {
  private struct Metadata: Decodable {
    struct Signature: Decodable {
      let name: String
      let batchSize: Int
      let sourceLength: Int
      let beamSize: Int?
      let unrolled: Unrolled?
    }
    struct Tokens: Decodable {
      let pad: Int32
      let bos: Int32
      let eos: Int32
    }
    let format: Int
    let maxLength: Int
    let tokens: Tokens
    let signatures: [Signature]
  }

  private let interpreter: Interpreter
  private let vocabulary: Vocabulary
  private let metadata: Metadata
  private let signatures: [Metadata.Signature]

  public init(path: String) throws {
    let file = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
    let members = try readArchive(file)
    guard let json = members["metadata.json"] else { throw TranslationError.notAnExport }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    metadata = try decoder.decode(Metadata.self, from: json)
    guard metadata.format == 3 else { throw TranslationError.otherFormat(metadata.format) }
    signatures = metadata.signatures
      .filter { $0.beamSize == nil && $0.batchSize == 1 }
      .sorted { $0.sourceLength < $1.sourceLength }
    vocabulary = try readVocabulary(members) ?? SentencePiece(members)
    interpreter = try Interpreter(modelPath: path)
  }

  /// Translates a sentence; one that is longer than the model's maximum is truncated first.
  public func translate(_ sentence: String) throws -> Translation {
    let limit = vocabulary.bytesPerToken * metadata.maxLength  // longer texts are truncated before
    let words = try vocabulary.encode(beginning(of: sentence, bytes: limit)).map { Int32($0) }
    let begin = vocabulary.startsWithBos ? [metadata.tokens.bos] : []
    let left = metadata.maxLength - begin.count - 1
    let truncated = words.count > left || sentence.utf8.count > limit
    guard !words.isEmpty || truncated else {
      return Translation(text: "", score: 0, truncated: false, complete: true)
    }
    let ids = begin + words.prefix(left) + [metadata.tokens.eos]
    guard let signature = signatures.first(where: { $0.sourceLength >= ids.count }) else {
      throw TranslationError.noSignature
    }
    let padding = Array(repeating: metadata.tokens.pad, count: signature.sourceLength - ids.count)
    let source = (ids + padding).withUnsafeBytes { Data($0) }
    let runner = try run(signature, source)
    let tokens: [Int32] = try values(runner.output(named: "tokens"))
    let length: [Int32] = try values(runner.output(named: "length"))
    let score: [Float] = try values(runner.output(named: "score"))
    let complete: [Int32] = try values(runner.output(named: "complete"))
    // The last token is the end of the sentence, unless the output has reached the limit.
    let output = tokens.prefix(Int(length[0])).filter { $0 != metadata.tokens.eos }
    let text = try vocabulary.decode(output.map { Int($0) })
    return Translation(text: text, score: score[0], truncated: truncated, complete: complete[0] == 1)
  }

  /// Runs a search and returns the runner that has its outputs.
  private func run(_ signature: Metadata.Signature, _ source: Data) throws -> SignatureRunner {
    if let unrolled = signature.unrolled { return try unrolled.run(interpreter, source) }
    let runner = try interpreter.signatureRunner(with: signature.name)
    try runner.invoke(with: ["source": source])
    return runner
  }
}

/// A search whose loop is here, because delegates for accelerators run no loops. `encode` returns a
/// state, and `step` is repeated, which takes the state and returns what changes of it.
private struct Unrolled: Decodable {
  struct StateTensor: Decodable {
    let name: String
    let changes: Bool
  }
  let encode: String
  let step: String
  let state: [StateTensor]

  func run(_ interpreter: Interpreter, _ source: Data) throws -> SignatureRunner {
    let first = try interpreter.signatureRunner(with: encode)
    try first.invoke(with: ["source": source])
    var inputs = ["source": source]
    for tensor in state { inputs[tensor.name] = try first.output(named: tensor.name).data }
    let next = try interpreter.signatureRunner(with: step)
    while true {
      try next.invoke(with: inputs)
      let running: [Int32] = try values(next.output(named: "running"))
      if running[0] == 0 { return next }
      for tensor in state where tensor.changes {
        inputs[tensor.name] = try next.output(named: tensor.name).data
      }
    }
  }
}

private func values<Value>(_ tensor: Tensor) -> [Value] {
  tensor.data.withUnsafeBytes { Array($0.bindMemory(to: Value.self)) }
}

/// SentencePiece's own library, for a `tokenizer.model`.
private final class SentencePiece: Vocabulary {
  private struct Table: Decodable {
    let ids: [Int]
  }

  let startsWithBos = false
  let bytesPerToken = 64
  private let tokenizer: SentencepieceTokenizer

  init(_ members: [String: Data]) throws {
    guard let model = members["tokenizer.model"] else { throw TranslationError.otherVocabulary }
    if let table = members["tokenizer.ids.json"] {
      let ids = try JSONDecoder().decode(Table.self, from: table).ids
      guard ids == Array(0..<ids.count) else { throw TranslationError.otherVocabulary }
    }
    // The library can only read the model from a file.
    let copy = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try model.write(to: copy)
    defer { try? FileManager.default.removeItem(at: copy) }
    tokenizer = try SentencepieceTokenizer(modelPath: copy.path, tokenOffset: 0)
  }

  func encode(_ text: String) throws -> [Int] { try tokenizer.encode(text) }

  func decode(_ ids: [Int]) throws -> String { try tokenizer.decode(ids) }
}

/// Returns the beginning of a text, at most `bytes` bytes in UTF-8, without an incomplete character.
private func beginning(of text: String, bytes: Int) -> String {
  guard var end = text.utf8.index(text.startIndex, offsetBy: bytes, limitedBy: text.endIndex) else {
    return text
  }
  while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
  return String(text.unicodeScalars[..<end])
}

/// Returns the members of the ZIP archive at the end of a .tflite file, by name.
private func readArchive(_ file: Data) throws -> [String: Data] {
  func number(_ at: Int, _ bytes: Int) -> Int {
    (0..<bytes).reduce(0) { $0 | Int(file[file.startIndex + at + $1]) << (8 * $1) }
  }
  func take(_ at: Int, _ size: Int) -> Data {
    file.subdata(in: file.startIndex + at..<file.startIndex + at + size)
  }
  let end = file.count - 22  // the archives of this package have no comment at their end
  guard end >= 0, number(end, 4) == 0x0605_4b50 else { throw TranslationError.notAnExport }
  var members: [String: Data] = [:]
  var entry = number(end + 16, 4)
  for _ in 0..<number(end + 10, 2) {
    let header = number(entry + 42, 4)
    let begin = header + 30 + number(header + 26, 2) + number(header + 28, 2)
    let name = String(decoding: take(entry + 46, number(entry + 28, 2)), as: UTF8.self)
    let content = take(begin, number(entry + 20, 4))
    let isDeflated = number(entry + 10, 2) == 8
    members[name] = isDeflated ? try (content as NSData).decompressed(using: .zlib) as Data : content
    entry += 46 + number(entry + 28, 2) + number(entry + 30, 2) + number(entry + 32, 2)
  }
  return members
}
