package translate

import java.util.Locale
import org.json.JSONObject

private const val SPACE = 0x20
private const val CONTINUATION = "##" // prefix of a token that continues a word

/**
 * WordPiece, BERT's tokenizer, with the same ids as the Python package.
 *
 * @param vocabulary The `tokenizer.wordpiece.json` of a .tflite file.
 * @param tables Its `tokenizer.unicode.json`.
 */
class WordPiece(vocabulary: JSONObject, tables: JSONObject) : Vocabulary {
    private val pieces = Pieces(vocabulary)
    private val longestWord = vocabulary.getInt("longest_word")
    private val speller = Speller(vocabulary.getJSONObject("normalizer"), tables)

    override val startsWithBos = true
    override val bytesPerToken = 64

    override fun encode(text: String) = tokens(text).map { it.id }

    /** Returns the tokens of a text, without tokens for the beginning or the end. */
    fun tokens(text: String): List<Token> = words(text).flatMap { word ->
        split(word.letters).map { Token(it, word.begin, word.end) }
    }

    override fun decode(ids: List<Int>): String = pieces.written(ids).joinToString("") {
        if (it.startsWith(CONTINUATION)) it.removePrefix(CONTINUATION) else " $it"
    }.removePrefix(" ")

    private class Word(val begin: Int) {
        val letters = mutableListOf<Int>()
        var end = 0
    }

    private fun words(text: String): List<Word> {
        val words = mutableListOf<Word>()
        var open = false
        for (character in placed(text)) {
            for (letter in speller.spell(character.point)) {
                if (letter != SPACE) {
                    if (!open) words.add(Word(character.begin))
                    words.last().letters.add(letter)
                    words.last().end = character.end
                }
                open = letter != SPACE
            }
        }
        return words
    }

    /** Returns the ids of a word: the longest token that fits, then the longest for the rest. */
    private fun split(letters: List<Int>): List<Int> {
        val unknown = listOf(pieces.unknown)
        if (letters.size > longestWord) return unknown
        val ids = mutableListOf<Int>()
        var begin = 0
        while (begin < letters.size) {
            val mark = if (begin > 0) CONTINUATION else ""
            val end = (letters.size downTo begin + 1).firstOrNull {
                pieces.idOf(mark + textOf(letters.subList(begin, it))) != null
            } ?: return unknown
            ids.add(pieces.idOf(mark + textOf(letters.subList(begin, end)))!!)
            begin = end
        }
        return ids
    }
}

/** BERT's normalisation: a code point becomes letters, with spaces around words of their own. */
private class Speller(options: JSONObject, tables: JSONObject) {
    private val cleans = options.getBoolean("clean_text")
    private val lowers = options.getBoolean("lowercase")
    private val separatesChinese = options.getBoolean("handle_chinese_chars")
    private val strips =
        if (options.isNull("strip_accents")) lowers else options.getBoolean("strip_accents")
    private val removed = Points(tables.getJSONArray("removed"))
    private val spaces = Points(tables.getJSONArray("spaces"))
    private val chinese = Points(tables.getJSONArray("chinese"))
    private val punctuation = Points(tables.getJSONArray("punctuation"))
    private val marks = Points(tables.getJSONArray("marks"))
    private val whole = Points(tables.getJSONArray("whole"))
    private val lowercase = tables.getJSONArray("lowercase")
        .let { table -> (0 until table.length()).map { table.getJSONArray(it) } }
    private val spelled = HashMap<Int, List<Int>>() // code points that have occurred

    fun spell(point: Int): List<Int> = spelled.getOrPut(point) { spellAnew(point) }

    private fun spellAnew(point: Int): List<Int> {
        if (cleans && point in removed) return emptyList()
        if (point in spaces) return listOf(SPACE)
        var letters = listOf(point)
        if (strips && point !in whole) letters = decomposed(point).filter { it !in marks }
        if (lowers) letters = letters.flatMap(::lower)
        letters = letters.flatMap {
            if (it in punctuation) listOf(SPACE, it, SPACE) else listOf(it)
        }
        val apart = separatesChinese && point in chinese
        return if (apart) listOf(SPACE) + letters + SPACE else letters
    }

    private fun lower(point: Int): List<Int> {
        val known = lowercase.firstOrNull { point in it.getInt(0)..it.getInt(1) }
        if (known != null) return listOf(point + known.getInt(2))
        return pointsOf(textOf(listOf(point)).lowercase(Locale.ROOT))
    }
}
