/**
 * The parts of LiteRT for Android that the project uses, without its library: LiteRT's interpreter for
 * Python runs the model, in the process whose command is in the environment, `INTERPRETER`.
 */
package org.tensorflow.lite

import java.io.DataInputStream
import java.io.DataOutputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder

class Interpreter(@Suppress("UNUSED_PARAMETER") model: ByteBuffer) : AutoCloseable {
    private val process by lazy {
        val command = System.getenv("INTERPRETER").split("\n")
        ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    }
    private val requests by lazy { DataOutputStream(process.outputStream.buffered()) }
    private val answers by lazy { DataInputStream(process.inputStream.buffered()) }

    /** Inputs and outputs are arrays of numbers of 32 bits, or buffers of their bytes. */
    fun runSignature(inputs: Map<String, Any>, outputs: Map<String, Any>, signatureKey: String) {
        requests.writeUTF(signatureKey)
        requests.writeInt(inputs.size)
        for ((name, value) in inputs) {
            val content = if (value is ByteBuffer) value.duplicate() else bytes(value)
            check(content.remaining() == content.capacity()) { "$name was not rewound" }
            requests.writeUTF(name)
            requests.writeInt(content.remaining())
            while (content.hasRemaining()) requests.write(content.get().toInt())
        }
        requests.flush()
        val count = answers.readInt()
        check(count == outputs.size) { "the signature returns $count outputs" }
        repeat(count) {
            val name = answers.readUTF()
            val content = ByteBuffer.wrap(ByteArray(answers.readInt()).also { answers.readFully(it) })
            write(content.order(ByteOrder.nativeOrder()), outputs.getValue(name))
        }
    }

    /** As in LiteRT, a buffer is at its end after it was written. */
    private fun write(content: ByteBuffer, output: Any) {
        when (output) {
            is ByteBuffer -> output.put(content)
            is IntArray -> content.asIntBuffer().get(output)
            is FloatArray -> content.asFloatBuffer().get(output)
            else -> content.asIntBuffer().get((output as Array<*>).single() as IntArray)
        }
    }

    private fun bytes(input: Any): ByteBuffer {
        val numbers = (input as Array<*>).single() as IntArray
        val content = ByteBuffer.allocate(4 * numbers.size).order(ByteOrder.nativeOrder())
        content.asIntBuffer().put(numbers)
        return content
    }

    override fun close() {
        requests.close()
        process.waitFor()
    }
}
