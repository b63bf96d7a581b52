"""Audit events of system privileges tell what came and what went; those of sources their type."""

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, SYSTEM_ROLE_ID
from evertide.catalog.new_external import NewSource
from evertide.catalog.objects import AuditEvent, CounterLoad, SystemPrivilege
from evertide.catalog.ops import CreateItemOp, Op, SetSystemPrivilegeOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.ids import ClusterId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import PUBLIC, after, populated


def events(snapshot: Snapshot, op: Op) -> list[AuditEvent]:
    updates = transact(snapshot, [op], now_ms=5, user="materialize").updates
    return [one.object for one in updates if isinstance(one.object, AuditEvent)]


def privileges(letters: str) -> SetSystemPrivilegeOp:
    wanted = SystemPrivilege(grantee=DEFAULT_ROLE_ID, grantor=SYSTEM_ROLE_ID, privileges=letters)
    return SetSystemPrivilegeOp(wanted)


def told(snapshot: Snapshot, op: Op) -> list[tuple[str, str, object]]:
    return [
        (event.event_type, event.object_type, event.details["privileges"])
        for event in events(snapshot, op)
    ]


def test_system_privileges() -> None:
    nothing = after(populated(), privileges(""))
    assert told(nothing, privileges("")) == []
    assert told(nothing, privileges("B")) == [("grant", "system", "CREATEDB")]
    some = after(nothing, privileges("BN"))
    assert told(some, privileges("B")) == [("revoke", "system", "CREATECLUSTER")]
    assert told(some, privileges("")) == [("revoke", "system", "CREATEDB, CREATECLUSTER")]
    assert told(some, privileges("BR")) == [
        ("grant", "system", "CREATEROLE"),
        ("revoke", "system", "CREATECLUSTER"),
    ]


def test_a_source_s_type() -> None:
    source = CreateItemOp(
        schema_id=PUBLIC,
        name="numbers",
        owner=DEFAULT_ROLE_ID,
        create_sql="CREATE SOURCE materialize.public.numbers FROM LOAD GENERATOR COUNTER",
        columns=(),
        definition=NewSource(
            cluster_id=ClusterId("u1"),
            as_of=Timestamp(5),
            load=CounterLoad(tick_ms=1_000),
            stored=True,
        ),
    )
    (event,) = events(populated(), source)
    assert event.details["type"] == "load-generator"
