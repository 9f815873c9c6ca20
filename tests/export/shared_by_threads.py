"""A program whose threads share exports: `python shared_by_threads.py JOBS`.

It runs in a process of its own because two threads in an interpreter that is not thread-safe can
crash the process. JOBS is a pickled list of pairs: the name of one of `RUNTIMES` with its
arguments, and a list of examples.
"""

import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from threads import answers_to, in_threads, turned

from keras_transformer.export.ctranslate2.translator import CTranslate2Translator
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.opening.forms import open

RUNTIMES = {
    runtime.__name__: runtime
    for runtime in (
        CTranslate2Translator,
        LiteRTSinglePass,
        LiteRTStringTranslator,
        LiteRTTranslator,
        SavedModelSinglePass,
        open,
    )
}
ROUNDS = 2


def main(jobs):
    for name, arguments, options, examples in jobs:
        make, batches = RUNTIMES[name], turned(examples)
        alone = make(*arguments, **options)
        expected = [answers_to(alone, batch) for batch in batches]
        assert len({str(answer) for answer in expected[0]}) > 1, name
        shared = make(*arguments, **options)
        for _ in range(ROUNDS):
            answers = in_threads(lambda batch, shared=shared: answers_to(shared, batch), batches)
            assert answers == expected, f"{name} {arguments} {options}"
        sys.stdout.write(f"{name} gives eight threads what one gets\n")


if __name__ == "__main__":
    main(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()))
