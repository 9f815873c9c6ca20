package translate

import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.zip.Inflater

/**
 * Returns the members of the ZIP archive at the end of a .tflite file, by name.
 *
 * Does not use `java.util.zip.ZipFile`, because some versions of Android cannot open an archive that does not
 * start at the beginning of the file.
 */
fun readArchive(file: ByteBuffer): Map<String, ByteArray> {
    val bytes = file.duplicate().order(ByteOrder.LITTLE_ENDIAN)
    val end = bytes.limit() - 22 // the archives of this package have no comment at their end
    require(end >= 0 && bytes.getInt(end) == 0x06054b50) {
        "The file was not written by `keras-transformer export litert`, or is damaged."
    }
    fun short(at: Int) = bytes.getShort(at).toInt() and 0xffff
    fun take(at: Int, size: Int) = ByteArray(size).also { bytes.position(at); bytes.get(it) }
    val members = HashMap<String, ByteArray>()
    var entry = bytes.getInt(end + 16)
    repeat(short(end + 10)) {
        val header = bytes.getInt(entry + 42)
        val begin = header + 30 + short(header + 26) + short(header + 28)
        val name = take(entry + 46, short(entry + 28)).decodeToString()
        val content = take(begin, bytes.getInt(entry + 20))
        members[name] = when (val method = short(entry + 10)) {
            0 -> content
            8 -> inflate(content, bytes.getInt(entry + 24))
            else -> throw IllegalArgumentException("$name is compressed by the unknown method $method.")
        }
        entry += 46 + short(entry + 28) + short(entry + 30) + short(entry + 32)
    }
    return members
}

private fun inflate(content: ByteArray, size: Int): ByteArray {
    val inflater = Inflater(true) // without a header
    inflater.setInput(content)
    val result = ByteArray(size)
    var count = 0
    while (count < size) {
        val read = inflater.inflate(result, count, size - count)
        require(read > 0) { "The file is damaged." }
        count += read
    }
    inflater.end()
    return result
}
