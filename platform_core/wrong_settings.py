"""What is wrong with a setting, where it was set, and what could stand there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from platform_core.errors import SettingsError
from platform_core.names import did_you_mean


def explained(
    error: ValidationError,
    sections: Mapping[str, type[BaseModel]],
    top: Sequence[str],
    profile: str,
    env: Mapping[str, str],
) -> SettingsError:
    """Of the first that is wrong. `top` is what may stand in a profile outside of a section, with the sections."""
    first = error.errors()[0]
    section, name = (*(str(part) for part in first["loc"][:2]), "")[:2]
    variable = f"WEIR_{section}__{name}".upper() if name else f"WEIR_{section}".upper()
    place = variable if variable in env else profile
    if first["type"] == "extra_forbidden":
        known = list(sections[section].model_fields) if name else list(top)
        return _unknown(f"[{section}]" if name else "", name or section, known, place)
    where = ".".join(str(part) for part in first["loc"])
    plain = isinstance(first.get("input"), str | int | float) and len(first["loc"]) <= 2
    came = f", got {first['input']!r}" if plain else ""  # what stands in a map may be a password
    return SettingsError(
        f"{where}: {first['msg'].removeprefix('Value error, ')}{came}; it comes from {place}.",
        remedy=f"Correct it there, or set {variable}.",
    )


def parsed(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(
            f"{variable} is no JSON: {error}.", remedy=f'Write it as in {variable}=\'{{"name": "value"}}\'.'
        ) from error


def _unknown(section: str, wrong: str, known: Sequence[str], place: str) -> SettingsError:
    return SettingsError(
        f"{place}: there is no setting {wrong!r}{f' in {section}' if section else ''}.{did_you_mean(wrong, known)}",
        remedy=f"{section or 'There'} can have {', '.join(known)}; infra/profiles/local.toml says what each means.",
    )
