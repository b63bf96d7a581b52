"""Random statements about roles and privileges."""

from collections.abc import Callable
from random import Random

from evertide.sql.parser.role import PRIVILEGES
from evertide.sql.syntax import role as r
from tests.sql.parse_trees import identifier, name

_IN_SCHEMAS = (r.GrantKind.TABLE, r.GrantKind.TYPE, r.GrantKind.SECRET, r.GrantKind.CONNECTION)
_ONE_PART = (r.GrantKind.CLUSTER, r.GrantKind.DATABASE)


def role_statement(rng: Random) -> r.RoleStatement:
    makers: list[Callable[[], r.RoleStatement]] = [
        lambda: r.AlterRoleStatement(identifier(rng), rng.choice([(), ("NOLOGIN", "SUPERUSER")])),
        lambda: r.AlterRoleSetStatement(identifier(rng), "search_path", _values(rng)),
        lambda: r.MembershipStatement(_roles(rng), _roles(rng), _flag(rng)),
        lambda: r.PrivilegesStatement(_privileges(rng), _target(rng), _roles(rng), _flag(rng)),
        lambda: r.DefaultPrivilegesStatement(
            rng.choice([None, (), _roles(rng)]),
            _all(rng),
            _privileges(rng),
            _roles(rng),
            _flag(rng),
        ),
        lambda: r.ReassignOwnedStatement(_roles(rng), identifier(rng)),
        lambda: r.DropOwnedStatement(_roles(rng), _flag(rng)),
    ]
    return rng.choice(makers)()


def _flag(rng: Random) -> bool:
    return rng.random() < 0.5


def _roles(rng: Random) -> tuple[str, ...]:
    return tuple(identifier(rng) for _ in range(rng.randint(1, 3)))


def _values(rng: Random) -> tuple[str, ...] | None:
    return rng.choice([None, ("a",), ("a", "b")])


def _privileges(rng: Random) -> tuple[str, ...] | None:
    return rng.choice([None, tuple(rng.sample(PRIVILEGES, rng.randint(1, 3)))])


def _target(rng: Random) -> r.OnSystem | r.OnObjects | r.OnAll:
    kind = rng.choice(list(r.GrantKind))
    names = tuple(
        type(name(rng))((identifier(rng),)) if kind in _ONE_PART else name(rng)
        for _ in range(rng.randint(1, 2))
    )
    targets: list[r.OnSystem | r.OnObjects | r.OnAll] = [
        r.OnSystem(),
        r.OnObjects(kind, names),
        _all(rng),
    ]
    return rng.choice(targets)


def _all(rng: Random) -> r.OnAll:
    kind = rng.choice(list(r.GrantKind))
    if kind in _IN_SCHEMAS and _flag(rng):
        return r.OnAll(kind, schemas=(name(rng),))
    if kind not in _ONE_PART and _flag(rng):
        return r.OnAll(kind, databases=(identifier(rng),))
    return r.OnAll(kind)
