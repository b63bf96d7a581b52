"""The union of all statements."""

from typing import TypeAlias

from evertide.sql.syntax.command import CommandStatement
from evertide.sql.syntax.definition import DefinitionStatement

Statement: TypeAlias = DefinitionStatement | CommandStatement
