"""Fields and parameters of KServe's requests: what would have no effect is refused by name."""

from collections.abc import Collection, Mapping
from typing import Any

from keras_transformer.serving.bodies import is_one_of, value_of
from keras_transformer.serving.refusal import Refusal


def check_fields(thing: str, fields: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses an object that has an unknown field.

    Args:
        thing: The object as the message calls it, such as `"a request"`.
        fields: The object.
        known: Names of its fields.

    Raises:
        Refusal: If it has another one.
    """
    for name in fields:
        if name not in known:
            names = ", ".join(known)
            raise Refusal(400, f"{thing} has no field `{name:.100}`, only {names}.")


def parameters_of(
    thing: str,
    fields: dict[str, Any],
    used: Mapping[str, type] | None = None,
    neutral: Mapping[str, tuple] | None = None,
) -> dict[str, Any]:
    """Returns the parameters of an object that have an effect, without those that are null.

    Args:
        thing: The object as the message calls it, such as `"a request"`.
        fields: The object, whose field `parameters` may be missing.
        used: Types of the parameters that have an effect, by name.
        neutral: Values that change nothing, by the names of parameters that are accepted with them.

    Raises:
        Refusal: If there is another parameter, or another value.
    """
    used, neutral, effective = used or {}, neutral or {}, {}
    parameters = value_of(fields, "parameters", dict, {})
    for name, value in parameters.items():
        if name not in used and name not in neutral:
            raise Refusal(400, f"{thing} has no parameter `{name:.100}`.")
        if value is None:
            continue
        if name in used:
            effective[name] = value_of(parameters, name, used[name])
        elif not is_one_of(value, neutral[name]):
            raise Refusal(400, f"the parameter `{name}` is not supported.")
    return effective
