import Foundation

/// Returns the members of the ZIP archive at the end of a .tflite file, by name.
func readArchive(_ file: Data) throws -> [String: Data] {
  func take(_ at: Int, _ size: Int) throws -> Data {
    guard at >= 0, size >= 0, at + size <= file.count else { throw TranslationError.notAnExport }
    return file.subdata(in: file.startIndex + at..<file.startIndex + at + size)
  }
  func number(_ at: Int, _ bytes: Int) throws -> Int {
    try take(at, bytes).reversed().reduce(0) { $0 << 8 | Int($1) }
  }
  let end = file.count - 22  // the archives of this package have no comment at their end
  guard try number(end, 4) == 0x0605_4b50 else { throw TranslationError.notAnExport }
  var members: [String: Data] = [:]
  var entry = try number(end + 16, 4)
  for _ in 0..<(try number(end + 10, 2)) {
    let header = try number(entry + 42, 4)
    let begin = try header + 30 + number(header + 26, 2) + number(header + 28, 2)
    let name = String(decoding: try take(entry + 46, number(entry + 28, 2)), as: UTF8.self)
    let content = try take(begin, number(entry + 20, 4))
    switch try number(entry + 10, 2) {
    case 0: members[name] = content
    case 8: members[name] = try (content as NSData).decompressed(using: .zlib) as Data
    case let method: throw TranslationError.otherCompression(method)
    }
    entry += try 46 + number(entry + 28, 2) + number(entry + 30, 2) + number(entry + 32, 2)
  }
  return members
}
