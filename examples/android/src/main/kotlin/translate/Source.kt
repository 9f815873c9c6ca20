package translate

/** Token ids of a sentence; `cut` is true if it was longer than the model's maximum and truncated. */
data class Source(val ids: List<Int>, val cut: Boolean)

private const val BYTES_PER_TOKEN = 64 // maximum; longer texts are truncated before they are tokenized

/**
 * Encodes a sentence, truncated as in the Python package.
 *
 * @param longest Maximum number of tokens, including the end of the sentence.
 * @return Ids that end in `eos`; none if there is nothing to translate.
 */
fun sourceOf(sentence: String, vocabulary: SentencePiece, longest: Int, eos: Int): Source {
    val bytes = sentence.encodeToByteArray()
    var limit = minOf(bytes.size, BYTES_PER_TOKEN * longest)
    while (limit < bytes.size && isWithinCharacter(bytes[limit])) limit--
    val words = vocabulary.encode(bytes.decodeToString(0, limit))
    val cut = words.size + 1 > longest || bytes.size > BYTES_PER_TOKEN * longest
    if (words.isEmpty() && !cut) return Source(emptyList(), cut)
    return Source(words.take(longest - 1) + eos, cut)
}

private fun isWithinCharacter(byte: Byte) = byte.toInt() and 0xc0 == 0x80 // of UTF-8
