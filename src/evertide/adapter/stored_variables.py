"""Values of variables that the catalog keeps: for everyone, and for the sessions of a role.

What is stored was checked as SET checks it. What was stored before that, or by hand, may be
anything: a session begins without it, and it can always be reset.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evertide.adapter.variables import VARIABLES, check_assignment
from evertide.catalog.objects import Role
from evertide.catalog.ops import Op, SetSystemConfigurationOp
from evertide.catalog.privilege_ops import SetRoleVariableOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.printer.names import quote_ident
from evertide.vocab.errors import Notice, SqlError


def system_ops(
    name: str, value: str | None, snapshot: Snapshot, *, any_name: bool = False
) -> list[Op]:
    """ALTER SYSTEM: the one value of a variable, which may be kept in another spelling of case.

    `any_name`: also of one that is none, which nobody looks at then.
    """
    kept = [key for key in snapshot.system_configurations if key.lower() == name.lower()]
    if value is None and kept:
        return [SetSystemConfigurationOp(key, None) for key in kept]
    if any_name and name.lower() not in VARIABLES:
        return [SetSystemConfigurationOp(name.lower(), value)]
    found = check_assignment(name, value, systemwide=True)
    others = [key for key in kept if key != found.variable.key]
    return [
        *(SetSystemConfigurationOp(key, None) for key in others),
        SetSystemConfigurationOp(found.variable.key, found.value),
    ]


def unknown_flags(ops: Iterable[Op]) -> list[Notice]:
    """What is told of names that are kept without a meaning."""
    return [
        Notice("NOTICE", "01000", f'parameter "{op.name}" is kept, without effect')
        for op in ops
        if isinstance(op, SetSystemConfigurationOp) and op.name not in VARIABLES
    ]


def checked_variables(ops: Iterable[Op], snapshot: Snapshot) -> list[Op]:
    """ALTER ROLE: the ops, with variables and values in their canonical spelling."""
    return [_checked(op, snapshot) if isinstance(op, SetRoleVariableOp) else op for op in ops]


def _checked(op: SetRoleVariableOp, snapshot: Snapshot) -> SetRoleVariableOp:
    role = snapshot.roles.get(op.role_id)
    if op.value is None and role is not None and op.name in dict(role.variables):
        return op
    found = check_assignment(op.name, op.value)
    return replace(op, name=found.variable.key, value=found.value)


@dataclass(frozen=True, slots=True)
class StartingValues:
    """By variable what a session begins with, and what is told of values that no variable takes."""

    values: Mapping[str, str]
    ignored: tuple[Notice, ...]


def starting_values(role: Role, snapshot: Snapshot) -> StartingValues:
    """The system's values, and those of the role over them."""
    values: dict[str, str] = {}
    ignored: list[Notice] = []
    for whose, kept in (
        ("SYSTEM", snapshot.system_configurations.items()),
        (f"ROLE {quote_ident(role.name)}", role.variables),
    ):
        for name, value in kept:
            if name.lower() not in VARIABLES:
                continue  # a flag of another release, or one that was kept without a meaning
            try:
                found = check_assignment(name, value, systemwide=whose == "SYSTEM")
            except SqlError as error:
                ignored.append(_ignored(error, whose, name))
            else:
                assert found.value is not None, "no value was taken away"
                values[found.variable.key] = found.value
    return StartingValues(values, tuple(ignored))


def _ignored(error: SqlError, whose: str, name: str) -> Notice:
    return Notice(
        "WARNING",
        error.code,
        f"stored value ignored: {error.message}",
        hint=f"ALTER {whose} RESET {quote_ident(name)} removes it.",
    )
