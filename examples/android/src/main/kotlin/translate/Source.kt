package translate

/** The token ids of a sentence, and whether it was longer than the model reads and was cut. */
data class Source(val ids: List<Int>, val cut: Boolean)

private const val BYTES_PER_TOKEN = 64 // no token has more

/**
 * Encodes a sentence as the Python package does: what is too long is cut, and said to be.
 *
 * @param longest The most tokens that the model reads, the end of the sentence included.
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
