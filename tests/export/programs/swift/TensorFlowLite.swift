import Foundation

// The parts of LiteRT for Swift that the example uses, without its library: LiteRT's interpreter for
// Python runs the model.

public enum SignatureRunnerError: Error {
  case failedToCreateSignatureRunner(signatureKey: String)
  case failedToGetTensor(nameInSignature: String)
}

public struct Delegate {}

public final class Interpreter {
  public struct Options {}

  fileprivate let process: PythonProcess

  public init(modelPath: String, options: Options? = nil, delegates: [Delegate]? = nil) throws {
    process = try PythonProcess("interpreter.py", modelPath)
  }

  public func signatureRunner(with key: String) throws -> SignatureRunner {
    SignatureRunner(interpreter: self, key: key)
  }
}

public struct Tensor {
  public let data: Data
}

public final class SignatureRunner {
  private let interpreter: Interpreter
  private let key: String
  private var outputs: [String: Data] = [:]

  fileprivate init(interpreter: Interpreter, key: String) {
    self.interpreter = interpreter
    self.key = key
  }

  public func invoke(with inputs: [String: Data]) throws {
    let process = interpreter.process
    func number<Number: FixedWidthInteger>(_ value: Number) -> Data {
      withUnsafeBytes(of: value.bigEndian) { Data($0) }
    }
    func named(_ name: String) -> Data { number(UInt16(name.utf8.count)) + Data(name.utf8) }
    func read<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Int {
      let content = try process.read(MemoryLayout<Number>.size)
      return Int(content.reduce(Number(0)) { $0 << 8 | Number($1) })
    }
    var request = named(key) + number(Int32(inputs.count))
    for (name, content) in inputs {
      request += named(name) + number(Int32(content.count)) + content
    }
    process.write(request)
    outputs = [:]
    for _ in 0..<(try read(Int32.self)) {
      let name = String(decoding: try process.read(read(UInt16.self)), as: UTF8.self)
      outputs[name] = try process.read(read(Int32.self))
    }
  }

  public func output(named name: String) throws -> Tensor {
    guard let data = outputs[name] else {
      throw SignatureRunnerError.failedToGetTensor(nameInSignature: name)
    }
    return Tensor(data: data)
  }
}
