/**
 * Prints for each input line its token ids in the source's vocabulary; a line that begins with U+0001 is
 * a row of ids, of which it prints the text in the target's vocabulary. Line ends are U+0002.
 */
package numbered

import java.io.File
import java.nio.ByteBuffer
import translate.readArchive
import translate.readVocabularies

fun main(arguments: Array<String>) {
    val vocabularies = readVocabularies(readArchive(ByteBuffer.wrap(File(arguments[0]).readBytes())))
    val output = java.io.PrintStream(System.out, true, "UTF-8")
    for (line in System.`in`.readBytes().decodeToString().removeSuffix("\n").split("\n")) {
        val text = line.replace('\u0002', '\n')
        if (text.startsWith("\u0001")) {
            val ids = text.drop(1).split(" ").filter { it.isNotEmpty() }.map { it.toInt() }
            output.println(vocabularies.target.decode(ids).replace('\n', '\u0002'))
        } else {
            output.println(vocabularies.source.encode(text))
        }
    }
}
