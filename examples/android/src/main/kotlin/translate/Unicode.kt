package translate

import java.text.Normalizer
import org.json.JSONArray
import org.json.JSONObject

/** A class of code points, a list of `[first, last]`: phones differ in their versions of Unicode. */
internal class Points(ranges: JSONArray) {
    private val ranges = (0 until ranges.length()).map { ranges.getJSONArray(it) }
        .map { it.getInt(0) to it.getInt(1) }.sortedBy { it.first }

    operator fun contains(point: Int): Boolean {
        val after = ranges.binarySearch { if (it.first > point) 1 else -1 }.inv()
        return after > 0 && point <= ranges[after - 1].second
    }
}

/** A code point of a text and the characters from which it comes. */
internal class Placed(val point: Int, val begin: Int, val end: Int)

/** Returns the code points of a text. Half of a character is no text and is read as U+FFFD. */
internal fun placed(text: String): List<Placed> {
    var end = 0
    return text.codePoints().toArray().map {
        val begin = end
        end += Character.charCount(it)
        Placed(if (it in 0xd800..0xdfff) 0xfffd else it, begin, end)
    }
}

/** Returns the text of UTF-8. Bytes that are none become U+FFFD, as many as by Unicode's advice. */
internal fun decoded(bytes: List<Byte>): String {
    val text = StringBuilder()
    var at = 0
    while (at < bytes.size) {
        val first = bytes[at++].toInt() and 0xff
        val others = when (first) {
            in 0..0x7f -> 0
            in 0xc2..0xdf -> 1
            in 0xe0..0xef -> 2
            in 0xf0..0xf4 -> 3
            else -> -1
        }
        var point = if (others < 0) 0xfffd else if (others == 0) first else first and (0x3f shr others)
        for (number in 0 until others) {
            val byte = bytes.getOrNull(at)?.let { it.toInt() and 0xff }
            if (byte == null || byte !in (if (number == 0) seconds(first) else 0x80..0xbf)) {
                point = 0xfffd
                break
            }
            point = (point shl 6) or (byte and 0x3f)
            at++
        }
        text.appendCodePoint(point)
    }
    return text.toString()
}

/** Returns the bytes that may follow the first byte of a character. */
private fun seconds(first: Int) = when (first) {
    0xe0 -> 0xa0..0xbf
    0xed -> 0x80..0x9f
    0xf0 -> 0x90..0xbf
    0xf4 -> 0x80..0x8f
    else -> 0x80..0xbf
}

internal fun textOf(points: Iterable<Int>) =
    points.fold(StringBuilder()) { text, point -> text.appendCodePoint(point) }.toString()

internal fun pointsOf(text: String): List<Int> = text.codePoints().toArray().toList()

internal fun decomposed(point: Int) =
    pointsOf(Normalizer.normalize(textOf(listOf(point)), Normalizer.Form.NFD))

internal fun JSONArray.strings(): List<String> = (0 until length()).map { getString(it) }

/**
 * Returns the function from a text to its composed normal form. Code points that were composed or
 * moved share the characters of a group: a code point and the marks after it.
 */
internal fun composer(tables: JSONObject): (String) -> List<Placed> {
    val (ordered, seconds, apart) = listOf("ordered", "seconds", "apart")
        .map { Points(tables.getJSONArray(it)) }
    val syllables = 0xac00..0xd7a3

    /** Composes parts; those that must stay as they are divide the others. */
    fun composed(parts: List<Int>): List<Int> {
        val result = StringBuilder()
        val open = StringBuilder()
        fun close() {
            result.append(Normalizer.normalize(open, Normalizer.Form.NFC))
            open.setLength(0)
        }
        for (part in parts) {
            if (part in apart) close().also { result.appendCodePoint(part) }
            else open.appendCodePoint(part)
        }
        close()
        return pointsOf(result.toString())
    }

    class Group(val begin: Int) {
        val parts = mutableListOf<Int>()
        var end = 0
    }

    return { text ->
        val groups = mutableListOf<Group>()
        for (character in placed(text)) {
            val point = character.point
            val parts = if (point in apart || point in syllables) listOf(point) else decomposed(point)
            for (part in parts) {
                val joins = groups.isNotEmpty() && (part in ordered || part in seconds)
                if (!joins) groups.add(Group(character.begin))
                groups.last().parts.add(part)
                groups.last().end = character.end
            }
        }
        groups.flatMap { group -> composed(group.parts).map { Placed(it, group.begin, group.end) } }
    }
}
