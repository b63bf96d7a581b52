"""The text that Spark runs for a relation's contents, without a Spark to run it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evertide.dataflow.delta_plan import DeltaPlan, InputNode
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import TextBuilder
from evertide.spark.render.top_k import render_consolidated
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import MIN_TS

_PARAMETER: Final = re.compile(r":p\d+\b")


@dataclass(frozen=True, slots=True)
class SparkText:
    """Parameters are shown as ?: their values are the user's, and no part of the text."""

    text: str
    parameters: int
    # What each view that the text reads stands for.
    inputs: dict[str, str]
    constants: tuple[str, ...]
    functions: tuple[str, ...]

    def lines(self) -> list[str]:
        lines = [_broken(self.text), ""]
        lines += [f"View {view}: the stored parts of {name}" for view, name in self.inputs.items()]
        lines += [f"View {view}: constant rows" for view in self.constants]
        lines += [f"Function {name}: runs in Python" for name in self.functions]
        lines.append(f"Parameters: {self.parameters}")
        return lines


def _broken(text: str) -> str:
    """Each common table expression on a line of its own, and what is made of them on the last."""
    depth, lines, start = 0, [], 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and place > start and text.startswith((" r", " SELECT"), place):
            lines.append(text[start:place])
            start = place + 1
    return "\n".join([*lines, text[start:]])


def spark_text(plan: DeltaPlan, name: Callable[[GlobalId], str]) -> SparkText:
    """The job that computes a plan's output at one timestamp, as a query or a hydration does.

    Error rows are taken to be possible in every input; a job whose parts have none leaves out what
    carries them.
    """
    builder = TextBuilder()
    views: dict[GlobalId, ImportView] = {}
    for node in plan.nodes:
        if isinstance(node, InputNode) and node.global_id not in views:
            views[node.global_id] = ImportView(f"i{len(views)}", may_fail=True)
    output = render_consolidated(builder, render_contents(builder, plan, views, MIN_TS)[-1])
    text = builder.text(f"SELECT * FROM {output.name}")
    return SparkText(
        _PARAMETER.sub("?", text),
        len(_PARAMETER.findall(text)),
        {view.name: name(global_id) for global_id, view in views.items()},
        tuple(builder.constants),
        tuple(sorted(builder.functions)),
    )
