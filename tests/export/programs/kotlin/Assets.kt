/** The parts of Android's assets that `Translator.kt` uses, to compile it without an SDK. */
package android.content.res

import java.io.FileDescriptor

class AssetManager {
    fun openFd(name: String): AssetFileDescriptor = TODO(name)
}

class AssetFileDescriptor : AutoCloseable {
    val fileDescriptor: FileDescriptor get() = TODO()
    val startOffset: Long get() = TODO()
    val declaredLength: Long get() = TODO()

    override fun close() {}
}
