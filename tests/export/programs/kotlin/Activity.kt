/** The parts of Android's activities that `MainActivity.kt` and the page use, to compile them without an SDK. */
package android.app

import android.content.res.AssetManager
import android.os.Bundle

open class Activity {
    val assets = AssetManager()
    val isDestroyed: Boolean get() = TODO()
    var title: CharSequence = ""

    protected open fun onCreate(state: Bundle?) {}

    protected open fun onDestroy() {}

    fun setContentView(id: Int): Unit = TODO("$id")

    fun <T> findViewById(id: Int): T = TODO("$id")

    fun runOnUiThread(action: Runnable): Unit = TODO("$action")

    fun getString(id: Int, vararg values: Any): String = TODO("$id $values")
}
