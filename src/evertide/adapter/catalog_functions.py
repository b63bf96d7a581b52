"""Functions whose answer is in the catalog: put into a query as plain expressions.

psql and other tools ask pg_catalog functions about objects by oid. The function table knows no
catalog, so the calls are rewritten against the session's snapshot before the query is optimised.
"""

from evertide.catalog.snapshot import Snapshot
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import find_scalar
from evertide.expr.relation import Relation
from evertide.expr.relation_walk import rewrite_scalars, rewrite_up
from evertide.expr.scalar import Call, Case, Literal, Scalar
from evertide.expr.scalar_walk import rewrite
from evertide.vocab.sql_type import BOOL, NAME, OID

# Users' objects have oids from here on; those below are the system's.
FIRST_USER_OID = 20_000


def _operator(name: str) -> ScalarFunction:
    (found,) = [f for f in find_scalar(name) if f.arguments == (OID, OID)]
    return found


_EQUAL = _operator("=")
_AT_LEAST = _operator(">=")


def resolve_catalog_functions(relation: Relation, snapshot: Snapshot) -> Relation:
    """The relation with its catalog functions answered by this snapshot."""

    def resolved(scalar: Scalar) -> Scalar:
        return rewrite(scalar, lambda part: _resolved_call(part, snapshot))

    return rewrite_up(relation, lambda node: rewrite_scalars(node, resolved))


def _resolved_call(part: Scalar, snapshot: Snapshot) -> Scalar:
    if not isinstance(part, Call):
        return part
    match part.function.name:
        case "pg_get_userbyid":
            return _user_name(part, snapshot)
        case "pg_table_is_visible":
            # Unqualified names find users' objects; system ones are listed by their schema.
            return Call(_AT_LEAST, (part.arguments[0], Literal(FIRST_USER_OID, OID)), BOOL)
        case _:
            return part


def _user_name(call: Call, snapshot: Snapshot) -> Scalar:
    """The role's name; the function's own answer where no role has the oid."""
    branches: tuple[tuple[Scalar, Scalar], ...] = tuple(
        (Call(_EQUAL, (call.arguments[0], Literal(role.oid, OID)), BOOL), Literal(role.name, NAME))
        for role in snapshot.roles.values()
    )
    return Case(branches, call, NAME)
