package translate

import java.nio.ByteBuffer
import java.nio.ByteOrder

/**
 * Returns the members of the ZIP archive at the end of a .tflite file, by name; they are uncompressed.
 *
 * Does not use `java.util.zip`, because some versions of Android cannot open an archive that does not
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
        members[name] = take(begin, bytes.getInt(entry + 20))
        entry += 46 + short(entry + 28) + short(entry + 30) + short(entry + 32)
    }
    return members
}
