"""Goal: whatever is staged, applied, handed over, discarded, dropped and renamed, in any order, the
catalog agrees with itself, a replica that saw all of it runs what one that starts then would, and
what already runs is never told to be something else.

Method: random statements on random views; each snapshot is looked at.
"""

import random
from dataclasses import dataclass, field

from evertide.catalog.checks import faults_of
from evertide.catalog.drop import with_dependants
from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.ops import DropItemsOp, RenameItemOp
from evertide.controller.follow import Follower
from evertide.dataflow.description import DataflowDescription
from evertide.sql import views
from evertide.sql.views import plan_item
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ClusterId, GlobalId
from tests.controller.replaced import apply, change, finish, item, stage
from tests.controller.test_dataflows_follow_who_writes_a_view import bare
from tests.sql.database import Database, new_database
from tests.support.seeds import seeds

CLUSTERS = (ClusterId("u1"), ClusterId("u2"))


@dataclass
class History:
    """One random history."""

    rng: random.Random
    database: Database = field(default_factory=new_database)
    follower: Follower = field(default_factory=Follower)
    known: dict[GlobalId, DataflowDescription] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    names: int = 0

    def name(self) -> str:
        self.names += 1
        return f"x{self.names}"

    def items(self, *kinds: str) -> list[Item]:
        found = self.database.snapshot.items.values()
        return [i for i in found if not kinds or i.kind.value in kinds]

    def materialized(self) -> list[Item]:
        """Those that are no replacements."""
        return [i for i in self.items("materialized-view") if i.replacement is None]

    def query(self, *, more: int = 0) -> str:
        """The first columns of one relation, and as many new ones as are wanted."""
        readable = [
            i for i in self.items("table", "view", "materialized-view") if not i.replacement
        ]
        one = self.rng.choice(readable)
        star = self.rng.random() < 0.3 and one.desc.arity == 2 + more
        added = "".join(f", a + {n} AS c{n}" for n in range(more))
        return f"SELECT {'*' if star else 'a, b' + added} FROM {one.name}"

    def step(self) -> None:
        actions = (self.create, self.stage, self.stage, self.apply, self.apply, self.finish,
                   self.finish, self.drop, self.rename)  # fmt: skip
        action = self.rng.choice(actions)
        try:
            action()
        except SqlError as refused:
            self.done.append(f"{action.__name__} refused: {refused.message}")
        else:
            self.done.append(action.__name__)

    def create(self) -> None:
        kind = self.rng.choice(("TABLE", "VIEW", "MATERIALIZED VIEW", "INDEX"))
        cluster = self.rng.choice(("default", "other"))
        name, query = self.name(), self.query()
        match kind:
            case "TABLE":
                self.database.run(f"CREATE TABLE {name} (a int, b int)")
            case "VIEW":
                self.database.run(f"CREATE VIEW {name} AS {query}")
            case "INDEX":
                on = self.rng.choice(self.items("table", "view", "materialized-view")).name
                self.database.run(f"CREATE INDEX {name} IN CLUSTER {cluster} ON {on} (b)")
            case _:
                self.database.run(
                    f"CREATE MATERIALIZED VIEW {name} IN CLUSTER {cluster} AS {query}"
                )

    def stage(self) -> None:
        target = self.rng.choice(self.materialized())
        more = target.desc.arity - 2 + self.rng.choice((0, 0, 1))
        cluster = self.rng.choice(("default", "other"))
        stage(self.database, self.name(), target.name, self.query(more=more), cluster)

    def apply(self) -> None:
        staged = [i for i in self.items() if i.replacement is not None]
        if staged:
            chosen = self.rng.choice(staged)
            assert chosen.replacement is not None
            target = self.database.snapshot.items[chosen.replacement.target]
            apply(self.database, target.name, chosen.name)

    def finish(self) -> None:
        leaving = [i for i in self.items() if i.outgoing is not None]
        if leaving:
            finish(self.database, self.rng.choice(leaving).name)

    def drop(self) -> None:
        snapshot, one = self.database.snapshot, self.rng.choice(self.items())
        going = with_dependants(snapshot, [one.item_id])
        if one.name not in ("t", "m") and not {"t", "m"} & {snapshot.items[i].name for i in going}:
            change(self.database, DropItemsOp(going))

    def rename(self) -> None:
        """As the statement does it: not while anything depends on it."""
        one = self.rng.choice(self.items())
        if one.name not in ("t", "m") and not self.database.snapshot.dependants(one.item_id):
            name = self.name()
            text = one.create_sql.replace(f".{one.name} ", f".{name} ", 1)
            change(self.database, RenameItemOp(item_id=one.item_id, new_name=name, create_sql=text))

    def look(self) -> None:
        snapshot = self.database.snapshot
        assert faults_of(snapshot) == []
        found = self.follower.dataflows(snapshot, CLUSTERS)
        views._known.clear()  # a process that starts has planned nothing yet
        anew = Follower().dataflows(snapshot, CLUSTERS)
        assert (found, list(found)) == (anew, list(anew))
        for global_id in found.keys() & self.known.keys():
            assert bare(found[global_id]) == bare(self.known[global_id])
        self.known.update(found)
        for each in snapshot.items.values():
            if each.kind.value != "sink":
                relation, desc = plan_item(each, snapshot)
                assert relation.types == desc.types
        for view in self.materialized():
            assert isinstance(view.definition, MaterializedView)
            wanted = 1 if view.outgoing is None else 2
            assert len([v for v in view.versions if v.global_id in found]) == wanted


@seeds(range(8), deep=range(8, 300), fresh=100)
def test_any_history(seed: int) -> None:
    history = History(random.Random(seed))
    history.database.run(
        "CREATE TABLE t (a int, b int); CREATE CLUSTER other REPLICAS ();"
        "CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t"
    )
    for _ in range(40):
        history.step()
        try:
            history.look()
        except AssertionError:
            print(seed, history.done)
            raise
    assert "apply" in history.done
    assert item(history.database, "m").item_id in history.database.snapshot.items
