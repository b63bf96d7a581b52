"""Text as bytes of other encodings, and digests of both.

Only encodings of text are known by name: Python's other codecs do more than to encode.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Final

from evertide.expr.data_errors import UntranslatableCharacter
from evertide.expr.functions.build import partial, total
from evertide.vocab.errors import (
    CharacterNotInRepertoire,
    InvalidParameterValue,
)
from evertide.vocab.sql_type import BOOL, BYTEA, INT4, TEXT

_ENCODINGS: Final = frozenset({
    "utf-8", "ascii", "iso8859-1", "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5",
    "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-13", "iso8859-14",
    "iso8859-15", "iso8859-16", "big5", "gbk", "gb2312", "gb18030", "euc_jp", "euc_kr",
    "shift_jis", "koi8-r", "koi8-u", "cp866", "cp874", "cp949", "cp1250", "cp1251", "cp1252",
    "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "johab",
})  # fmt: skip


# What the web calls Big5 has the characters of Hong Kong too.
_LARGEST: Final = {"big5": "big5hkscs"}


def _bare(name: str) -> str:
    """PostgreSQL looks at a name's letters and digits alone."""
    return "".join(character for character in name.lower() if character.isalnum())


# Other names by which PostgreSQL or the web know an encoding.
_ALIASES: Final = {
    "unicode": "utf-8", "abc": "cp1258", "tcvn": "cp1258", "tcvn5712": "cp1258",
    "vscii": "cp1258", "alt": "cp866", "win": "cp1251", "koi8": "koi8-r", "sjis": "shift_jis",
    "mskanji": "shift_jis", "uhc": "cp949", "euccn": "gb2312", "usascii": "ascii",
    "latin1": "iso8859-1", "latin2": "iso8859-2", "latin3": "iso8859-3", "latin4": "iso8859-4",
    "latin5": "iso8859-9", "latin6": "iso8859-10", "latin7": "iso8859-13", "latin8": "iso8859-14",
    "latin9": "iso8859-15", "latin10": "iso8859-16",
}  # fmt: skip
_BY_NAME: Final = {
    **{_bare(name): name for name in _ENCODINGS},
    **{
        f"{other}{name.removeprefix('cp')}": name
        for name in _ENCODINGS
        if name.startswith("cp")
        for other in ("win", "windows")
    },
    **{f"iso{_bare(name).removeprefix('iso')}": name for name in _ENCODINGS if "iso" in name},
    **_ALIASES,
}


def _encoding(name: str) -> str:
    found = _BY_NAME.get(_bare(name))
    if found is None:
        raise InvalidParameterValue(f"invalid encoding name '{name}'")
    return _LARGEST.get(found, found)


def _decoded(value: bytes, name: str) -> str:
    encoding = _encoding(name)
    try:
        text = value.decode(encoding)
    except UnicodeDecodeError as problem:
        wrong = value[problem.start : problem.end].hex()
        raise CharacterNotInRepertoire(
            f"invalid byte sequence '\\x{wrong}' for encoding '{name}'"
        ) from None
    if "\0" in text:
        raise CharacterNotInRepertoire(f"invalid byte sequence '\\x00' for encoding '{name}'")
    return text


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode(_encoding(name))
    except UnicodeEncodeError as problem:
        wrong = text[problem.start]
        raise UntranslatableCharacter(
            f"character '{wrong}' has no equivalent in encoding '{name}'"
        ) from None


def _length_of_bytes(value: bytes, name: str) -> int:
    return len(value.decode(_encoding(name), errors="replace"))


def _length_of_text(text: str, name: str) -> int:
    """How many characters the text's bytes would be in another encoding."""
    return _length_of_bytes(text.encode(), name)


_HASHES: Final[dict[str, Callable[..., "hashlib._Hash"]]] = {
    "md5": hashlib.md5, "sha1": hashlib.sha1, "sha224": hashlib.sha224, "sha256": hashlib.sha256,
    "sha384": hashlib.sha384, "sha512": hashlib.sha512,
}  # fmt: skip


def _hash(name: str) -> str:
    if name.lower() not in _HASHES:
        raise InvalidParameterValue(f"invalid hash algorithm '{name}'")
    return name.lower()


def _digest(value: bytes, name: str) -> bytes:
    return _HASHES[_hash(name)](value, usedforsecurity=False).digest()


def _digest_of_text(text: str, name: str) -> bytes:
    return _digest(text.encode(), name)


def _keyed_digest(value: bytes, key: bytes, name: str) -> bytes:
    return hmac.digest(key, value, _hash(name))


def _keyed_digest_of_text(text: str, key: str, name: str) -> bytes:
    return _keyed_digest(text.encode(), key.encode(), name)


def _equal_bytes(left: bytes, right: bytes) -> bool:
    return hmac.compare_digest(left, right)


def _equal_texts(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(), right.encode())


ROWS: Final = (
    partial("convert_from", (BYTEA, TEXT), TEXT, _decoded),
    partial("convert_to", (TEXT, TEXT), BYTEA, _encoded),
    partial("length", (BYTEA, TEXT), INT4, _length_of_bytes),
    partial("length", (TEXT, TEXT), INT4, _length_of_text),
    partial("digest", (TEXT, TEXT), BYTEA, _digest_of_text),
    partial("digest", (BYTEA, TEXT), BYTEA, _digest),
    partial("hmac", (TEXT, TEXT, TEXT), BYTEA, _keyed_digest_of_text),
    partial("hmac", (BYTEA, BYTEA, TEXT), BYTEA, _keyed_digest),
    total("constant_time_eq", (TEXT, TEXT), BOOL, _equal_texts),
    total("constant_time_eq", (BYTEA, BYTEA), BOOL, _equal_bytes),
)
