/** The parts of Android's activities that `MainActivity.kt` uses, to compile it without an SDK. */
package android.app

import android.os.Bundle
import java.io.FileDescriptor

open class Activity {
    val assets = Assets()
    val isDestroyed: Boolean get() = TODO()

    protected open fun onCreate(state: Bundle?) {}

    protected open fun onDestroy() {}

    fun setContentView(id: Int): Unit = TODO("$id")

    fun <T> findViewById(id: Int): T = TODO("$id")

    fun runOnUiThread(action: Runnable): Unit = TODO("$action")

    fun getString(id: Int, vararg values: Any): String = TODO("$id $values")
}

class Assets {
    fun openFd(name: String): Descriptor = TODO(name)
}

class Descriptor : AutoCloseable {
    val fileDescriptor: FileDescriptor get() = TODO()
    val startOffset: Long get() = TODO()
    val declaredLength: Long get() = TODO()

    override fun close() {}
}
