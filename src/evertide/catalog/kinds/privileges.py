"""What roles may do with an object: its access list, and the letters that this is made of."""

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import msgspec

from evertide.catalog.kinds.roles import PUBLIC_ROLE_ID
from evertide.vocab.ids import RoleId

# Every privilege by its letter, in the order that access lists are written in.
LETTERS: Final = {
    "a": "INSERT",
    "r": "SELECT",
    "w": "UPDATE",
    "d": "DELETE",
    "U": "USAGE",
    "C": "CREATE",
    "R": "CREATEROLE",
    "B": "CREATEDB",
    "N": "CREATECLUSTER",
    "P": "CREATENETWORKPOLICY",
}
LETTER_OF: Final = {name: letter for letter, name in LETTERS.items()}
# The order in which messages name privileges.
NAMED_ORDER: Final = "rawdUCRBNP"

# All that may be granted on objects of a type.
ALL_ON: Final = {
    "table": "arwd",
    "type": "U",
    "secret": "U",
    "connection": "U",
    "cluster": "UC",
    "database": "UC",
    "schema": "UC",
    "system": "RBNP",
}
# What its owner has of an object from the start, where that is less than all.
OWNERS_OF: Final = {
    "view": "r", "materialized-view": "r", "source": "r", "index": "", "sink": "",
}  # fmt: skip


class AclItem(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What one role granted to another. The grantor is the object's owner."""

    grantee: RoleId
    grantor: RoleId
    letters: str


Acl: TypeAlias = tuple[AclItem, ...]


def in_order(letters: Iterable[str]) -> str:
    """Each letter once, as access lists are written.

    >>> in_order("rda")
    'ard'
    """
    wanted = set(letters)
    return "".join(letter for letter in LETTERS if letter in wanted)


def names_of_letters(letters: Iterable[str]) -> str:
    """The privileges in words.

    >>> names_of_letters("Uar")
    'SELECT, INSERT, USAGE'
    """
    wanted = set(letters)
    return ", ".join(LETTERS[letter] for letter in NAMED_ORDER if letter in wanted)


def owners_letters(object_type: str) -> str:
    """What the owner of a new object of this type may do."""
    return OWNERS_OF[object_type] if object_type in OWNERS_OF else ALL_ON[object_type]


def readable(object_type: str) -> bool:
    """Whether objects of this type are relations: what GRANT calls tables."""
    return object_type in ("table", "view", "materialized-view", "source")


def granted(acl: Acl, grantee: RoleId, grantor: RoleId, letters: str) -> Acl:
    """The list with these privileges too."""
    entries = _entries(acl)
    entries[grantee, grantor] = in_order(entries.get((grantee, grantor), "") + letters)
    return _listed(entries)


def revoked(acl: Acl, grantee: RoleId, grantor: RoleId, letters: str) -> Acl:
    """The list without these privileges."""
    entries = _entries(acl)
    before = entries.get((grantee, grantor), "")
    entries[grantee, grantor] = "".join(letter for letter in before if letter not in letters)
    return _listed(entries)


def handed_over(acl: Acl, old_owner: RoleId, new_owner: RoleId) -> Acl:
    """The list once the object has another owner, who takes the old one's place in it."""
    entries: dict[tuple[RoleId, RoleId], str] = {}
    for entry in acl:
        key = (
            new_owner if entry.grantee == old_owner else entry.grantee,
            new_owner if entry.grantor == old_owner else entry.grantor,
        )
        entries[key] = in_order(entries.get(key, "") + entry.letters)
    return _listed(entries)


def letters_for(acl: Acl, role_ids: Collection[RoleId]) -> str:
    """What any of these roles may do."""
    return in_order(letter for e in acl if e.grantee in role_ids for letter in e.letters)


def _entries(acl: Acl) -> dict[tuple[RoleId, RoleId], str]:
    return {(entry.grantee, entry.grantor): entry.letters for entry in acl}


def _listed(entries: dict[tuple[RoleId, RoleId], str]) -> Acl:
    """Without empty entries, in one order whatever the history, so that equal lists are equal."""
    found = [AclItem(*key, letters) for key, letters in entries.items() if letters]
    return tuple(sorted(found, key=lambda entry: (_rank(entry.grantee), _rank(entry.grantor))))


def _rank(role_id: RoleId) -> tuple[bool, str, int, str]:
    """System roles, then users' by age, then everyone."""
    return role_id == PUBLIC_ROLE_ID, role_id[:1], len(role_id), role_id
