"""Values that sessions of a role start with: only such as a session could set itself."""

from collections.abc import Iterable
from dataclasses import replace

from evertide.adapter.variables import checked, lookup
from evertide.catalog.ops import Op
from evertide.catalog.privilege_ops import SetRoleVariableOp
from evertide.vocab.errors import CannotChangeParameter


def checked_variables(ops: Iterable[Op]) -> list[Op]:
    """The ops, with variables and values in their canonical spelling."""
    return [_checked(op) if isinstance(op, SetRoleVariableOp) else op for op in ops]


def _checked(op: SetRoleVariableOp) -> SetRoleVariableOp:
    variable = lookup(op.name)
    if variable.read_only:
        raise CannotChangeParameter(f'parameter "{variable.name}" cannot be changed')
    value = None if op.value is None else checked(variable, op.value)
    return replace(op, name=variable.name.lower(), value=value)
