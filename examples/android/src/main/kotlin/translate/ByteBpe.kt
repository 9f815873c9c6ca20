package translate

import org.json.JSONObject

private const val SPACE = 0x20
private const val BYTES_PER_TOKEN = 64

/**
 * Byte-level BPE, the tokenizer of GPT-2, RoBERTa, BART and Llama 3, with the same ids as the Python
 * package.
 *
 * @param vocabulary The `tokenizer.bpe.json` of a .tflite file.
 * @param tables Its `tokenizer.unicode.json`.
 */
class ByteBpe(vocabulary: JSONObject, tables: JSONObject) : Vocabulary {
    private val pieces = Pieces(vocabulary)
    private val prefixSpace = vocabulary.getBoolean("prefix_space")
    private val wholeWords = vocabulary.optJSONArray("whole_words")?.strings().orEmpty().toSet()
    private val pattern = Regex(tables.getString("words"))
    private val found = patternOf(vocabulary.optJSONArray("found")?.strings().orEmpty())
    private val compose: (String) -> List<Placed>
    private val ranks = HashMap<String, Int>() // of pieces that merges make, by the first pair of each

    override val startsWithBos = vocabulary.getBoolean("starts_with_bos")
    override val bytesPerToken: Int

    init {
        val merges = vocabulary.getJSONArray("merges")
        for (number in 0 until merges.length()) {
            val piece = merges.getJSONArray(number).strings().joinToString("")
            if (piece !in ranks) ranks[piece] = number
        }
        bytesPerToken = maxOf(BYTES_PER_TOKEN, ranks.keys.maxOfOrNull { bytesOf(it).size } ?: 1)
        val form = if (vocabulary.isNull("normalization")) null else vocabulary.getString("normalization")
        require(form == null || form == "nfc") { "This app cannot normalise texts by $form." }
        compose = if (form == null) ::placed else composer(tables)
    }

    override fun encode(text: String) = tokens(text).map { it.id }

    /** Returns the tokens of a text, without tokens for the beginning or the end. */
    fun tokens(text: String): List<Token> {
        val tokens = mutableListOf<Token>()
        var at = 0
        for (match in found?.findAll(text) ?: emptySequence()) {
            tokens += tokensOf(text.substring(at, match.range.first), at)
            at = match.range.last + 1
            val isSpace = match.value.all { it in " \t\n\u000b\u000c\r" }
            tokens += Token(pieces.idOf(match.value)!!, if (isSpace) at else match.range.first, at)
        }
        return tokens + tokensOf(text.substring(at), at)
    }

    override fun decode(ids: List<Int>): String =
        decoded(pieces.written(ids).flatMap { bytesOf(it).toList() })

    /** Returns the tokens of a text between found tokens that begins at an offset. */
    private fun tokensOf(text: String, offset: Int): List<Token> {
        if (text.isEmpty()) return emptyList()
        val added = if (prefixSpace && text[0] != ' ') listOf(Placed(SPACE, 0, 0)) else emptyList()
        val points = added + compose(text)
        var number = 0
        return pattern.findAll(textOf(points.map { it.point })).toList().flatMap { match ->
            val word = match.value
            val own = points.subList(number, number + word.codePointCount(0, word.length))
            number += own.size
            val end = own.maxOf { it.end }
            val begin = own.filter { it.point != SPACE }.minOfOrNull { it.begin } ?: end
            split(word).map { Token(pieces.idOf(it)!!, offset + minOf(begin, end), offset + end) }
        }
    }

    /** Returns the pieces of a word: neighbours are merged, the pair of the lowest rank first. */
    private fun split(word: String): List<String> {
        val letters = word.encodeToByteArray().map { LETTERS[it.toInt() and 0xff] }
        val whole = letters.joinToString("")
        if (whole in wholeWords) return listOf(whole)
        val symbols = letters.filter { pieces.idOf(it) != null }.toMutableList() // some lack a few bytes
        fun rankOf(at: Int) = ranks[symbols[at] + symbols[at + 1]] ?: Int.MAX_VALUE
        val order = (0 until symbols.size - 1).map(::rankOf).toMutableList()
        while (order.isNotEmpty()) {
            val best = order.indices.minByOrNull { order[it] }!!
            if (order[best] == Int.MAX_VALUE) break
            symbols[best] += symbols.removeAt(best + 1)
            order.removeAt(best)
            if (best > 0) order[best - 1] = rankOf(best - 1)
            if (best < order.size) order[best] = rankOf(best)
        }
        return symbols
    }

    private companion object {
        /** The letter that stands for each byte: its own in Latin-1, or one from U+0100 on. */
        val LETTERS: List<String> = run {
            var other = 0x100
            (0..255).map { byte ->
                val own = byte in 0x21..0x7e || byte in 0xa1..0xff && byte != 0xad
                (if (own) byte else other++).toChar().toString()
            }
        }
        val BYTES = LETTERS.withIndex().associate { (byte, letter) -> letter.single() to byte.toByte() }

        /** Returns the bytes of a piece; one with other letters, such as a special token, is text. */
        fun bytesOf(piece: String) =
            if (piece.all { it in BYTES }) ByteArray(piece.length) { BYTES.getValue(piece[it]) }
            else piece.encodeToByteArray()

        /** Returns the pattern that finds tokens in a text, the longest at each place, or `null`. */
        fun patternOf(found: List<String>) = found
            .sortedByDescending { it.codePointCount(0, it.length) }
            .joinToString("|") { Regex.escape(it) }
            .takeIf { found.isNotEmpty() }?.let { Regex(it) }
    }
}
