"""The prompts of `chat.py` in LiteRT-LM, a line of JSON in, a line of JSON out.

The package `litert-lm-api` takes texts and returns texts: a token of the answer is a piece of it.
"""

import json
import sys
import time

import litert_lm


def main():
    """Continues prompts with the .litertlm file in the first argument, by greedy search."""
    engine = litert_lm.Engine(
        sys.argv[1], litert_lm.Backend.CPU(thread_count=1), max_num_tokens=int(sys.argv[2])
    )
    greedy = litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0)
    for line in sys.stdin:
        order = json.loads(line)
        pieces, times = [], [time.process_time()]
        with engine.create_session(
            apply_prompt_template=False, sampler_config=greedy, max_output_tokens=order["count"]
        ) as session:
            session.run_prefill([order["text"]])
            for response in session.run_decode_async():
                pieces.append(response.texts[0])
                times.append(time.process_time())
        print(json.dumps({"pieces": pieces, "times": times}), flush=True)


if __name__ == "__main__":
    main()
