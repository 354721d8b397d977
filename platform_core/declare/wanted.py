"""Whether a field holds the kind of value that it takes; if not, what to write."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

from platform_core.errors import DeclarationError


def is_a(value: object, kinds: type | tuple[type, ...], field: str, remedy: str) -> None:
    if not isinstance(value, kinds):
        some = kinds if isinstance(kinds, tuple) else (kinds,)
        names = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in some)
        raise DeclarationError(f"{field}: it takes {names}, came {shown(value)}.", remedy=remedy)


def is_callable(value: object, field: str) -> None:
    if not callable(value):
        came = shown(value)
        raise DeclarationError(f"{field}: it takes a function, came {came}.", remedy="Name it, without calling it.")


def is_one_of(value: object, choices: Collection[object], field: str) -> None:
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise DeclarationError(f"{field}: {value!r} is not one of {known}.", remedy="Choose one of them.")


def are(values: object, kind: type, field: str, example: str) -> None:
    """Several of a kind, as a tuple. A text is none: Python would take it letter by letter."""
    found: list[object] | None = None
    if isinstance(values, Iterable) and not isinstance(values, str):
        found = list(cast("Iterable[object]", values))
    if found is None or not all(isinstance(one, kind) for one in found):
        came = shown(values)
        raise DeclarationError(
            f"{field}: it takes a tuple of {kind.__name__}, came {came}.", remedy=f"Write {example}."
        )


def shown(value: object) -> str:
    """Declared values are long: of those the kind says enough."""
    if value is None:
        return "nothing"
    kind = type(value).__name__
    return f"the {kind} {value!r}" if isinstance(value, str | int | float) else f"a {kind}"
