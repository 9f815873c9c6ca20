/** The parts of Android's widgets that `MainActivity.kt` uses, to compile it without an SDK. */
package android.widget

open class TextView {
    var text: CharSequence = ""
    var isEnabled = false

    fun setOnClickListener(listener: (TextView) -> Unit): Unit = TODO("$listener")
}

class Button : TextView()

class EditText : TextView()
