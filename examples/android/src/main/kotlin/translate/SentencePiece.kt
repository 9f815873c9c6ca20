package translate

import java.nio.ByteBuffer
import java.nio.ByteOrder

/**
 * Conversion of text to token ids and back, with the same ids as SentencePiece itself.
 *
 * It supports the models that `keras-transformer train` writes: BPE and unigram models with
 * SentencePiece's defaults for white space and a normalisation that is compiled into the model. It
 * refuses other models.
 *
 * @param model The `tokenizer.model` of a .tflite file.
 */
class SentencePiece(model: ByteArray) : Vocabulary {
    private val pieces: List<Piece>
    private val unknown: Int
    private val unknownSurface: String
    private val vocabulary: Map<String, Int>
    private val unused: Map<String, Int> // never encoded, such as letters that only the other language has
    private val normalizer: Normalizer
    private val isBpe: Boolean

    init {
        val message = Message(model)
        val trainer = message.message(2)
        val normalization = message.message(3)
        pieces = message.all(1).map { Piece(Message(it)) }
        unknown = pieces.indexOfFirst { it.type == UNKNOWN }
        val kind = trainer.number(3) ?: UNIGRAM
        require(
            kind in listOf(UNIGRAM, BPE) && trainer.number(35) != 1L && unknown >= 0 &&
                pieces.all { it.type in listOf(NORMAL, UNKNOWN, CONTROL, UNUSED) } &&
                trainer.number(24) != 1L && (3..5).none { normalization.number(it) == 0L } &&
                message.message(5).bytes(2) == null
        ) { "This app does not support this kind of vocabulary." }
        isBpe = kind == BPE
        unknownSurface = trainer.bytes(44)?.decodeToString() ?: " \u2047 "
        fun ofType(type: Long) = pieces.indices.filter { pieces[it].type == type }.associateBy { pieces[it].text }
        vocabulary = ofType(NORMAL)
        unused = ofType(UNUSED)
        normalizer = Normalizer(normalization.bytes(2))
    }

    override val startsWithBos = false
    override val bytesPerToken = 64

    override fun encode(text: String): List<Int> = segment(text).map { vocabulary[it] ?: unknown }

    /** Returns the ids like `encode`, but for an unknown token the id of the unused piece that it is. */
    internal fun places(text: String): List<Int> =
        segment(text).map { vocabulary[it] ?: unused[it] ?: unknown }

    /** Returns the pieces of a text. A run of unknown characters is one. */
    private fun segment(text: String): List<String> {
        val characters = charactersOf(normalizer.normalize(text))
        val result = mutableListOf<String>()
        var isUnknown = false
        for (piece in if (isBpe) byPairs(characters) else byScores(characters)) {
            val continues = isUnknown && piece !in vocabulary
            if (continues) result[result.lastIndex] += piece else result.add(piece)
            isUnknown = piece !in vocabulary
        }
        return result
    }

    /** Decodes ids to text. Control pieces (padding, beginning, end) are skipped. */
    override fun decode(ids: List<Int>): String {
        val text = StringBuilder()
        for (id in ids) {
            if (pieces[id].type == CONTROL) continue
            val piece = if (id == unknown) unknownSurface else pieces[id].text
            text.append((if (text.isEmpty()) piece.removePrefix(SPACE) else piece).replace(SPACE, " "))
        }
        return text.toString()
    }

    /** Byte-pair encoding: merges the neighbours with the best score, the leftmost first. */
    private fun byPairs(characters: List<String>): List<String> {
        val symbols = characters.toMutableList()
        while (true) {
            val best = (0 until symbols.size - 1)
                .filter { symbols[it] + symbols[it + 1] in vocabulary }
                .maxByOrNull { scoreOf(symbols[it] + symbols[it + 1]) } ?: return symbols
            symbols[best] += symbols.removeAt(best + 1)
        }
    }

    /** The unigram model: the segmentation with the largest sum of scores (Viterbi). */
    private fun byScores(characters: List<String>): List<String> {
        val longest = vocabulary.keys.maxOf { it.codePointCount(0, it.length) }
        val unknownScore = vocabulary.keys.minOf(::scoreOf) - 10f // SentencePiece's penalty
        val scores = FloatArray(characters.size + 1) { if (it == 0) 0f else Float.NEGATIVE_INFINITY }
        val begins = IntArray(characters.size + 1)
        fun offer(begin: Int, end: Int, score: Float) {
            if (scores[begin] + score > scores[end]) {
                scores[end] = scores[begin] + score
                begins[end] = begin
            }
        }
        for (begin in characters.indices) {
            var piece = ""
            for (end in begin + 1..minOf(begin + longest, characters.size)) {
                piece += characters[end - 1]
                if (piece in vocabulary) offer(begin, end, scoreOf(piece))
            }
            if (characters[begin] !in vocabulary) offer(begin, begin + 1, unknownScore)
        }
        val ends = generateSequence(characters.size) { begins[it] }.takeWhile { it > 0 }
        return ends.map { characters.subList(begins[it], it).joinToString("") }.toList().reversed()
    }

    private fun scoreOf(piece: String) = pieces[vocabulary.getValue(piece)].score

    private class Piece(message: Message) {
        val text = message.bytes(1)!!.decodeToString()
        val score = message.bytes(2)?.let { littleEndian(it).float } ?: 0f
        val type = message.number(3) ?: NORMAL
    }

    private companion object {
        const val NORMAL = 1L
        const val UNKNOWN = 2L
        const val CONTROL = 3L
        const val UNUSED = 5L
        const val UNIGRAM = 1L
        const val BPE = 2L
    }
}

private const val SPACE = "\u2581" // as SentencePiece writes a space

/**
 * Normalises text as in training: applies the rules of the model and puts "▁" before every word.
 *
 * The rules are `[size of the trie, uint32][trie][replacements, each ending in a zero byte]`; the trie
 * is a double array in the format of Darts-clone.
 */
private class Normalizer(charsmap: ByteArray?) {
    private val data = charsmap?.takeIf { it.isNotEmpty() }?.let(::littleEndian)

    fun normalize(text: String): String {
        val words = rewrite(text.encodeToByteArray()).split(" ").filter { it.isNotEmpty() }
        return words.joinToString("") { SPACE + it }.trimEnd(SPACE.single())
    }

    private fun rewrite(text: ByteArray): String {
        if (data == null) return text.decodeToString()
        val result = java.io.ByteArrayOutputStream()
        var at = 0
        while (at < text.size) {
            val rule = longestRule(text, at)
            if (rule == null) {
                val end = minOf(at + lengthOfCharacter(text[at]), text.size)
                result.write(text, at, end - at)
                at = end
            } else {
                var from = 4 + data.getInt(0) + rule.second
                while (data[from] != 0.toByte()) result.write(data[from++].toInt())
                at = rule.first
            }
        }
        return result.toByteArray().decodeToString()
    }

    /** Returns the end of the longest rule that matches at `begin`, and its replacement's offset. */
    private fun longestRule(text: ByteArray, begin: Int): Pair<Int, Int>? {
        var rule: Pair<Int, Int>? = null
        var at = children(node(0))
        for (end in begin until text.size) {
            val byte = text[end].toInt() and 0xff
            val next = node(at xor byte)
            if (next and 0x800000ff.toInt() != byte) break
            at = at xor byte xor children(next)
            if (next and 0x100 != 0) rule = Pair(end + 1, node(at) and 0x7fffffff)
        }
        return rule
    }

    private fun node(number: Int) = data!!.getInt(4 + 4 * number)

    private fun children(node: Int) = (node ushr 10) shl ((node and 0x200) ushr 6)

    private fun lengthOfCharacter(first: Byte) = when (first.toInt() and 0xff) {
        in 0..0x7f -> 1
        in 0x80..0xdf -> 2
        in 0xe0..0xef -> 3
        else -> 4
    }
}

/** The fields of a message in protobuf's wire format. */
private class Message(bytes: ByteArray) {
    private val fields = HashMap<Int, MutableList<Any>>()

    init {
        val input = littleEndian(bytes)
        fun varint(): Long {
            var value = 0L
            for (shift in 0..63 step 7) {
                val byte = input.get().toLong()
                value = value or ((byte and 127) shl shift)
                if (byte >= 0) break
            }
            return value
        }
        fun take(length: Int) = ByteArray(length).also { input.get(it) }
        while (input.hasRemaining()) {
            val key = varint()
            val value: Any = when ((key and 7).toInt()) {
                0 -> varint()
                1 -> take(8)
                2 -> take(varint().toInt())
                5 -> take(4)
                else -> throw IllegalArgumentException("The vocabulary is damaged.")
            }
            fields.getOrPut((key shr 3).toInt()) { mutableListOf() }.add(value)
        }
    }

    fun all(field: Int) = fields[field].orEmpty().map { it as ByteArray }

    fun bytes(field: Int) = all(field).lastOrNull()

    fun number(field: Int) = fields[field]?.last() as Long?

    fun message(field: Int) = Message(bytes(field) ?: ByteArray(0))
}

private fun littleEndian(bytes: ByteArray) = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)

private fun charactersOf(text: String) =
    text.codePoints().toArray().map { String(Character.toChars(it)) }
