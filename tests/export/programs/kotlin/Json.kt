/** The parts of Android's JSON reader that `Translator.kt` uses, to compile it without Android. */
package org.json

class JSONObject(val text: String) {
    fun getInt(name: String): Int = TODO(name)
    fun getString(name: String): String = TODO(name)
    fun getJSONObject(name: String): JSONObject = TODO(name)
    fun getJSONArray(name: String): JSONArray = TODO(name)
    fun isNull(name: String): Boolean = TODO(name)
}

class JSONArray {
    fun length(): Int = TODO()
    fun getInt(index: Int): Int = TODO("$index")
    fun getJSONObject(index: Int): JSONObject = TODO("$index")
}
