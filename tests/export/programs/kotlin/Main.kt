/**
 * Prints for each input line its token ids, the text of these ids, and then the ids for a model of at
 * most 7 tokens and whether the line was truncated for that model.
 */
import java.io.File
import java.nio.ByteBuffer
import translate.SentencePiece
import translate.readArchive
import translate.sourceOf

fun main(arguments: Array<String>) {
    val members = readArchive(ByteBuffer.wrap(File(arguments[0]).readBytes()))
    val vocabulary = SentencePiece(members.getValue("tokenizer.model"))
    val output = java.io.PrintStream(System.out, true, "UTF-8")
    output.println(members.getValue("metadata.json").decodeToString().lines().joinToString(" "))
    for (line in System.`in`.readBytes().decodeToString().removeSuffix("\n").split("\n")) {
        val ids = vocabulary.encode(line)
        output.println(ids)
        output.println(vocabulary.decode(ids))
        output.println(sourceOf(line, vocabulary, longest = 7, bos = 2, eos = 3))
    }
}
