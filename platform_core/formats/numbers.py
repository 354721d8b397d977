"""The whole value is one number in eight bytes, big-endian, as Kafka's LongSerializer and DoubleSerializer write it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute

from platform_core.declare.schemas import Column
from platform_core.formats.codec import Fault, Names, column_of

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

pc: Any = pyarrow.compute  # its functions are made at import, where no type checker sees them
_WIDTH = 8
_MANTISSA, _EXPONENT = 52, 0x7FF  # of a double: bits of the one, and the other when all of its bits are set


class LongCodec:
    letter, kind = "q", pa.int64()

    def read(self, value: Expression, columns: Sequence[Column]) -> Expression:
        from pyspark.sql import functions as F

        return F.struct(self.number(_bits(value)).alias(columns[0].name))

    def number(self, bits: Expression) -> Expression:
        return bits

    def is_empty(self, value: Expression) -> Expression:
        return value.isNull()

    def unreadable(self, value: Expression, read: Expression, columns: Sequence[Column]) -> list[Fault]:  # noqa: ARG002
        from pyspark.sql import functions as F

        return [(F.length(value) != _WIDTH, f"not {_WIDTH} bytes")]

    def encode(
        self,
        rows: pa.Table,
        parts: Sequence[Names],
        duck: duckdb.DuckDBPyConnection,  # noqa: ARG002
    ) -> list[pa.ChunkedArray]:
        return [pa.chunked_array([self._written(rows[column_of(part)])], pa.binary()) for part in parts]

    def _written(self, numbers: pa.ChunkedArray) -> pa.Array:
        one = numbers.cast(self.kind).combine_chunks()
        data = pa.py_buffer(struct.pack(f">{len(one)}{self.letter}", *one.fill_null(0).to_pylist()))
        whole = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_WIDTH), len(one), [None, data])
        return pc.if_else(one.is_valid(), whole.cast(pa.binary()), pa.scalar(None, pa.binary()))

    def dumps(self, value: Mapping[str, Any]) -> bytes:
        return struct.pack(f">{self.letter}", value[column_of(value)])

    def loads(self, data: bytes) -> Any:
        return struct.unpack(f">{self.letter}", data)[0]


class DoubleCodec(LongCodec):
    """Spark has no function for it: the number is put together from sign, exponent and mantissa, exactly."""

    letter, kind = "d", pa.float64()

    def number(self, bits: Expression) -> Expression:
        from pyspark.sql import functions as F

        exponent = F.shiftright(bits, _MANTISSA).bitwiseAND(F.lit(_EXPONENT))
        mantissa = bits.bitwiseAND(F.lit(2**_MANTISSA - 1))
        scale = F.pow(F.lit(2.0), F.greatest(exponent, F.lit(1)) - 1023 - _MANTISSA)
        finite = (mantissa + F.when(exponent > 0, F.lit(2**_MANTISSA)).otherwise(0)).cast("double") * scale
        endless = F.when(mantissa == 0, F.lit(float("inf"))).otherwise(F.lit(float("nan")))
        size = F.when(exponent == _EXPONENT, endless).otherwise(finite)
        return F.when(bits < 0, -size).otherwise(size)


def _bits(value: Expression) -> Expression:
    from pyspark.sql import functions as F

    eight = F.when(F.length(value) == _WIDTH, F.hex(value))
    return F.conv(eight, 16, -10).cast("bigint")  # a negative base: as a signed number
