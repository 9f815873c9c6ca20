package translate

import org.json.JSONObject

/**
 * SentencePiece with the ids of a model that numbers its tokens in another way, such as one that was
 * converted from OPUS-MT. A text may begin with the code of a target language, such as ">>deu<<".
 *
 * @param table The `tokenizer.ids.json` of a .tflite file.
 */
class NumberedPieces(private val pieces: SentencePiece, table: JSONObject) : Vocabulary {
    private val ids = table.getJSONArray("ids").let { all -> IntArray(all.length()) { all.getInt(it) } }
    private val places = ids.indices.filter { ids[it] >= 0 }.associateBy { ids[it] }
    private val unknown = table.getInt("unk_id")
    private val silent = setOf(table.getInt("pad_id"), table.getInt("bos_id"))
    private val codes: Map<String, Int>

    init {
        require(!table.has("languages") && !table.has("steps")) {
            "This app does not support the vocabulary: it has tokens of languages or steps before it."
        }
        val names = table.getJSONObject("names")
        codes = names.keys().asSequence().associate { names.getString(it) to it.toInt() }
            .filterKeys { it.startsWith(">>") && it.endsWith("<<") }
    }

    override val startsWithBos = table.optBoolean("starts_with_bos")
    override val bytesPerToken = pieces.bytesPerToken

    override fun encode(text: String): List<Int> {
        val code = if (codes.isEmpty()) null else CODE.find(text)?.value
        val first = if (code == null) emptyList() else listOf(codes[code] ?: unknown)
        return first + pieces.places(text.substring(code?.length ?: 0)).map { place ->
            ids[place].takeIf { it >= 0 } ?: unknown
        }
    }

    /** Decodes ids to text. Ids without a piece in the table are skipped, as padding is. */
    override fun decode(ids: List<Int>): String =
        pieces.decode(ids.filter { it !in silent }.mapNotNull { places[it] })

    private companion object {
        val CODE = Regex("^>>.*?<<", RegexOption.DOT_MATCHES_ALL)
    }
}
