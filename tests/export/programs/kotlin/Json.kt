/** The parts of Android's JSON reader that the project uses, to run it without Android. */
package org.json

class JSONObject private constructor(private val members: Map<String, Any?>) {
    constructor(text: String) : this(members(Reader(text).whole()))

    internal constructor(value: Any?) : this(members(value))

    fun getInt(name: String): Int = (value(name) as Number).toInt()
    fun getString(name: String): String = value(name) as String
    fun getBoolean(name: String): Boolean = value(name) as Boolean
    fun optBoolean(name: String): Boolean = members[name] as? Boolean ?: false
    fun getJSONObject(name: String): JSONObject = JSONObject(value(name))
    fun getJSONArray(name: String): JSONArray = JSONArray(value(name) as List<*>)
    fun optJSONArray(name: String): JSONArray? = (members[name] as? List<*>)?.let { JSONArray(it) }
    fun isNull(name: String): Boolean = members[name] == null
    fun keys(): Iterator<String> = members.keys.iterator()
    fun has(name: String): Boolean = name in members

    private fun value(name: String) = requireNotNull(members[name]) { "No value for $name" }
}

class JSONArray internal constructor(private val items: List<*>) {
    fun length(): Int = items.size
    fun getInt(index: Int): Int = (items[index] as Number).toInt()
    fun getString(index: Int): String = items[index] as String
    fun getJSONObject(index: Int): JSONObject = JSONObject(items[index])
    fun getJSONArray(index: Int): JSONArray = JSONArray(items[index] as List<*>)
}

@Suppress("UNCHECKED_CAST")
private fun members(value: Any?) = value as Map<String, Any?>

private val CONSTANTS = mapOf("null" to null, "true" to true, "false" to false)
private val ESCAPES = mapOf('n' to '\n', 't' to '\t', 'r' to '\r', 'b' to '\b', 'f' to '\u000c')

private class Reader(private val text: String) {
    private var at = 0

    fun whole(): Any? = value().also { require(next() == null) { "text after the value" } }

    private fun next(): Char? {
        while (at < text.length && text[at] in " \t\r\n") at++
        return text.getOrNull(at)
    }

    private fun skip(wanted: Char) = require(next() == wanted) { "no $wanted at $at" }.also { at++ }

    private fun value(): Any? = when (next()) {
        '{' -> list('}') { string().also { skip(':') } to value() }.toMap()
        '[' -> list(']') { value() }
        '"' -> string()
        else -> {
            val word = Regex("[^,\\]} \t\r\n]+").matchAt(text, at)!!.value
            at += word.length
            if (word in CONSTANTS) CONSTANTS[word] else word.toDouble()
        }
    }

    private fun <Item> list(end: Char, item: () -> Item): List<Item> {
        val items = mutableListOf<Item>()
        at++
        while (next() != end) {
            if (items.isNotEmpty()) skip(',')
            items.add(item())
        }
        at++
        return items
    }

    private fun string(): String {
        skip('"')
        val result = StringBuilder()
        while (text[at] != '"') {
            if (text[at] != '\\') {
                result.append(text[at++])
                continue
            }
            val kind = text[at + 1]
            at += 2
            if (kind != 'u') {
                result.append(ESCAPES[kind] ?: kind)
                continue
            }
            result.append(text.substring(at, at + 4).toInt(16).toChar())
            at += 4
        }
        at++
        return result.toString()
    }
}
