package translate

import android.app.Activity
import android.os.Bundle
import android.widget.Button
import android.widget.EditText
import android.widget.TextView
import java.util.concurrent.ExecutorService
import java.util.concurrent.Executors
import java.util.concurrent.Future

/**
 * Activity with a sentence, a button and the translation. The model runs in its own thread, one
 * sentence at a time; a newer sentence replaces an older one that waits or runs.
 */
class MainActivity : Activity() {
    private val worker: ExecutorService = Executors.newSingleThreadExecutor()
    private var translator: Translator? = null // used by the worker's thread only
    private var newest: Future<*>? = null

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        setContentView(R.layout.main)
        val button = findViewById<Button>(R.id.translate)
        button.setOnClickListener {
            translate(findViewById<EditText>(R.id.sentence).text.toString())
        }
        work({ translator = Translator(assets, "model.tflite") }) {
            button.isEnabled = true
            show(R.id.status, getString(R.string.ready))
        }
    }

    private fun translate(sentence: String) {
        show(R.id.status, getString(R.string.translating))
        newest?.cancel(false) // not started if it waits, and not shown if it runs
        val begin = System.nanoTime()
        newest = work({ translator!!.let { it.translate(sentence) to it.longest } }) { result ->
            val (translation, longest) = result
            val time = (System.nanoTime() - begin) / 1_000_000
            show(R.id.translation, translation.text)
            val status = when {
                translation.truncated -> R.string.truncated
                translation.complete -> R.string.done
                else -> R.string.incomplete
            }
            show(R.id.status, getString(status, time, longest))
        }
    }

    /** Runs a task in the worker, and then a function of its result in this thread. */
    private fun <T> work(task: () -> T, then: (T) -> Unit): Future<*> {
        lateinit var future: Future<*>
        val run = Runnable {
            val result = runCatching(task)
            runOnUiThread {
                if (future.isCancelled || isDestroyed) return@runOnUiThread
                result.onSuccess(then)
                result.onFailure { show(R.id.status, it.message ?: "$it") }
            }
        }
        future = worker.submit(run)
        return future
    }

    private fun show(id: Int, text: String) {
        findViewById<TextView>(id).text = text
    }

    override fun onDestroy() {
        worker.execute { translator?.close() }
        worker.shutdown()
        super.onDestroy()
    }
}
