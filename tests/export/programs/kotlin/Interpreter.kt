/** What `Translator.kt` uses of LiteRT's library for Android, to compile it without that. */
package org.tensorflow.lite

import java.nio.ByteBuffer

class Interpreter(@Suppress("UNUSED_PARAMETER") model: ByteBuffer) : AutoCloseable {
    fun runSignature(inputs: Map<String, Any>, outputs: Map<String, Any>, signatureKey: String) {
        TODO("$inputs $outputs $signatureKey")
    }

    override fun close() {}
}
