/**
 * Reads texts and rows of ids, a line each: `t` and a text in hexadecimal UTF-16, or `r` and ids with
 * spaces. Prints the ids, begins and ends of the text's tokens and the ids for a model of 7 tokens, or
 * the text of the row in hexadecimal UTF-8.
 */
package tokens

import java.io.File
import java.nio.ByteBuffer
import translate.ByteBpe
import translate.WordPiece
import translate.readArchive
import translate.readVocabulary
import translate.sourceOf

fun main(arguments: Array<String>) {
    val vocabulary = readVocabulary(readArchive(ByteBuffer.wrap(File(arguments[0]).readBytes())))
    val (bos, eos) = arguments.drop(1).map { it.toInt() }
    for (line in System.`in`.bufferedReader().lineSequence()) {
        val words = line.drop(1).split(" ").filter { it.isNotEmpty() }
        if (line.startsWith("r")) {
            val bytes = vocabulary.decode(words.map { it.toInt() }).toByteArray()
            println(bytes.joinToString("") { "%02x".format(it) })
            continue
        }
        val text = words.map { it.toInt(16).toChar() }.joinToString("")
        val tokens = if (vocabulary is WordPiece) vocabulary.tokens(text) else (vocabulary as ByteBpe).tokens(text)
        val places = tokens.map { listOf(it.begin, it.end) }
        println("[${tokens.map { it.id }}, $places, ${sourceOf(text, vocabulary, 7, bos, eos).ids}]")
    }
}
