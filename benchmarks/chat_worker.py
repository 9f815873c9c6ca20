"""The prompts of `chat.py` in a run or an export: a line of JSON in, a line of JSON out."""

import itertools
import json
import sys
import time

import keras_transformer
from keras_transformer.decoding import Greedy


def main():
    """Continues prompts with the model in the first argument, which gets no other thread."""
    opened, out = keras_transformer.open(sys.argv[1]), sys.stdout
    sys.stdout = sys.stderr
    text = opened.kept_text()
    for line in sys.stdin:
        order = json.loads(line)
        tokens, times = [], [time.process_time()]
        text.forget()
        found = text.generate(order["ids"], Greedy())
        for token in itertools.islice(found, order["count"]):
            tokens.append(token)
            times.append(time.process_time())
        found.close()
        print(json.dumps({"tokens": tokens, "times": times}), file=out, flush=True)


if __name__ == "__main__":
    main()
