/** The parts of LiteRT for Android that `Translator.kt` uses, to compile it without the library. */
package org.tensorflow.lite

import java.nio.ByteBuffer

class Interpreter(@Suppress("UNUSED_PARAMETER") model: ByteBuffer) : AutoCloseable {
    fun runSignature(inputs: Map<String, Any>, outputs: Map<String, Any>, signatureKey: String) {
        TODO("$inputs $outputs $signatureKey")
    }

    override fun close() {}
}
