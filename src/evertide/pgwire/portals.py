"""The prepared statements and portals that one connection has named.

The empty name is the unnamed statement or portal, which the next one replaces; any other name is
taken until it is closed. Portals live at most as long as their transaction. SQL has the same names:
EXECUTE runs what Parse has named, Execute gives rows of what DECLARE has.
"""

from dataclasses import dataclass, field

from evertide.adapter.client import (
    Portal,
    Prepared,
    Response,
    RowsResponse,
    SharedNames,
    StreamResponse,
)
from evertide.pgwire.messages import Bind, Target
from evertide.pgwire.values import decode_parameters, expand_formats
from evertide.vocab.errors import (
    DuplicateCursor,
    DuplicatePreparedStatement,
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
    ProtocolViolation,
    UndefinedPortal,
    UndefinedPreparedStatement,
)


@dataclass(slots=True)
class Names:
    """What the names of one connection stand for."""

    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)

    def check_new_statement(self, name: str) -> None:
        """Refuse a name that is taken; asked before the work of preparing."""
        if name and name in self.statements:
            raise DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
        self.statements.pop(name, None)

    def statement(self, name: str) -> Prepared:
        try:
            return self.statements[name]
        except KeyError:
            raise UndefinedPreparedStatement(
                f'prepared statement "{name}" does not exist'
                if name
                else "unnamed prepared statement does not exist"
            ) from None

    def portal(self, name: str) -> Portal:
        try:
            return self.portals[name]
        except KeyError:
            raise UndefinedPortal(f'portal "{name}" does not exist') from None

    def bind(self, message: Bind, shared: SharedNames) -> None:
        """Make the portal that a Bind message describes."""
        prepared = self.statement(message.statement)
        shared.check_described(prepared)
        if message.portal and message.portal in self.portals:
            raise DuplicateCursor(f'cursor "{message.portal}" already exists')
        types, given = prepared.parameter_types, len(message.values)
        if given != len(types):
            raise ProtocolViolation(
                f"bind message supplies {given} parameters, but prepared statement "
                f'"{message.statement}" requires {len(types)}'
            )
        parameter_formats = expand_formats(message.parameter_formats, given, "parameter")
        parameters = decode_parameters(types, parameter_formats, message.values)
        columns = 0 if prepared.result is None else prepared.result.arity
        # A statement without rows has no columns to format, whatever the client says of them.
        codes = message.result_formats if columns else ()
        formats = expand_formats(codes, columns, "result")
        self._forget_portal(message.portal)
        self.portals[message.portal] = Portal(prepared, parameters, formats)

    def close(self, kind: Target, name: str) -> None:
        """Forget a name; one that nobody knows is no mistake."""
        if kind is Target.PORTAL:
            self._forget_portal(name)
        else:
            self.statements.pop(name, None)

    def forget_unnamed(self) -> None:
        """A simple query uses the unnamed statement and portal for itself."""
        self.statements.pop("", None)
        self._forget_portal("")

    def forget_portals(self) -> None:
        """The transaction that they belong to is over, or has failed."""
        for name in list(self.portals):
            self._forget_portal(name)

    def _forget_portal(self, name: str) -> None:
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.end()


def check_runnable(portal: Portal, name: str) -> None:
    """Only rows can be asked for twice: running a command again would repeat its effect."""
    if portal.response is not None and not gives_rows(portal.response):
        raise ObjectNotInPrerequisiteState(f'portal "{name}" cannot be run')


def gives_rows(response: Response) -> bool:
    """Whether a client may ask for some of the answer now and for the rest later."""
    if isinstance(response, StreamResponse):
        return response.layout is None
    return isinstance(response, RowsResponse)


def check_shape(prepared: Prepared, response: Response) -> None:
    """The client reads rows by the description it was given, perhaps before the catalog changed."""
    described = () if prepared.result is None else prepared.result.types
    got = described
    if isinstance(response, RowsResponse | StreamResponse) and gives_rows(response):
        got = response.desc.types
    if [sql_type.oid for sql_type in described] != [sql_type.oid for sql_type in got]:
        raise FeatureNotSupported("cached plan must not change result type")
