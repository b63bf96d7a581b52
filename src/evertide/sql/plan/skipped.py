"""What DROP says beside its answer."""

from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import Notice


def cascades(count: int) -> tuple[Notice, ...]:
    """So many objects go with those that are named."""
    if not count:
        return ()
    return (Notice("NOTICE", "00000", f"drop cascades to {count} other objects"),)


def skipped(kind: str, name: Name) -> Notice:
    """With IF EXISTS, of what does not. The kind is told as SQL writes it: `TABLE "t" does not
    exist, skipping`."""
    message = f'{kind.upper()} "{".".join(name.parts)}" does not exist, skipping'
    return Notice("NOTICE", "42704", message)
