/** What `Translator.kt` uses of the JSON reader that Android has, to compile it without that. */
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
