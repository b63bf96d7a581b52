"""A password as a statement gives it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PasswordClause:
    """`PASSWORD 'text'`, or `PASSWORD NULL`. Neither shown nor compared: it must not get about."""

    text: str | None = field(repr=False, compare=False)
