"""Checks of `benchmarks/chat_browser.py` that must pass before its results can be trusted."""

import pytest


def test_rates_leave_out_the_first_token():
    """A prompt is read in 200 ms, and two more tokens take 50 ms each."""
    from chat_browser import summary

    answer = {"prompt": 5, "tokens": [7, 8, 9], "times": [1000, 1200, 1250, 1300]}
    found = summary([answer, answer])
    assert found["prompt_tokens"] == 5
    assert found["seconds_to_first"]["median"] == pytest.approx(0.2)
    assert found["tokens_per_second"]["median"] == pytest.approx(20)


def test_answers_that_differ_are_no_result():
    from chat_browser import summary
    from measurements import BenchmarkError

    answers = [{"prompt": 1, "tokens": [n], "times": [0, 1, 2]} for n in (3, 4)]
    with pytest.raises(BenchmarkError, match="other tokens when it answers again"):
        summary(answers)


@pytest.mark.parametrize(
    "tokens, equal",
    [([7, 8, 9], 3), ([7, 8], 2), ([7, 5, 9], 1), ([], 0), ([7, 8, 9, 9], 3)],
)
def test_tokens_that_are_missing_are_not_equal(tokens, equal):
    from chat_browser import equal_tokens

    assert equal_tokens(tokens, [7, 8, 9]) == equal
