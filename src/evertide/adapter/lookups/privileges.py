"""has_..._privilege and pg_has_role: what the access lists of one snapshot say.

As in the peer, they tell what is granted: that a superuser may do everything is not looked at.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, TypeAlias

from evertide.adapter.lookups.relations import RelationLookup
from evertide.adapter.session import Session
from evertide.catalog.acl import Guarded, acting_roles, letters_on, roles_above, system_letters
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.kinds.privileges import LETTER_OF, readable
from evertide.catalog.objects import Item, ItemKind, Role
from evertide.catalog.snapshot import Snapshot
from evertide.expr.type_names import type_oid
from evertide.sql.parser.entry import parse_expression
from evertide.sql.resolve import NameContext, find_type, resolve_schema
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import InvalidParameterValue, SqlError, UndefinedObject
from evertide.vocab.ids import RoleId
from evertide.vocab.sql_type import type_of_oid

_OPTION: Final = " WITH GRANT OPTION"
# What everyone may do with what the system defines.
_OF_SYSTEM: Final = {"table": "r", "any_column": "r", "type": "U", "function": "X", "language": "U"}
# Privileges of PostgreSQL that nobody grants here: everyone may connect, and execute functions.
_OTHERS: Final = {
    "CONNECT": "c", "EXECUTE": "X", "MAINTAIN": "m", "REFERENCES": "x", "SET": "s", "TEMP": "T",
    "TEMPORARY": "T", "TRIGGER": "t", "TRUNCATE": "D",
}  # fmt: skip

_LETTERS: Final = {**LETTER_OF, **_OTHERS}

# Found by name or by oid: an object, letters that everyone has on it, or None: there is none.
_Found: TypeAlias = Guarded | str | None


class PrivilegeLookup:
    """Answers for one snapshot and one session."""

    def __init__(self, snapshot: Snapshot, session: Session, relations: RelationLookup) -> None:
        self._snapshot = snapshot
        self._session = session
        self._relations = relations
        self._names = NameContext(snapshot, session.database, session.search_path)

    @cached_property
    def _roles(self) -> dict[int, Role]:
        return {role.oid: role for role in self._snapshot.roles.values()}

    def body(self, what: str) -> Callable[..., bool | None]:
        """has_<what>_privilege: ([role,] object, privileges), each by name or by oid."""

        def has(*arguments: str | int) -> bool | None:
            *role, target, wanted = arguments
            letters = wanted_letters(str(wanted))
            roles = self._acting(role)
            found = self._find(what, target)
            if roles is None or found is None:
                return None
            granted = found if isinstance(found, str) else letters_on(found, roles)
            if what == "database":
                granted += _OTHERS["CONNECT"]
            return not set(granted).isdisjoint(letters)

        return has

    def has_system(self, *arguments: str | int) -> bool | None:
        """has_system_privilege([role,] privileges)."""
        *role, wanted = arguments
        letters = wanted_letters(str(wanted))
        roles = self._acting(role)
        if roles is None:
            return None
        granted = system_letters(self._snapshot, roles)
        return not set(granted).isdisjoint(letters)

    def has_column(self, *arguments: str | int) -> bool | None:
        """has_column_privilege([role,] table, column, privileges): as on the table."""
        *role, table, _, wanted = arguments
        return self.body("table")(*role, table, wanted)

    def has_role(self, *arguments: str | int) -> bool | None:
        """pg_has_role([member,] role, how)."""
        *member, group, _ = arguments
        acting = self._role_ids(member)
        wanted = self._role_id(group)
        if acting is None or wanted is None:
            return None
        return wanted in acting

    def _acting(self, role: list[str | int]) -> set[RoleId] | None:
        found = self._given(role)
        return None if found is None else acting_roles(self._snapshot, found)

    def _role_ids(self, role: list[str | int]) -> set[RoleId] | None:
        found = self._given(role)
        return None if found is None else roles_above(self._snapshot, found)

    def _given(self, role: list[str | int]) -> RoleId | None:
        """The role that was named, or the session's; None for an oid that is nobody's."""
        return self._role_id(role[0]) if role else self._session.role_id

    def _role_id(self, role: str | int) -> RoleId | None:
        if isinstance(role, int):
            found = self._roles.get(role)
            return None if found is None else found.role_id
        named = self._snapshot.role_named(role)
        if named is None:
            raise UndefinedObject(f'role "{role}" does not exist')
        return named.role_id

    def _find(self, what: str, target: str | int) -> _Found:
        match what:
            case "table" | "any_column":
                return self._relation(target)
            case "database":
                return _named(what, target, self._snapshot.databases.values())
            case "cluster":
                return _named(what, target, self._snapshot.clusters.values())
            case "secret":
                return _named(what, target, self._snapshot.secrets.values())
            case "schema":
                return self._schema(target)
            case "type":
                return self._type(target)
            case "function" | "language" if isinstance(target, int):
                return _OF_SYSTEM[what]
            case _:
                if isinstance(target, int):
                    return None
                raise UndefinedObject(f'{what.replace("_", " ")} "{target}" does not exist')

    def _type(self, target: str | int) -> _Found:
        if isinstance(target, int):
            own = (
                item
                for item in self._snapshot.items.values()
                if item.oid == target and item.kind is ItemKind.TYPE
            )
            known = type_of_oid(target) is not None
            return next(own, _OF_SYSTEM["type"] if known else None)
        if type_oid(target) is not None:
            return _OF_SYSTEM["type"]
        found = find_type(_parts(target), self._names)
        if found is None:
            raise UndefinedObject(f'type "{target}" does not exist')
        return found

    def _relation(self, target: str | int) -> _Found:
        oid = target if isinstance(target, int) else self._relations.oid(target)
        found = None if oid is None else self._relations.relation(oid)
        if isinstance(found, Builtin):
            return _OF_SYSTEM["table"]
        if isinstance(found, Item) and readable(found.kind.value):
            return found
        if isinstance(target, int):
            return None
        raise UndefinedObject(f'relation "{target}" does not exist')

    def _schema(self, target: str | int) -> _Found:
        if isinstance(target, int):
            return _named("schema", target, self._snapshot.schemas.values())
        try:
            return resolve_schema(tuple(target.split(".")), self._names)
        except SqlError:
            raise UndefinedObject(f'schema "{target}" does not exist') from None


def _parts(text: str) -> tuple[str, ...]:
    """A name as SQL would read it; what is none stays whole."""
    try:
        name = parse_expression(text)
    except SqlError:
        return (text,)
    return name.parts if isinstance(name, Name) else (text,)


def _named(what: str, target: str | int, found: Iterable[Guarded]) -> Guarded | None:
    """By oid, where there is one; clusters have none."""
    for one in found:
        if target in (one.name, getattr(one, "oid", None)):
            return one
    if isinstance(target, int):
        return None
    raise UndefinedObject(f'{what} "{target}" does not exist')


def wanted_letters(text: str) -> list[str]:
    """The privileges of a list such as `SELECT, INSERT`: one of them is enough.

    >>> wanted_letters("select, usage with grant option")
    ['r', '']
    """
    return [_letter(part.strip()) for part in text.split(",")]


def _letter(name: str) -> str:
    """Nobody may grant on what he was granted, so no letter stands for that."""
    upper = name.upper()
    letter = _LETTERS.get(upper.removesuffix(_OPTION))
    if letter is None:
        raise InvalidParameterValue(f'unrecognized privilege type: "{name}"')
    return "" if upper.endswith(_OPTION) else letter
