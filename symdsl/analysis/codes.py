"""Every diagnostic code: what it means, and an example each of a spec that has it and one that does not."""

from __future__ import annotations

import attrs


@attrs.frozen
class Code:
    """A diagnostic code with its explanation and examples.

    Attributes:
        code: letter and number.
        title: what is wrong, in a few words.
        paragraph: why it is, and what to do.
        bad: lines of a spec, or a command, that have it.
        good: the same without it.
    """

    code: str
    title: str
    paragraph: str
    bad: str
    good: str


_TABLE = (
    Code(
        "E101",
        "a file cannot be read",
        "The spec, or a file that it imports, is missing, is a folder, or may not be read. Paths of imports "
        "are relative to the file that imports.",
        'import "blocks/pyramyd.sym"',
        'import "blocks/pyramid.sym"',
    ),
    Code(
        "E102",
        "a file is not UTF-8",
        "Specs are UTF-8 text. The message says which byte is not; save the file again in that encoding.",
        "a file saved as UTF-16",
        "the same file saved as UTF-8",
    ),
    Code(
        "E103",
        "a file, or a word in it, is too large",
        "A spec has, with all files it imports, at most 1 MiB, 40,000 words and comments, 100 files and 1,000 imports; "
        "a name has at most 200 letters, a text 4,096. Whatever is larger is hardly a spec, and would take long to "
        "say so.",
        "a data file given for a spec",
        "a spec",
    ),
    Code(
        "E104",
        "the text does not follow the grammar",
        "Something else was expected at this place. A misspelt or forgotten word is read as it was likely meant, and "
        "what cannot be read is left out, so that one run shows all such places, and what is wrong with the rest.",
        "input image(1, 8, 8)\nlayer l1: F-FC CONV(3) -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: F-FC + CONV(3) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E105",
        "nested too deep",
        "Expressions, `repeat`s and blocks in use can be nested only so deep, so that any text can be read within "
        "bounds.",
        "let a = " + "(1, " * 200 + "2" + ")" * 200,
        "let a = (1, (1, 2))",
    ),
    Code(
        "E106",
        "an import leaves its folder",
        "A file may import what lies in its own folder or below, so that a folder of specs can be moved and "
        "shared whole. Links are followed before this is checked. A text that is not a file has no folder and "
        "cannot import.",
        'import "../other/pyramid.sym"',
        'import "blocks/pyramid.sym"',
    ),
    Code(
        "E107",
        "a circular import",
        "A file imports itself, directly or by way of others. Move what both need to a third file.",
        'import "this.sym"',
        'import "blocks/pyramid.sym"',
    ),
    Code(
        "E201",
        "a stride that does not divide the map",
        "A strided layer keeps one of `stride` x `stride` phases of its output. For the phases to be alike, "
        "the stride must divide both sides of the map.",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4 stride 3\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4 stride 2\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E202",
        "a kernel that does not fit",
        "Kernels have a centre, so their size is odd. Convolutions are circular and may wrap round the map "
        "once: a side of n takes kernels up to 2n - 1. So a kernel of 3 fits a 2x2 map, but not a 1x1 map.",
        "input image(1, 8, 8)\nlayer l1: CONV(4) -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(5) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E203",
        "a group kind on a map of another group",
        "`GCONV` moves the elements of a group among themselves. It needs a map that `lift` has copied to all "
        "elements of that group, or of one that contains it.",
        "input image(1, 8, 8)\nlayer l1: GCONV(3) -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nlayer l1: GCONV(3) -> 4\nproject max\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E204",
        "an image where a vector is, or a vector where an image is",
        "After `flatten` there are no positions left: no convolution, stride, `lift` or `pool` can follow, "
        "and there is nothing more to flatten.",
        "input image(1, 8, 8)\nflatten\nlayer l1: CONV(3) -> 4\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E205",
        "`project` without `lift`",
        "`project` reduces over the elements of a group. A plain map has none.",
        "input image(1, 8, 8)\nproject max\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E206",
        "a map lifted twice",
        "A lifted map has a copy for every element of the group already.",
        "input image(1, 8, 8)\nlift p4\nlift p4\nproject max\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E207",
        "a network that does not end in the classes",
        "What comes out of a network is one number a class (or a target, for regression): a vector, so "
        "`flatten` comes before it, of as many channels as the data have classes.",
        "input image(1, 8, 8)\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E208",
        "a network that reads other images than the data deliver",
        "`input` states channels, height and width of the images after all transforms.",
        "data digits(size = 16)\ninput image(1, 8, 8)\nflatten\nlayer h: FC -> classes",
        "data digits(size = 16)\ninput image(1, 16, 16)\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E209",
        "a `residual` that does not add up",
        "A residual block is y = x + body(x), so its body keeps channels, rows, columns and group. It holds layers, "
        "`repeat`, `use` and `residual`, without strides: two branches could each keep another phase of the map, and "
        "what moves with the image in one would not in the other. Last comes a layer whose activations are 0 at 0, so "
        "that the block is the identity where nothing is left of that layer.",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4 |> relu\nresidual {\n  layer: CONV(3) -> 4 stride 2 |> relu\n"
        "  layer: CONV(3) -> 8\n}\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4 |> relu\nresidual {\n  layer: CONV(3) -> 8 |> relu\n"
        "  layer: CONV(3) -> 4\n}\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E210",
        "a network too large to build",
        "A network has at most 10^10 parameters. Factored kinds and smaller maps need far fewer.",
        "input image(1, 8, 8)\nlayer l1: FC -> 20000000\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: FC -> 20\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E211",
        "a network without its one `input`",
        "A network begins with `input`, and has one only. A block has none: it goes on from the map it is used on.",
        "network n {\n  flatten\n}",
        "network n {\n  input image(1, 8, 8)\n  flatten\n  layer h: FC -> classes\n}",
    ),
    Code(
        "E212",
        "an `average` over nothing",
        "`average affine(...) { ... }` transforms copies of a plain image by ranges that its arguments begin with, and "
        "takes the mean of what its layers make of them. So it names a range, has a layer, and stands before `lift`: "
        "on a lifted map a turn would have to move the group elements, too. A line has no rows to turn.",
        "input image(1, 8, 8)\naverage affine(samples = 7) {\n  flatten\n  layer h1: FC -> 8 |> relu\n}\n"
        "layer h: FC -> classes",
        "input image(1, 8, 8)\naverage affine(rotation = 5, samples = 7) {\n  flatten\n  layer h1: FC -> 8 |> relu\n}\n"
        "layer h: FC -> classes",
    ),
    Code(
        "E301",
        "an unknown name",
        "The name is no `let`, no parameter of the network, none of `classes` and `channels`, and no word of "
        "the language at this place.",
        "let width = 4\nlet double = 2*widht",
        "let width = 4\nlet double = 2*width",
    ),
    Code(
        "E302",
        "an unknown kind",
        "Kinds are written as the papers write them, in capitals.",
        "input image(1, 8, 8)\nlayer l1: KONV(3) -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E303",
        "an unknown argument or key",
        "What is called has no argument, or the block no key, of that name.",
        "search {\n  epoch = 10\n}",
        "search {\n  epochs = 10\n}",
    ),
    Code(
        "E304",
        "an unknown data source, transform or input",
        "The first word after `data` names a source, those after `|>` transforms; `input` takes an `image`.",
        "data digits |> standardise",
        "data digits |> standardize",
    ),
    Code(
        "E305",
        "an unknown group",
        "`lift` takes the name of a group that acts on the pixel grid.",
        "input image(1, 8, 8)\nlift p5\nproject max\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E306",
        "an unknown activation",
        "What follows `|>` after a layer is an activation that acts on every number by itself.",
        "input image(1, 8, 8)\nflatten\nlayer h1: FC -> 8 |> rleu\nlayer h2: FC -> classes",
        "input image(1, 8, 8)\nflatten\nlayer h1: FC -> 8 |> relu\nlayer h2: FC -> classes",
    ),
    Code(
        "E307",
        "an unknown network or block",
        "What stands after `=` is a network with parameters, what stands after `use` is a block, of this file or of "
        "one that it imports.",
        "network n = pyramid(4)",
        "network p(width) {\n"
        "  input image(1, 8, 8)\n"
        "  flatten\n"
        "  layer h1: FC -> width\n"
        "  layer h2: FC -> classes\n"
        "}\n"
        "network n = p(4)",
    ),
    Code(
        "E308",
        "something defined twice",
        "`let`s, blocks and networks share their names, of imported files too, so each name is given once. So are the "
        "names of profiles, of the layers of one network, keys and arguments; a spec has one `data`, one `search`, and "
        "one network to build.",
        "let width = 4\nlet width = 8",
        "let width = 4\nlet height = 8",
    ),
    Code(
        "E309",
        "a name defined by itself",
        "The value of a `let` asks for itself, or a block uses itself, directly or by way of others.",
        "let a = b + 1\nlet b = a",
        "let a = b + 1\nlet b = 1",
    ),
    Code(
        "E310",
        "an override of nothing",
        "`--set`, and a `profile`, change a `let`, a parameter given where a network is instantiated, `data.KEY` or "
        "`search.KEY`. `data.KEY` is an argument of the source, or of the one transform that has it. "
        "`profile=NAME` sets a profile of the spec.",
        "symdsl check specs/digits.sym --set widht=8",
        "symdsl check specs/digits.sym --set width=8",
    ),
    Code(
        "E311",
        "no data or no network",
        "A spec says what to learn from, and has a network to build: one without parameters, or one "
        "instantiated with `=`. A file of networks with parameters, `let`s and profiles alone is a library for "
        "others to import: `check` accepts it, but it can neither be built nor trained.",
        "network p(width) {\n  input image(1, 8, 8)\n  flatten\n  layer h1: FC -> width\n  layer h2: FC -> classes\n}",
        "network p(width) {\n"
        "  input image(1, 8, 8)\n"
        "  flatten\n"
        "  layer h1: FC -> width\n"
        "  layer h2: FC -> classes\n"
        "}\n"
        "network n = p(4)",
    ),
    Code(
        "E312",
        "a word that is no longer part of the language",
        "An earlier version knew this key, argument or value. The help says what came in its place.",
        "search {\n  rescale = true\n}",
        "search {\n  epochs = 10\n}",
    ),
    Code(
        "E401",
        "a value of the wrong type",
        "The message says what was expected and what was found.",
        'search {\n  epochs = "ten"\n}',
        "search {\n  epochs = 10\n}",
    ),
    Code(
        "E402",
        "a value out of range",
        "The message says the bounds.",
        "search {\n  epochs = 0\n}",
        "search {\n  epochs = 10\n}",
    ),
    Code(
        "E403",
        "too few or too many",
        "Arguments, or values taken apart by `repeat`, that are missing or one too many.",
        "input image(1, 8, 8)\nlayer l1: CONV -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(3) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E404",
        "arithmetic without a result",
        "A division by zero, or a number too large to be one.",
        "let a = 1/0",
        "let a = 1/2",
    ),
    Code(
        "E405",
        "a spec that asks for too much",
        "All items, rounds of `repeat` and candidates of a spec together are at most 10,000, the candidates of a layer "
        "100, values 100,000, and there may be 200,000 pairs of a layer and a prior with a `*`, so that checking a "
        "spec ends soon. A spec has at most 20 profiles with 200 keys, and `check` has the same limits again for all "
        "of them together; a spec too large for that can be checked with one, by `--set profile=NAME`.",
        "let ten = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\ninput image(1, 8, 8)\n"
        + "".join("  " * depth + f"repeat ten as i{depth} {{\n" for depth in range(5))
        + "          layer: FC -> 1\n"
        + "".join("  " * depth + "}\n" for depth in reversed(range(5)))
        + "flatten\nlayer h: FC -> classes",
        "let ten = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
        "input image(1, 8, 8)\n"
        "repeat ten as i {\n"
        "  layer: FC -> 1 + i\n"
        "}\n"
        "flatten\n"
        "layer h: FC -> classes",
    ),
    Code(
        "E406",
        "a word that is not one of those possible",
        "The message lists the words that can stand here.",
        "data digits |> quadrants(label = bth)\ninput image(1, 16, 16)\nflatten\nlayer h: FC -> classes",
        "data digits |> quadrants(label = both)\ninput image(1, 16, 16)\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "E501",
        "a prior that matches nothing",
        "A selector is `layer.kind`, `layer.kind.tensor` or `layer.bias`, where `*` stands for any letters. "
        "No parameter of the network is so called.",
        "prior {\n  *.CONV ~ normal(precision = 2)\n}",
        "prior {\n  *.FC ~ normal(precision = 2)\n}",
    ),
    Code(
        "E502",
        "two priors of the same reach",
        "The most specific prior wins: every part spelt out counts more than one with a `*`. These two are "
        "equally specific for one parameter.",
        "prior {\n  h.* ~ normal(precision = 2)\n  *.FC ~ normal(precision = 3)\n}",
        "prior {\n  h.* ~ normal(precision = 2)\n  h.FC ~ normal(precision = 3)\n}",
    ),
    Code(
        "E503",
        "a prior not determined once",
        "A normal prior takes exactly one of `precision`, `variance` and `std`.",
        "prior {\n  *.FC ~ normal(precision = 2, std = 1)\n}",
        "prior {\n  *.FC ~ normal(std = 1)\n}",
    ),
    Code(
        "E601",
        "data that cannot be used",
        "`arrays` reads an .npz file with `x_train`, `y_train`, `x_test` and `y_test`: images [n, c, h, w] or "
        "[n, h, w], and whole numbers for classes or floats for regression. `images` reads PNG and JPEG files of "
        "one size and colour from `train/CLASS/` and `test/CLASS/`. Paths are relative to the working directory. "
        "`given` takes the side of square images, or their height and width.",
        'data arrays("missing.npz")',
        'data arrays("mine.npz")',
    ),
    Code(
        "E602",
        "a transform that does not fit the data",
        "The message says what the transform needs and what the data have at this place.",
        "data digits |> pad(4)",
        "data digits(size = 4) |> pad(8)",
    ),
    Code(
        "W101",
        "a candidate twice",
        "Two candidates of a layer that are the same share the work and tell nothing.",
        "input image(1, 8, 8)\nlayer l1: CONV(3) + CONV(3) -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(3) + CONV(5) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "W102",
        "a `let` that nothing uses",
        "Perhaps a name was misspelt where it was meant.",
        "let width = 4",
        "let epochs = 4\nsearch {\n  epochs = epochs\n}",
    ),
    Code(
        "W103",
        "a group that the input size breaks",
        "A quarter turn maps only square images to images of the same shape. The network can be built, but it "
        "is equivariant only to those elements of the group that map the image to itself.",
        'data arrays("wide.npz")\ninput image(1, 4, 6)\nlift p4\nproject max\nflatten\nlayer h: FC -> classes',
        'data arrays("wide.npz") |> pad(6)\n'
        "input image(1, 6, 6)\n"
        "lift p4\n"
        "project max\n"
        "flatten\n"
        "layer h: FC -> classes",
    ),
    Code(
        "W104",
        "a search that never reaches its first evidence step",
        "Evidence steps begin after `burnin` epochs. If the search ends before, no structure is learned.",
        "search {\n  epochs = 2\n  burnin = 2\n}",
        "search {\n  epochs = 3\n  burnin = 2\n}",
    ),
    Code(
        "W105",
        "curvature factors that may take much memory",
        "The Kronecker factors of this layer's curvature may take more than 8 GiB. With as many examples as a map has "
        "numbers, a dense kind needs a square matrix of the size of a whole map, with fewer in proportion to them; "
        "factored kinds and convolutions need far less.",
        "input image(1, 8, 8)\nlayer l1: FC -> 1000\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: F-FC -> 100\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "W106",
        "`flatten` of a lifted map",
        "The elements of the group become channels that later layers can tell apart, so what they compute is "
        "not invariant to the group.",
        "input image(1, 8, 8)\nlift p4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "W107",
        "a division that is a comment",
        "`//` starts a comment, so what looks like a whole-number division leaves its left side as it "
        "is. Divisions that leave no rest give whole numbers; `floor` and `ceil` round others.",
        "let epochs = 10 // 2\nsearch {\n  epochs = epochs\n}",
        "let epochs = floor(10 / 2)\nsearch {\n  epochs = epochs\n}",
    ),
    Code(
        "W109",
        "a kernel larger than the map",
        "Maps are closed to a torus, so a kernel that is larger than the map meets some positions several times. The "
        "weights that fall on the same position are only ever used as their sum and cannot be told apart, yet each is "
        "counted as a parameter. A kernel of 3 on a map of side 2 is left alone: none smaller reaches a neighbour.",
        "input image(1, 8, 8)\nlayer l1: CONV(11) -> 4\nflatten\nlayer h: FC -> classes",
        "input image(1, 8, 8)\nlayer l1: CONV(7) -> 4\nflatten\nlayer h: FC -> classes",
    ),
    Code(
        "W110",
        "classes without examples",
        "Labels are numbers of classes, counted from 0, so that the largest label says how many classes there are. "
        "Some of them have no training example: nothing can be learned of them, and the network is too large.",
        'data arrays("gaps.npz")',
        'data arrays("mine.npz")',
    ),
    Code(
        "W111",
        "regression targets that look like classes",
        "Floats are taken for the targets of a regression, whole numbers for classes. These are floats, but 0.0, 1.0, "
        "2.0, ..., each many times, or rows of zeros with a single 1. `task = regression` says that they are meant.",
        'data arrays("one_hot.npz")',
        'data arrays("one_hot.npz", task = regression)',
    ),
    Code(
        "W112",
        "images whose channels may come last",
        "Images are [n, channels, rows, columns], as in PyTorch. These have many channels and very few columns, which "
        "looks like [n, rows, columns, channels], as other libraries have it: `x.transpose(0, 3, 1, 2)` turns them.",
        'data arrays("channels_last.npz")\ninput image(8, 8, 1)\nflatten\nlayer h: FC -> classes',
        'data arrays("mine.npz")\ninput image(1, 8, 8)\nflatten\nlayer h: FC -> classes',
    ),
)

CODES: dict[str, Code] = {code.code: code for code in _TABLE}
"""Every code, in order."""
