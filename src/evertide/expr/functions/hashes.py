"""Hashes that spread keys: those of Kafka's partitioner, SeaHash and CRC-32; and named UUIDs."""

import uuid
import zlib
from typing import Final

from evertide.expr.functions.build import Body, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import UINT4, UINT8
from evertide.vocab.sql_type import BYTEA, INT4, TEXT, UUID, SqlType

_WORD: Final = 2**32 - 1
_LONG: Final = 2**64 - 1
_MURMUR_SEED: Final = 0x9747B28C
_MURMUR: Final = 0x5BD1E995
_SEA: Final = 0x6EED0E9DA4D94A4F
_SEA_LANES: Final = (
    0x16F11FE89B0D677C,
    0xB480A793D8E6C86C,
    0x6FE2E5AAF078EBC9,
    0x14F994A4C5259381,
)


def kafka_murmur2(value: bytes) -> int:
    """What Kafka's clients choose a partition by, without its sign.

    >>> kafka_murmur2(b"abc")
    479470107
    """
    length = len(value)
    state = _MURMUR_SEED ^ length
    whole = length // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(value[start : start + 4], "little") * _MURMUR & _WORD
        word = (word ^ word >> 24) * _MURMUR & _WORD
        state = (state * _MURMUR & _WORD) ^ word
    if length > whole:
        state = (state ^ int.from_bytes(value[whole:], "little")) * _MURMUR & _WORD
    state = (state ^ state >> 13) * _MURMUR & _WORD
    return (state ^ state >> 15) & 0x7FFFFFFF


def _diffused(word: int) -> int:
    word = word * _SEA & _LONG
    word ^= word >> 32 >> (word >> 60)
    return word * _SEA & _LONG


def seahash(value: bytes) -> int:
    """SeaHash with its usual seeds.

    >>> seahash(b"to be or not to be")
    1988685042348123509
    """
    lanes = list(_SEA_LANES)
    for number, start in enumerate(range(0, len(value), 8)):
        word = int.from_bytes(value[start : start + 8], "little")
        lanes[number % 4] = _diffused(lanes[number % 4] ^ word)
    return _diffused(lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3] ^ len(value))


def _named_uuid(space: bytes, name: str) -> bytes:
    return uuid.uuid5(uuid.UUID(bytes=space), name).bytes


def _rows(name: str, result: SqlType, body: Body) -> list[ScalarFunction]:
    return [
        total(name, (BYTEA,), result, body),
        total(name, (TEXT,), result, lambda text: body(text.encode())),
    ]


ROWS: Final = (
    *_rows("crc32", UINT4, zlib.crc32),
    *_rows("kafka_murmur2", INT4, kafka_murmur2),
    *_rows("seahash", UINT8, seahash),
    total("uuid_generate_v5", (UUID, TEXT), UUID, _named_uuid),
)
