package translate

import java.nio.ByteBuffer
import java.nio.ByteOrder
import org.json.JSONObject
import org.tensorflow.lite.Interpreter

/** A search of a .tflite file, from the ids of a source to the ids of its output. */
internal interface Search {
    /**
     * Runs the search.
     *
     * @param inputs Arrays by the names of the inputs.
     * @param outputs Arrays by the names of the outputs, which the search writes.
     */
    fun run(interpreter: Interpreter, inputs: Map<String, Any>, outputs: Map<String, Any>)
}

/** Returns the search of a signature in the metadata. */
internal fun searchOf(signature: JSONObject): Search =
    if (!signature.isNull("unrolled")) Unrolled(signature.getJSONObject("unrolled"))
    else Looped(signature.getString("name"))

/** A search whose loop is in the file. */
private class Looped(private val name: String) : Search {
    override fun run(interpreter: Interpreter, inputs: Map<String, Any>, outputs: Map<String, Any>) =
        interpreter.runSignature(inputs, outputs, name)
}

/**
 * A search whose loop is here, because delegates for accelerators run no loops. `encode` returns a
 * state, and `step` is repeated, which takes the state and returns what changes of it.
 */
private class Unrolled(fields: JSONObject) : Search {
    private class Tensor(val name: String, val bytes: Int, val changes: Boolean) {
        fun buffer(): ByteBuffer = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())
    }

    private val encode = fields.getString("encode")
    private val step = fields.getString("step")
    private val state = fields.getJSONArray("state").let { all ->
        (0 until all.length()).map { all.getJSONObject(it) }.map {
            val shape = it.getJSONArray("shape")
            val size = (0 until shape.length()).fold(4) { bytes, axis -> bytes * shape.getInt(axis) }
            Tensor(it.getString("name"), size, it.getBoolean("changes"))
        }
    }

    override fun run(interpreter: Interpreter, inputs: Map<String, Any>, outputs: Map<String, Any>) {
        var current = state.associate { it.name to it.buffer() }
        // A step reads one set of buffers and writes the other one; then they change places.
        var other = state.filter { it.changes }.associate { it.name to it.buffer() }
        interpreter.runSignature(inputs, current, encode)
        val running = IntArray(1)
        do {
            (current.values + other.values).forEach { it.rewind() }
            val returned = outputs + other + mapOf("running" to running)
            interpreter.runSignature(inputs + current, returned, step)
            val before = current
            current = before + other
            other = other.mapValues { before.getValue(it.key) }
        } while (running[0] != 0)
    }
}
