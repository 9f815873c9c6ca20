/** Prints for each input line its translation, score and flags, with tabs between them. */
package translations

import java.io.File
import translate.Translator

fun main(arguments: Array<String>) {
    val output = java.io.PrintStream(System.out, true, "UTF-8")
    Translator(File(arguments[0])).use { translator ->
        for (line in System.`in`.readBytes().decodeToString().removeSuffix("\n").split("\n")) {
            val found = translator.translate(line)
            output.println(listOf(found.text, found.score, found.truncated, found.complete).joinToString("\t"))
        }
    }
}
