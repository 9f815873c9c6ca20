package translate

import org.json.JSONObject

/** A token of a text. Its word has the characters from `begin` to `end` of the text, exclusive. */
data class Token(val id: Int, val begin: Int, val end: Int)

/** Conversion of text to token ids and back. */
interface Vocabulary {
    /** Whether an encoded text begins with the token `bos` of the metadata. */
    val startsWithBos: Boolean

    /** Maximum number of bytes of a text that become one token, but for unknown words and spaces. */
    val bytesPerToken: Int

    /** Returns the token ids of a text, without tokens for the beginning or the end. */
    fun encode(text: String): List<Int>

    /** Decodes ids to text, up to the token for the end. */
    fun decode(ids: List<Int>): String
}

/** The vocabularies of the texts that go in and come out; often they are the same. */
class Vocabularies(val source: Vocabulary, val target: Vocabulary)

/** Returns the vocabularies of a file's archive, whose kinds the names of its members show. */
fun readVocabularies(members: Map<String, ByteArray>): Vocabularies {
    if (members.keys.none { it.startsWith("source.") }) {
        return readVocabulary(members).let { Vocabularies(it, it) }
    }
    return Vocabularies(readVocabulary(members, "source"), readVocabulary(members, "target"))
}

/** Returns a vocabulary: the only one, or that of one side if its members begin with another name. */
fun readVocabulary(members: Map<String, ByteArray>, name: String = "tokenizer"): Vocabulary {
    fun json(ending: String) = members["$name$ending"]?.let { JSONObject(it.decodeToString()) }
    fun tables() = requireNotNull(json(".unicode.json")) {
        "The file has no $name.unicode.json: export it again."
    }
    json(".wordpiece.json")?.let { return WordPiece(it, tables()) }
    json(".bpe.json")?.let { return ByteBpe(it, tables()) }
    val pieces = SentencePiece(requireNotNull(members["$name.model"]) { "The file has no vocabulary." })
    return json(".ids.json")?.let { NumberedPieces(pieces, it) } ?: pieces
}

/** The tokens of a vocabulary with their ids, and those with a role. */
internal class Pieces(vocabulary: JSONObject) {
    private val pieces = vocabulary.getJSONArray("pieces").strings()
    private val ids = pieces.withIndex().associate { (id, piece) -> piece to id }
    private val special = vocabulary.getJSONObject("special")
    private val eos = named("eos")
    private val noText = vocabulary.optJSONArray("no_text")?.strings().orEmpty() // such as timestamps
    private val silent = setOf(named("pad"), named("bos")) + noText.mapNotNull { ids[it] }
    val unknown = named("unk")

    operator fun get(id: Int) = pieces[id]

    fun idOf(piece: String) = ids[piece]

    /** Returns the pieces that are written: no padding, no beginning, nothing from the end on. */
    fun written(row: List<Int>) = row.takeWhile { it != eos }.filter { it !in silent }.map(::get)

    private fun named(role: String) = requireNotNull(ids[special.getString(role)]) {
        "The vocabulary is damaged: it has no token for $role."
    }
}
