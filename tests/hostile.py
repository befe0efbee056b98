"""Specs that ask for too much: each must end in a diagnostic, soon and in little memory.

`benchmarks/limits.py` measures time and memory of every one; the tests look at the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

HEAD = "data digits\n"
TAIL = "flatten\nlayer h: FC -> classes\n}\n"
NETWORK = "network n {\ninput image(1, 8, 8)\n"
DIGITS = "let ten = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
MEBIBYTE = 2**20


def framed(items: str, before: str = "", after: str = "") -> str:
    """A spec whose network has these items."""
    return f"{HEAD}{before}{NETWORK}{items}\n{TAIL}{after}"


def _listed(item: str, count: int) -> str:
    return ", ".join([item] * count)


def _numbered(line: str, count: int) -> str:
    return "\n".join(line.replace("#", str(number)) for number in range(count)) + "\n"


def _nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


def _doubling(count: int) -> str:
    """Values that grow twofold with every line, all sharing their parts."""
    return "let a0 = [1, 1]\n" + "\n".join(f"let a{i + 1} = [a{i}, a{i}]" for i in range(count)) + "\n"


def _blocks(count: int, uses: int) -> str:
    lines = (f"block b{i} {{ {f'use b{i + 1} ' * uses} }}" for i in range(count))
    return "\n".join(lines) + f"\nblock b{count} {{ }}\n"


TEXTS: Mapping[str, tuple[Callable[[], str], str]] = {
    # nesting
    "brackets 300 deep": (lambda: f"let a = {_nested('[', '1', ']', 300)}", "E105"),
    "brackets 300,000 deep": (lambda: f"let a = {_nested('[', '1', ']', 300_000)}", "E103"),
    "brackets that never close": (lambda: "let a = " + "[" * 30_000, "E105"),
    "parentheses 10,000 deep": (lambda: f"let a = {_nested('(', '1', ')', 10_000)}", "E105"),
    "calls 10,000 deep": (lambda: f"let a = {_nested('f(', '1', ')', 10_000)}", "E105"),
    "minus 30,000 times": (lambda: "let a = " + "-" * 30_000 + "1", "E105"),
    "minus 30,000 times and no number": (lambda: "let a = " + "-" * 30_000, "E105"),
    "sum of 15,000": (lambda: "let a = " + "1 + " * 15_000 + "1", "E105"),
    "repeat 4,000 deep": (lambda: framed(_nested("repeat [1] as i {\n", "", "}\n", 4_000)), "E105"),
    "repeat 60 deep": (lambda: framed(_nested("repeat [1] as i {\n", "", "}\n", 60)), "E105"),
    "residual 60 deep": (lambda: framed(_nested("residual {\n", "layer: FC -> 1\n", "}\n", 60)), "E105"),
    "average 60 deep": (
        lambda: framed(_nested("average affine(rotation = 5) {\n", "layer: CONV(3) -> 1\n", "}\n", 60)),
        "E105",
    ),
    "braces that never close": (lambda: framed("repeat [1] as i {\n" * 4_000), "E105"),
    "blocks in blocks, 3,000 deep": (lambda: framed("use b0", _blocks(3000, 1)), "E105"),
    # length
    "ten thousand layers": (lambda: framed("layer: FC -> 3 |> relu\n" * 10_000), "E103"),
    "ten thousand rounds": (lambda: framed("repeat ten as i {\n" * 4 + "layer: FC -> 3\n" + "}" * 4, DIGITS), "E405"),
    "repeat of a million": (lambda: framed(f"repeat [{_listed('1', 1_000_000)}] as i {{ layer: FC -> i }}"), "E103"),
    "a million rounds that do nothing": (lambda: framed("repeat ten as i {\n" * 6 + "}" * 6, DIGITS), "E405"),
    "rounds over a doubled list": (
        lambda: framed("repeat a40 as i {\n" * 40 + "}" * 40, _doubling(40)),
        "E405",
    ),
    "rounds that each evaluate a long list": (
        lambda: framed(
            f"repeat a as i {{\nlayer: FC -> [{_listed('i', 10_000)}]\n}}", f"let a = [{_listed('1', 6_000)}]\n"
        ),
        "E405",
    ),
    "blocks that each use ten": (lambda: framed("use b0", _blocks(30, 10)), "E405"),
    "a layer of 6,000 candidates": (
        lambda: framed("layer: a -> 3\n", f"let a = [{_listed('CONV(3)', 6_000)}]\n"),
        "E405",
    ),
    "a layer of 6,000 written candidates": (lambda: framed(f"layer: {' + '.join(['FC'] * 6_000)} -> 3\n"), "E405"),
    "3,000 priors on 1,000 layers": (
        lambda: framed(
            "repeat ten as i {\n" * 3 + "layer: FC -> 3\n" + "}" * 3,
            DIGITS,
            "prior {\n" + _numbered("l*#.FC ~ normal(2)", 3_000) + "}",
        ),
        "E405",
    ),
    "a library of 1,200 networks": (
        lambda: (
            DIGITS + _numbered("network n#(a) { input image(1, 1, 1) repeat ten as i { repeat ten as j { } } }", 1_200)
        ),
        "E405",
    ),
    "3,000 misspelt names": (
        lambda: _numbered("let name#x = 1", 5_000) + _numbered("let other# = nome#y + 1", 3_000),
        "E301",
    ),
    "4,000 wrong layers": (lambda: framed(_numbered("layer: KONV(3) -> 3", 4_000)), "E302"),
    "10,000 syntax errors": (lambda: "let = 3\n" * 10_000, "E104"),
    "odd characters": (lambda: "$" * 30_000, "E104"),
    "a mebibyte of comments": (lambda: "//\n" * (MEBIBYTE // 3), "E103"),
    "a million odd characters": (lambda: "$" * MEBIBYTE, "E103"),
    "a mebibyte of line ends": (lambda: "\n" * MEBIBYTE, "E311"),
    "more than a mebibyte": (lambda: "\n" * (MEBIBYTE + 1), "E103"),
    # profiles
    "7,000 profiles": (lambda: framed("", after=_numbered("profile p# { }", 7_000)), "E405"),
    "a profile of 4,000 keys": (
        lambda: framed("", _numbered("let a# = 1", 4_000), f"profile p {{\n{_numbered('a# = 1', 4_000)}}}\n"),
        "E405",
    ),
    "profiles that each ask for all that there may be": (
        lambda: framed(
            "repeat few as i {\n" * 3 + "layer: FC -> 3\n" + "}" * 3,
            f"{DIGITS}let few = [1]\n",
            _numbered("profile p# { few = ten }", 20),
        ),
        "E405",
    ),
    "profiles of a spec of 3,000 layers": (
        lambda: framed("layer: FC -> 3 |> relu\n" * 3_000, after=_numbered("profile p# { search.epochs = 6 }", 20)),
        "E405",
    ),
    # sizes
    "a number of 1,000 digits": (lambda: f"let a = {'9' * 1000}", "E404"),
    "a number of a million digits": (lambda: f"let a = {'9' * 1_000_000}", "E404"),
    "a fraction of a million digits": (lambda: f"let a = 0.{'9' * 1_000_000}", "E404"),
    "an exponent of a million digits": (lambda: f"let a = 1e{'9' * 1_000_000}", "E404"),
    "an exponent tower": (lambda: "let a = 9^9^9^9^9", "E104"),
    "another exponent tower": (lambda: "let a = 9**9**9**9**9", "E104"),
    "a huge product": (lambda: "let a = 9" + "*999999999" * 100, "E404"),
    "a huge product, line by line": (
        lambda: "let a0 = 9\n" + "".join(f"let a{i + 1} = a{i}*a{i}\n" for i in range(1000)),
        "E404",
    ),
    "a huge whole part": (lambda: "let a = floor(1e300)*floor(1e300)", "E404"),
    "a text times a number": (lambda: 'let a = "a"*1000000000', "E401"),
    "a list times a number": (lambda: "let a = [1]*1000000000", "E401"),
    "a text of a mebibyte": (lambda: f'data arrays("{"a" * 1_000_000}")', "E103"),
    "a name of a million letters": (lambda: f"let a = {'b' * 1_000_000}", "E103"),
    "two long names that are alike": (lambda: f"let {'ab' * 2000} = 1\nlet c = {'ba' * 2000}", "E103"),
    "a network too large to build": (lambda: framed("layer: F-FC -> 9000000000000000000\n" * 3), "E210"),
    "2,000 lists of 2,000": (lambda: _numbered(f"let a# = [{_listed('1', 2_000)}]", 2_000), "E103"),
}
"""Texts by what they try, each with a code that must be among what is said."""


def bomb(folder: Path, name: str) -> Path:
    """Write the files of an import that goes wrong; the path of the one to check."""
    path = folder / "main.sym"
    path.write_text(IMPORTS[name](folder), encoding="utf-8")
    return path


def _wide(folder: Path) -> str:
    for number in range(2_000):
        (folder / f"w{number}.sym").write_text(f"let w{number} = {number}\n")
    return "".join(f'import "w{number}.sym"\n' for number in range(2_000))


def _long_chain(folder: Path) -> str:
    for number in range(1_500):
        (folder / f"c{number}.sym").write_text(f'import "c{number + 1}.sym"\n')
    (folder / "c1500.sym").write_text("let a = 1")
    return 'import "c0.sym"'


def _heavy(folder: Path) -> str:
    for number in range(40):
        (folder / f"h{number}.sym").write_text(f"let h{number} = [{_listed('1', 20_000)}]\n")
    return "".join(f'import "h{number}.sym"\n' for number in range(40))


def _many_times(folder: Path) -> str:
    (folder / "same.sym").write_text("let a = 1")
    return 'import "same.sym"\n' * 15_000


IMPORTS: Mapping[str, Callable[[Path], str]] = {
    "2,000 files": _wide,
    "a chain of 1,500 files": _long_chain,
    "40 heavy files": _heavy,
    "one file 15,000 times": _many_times,
}
