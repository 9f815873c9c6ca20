"""Batches of token ids, given to a function of a peer in turn."""

import time

from encoder_task import Case, Encoder, padded


class Batches:
    """The batches of several cases, and for each case the outputs for one padded batch.

    Args:
        answer: Function of token ids and a mask of real tokens, both int32 `[B, S]`, that returns
            an array `[B, C]`.
        order: The order of the worker.
    """

    def __init__(self, answer, order):
        encoder = Encoder(**order["encoder"])
        self._answer = answer
        self._cases = [Case(**case) for case in order["cases"]]
        self._batches = [[padded(rows) for rows in case.groups(encoder)] for case in self._cases]
        self._checked = [case.checked(encoder) for case in self._cases]
        # The first answer, for its time; others follow on request.
        self.metadata = {"outputs": self._outputs(0)}

    def _outputs(self, number):
        return self._answer(*padded(*self._checked[number])).tolist()

    def run(self, steps):
        """Answers the batches of a case.

        Args:
            steps: The number of the case, and how often to answer its batches. 0: answers one
                padded batch.

        Returns:
            The processor time of this process in seconds, or the outputs.
        """
        number, calls = steps
        if not calls:
            return {"outputs": self._outputs(number)}
        begin = time.process_time()
        for _ in range(calls):
            for ids, mask in self._batches[number]:
                self._answer(ids, mask)
        return {"processor_seconds": time.process_time() - begin}
