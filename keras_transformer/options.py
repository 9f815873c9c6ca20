"""Options of everything that answers: names that Python and the command line share, their error."""

LANGUAGES = ("source_language", "target_language")
SUBTITLES = ("srt", "vtt", "json")  # suffixes of files
WINDOWS = ("overlap", "timestamps", "context")  # of long recordings
# Options of a recognizer that its exports do not have, and why.
NOT_EXPORTED = {
    "temperatures": "it holds one search, and has one attempt",
    "words": "times of words need the attention weights, which it does not return",
}


class OptionError(ValueError):
    """An option that has no effect, or a value that it cannot have, on what was opened.

    The command line names the option in its own way.

    Args:
        name: Name of the option.
        reason: The rest of the sentence.
    """

    def __init__(self, name: str, reason: str):
        super().__init__(f"`{name}` {reason}")
        self.name, self.reason = name, reason
