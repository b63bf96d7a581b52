"""What must hold between the objects of a catalog, whoever changes them.

Every name and every oid has one owner, every reference leads to an object, and no object that is
gone is still referred to. Ops refuse mistakes earlier, in words for users; this is the net below
them. A look at the whole also finds what no op can make: objects that make no sense by themselves,
numbers that would be given twice, and that something is missing without which nothing works.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from evertide.catalog.builtin.registry import BUILTINS, builtin_of
from evertide.catalog.faults import BrokenCatalog
from evertide.catalog.hands import faults_of_hands
from evertide.catalog.objects import (
    CatalogObject,
    ClusterProfile,
    ClusterReplica,
    Comment,
    Item,
    ObjectKey,
    ObjectKind,
    kind_name,
    object_key,
)
from evertide.catalog.references import NameKey, names_of, numbers_of, references_of
from evertide.catalog.snapshot import NOT_KEPT, Snapshot, all_objects
from evertide.catalog.wellformed import oddities_of
from evertide.vocab.ids import ItemId

_REFERRING_KINDS = tuple(kind for kind in ObjectKind if kind not in NOT_KEPT)

REQUIRED_SETTING: Final = "environment_id"
_REQUIRED_SCHEMAS: Final = tuple(sorted({builtin.schema for builtin in BUILTINS}))


def faults_of(snapshot: Snapshot) -> list[str]:
    """All that is wrong with a whole snapshot, in words; none if all is well.

    That a key has one object needs no check: a snapshot cannot hold two.
    """
    found: list[str] = list(_missing(snapshot))
    for each in all_objects(snapshot):
        found.extend(_own_faults(snapshot, each))
        found.extend(f"{described(object_key(each))} {oddity}" for oddity in oddities_of(each))
        found.extend(_given_again(snapshot, each))
    found.extend(_shared(name, keys) for name, keys in snapshot.shared_names())
    return sorted(found)


def refuse_broken(
    snapshot: Snapshot, came: Iterable[CatalogObject], gone: Iterable[ObjectKey]
) -> None:
    """Raises BrokenCatalog unless the snapshot is whole where these came and went."""
    found: dict[str, None] = {}
    for each in came:
        found.update(dict.fromkeys(_own_faults(snapshot, each)))
        for name in names_of(each):
            keys = snapshot.named(name)
            if len(keys) > 1:
                found[_shared(name, keys)] = None
    for key in gone:
        found.update(dict.fromkeys(_left_behind(snapshot, key)))
    if found:
        raise BrokenCatalog(sorted(found))


def referring(snapshot: Snapshot, target: ObjectKey) -> list[CatalogObject]:
    """All objects that refer to this one, whether or not it exists."""
    keys = (key for kind in _REFERRING_KINDS for key in snapshot.referring_keys(kind, target))
    found = (snapshot.find(key) for key in keys)
    return [each for each in found if each is not None]


def named(found: CatalogObject) -> str:
    """An object in words for people: what it is, its name if it has one, and its key."""
    key = described(object_key(found)).rsplit(" ", 1)[1]
    kind = kind_name(found).replace("_", " ")
    words = found.kind.sql_words if isinstance(found, Item) else kind
    name = getattr(found, "name", None)
    return f"{words} {key}" if name is None or name == key else f'{words} "{name}" ({key})'


def described(key: ObjectKey) -> str:
    """An object in words, by its kind and key.

    >>> described(("cluster_item", "u1"))
    'cluster item u1'
    """
    kind, *parts = key
    shown = ("-" if part is None else str(part) for part in parts)
    return f"{str(kind).replace('_', ' ')} {'/'.join(shown)}"


def _own_faults(snapshot: Snapshot, found: CatalogObject) -> Iterator[str]:
    who = described(object_key(found))
    for target in dict.fromkeys(references_of(found)):
        if not _exists(snapshot, target):
            yield f"{who} refers to {described(target)}, which does not exist"
    if isinstance(found, ClusterReplica) and found.profile_id is not None:
        profile = snapshot.cluster_items.get(found.profile_id)
        if profile is not None and not isinstance(profile, ClusterProfile):
            yield f"{who} is in {described(object_key(profile))}, which is no profile"
        elif profile is not None and profile.cluster_id != found.cluster_id:
            yield f"{who} is in a profile of cluster {profile.cluster_id}, not of its own"
    if isinstance(found, Item):
        yield from (f"{who} {fault}" for fault in faults_of_hands(found, snapshot))
    if isinstance(found, Comment) and found.sub_id is not None:
        yield from _faults_of_column(snapshot, found, who)


def _faults_of_column(snapshot: Snapshot, comment: Comment, who: str) -> Iterator[str]:
    item = snapshot.find((comment.object_kind.value, comment.object_id))
    arity = len(item.columns) if isinstance(item, Item) and item.versions else 0
    assert comment.sub_id is not None, "only a column's comment has a number"
    if not 1 <= comment.sub_id <= arity:
        yield f"{who} is about a column that does not exist"


def _given_again(snapshot: Snapshot, found: CatalogObject) -> Iterator[str]:
    """Whoever would get the same number later could not be created."""
    for allocator, number in dict.fromkeys(numbers_of(found)):
        following = snapshot.next_numbers.get(allocator)
        if following is not None and number >= following:
            who = described(object_key(found))
            yield f"{who} has the number {number}, which id allocator {allocator} will give again"


def _missing(snapshot: Snapshot) -> Iterator[str]:
    if REQUIRED_SETTING not in snapshot.settings:
        yield f"there is no setting {REQUIRED_SETTING}"
    for name in _REQUIRED_SCHEMAS:
        if snapshot.schema_named(None, name) is None:
            yield f"there is no system schema {name}"


def _left_behind(snapshot: Snapshot, gone: ObjectKey) -> Iterator[str]:
    if _exists(snapshot, gone):
        return
    for kind in _REFERRING_KINDS:
        for key in snapshot.referring_keys(kind, gone):
            yield f"{described(key)} refers to {described(gone)}, which does not exist"


def _exists(snapshot: Snapshot, key: ObjectKey) -> bool:
    if snapshot.find(key) is not None:
        return True
    return key[0] == ObjectKind.ITEM and builtin_of(ItemId(str(key[1]))) is not None


def _shared(name: NameKey, keys: Iterable[ObjectKey]) -> str:
    namespace, *parts = name
    shown = ".".join(str(part) for part in parts if part is not None)
    owners = sorted(described(key) for key in keys)
    return f"{namespace} '{shown}' is that of {' and '.join(owners)}"
