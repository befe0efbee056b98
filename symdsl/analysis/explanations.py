"""The explanations of codes: of one code for a terminal, of all of them as a page.

`python -m symdsl.analysis.explanations > docs/diagnostics.md` writes the page anew.
"""

from __future__ import annotations

from symdsl.analysis.codes import CODES
from symdsl.diagnostics import RunError, suggest

_LONGEST_LINE = 100

_INTRODUCTION = """\
# Diagnostics

`E` codes are errors: nothing is built before they are fixed. `W` codes are warnings, which `symdsl check --strict`
counts as errors. `symdsl explain CODE` prints one entry with an example of a wrong and a right spec.
"""


def explanation(code: str) -> str:
    """Return what a code means, as `symdsl explain` prints it.

    Raises:
        RunError: if there is no such code.
    """
    found = CODES.get(code.upper())
    if found is None:
        near = suggest(code.upper(), CODES)
        first, *_, last = CODES
        hint = f"did you mean `{near}`?" if near else f"there are `{first}` to `{last}`, as in `error[{first}]`"
        raise RunError(f"there is no diagnostic `{code}`: {hint}")
    examples = f"Wrong:\n\n{_indented(found.bad)}\n\nRight:\n\n{_indented(found.good)}"
    return f"{found.code}: {found.title}\n\n{found.paragraph}\n\n{examples}"


def page() -> str:
    """Return all codes, without their examples, as the text of `docs/diagnostics.md`."""
    sections = (f"## {code.code}: {code.title}\n\n{code.paragraph}\n" for code in CODES.values())
    return "\n".join((_INTRODUCTION, *sections))


def _indented(example: str) -> str:
    """The lines of an example, indented; of an overlong one, only both ends."""
    half = _LONGEST_LINE // 2 - 2
    lines = example.split("\n")
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:half]} ... {line[-half:]}" for line in lines]
    return "\n".join(f"    {line}" for line in shown)


if __name__ == "__main__":
    print(page(), end="")
