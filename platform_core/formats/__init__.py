"""How bytes become columns and back: a file a format, each with the same interface, `Codec`.

A further format is a member of `Format`, a file here and its line below; tests/formats holds every one to the contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from platform_core.declare import Format
from platform_core.formats.bytes import BytesCodec
from platform_core.formats.codec import Codec
from platform_core.formats.json import JsonCodec
from platform_core.formats.numbers import DoubleCodec, LongCodec
from platform_core.formats.text import TextCodec

_CODECS: Mapping[Format, Codec] = MappingProxyType(
    {
        Format.JSON: JsonCodec(),
        Format.TEXT: TextCodec(),
        Format.BYTES: BytesCodec(),
        Format.LONG: LongCodec(),
        Format.DOUBLE: DoubleCodec(),
    }
)


def codec(of: Format) -> Codec:
    return _CODECS[of]
