"""What a session needs of the world, by protocol or by the one class there is."""

from dataclasses import dataclass, field

from evertide.adapter.reading.plans import ReadPlans
from evertide.adapter.short_way.rounds import Rounds
from evertide.adapter.subscribe.subscriptions import Subscriptions
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.catalog.service import CatalogService
from evertide.controller.compute import ComputeClient
from evertide.controller.sizes import Host, SizeTable
from evertide.controller.storage import Storage
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.txn import Txns
from evertide.vocab.clock import Clock
from evertide.vocab.ids import EnvironmentId


@dataclass(frozen=True, slots=True)
class Environment:
    """One adapter's view of the environment; shared by its sessions."""

    environment_id: EnvironmentId
    catalog: CatalogService
    oracle: TimestampOracle
    storage: Storage
    txns: Txns
    writes: GroupCommit
    compute: ComputeClient
    clock: Clock
    experimental: bool = False
    # Where files of sinks may be; None: nowhere.
    sink_directory: str | None = field(default=None, kw_only=True)
    # What replicas of each size are given; the shipped ones where nothing is said.
    sizes: SizeTable = field(default_factory=lambda: SizeTable({}, Host(1, 0)))
    read_plans: ReadPlans = field(default_factory=ReadPlans)
    subscriptions: Subscriptions = field(init=False)
    lookups: Rounds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subscriptions", Subscriptions(self.catalog, self.storage))
        rounds = Rounds(self.catalog, self.oracle, self.storage, self.compute)
        object.__setattr__(self, "lookups", rounds)
