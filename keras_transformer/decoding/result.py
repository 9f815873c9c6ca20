"""What a search returns."""


def make_result(tokens, scores, token_scores=(), alignment=()):
    """Returns tokens and scores, or a dictionary of them and of what else was asked for.

    Args:
        tokens: Token ids.
        scores: Scores of the outputs.
        token_scores: Log-probabilities of the tokens; `()` if not asked for.
        alignment: Weights of the source's positions; `()` if not asked for.
    """
    asked = {"token_scores": token_scores, "alignment": alignment}
    asked = {name: each for name, each in asked.items() if not isinstance(each, tuple)}
    return {"tokens": tokens, "scores": scores, **asked} if asked else (tokens, scores)
