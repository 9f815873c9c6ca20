/**
 * Reads texts and rows of ids, a line each: `t` and a text in hexadecimal UTF-16, or `r` and ids with
 * spaces. Prints the ids of a text, those for a model of at most 7 tokens, whether the text was truncated
 * for it, and the begins and ends of the tokens of WordPiece and byte-level BPE; or the text of a row in
 * hexadecimal UTF-8.
 */
package tokens

import java.io.File
import java.nio.ByteBuffer
import translate.ByteBpe
import translate.Token
import translate.Vocabularies
import translate.WordPiece
import translate.readArchive
import translate.readVocabularies
import translate.sourceOf

fun main(arguments: Array<String>) {
    val vocabularies = readVocabularies(readArchive(ByteBuffer.wrap(File(arguments[0]).readBytes())))
    val (bos, eos) = arguments.drop(1).map { it.toInt() }
    for (line in System.`in`.bufferedReader().lineSequence()) println(answer(vocabularies, line, bos, eos))
}

private fun answer(vocabularies: Vocabularies, line: String, bos: Int, eos: Int): String {
    val words = line.drop(1).split(" ").filter { it.isNotEmpty() }
    if (line.startsWith("r")) {
        val bytes = vocabularies.target.decode(words.map { it.toInt() }).toByteArray()
        return bytes.joinToString("") { "%02x".format(it) }
    }
    val text = words.map { it.toInt(16).toChar() }.joinToString("")
    val vocabulary = vocabularies.source
    val (ids, truncated) = sourceOf(text, vocabulary, 7, bos, eos)
    val tokens: List<Token> = when (vocabulary) {
        is WordPiece -> vocabulary.tokens(text)
        is ByteBpe -> vocabulary.tokens(text)
        else -> emptyList()
    }
    val places = tokens.map { listOf(it.begin, it.end) }
    return "[${vocabulary.encode(text)}, $ids, $truncated, $places]"
}
