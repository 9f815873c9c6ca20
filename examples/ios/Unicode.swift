import Foundation

/// A class of code points, a list of `[first, last]`: phones differ in their versions of Unicode.
struct Points {
  private let ranges: [[Int]]

  init(_ ranges: [[Int]]) { self.ranges = ranges.sorted { $0[0] < $1[0] } }

  func contains(_ scalar: Unicode.Scalar) -> Bool {
    let point = Int(scalar.value)
    var low = 0
    var high = ranges.count  // the first range that begins after the code point
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle][0] > point { high = middle } else { low = middle + 1 }
    }
    return low > 0 && point <= ranges[low - 1][1]
  }
}

/// A code point of a text and the UTF-16 units from which it comes.
struct Placed {
  let scalar: Unicode.Scalar
  let begin: Int
  let end: Int
}

/// Returns the code points of a text.
func placed(_ text: String) -> [Placed] {
  var end = 0
  return text.unicodeScalars.map { scalar in
    let begin = end
    end += scalar.value > 0xffff ? 2 : 1
    return Placed(scalar: scalar, begin: begin, end: end)
  }
}

func text<Scalars: Sequence>(of scalars: Scalars) -> String
where Scalars.Element == Unicode.Scalar {
  var view = String.UnicodeScalarView()
  view.append(contentsOf: scalars)
  return String(view)
}

func decomposed(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
  Array(String(scalar).decomposedStringWithCanonicalMapping.unicodeScalars)
}

/// The composed normal form. Code points that were composed or moved share the units of a group: a
/// code point and the marks after it.
struct Composer {
  private struct Group {
    var parts: [Unicode.Scalar]
    let begin: Int
    var end: Int
  }

  private let ordered: Points
  private let seconds: Points
  private let apart: Points
  private let syllables: ClosedRange<UInt32> = 0xac00...0xd7a3

  init(_ tables: Fields) throws {
    ordered = Points(try tables.get("ordered"))
    seconds = Points(try tables.get("seconds"))
    apart = Points(try tables.get("apart"))
  }

  func compose(_ text: String) -> [Placed] {
    var groups: [Group] = []
    for character in placed(text) {
      let scalar = character.scalar
      let stays = apart.contains(scalar) || syllables.contains(scalar.value)
      for part in stays ? [scalar] : decomposed(scalar) {
        if !groups.isEmpty && (ordered.contains(part) || seconds.contains(part)) {
          groups[groups.count - 1].parts.append(part)
          groups[groups.count - 1].end = character.end
        } else {
          groups.append(Group(parts: [part], begin: character.begin, end: character.end))
        }
      }
    }
    return groups.flatMap { group in
      composed(group.parts).map { Placed(scalar: $0, begin: group.begin, end: group.end) }
    }
  }

  /// Composes parts; those that must stay as they are divide the others.
  private func composed(_ parts: [Unicode.Scalar]) -> [Unicode.Scalar] {
    var result: [Unicode.Scalar] = []
    var open: [Unicode.Scalar] = []
    func close() {
      let separate = text(of: open).decomposedStringWithCanonicalMapping
      let whole = text(of: open).precomposedStringWithCanonicalMapping
      // Foundation of Swift 6.0 on Linux composes U+1004C as if it were U+004C.
      let isRight = whole.decomposedStringWithCanonicalMapping.utf8.elementsEqual(separate.utf8)
      result += (isRight ? whole : separate).unicodeScalars
      open = []
    }
    for part in parts {
      if apart.contains(part) {
        close()
        result.append(part)
      } else {
        open.append(part)
      }
    }
    close()
    return result
  }
}
