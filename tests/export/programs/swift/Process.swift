import Foundation

/// A program in Python in `tests/export/programs` that answers requests on its standard input.
final class PythonProcess {
  private let process = Process()
  private let requests = Pipe()
  private let answers = Pipe()

  init(_ name: String, _ arguments: String...) throws {
    let environment = ProcessInfo.processInfo.environment
    process.executableURL = URL(fileURLWithPath: environment["PYTHON"]!)
    process.arguments = ["\(environment["PROGRAMS"]!)/\(name)"] + arguments
    process.standardInput = requests
    process.standardOutput = answers
    try process.run()
  }

  func write(_ content: Data) { requests.fileHandleForWriting.write(content) }

  func read(_ count: Int) throws -> Data {
    var content = Data()
    while content.count < count {
      let more = try answers.fileHandleForReading.read(upToCount: count - content.count) ?? Data()
      guard !more.isEmpty else { throw CocoaError(.fileReadUnknown) }
      content += more
    }
    return content
  }

  /// Returns everything that the program writes, after the end of the requests.
  func rest() throws -> Data {
    try requests.fileHandleForWriting.close()
    return try answers.fileHandleForReading.readToEnd() ?? Data()
  }

  deinit {
    try? requests.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
