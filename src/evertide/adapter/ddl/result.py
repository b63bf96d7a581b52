"""What a statement, or a block of them, makes of the catalog: stored, or the session's own."""

from collections.abc import Sequence

from evertide.adapter.ddl.secret_values import forget_old_values
from evertide.adapter.environment import Environment
from evertide.adapter.see_through import see_through
from evertide.adapter.session import Session
from evertide.adapter.temporary.bounds import check_objects
from evertide.adapter.temporary.parts import divided
from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult
from evertide.dataflow.description import Import
from evertide.persist.handle import Appended
from evertide.sql.syntax.definition import OnCommit


async def append_result(
    result: TransactResult,
    imports: Sequence[Import],
    snapshot: Snapshot,
    session: Session,
    env: Environment,
    ending: OnCommit | None = None,
) -> bool:
    """Make it so, unless another writer has changed the catalog since this snapshot: False.

    `ending`: what becomes of a new temporary table when a transaction ends.
    """
    stored, own = divided(result)
    check_objects(session.temporary.held, own)
    if stored.updates:
        changes = shard_changes(stored, imports, snapshot)
        appending = env.catalog.compare_and_append(
            stored.updates, expected_upper=snapshot.upper, shard_changes=changes
        )
        if not isinstance(await see_through(appending), Appended):
            return False
        await forget_old_values(stored, env.storage)
    if own:
        after = snapshot.apply(result.updates, snapshot.upper)
        session.temporary.apply(own, after, ending)
    return True
