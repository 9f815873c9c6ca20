import Foundation

// Apple's `NSData.decompressed`, which Foundation lacks on other systems.

extension NSData {
  enum CompressionAlgorithm {
    case zlib
  }

  func decompressed(using algorithm: CompressionAlgorithm) throws -> NSData {
    let process = try PythonProcess("inflate.py")
    process.write(self as Data)
    return try process.rest() as NSData
  }
}
