/** The code that Android's tools generate from `res`, to compile `MainActivity.kt` without them. */
package translate

object R {
    object id {
        const val sentence = 1
        const val translate = 2
        const val translation = 3
        const val status = 4
    }

    object layout {
        const val main = 5
    }

    object string {
        const val ready = 6
        const val translating = 7
        const val done = 8
        const val truncated = 9
        const val incomplete = 10
    }
}
