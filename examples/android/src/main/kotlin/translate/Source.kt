package translate

/** Token ids of a sentence; `truncated` is true if it was longer than the model's maximum and truncated. */
data class Source(val ids: List<Int>, val truncated: Boolean)

/**
 * Encodes a sentence, truncated as in the Python package.
 *
 * @param longest Maximum number of tokens, including the beginning and the end of the sentence.
 * @param bos Token before the sentence, if the vocabulary has one there.
 * @param eos Token after the sentence.
 * @return Ids that end in `eos`; none if there is nothing to translate.
 */
fun sourceOf(sentence: String, vocabulary: Vocabulary, longest: Int, bos: Int, eos: Int): Source {
    val bytes = sentence.encodeToByteArray()
    val most = vocabulary.bytesPerToken * longest // longer texts are truncated before
    var limit = minOf(bytes.size, most)
    while (limit < bytes.size && isWithinCharacter(bytes[limit])) limit--
    val words = vocabulary.encode(bytes.decodeToString(0, limit))
    val begin = if (vocabulary.startsWithBos) listOf(bos) else emptyList()
    val left = longest - begin.size - 1
    val truncated = words.size > left || bytes.size > most
    if (words.isEmpty() && !truncated) return Source(emptyList(), truncated)
    return Source(begin + words.take(left) + eos, truncated)
}

private fun isWithinCharacter(byte: Byte) = byte.toInt() and 0xc0 == 0x80 // of UTF-8
