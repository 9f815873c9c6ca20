"""YAML of Marian's files: settings, and tables of tokens with their ids."""

from collections.abc import Iterator
from typing import Any

import yaml

# PyYAML's own reader takes 15 times as long, and not every installation has the one in C.
_Events: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Loader(yaml.SafeLoader):
    """Loads YAML without aliases, by which a few bytes could represent billions of values."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def from_yaml(text) -> Any:
    """Returns the value that a YAML text stands for.

    Raises:
        Exception: Nearly any error if the text is not YAML.
    """
    return yaml.load(text, _Loader)  # noqa: S506


def as_yaml(settings) -> str:
    """Returns a dictionary as YAML."""
    return yaml.safe_dump(settings, default_flow_style=False, sort_keys=True)


def pairs_of_yaml(text) -> Iterator[tuple[str, str]]:
    """Yields the keys and values of a YAML mapping as they are written, also equal keys.

    No key becomes a number, a truth value or a reference: `1`, `no` and `<<` are tokens.

    Raises:
        ValueError: If the text is something else than one flat mapping; the message names the
            line.
    """
    begin = (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.MappingStartEvent)
    end = (yaml.MappingEndEvent, yaml.DocumentEndEvent, yaml.StreamEndEvent)
    try:
        events = iter(yaml.parse(text, _Events))
        for kind in begin:
            _require(kind, next(events))
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            yield _require(yaml.ScalarEvent, key).value, _scalar(next(events))
        for kind in end[1:]:
            _require(kind, next(events))
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        raise ValueError(f"not YAML{line}: {error.problem}") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise ValueError(f"not YAML: {str(error).splitlines()[0]}") from error


def _scalar(event):
    return _require(yaml.ScalarEvent, event).value


def _require(kind, event):
    """Returns an event if it is of a kind."""
    if not isinstance(event, kind) or getattr(event, "anchor", None) is not None:
        line = event.start_mark.line + 1
        raise ValueError(f"line {line} is not `token: id`")
    return event
