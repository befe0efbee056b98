"""Specs made from a few lines, for tests."""

from __future__ import annotations

from symdsl.diagnostics import Diagnostic, SpecError
from symdsl.spec import Spec, parse

NETWORK = "network n {\n  input image(1, 8, 8)\n  flatten\n  layer h: FC -> classes\n}"


def framed(lines: str) -> str:
    """A whole spec: data and a network are added, or put round items, where the lines have none."""
    if not any(line.startswith("data ") for line in lines.split("\n")):
        lines = f"data digits\n{lines}"
    if "\ninput " in lines:
        before, _, items = lines.partition("\ninput ")
        return f"{before}\nnetwork n {{\ninput {items}\n}}"
    return lines if "network " in lines else f"{lines}\n{NETWORK}"


def items(lines: str, **overrides: object) -> Spec:
    """The spec of a network of these items after an 8x8 input, with a head."""
    head = "layer h: FC -> classes"
    return parse(f"data digits\nnetwork n {{\ninput image(1, 8, 8)\n{lines}\n{head}\n}}", overrides)


def found(text: str, overrides: dict[str, object] | None = None) -> tuple[Diagnostic, ...]:
    """What is said about a text, whether it has errors or not."""
    try:
        return parse(text, overrides).warnings
    except SpecError as error:
        return error.diagnostics


def codes(text: str, overrides: dict[str, object] | None = None) -> list[str]:
    """The codes of what is said about a text."""
    return [one.code for one in found(text, overrides)]
