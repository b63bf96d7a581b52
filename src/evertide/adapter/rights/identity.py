"""Which role a session acts as. It is found once, when the session begins."""

from typing import Final

from evertide.catalog.objects import Role
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import InvalidAuthorization
from evertide.vocab.ids import RoleId

DEFAULT_USER: Final = "materialize"
_SYSTEM_PREFIXES: Final = ("mz_", "pg_")


def login_role(user: str, snapshot: Snapshot, *, internal: bool) -> Role:
    """The role of this name; a user that no role is named after acts as the default role: that is
    for addresses where users are trusted. Who had to prove a password has a role.

    System roles are only let in where only operators can connect.
    """
    system = user.startswith(_SYSTEM_PREFIXES)
    if system and not internal:
        raise InvalidAuthorization(
            f'role "{user}" may not log in here',
            hint="System roles connect to the internal SQL address.",
        )
    role = snapshot.role_named(user)
    if role is None and system:
        raise InvalidAuthorization(f'role "{user}" does not exist')
    if role is None:
        return default_role(snapshot)
    if role.login is False:
        raise InvalidAuthorization(f'role "{user}" is not permitted to log in')
    return role


def default_role(snapshot: Snapshot) -> Role:
    """The role of the environment's first user."""
    role = snapshot.role_named(DEFAULT_USER)
    if role is None:
        raise InvalidAuthorization(f'role "{DEFAULT_USER}" does not exist')
    return role


def is_superuser(role_id: RoleId | None, snapshot: Snapshot) -> bool:
    """Whether the role may do everything now, whatever it was when its session began."""
    role = None if role_id is None else snapshot.roles.get(role_id)
    return role is not None and role.superuser
