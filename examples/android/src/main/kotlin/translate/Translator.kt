package translate

import android.content.res.AssetManager
import java.io.Closeable
import java.io.File
import java.io.FileInputStream
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import org.json.JSONObject
import org.tensorflow.lite.Interpreter

/**
 * A translation. `score` is the sum of the log-probabilities of its tokens; `truncated` is true if the
 * sentence was longer than the model's maximum and truncated; `complete` is false if the output
 * reached its maximum length: text is missing, or the model repeated itself.
 */
class Translation(val text: String, val score: Float, val truncated: Boolean, val complete: Boolean)

/**
 * Translator that runs a .tflite file of `keras-transformer export litert` with LiteRT: greedy search,
 * one sentence at a time. Use it in a single thread other than that of the user interface.
 *
 * @param bytes The file, preferably mapped into memory.
 */
class Translator(bytes: ByteBuffer) : Closeable {
    private class Signature(val search: Search, val sourceLength: Int, val targetLength: Int)

    private val interpreter: Interpreter
    private val vocabularies: Vocabularies
    private val signatures: List<Signature>
    private val pad: Int
    private val bos: Int
    private val eos: Int

    /** Maximum number of tokens of a sentence. */
    val longest: Int

    /** Opens a file, which is mapped into memory instead of copied. */
    constructor(file: File) : this(
        FileInputStream(file).channel.use { it.map(FileChannel.MapMode.READ_ONLY, 0, it.size()) },
    )

    /** Opens a file in the assets of the app, which must be stored in the package uncompressed. */
    constructor(assets: AssetManager, name: String) : this(
        assets.openFd(name).use { asset ->
            FileInputStream(asset.fileDescriptor).use {
                it.channel.map(FileChannel.MapMode.READ_ONLY, asset.startOffset, asset.declaredLength)
            }
        },
    )

    init {
        val members = readArchive(bytes)
        val metadata = JSONObject(members.getValue("metadata.json").decodeToString())
        require(metadata.getInt("format") == 3) { "The file has another format. Export it again." }
        vocabularies = readVocabularies(members)
        val special = metadata.getJSONObject("tokens")
        pad = special.getInt("pad")
        bos = special.getInt("bos")
        eos = special.getInt("eos")
        longest = metadata.getInt("max_length")
        val all = metadata.getJSONArray("signatures")
        signatures = (0 until all.length()).map { all.getJSONObject(it) }
            .filter { it.isNull("beam_size") && it.getInt("batch_size") == 1 }
            .map {
                val lengths = it.getInt("source_length") to it.getInt("target_length")
                Signature(searchOf(it), lengths.first, lengths.second)
            }
            .sortedBy { it.sourceLength }
        require(signatures.isNotEmpty() && signatures.last().sourceLength == longest) {
            "The file has no greedy signature for a single sentence: export it with batch size 1, " +
                "and without --beam-only."
        }
        interpreter = Interpreter(bytes)
    }

    /** Translates a sentence; one that is longer than the model's maximum is truncated first. */
    fun translate(sentence: String): Translation {
        val (ids, truncated) = sourceOf(sentence, vocabularies.source, longest, bos, eos)
        if (ids.isEmpty()) return Translation("", 0f, truncated, true) // nothing to translate
        val signature = signatures.first { it.sourceLength >= ids.size }
        val source = IntArray(signature.sourceLength) { ids.getOrElse(it) { pad } }
        val tokens = arrayOf(IntArray(signature.targetLength))
        val score = FloatArray(1)
        val length = IntArray(1)
        val complete = IntArray(1)
        signature.search.run(
            interpreter,
            mapOf("source" to arrayOf(source)),
            mapOf("tokens" to tokens, "score" to score, "length" to length, "complete" to complete),
        )
        val text = vocabularies.target.decode(tokens[0].take(length[0]))
        return Translation(text, score[0], truncated, complete[0] == 1)
    }

    override fun close() = interpreter.close()
}
