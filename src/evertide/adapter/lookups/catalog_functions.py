"""Functions whose answer is in the catalog, bound to one statement's snapshot and session.

psql and other tools ask pg_catalog functions about objects by oid. The function table knows no
catalog, so a statement runs with copies of those rows whose bodies look objects up here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from evertide.adapter.lookups import procedure_texts as texts
from evertide.adapter.lookups.comments import CommentLookup
from evertide.adapter.lookups.owners import OwnerLookup
from evertide.adapter.lookups.privileges import PrivilegeLookup
from evertide.adapter.lookups.relations import RelationLookup
from evertide.adapter.session import Session
from evertide.catalog.snapshot import Snapshot
from evertide.expr.functions.catalog import GUARDED
from evertide.expr.functions.row import Knowledge, ScalarFunction
from evertide.expr.relation import Relation
from evertide.expr.relation_walk import rewrite_scalars, rewrite_up, scalars_of
from evertide.expr.scalar import Call, Scalar
from evertide.expr.scalar_walk import rewrite
from evertide.vocab.datum import Datum
from evertide.vocab.errors import UndefinedObject
from evertide.vocab.sql_type import Kind

Body: TypeAlias = Callable[..., Datum]


@dataclass(frozen=True, slots=True)
class Lookups:
    """All that the bodies may ask, for one statement."""

    session: Session
    relations: RelationLookup
    owners: OwnerLookup
    comments: CommentLookup
    privileges: PrivilegeLookup

    def setting(self, name: str, missing_ok: bool = False) -> str | None:
        """A session variable; where it need not exist, NULL if it does not."""
        try:
            return self.session.variables.get(name)
        except UndefinedObject:
            if missing_ok:
                return None
            raise


def bind_catalog_functions(relation: Relation, snapshot: Snapshot, session: Session) -> Relation:
    """The relation with its catalog functions answered by this snapshot for this session."""
    relations = RelationLookup(snapshot, session)
    lookups = Lookups(
        session,
        relations,
        OwnerLookup(snapshot, session),
        CommentLookup(snapshot, session),
        PrivilegeLookup(snapshot, session, relations),
    )
    bound: dict[ScalarFunction, ScalarFunction] = {}

    def bind(part: Scalar) -> Scalar:
        if not isinstance(part, Call) or part.function.knowledge is not Knowledge.CATALOG:
            return part
        function = bound.get(part.function)
        if function is None:
            function = _bound(part.function, lookups)
            bound[part.function] = function
        return Call(function, part.arguments, part.type)

    def visit(node: Relation) -> Relation:
        return rewrite_scalars(node, lambda s: rewrite(s, bind)) if scalars_of(node) else node

    return rewrite_up(relation, visit)


def _bound(function: ScalarFunction, lookups: Lookups) -> ScalarFunction:
    body = _body(function, lookups)
    return replace(function, body=body, knowledge=Knowledge.SNAPSHOT)


def _body(function: ScalarFunction, lookups: Lookups) -> Body:
    match function.arguments:
        case (argument,) if argument.kind is Kind.REGCLASS:
            return lookups.relations.text
        case (argument,) if argument.kind is Kind.REGPROC:
            return texts.procedure_name
        case _ if function.name in _PRIVILEGES:
            return lookups.privileges.body(_PRIVILEGES[function.name])
        case _:
            return _BODIES[function.name](lookups)


# has_table_privilege and its like, by the word for what they are about.
_PRIVILEGES: Final[Mapping[str, str]] = {f"has_{what}_privilege": what for what in GUARDED}

_BODIES: Final[Mapping[str, Callable[[Lookups], Body]]] = {
    "col_description": lambda lookups: lookups.comments.column_comment,
    "current_setting": lambda lookups: lookups.setting,
    "has_column_privilege": lambda lookups: lookups.privileges.has_column,
    "has_system_privilege": lambda lookups: lookups.privileges.has_system,
    "obj_description": lambda lookups: lookups.comments.comment,
    "pg_get_function_arguments": lambda _: texts.arguments_text,
    "pg_get_function_identity_arguments": lambda _: texts.arguments_text,
    "pg_get_function_result": lambda _: texts.result_text,
    "pg_get_functiondef": lambda _: texts.definition_text,
    "pg_get_indexdef": lambda lookups: lookups.relations.index_definition,
    "pg_get_userbyid": lambda lookups: lookups.owners.role_name,
    "pg_get_viewdef": lambda lookups: lookups.relations.view_definition,
    "pg_has_role": lambda lookups: lookups.privileges.has_role,
    "pg_table_is_visible": lambda lookups: lookups.relations.is_visible,
    "regcollationout": lambda _: str,
    "regconfigout": lambda _: str,
    "regdictionaryout": lambda _: str,
    "regnamespaceout": lambda lookups: lookups.owners.schema_name,
    "regoperatorout": lambda _: texts.operator_text,
    "regoperout": lambda _: texts.operator_text,
    "regprocedureout": lambda _: texts.procedure_text,
    "regroleout": lambda lookups: lookups.owners.role_text,
    "shobj_description": lambda lookups: lookups.comments.comment,
    "to_regclass": lambda lookups: lookups.relations.oid,
    "to_regnamespace": lambda lookups: lookups.owners.schema_oid,
    "to_regproc": lambda _: texts.procedure_oid,
    "to_regrole": lambda lookups: lookups.owners.role_oid,
}
