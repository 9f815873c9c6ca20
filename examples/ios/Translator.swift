import Foundation
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
  case otherCompression(Int)
  case noSignature  // no greedy search for a single sentence: export with batch size 1, without --beam-only
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
      let bos: Int
      let eos: Int
    }
    let format: Int
    let maxLength: Int
    let tokens: Tokens
    let signatures: [Signature]
  }

  private let interpreter: Interpreter
  private let vocabularies: Vocabularies
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
    vocabularies = try readVocabularies(members)
    guard signatures.last?.sourceLength == metadata.maxLength else {
      throw TranslationError.noSignature
    }
    interpreter = try Interpreter(modelPath: path)
  }

  /// Translates a sentence; one that is longer than the model's maximum is truncated first.
  public func translate(_ sentence: String) throws -> Translation {
    let tokens = metadata.tokens
    let input = source(
      of: sentence, vocabularies.source, longest: metadata.maxLength, bos: tokens.bos,
      eos: tokens.eos)
    if input.ids.isEmpty {  // nothing to translate
      return Translation(text: "", score: 0, truncated: input.truncated, complete: true)
    }
    let signature = signatures.first { $0.sourceLength >= input.ids.count }!
    let padding = Array(repeating: tokens.pad, count: signature.sourceLength - input.ids.count)
    let ids = input.ids.map { Int32($0) } + padding
    let runner = try run(signature, ids.withUnsafeBytes { Data($0) })
    let output: [Int32] = try values(runner.output(named: "tokens"))
    let length: [Int32] = try values(runner.output(named: "length"))
    let score: [Float] = try values(runner.output(named: "score"))
    let complete: [Int32] = try values(runner.output(named: "complete"))
    // The last token is the end of the sentence, unless the output has reached the limit.
    let words = output.prefix(Int(length[0])).map { Int($0) }.filter { $0 != tokens.eos }
    return Translation(
      text: vocabularies.target.decode(words), score: score[0], truncated: input.truncated,
      complete: complete[0] == 1)
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
