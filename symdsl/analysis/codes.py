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
        "The spec, or a file that it imports, is missing, is a folder, or may not be read. Import paths are "
        "relative to the importing file.",
        'import "blocks/pyramyd.sym"',
        'import "blocks/pyramid.sym"',
    ),
    Code(
        "E102",
        "a file is not UTF-8",
        "Specs are UTF-8 text. The message names the first byte that is not.",
        "a file saved as UTF-16",
        "the same file saved as UTF-8",
    ),
    Code(
        "E103",
        "a file, or a word in it, is too large",
        "A spec with all its imports has at most 1 MiB, 40,000 words and comments, 100 files and 1,000 imports; a "
        "name has at most 200 letters, a text 4,096.",
        "a data file given for a spec",
        "a spec",
    ),
    Code(
        "E104",
        "the text does not follow the grammar",
        "Something else was expected here. The parser repairs or skips what it cannot read, so that one run shows "
        "all errors.",
        "input image(1, 8, 8)\nlayer: F-FC CONV(3) -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: F-FC + CONV(3) -> 4\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E105",
        "nested too deep",
        "A statement can be nested 150 deep, `repeat`s and blocks in use 50 deep.",
        "let a = " + "(1, " * 200 + "2" + ")" * 200,
        "let a = (1, (1, 2))",
    ),
    Code(
        "E106",
        "an import leaves its folder",
        "A file may import what lies in its own folder or below, links followed. A text that is not a file cannot "
        "import.",
        'import "../other/pyramid.sym"',
        'import "blocks/pyramid.sym"',
    ),
    Code(
        "E107",
        "a circular import",
        "A file imports itself, directly or through others. Move what both need to a third file.",
        'import "this.sym"',
        'import "blocks/pyramid.sym"',
    ),
    Code(
        "E201",
        "a stride that does not divide the map",
        "A strided layer keeps one of `stride` x `stride` phases of its output. It must divide both sides of the map.",
        "input image(1, 8, 8)\nlayer: CONV(3) -> 4 stride 3\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(3) -> 4 stride 2\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E202",
        "a kernel that does not fit",
        "Kernels have odd sizes. Convolutions wrap round at most once: a side of n takes kernels up to 2n - 1.",
        "input image(1, 8, 8)\nlayer: CONV(4) -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(5) -> 4\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E203",
        "a group kind on a map of another group",
        "A group convolution acts on a map lifted to a group. Lift the map to that group, or to one that contains it.",
        "input image(1, 8, 8)\nlayer: GCONV(3) -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nlayer: GCONV(3) -> 4\nproject max\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E204",
        "a vector where an image is needed, or an image after `flatten`",
        "After `flatten` there are no positions left for a convolution, stride, `lift`, `pool` or second `flatten`.",
        "input image(1, 8, 8)\nflatten\nlayer: CONV(3) -> 4\nlayer: FC -> classes",
        "input image(1, 8, 8)\nflatten\nlayer: FC -> 4\nlayer: FC -> classes",
    ),
    Code(
        "E205",
        "`project` without `lift`",
        "`project` reduces over the elements of a group, which only a lifted map has.",
        "input image(1, 8, 8)\nproject max\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E206",
        "a map lifted twice",
        "A lifted map already has a copy for every element of the group.",
        "input image(1, 8, 8)\nlift p4\nlift p4\nproject max\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E207",
        "a network that does not end in the classes",
        "A network ends in a vector with one number for each class or regression target.",
        "input image(1, 8, 8)\nlayer: FC -> classes",
        "input image(1, 8, 8)\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E208",
        "a network that reads images of another shape than the data have",
        "`input` states channels, height and width of the images after all transforms.",
        "data digits(size = 16)\ninput image(1, 8, 8)\nflatten\nlayer: FC -> classes",
        "data digits(size = 16)\ninput image(1, 16, 16)\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E209",
        "a `residual` that does not add up",
        "A residual block is y = x + body(x). Its body keeps channels, map and group; holds only layers, `repeat`, "
        "`use`, `residual` and `average`; and has no strides, which could keep different phases in two branches. It "
        "ends with a layer whose activations are 0 at 0, so that the block is the identity without that layer.",
        "input image(1, 8, 8)\nlayer: CONV(3) -> 4 |> relu\nresidual {\n  layer: CONV(3) -> 4 stride 2 |> relu\n"
        "  layer: CONV(3) -> 8\n}\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(3) -> 4 |> relu\nresidual {\n  layer: CONV(3) -> 8 |> relu\n"
        "  layer: CONV(3) -> 4\n}\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E210",
        "a network too large to build",
        "A network has at most 10^10 parameters. Factored kinds and smaller maps need far fewer.",
        "input image(1, 8, 8)\nlayer: FC -> 20000000\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: FC -> 20\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E211",
        "a network without its one `input`",
        "A network begins with its only `input`. A block has none.",
        "network n {\n  flatten\n  layer: FC -> classes\n}",
        "network n {\n  input image(1, 8, 8)\n  flatten\n  layer: FC -> classes\n}",
    ),
    Code(
        "E212",
        "an `average` that cannot be taken",
        "`average affine(...) { ... }` takes the mean over transformed copies of a plain image. It names a range, "
        "contains a layer, and stands before `lift`. A map of one row cannot be turned.",
        "input image(1, 8, 8)\naverage affine(samples = 7) {\n  flatten\n  layer: FC -> 8 |> relu\n}\n"
        "layer: FC -> classes",
        "input image(1, 8, 8)\naverage affine(rotation = 5, samples = 7) {\n  flatten\n  layer: FC -> 8 |> relu\n}\n"
        "layer: FC -> classes",
    ),
    Code(
        "E213",
        "a kind with fixed weights where a layer has to learn",
        "`RFF` draws its weights once and never learns them. It stands alone in its layer, and neither in the last "
        "one nor at the end of a `residual`.",
        "input image(1, 8, 8)\nflatten\nlayer: RFF + FC -> 64\nlayer: FC -> classes",
        "input image(1, 8, 8)\nflatten\nlayer: RFF -> 64\nlayer: FC -> classes",
    ),
    Code(
        "E214",
        "a network that `objective = elbo` cannot learn",
        "The variational bound weighs the last layer alone and chooses no candidates: each layer has one, the last "
        "`FC` after `flatten`, without activations.",
        "search {\n  objective = elbo\n}\ninput image(1, 8, 8)\nlayer: F-FC + CONV(3) -> 4 |> relu\nflatten\n"
        "layer: FC -> classes",
        "search {\n  objective = elbo\n}\ninput image(1, 8, 8)\nlayer: CONV(3) -> 4 |> relu\nflatten\n"
        "layer: FC -> classes",
    ),
    Code(
        "E301",
        "an unknown name",
        "The name is no `let`, parameter, `classes`, `channels` or word of the language that can stand here.",
        "let width = 4\nlet double = 2*widht",
        "let width = 4\nlet double = 2*width",
    ),
    Code(
        "E302",
        "an unknown kind",
        "Kinds are written in capitals, as in the papers.",
        "input image(1, 8, 8)\nlayer: KONV(3) -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(3) -> 4\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E303",
        "an unknown argument or key",
        "There is no argument or key of that name here.",
        "search {\n  epoch = 10\n}",
        "search {\n  epochs = 10\n}",
    ),
    Code(
        "E304",
        "an unknown data source, transform or input",
        "A source follows `data`, transforms follow `|>`, and `image` or `signal` follows `input`.",
        "data digits |> standardise",
        "data digits |> standardize",
    ),
    Code(
        "E305",
        "an unknown group",
        "`lift` takes the name of a group that acts on the pixel grid.",
        "input image(1, 8, 8)\nlift p5\nproject max\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E306",
        "an unknown activation",
        "An elementwise activation follows `|>` after a layer.",
        "input image(1, 8, 8)\nflatten\nlayer: FC -> 8 |> rleu\nlayer: FC -> classes",
        "input image(1, 8, 8)\nflatten\nlayer: FC -> 8 |> relu\nlayer: FC -> classes",
    ),
    Code(
        "E307",
        "an unknown network or block",
        "A network with parameters follows `=`, and a block follows `use`. It is defined in this file or imported.",
        "network n = pyramid(4)",
        "network p(width) {\n"
        "  input image(1, 8, 8)\n"
        "  flatten\n"
        "  layer: FC -> width\n"
        "  layer: FC -> classes\n"
        "}\n"
        "network n = p(4)",
    ),
    Code(
        "E308",
        "something defined twice",
        "`let`s, blocks and networks, imported ones too, share one space of names. Profiles, the layers of a "
        "network, keys and arguments must also be unique. A spec has one `data`, one `search`, and one network to "
        "build.",
        "let width = 4\nlet width = 8",
        "let width = 4\nlet height = 8",
    ),
    Code(
        "E309",
        "a name defined by itself",
        "A `let` or a block uses itself, directly or through others.",
        "let a = b + 1\nlet b = a",
        "let a = b + 1\nlet b = 1",
    ),
    Code(
        "E310",
        "a setting of something that does not exist",
        "`--set` and `profile` change a `let`, a parameter of the instantiated network, `data.KEY` or "
        "`search.KEY`. `data.KEY` is an argument of the source, or of the one transform that has it. "
        "`profile=NAME` selects a profile.",
        "symdsl check specs/digits.sym --set widht=8",
        "symdsl check specs/digits.sym --set width=8",
    ),
    Code(
        "E311",
        "no data or no network",
        "A spec needs `data` and a network without parameters or instantiated with `=`. A library of `let`s, "
        "blocks, profiles and networks with parameters can be checked and imported, but not built.",
        "network p(width) {\n  input image(1, 8, 8)\n  flatten\n  layer: FC -> width\n  layer: FC -> classes\n}",
        "network p(width) {\n"
        "  input image(1, 8, 8)\n"
        "  flatten\n"
        "  layer: FC -> width\n"
        "  layer: FC -> classes\n"
        "}\n"
        "network n = p(4)",
    ),
    Code(
        "E312",
        "a word that is no longer part of the language",
        "An earlier version had this key, argument or value. The help names what replaces it.",
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
        "The message states the bounds.",
        "search {\n  epochs = 0\n}",
        "search {\n  epochs = 10\n}",
    ),
    Code(
        "E403",
        "too few or too many arguments",
        "Arguments, or values taken apart by `repeat`, are missing or too many.",
        "input image(1, 8, 8)\nlayer: CONV -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(3) -> 4\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E404",
        "a calculation without a result",
        "A division by zero, or a number that is too large.",
        "let a = 1/0",
        "let a = 1/2",
    ),
    Code(
        "E405",
        "a spec that asks for too much",
        "A spec has at most 10,000 items, rounds of `repeat` and candidates together, 100 candidates a layer, "
        "100,000 values, 200,000 pairs of a layer and a prior with `*`, and 20 profiles with 200 keys. `check` has "
        "the same limits again for all profiles together; `--set profile=NAME` checks one.",
        "let ten = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\ninput image(1, 8, 8)\n"
        + "".join("  " * depth + f"repeat ten as i{depth} {{\n" for depth in range(5))
        + "          layer: FC -> 1\n"
        + "".join("  " * depth + "}\n" for depth in reversed(range(5)))
        + "flatten\nlayer: FC -> classes",
        "let ten = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
        "input image(1, 8, 8)\n"
        "repeat ten as i {\n"
        "  layer: FC -> 1 + i\n"
        "}\n"
        "flatten\n"
        "layer: FC -> classes",
    ),
    Code(
        "E406",
        "a word that is not one of the choices",
        "The message lists the possible words.",
        "data digits |> quadrants(label = bth)\ninput image(1, 16, 16)\nflatten\nlayer: FC -> classes",
        "data digits |> quadrants(label = both)\ninput image(1, 16, 16)\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "E501",
        "a prior that matches nothing",
        "No parameter tensor of the network matches. A selector is `layer.kind`, `layer.kind.tensor` or `layer.bias`, "
        "where `*` stands for any letters.",
        "prior {\n  *.CONV ~ normal(precision = 2)\n}",
        "prior {\n  *.FC ~ normal(precision = 2)\n}",
    ),
    Code(
        "E502",
        "two priors that are equally specific",
        "The most specific prior wins: a part spelt out counts more than one with `*`. These two are equally "
        "specific for one parameter tensor.",
        "prior {\n  h.* ~ normal(precision = 2)\n  *.FC ~ normal(precision = 3)\n}",
        "prior {\n  h.* ~ normal(precision = 2)\n  h.FC ~ normal(precision = 3)\n}",
    ),
    Code(
        "E503",
        "a prior without exactly one width",
        "A normal prior takes exactly one of `precision`, `variance` and `std`.",
        "prior {\n  *.FC ~ normal(precision = 2, std = 1)\n}",
        "prior {\n  *.FC ~ normal(std = 1)\n}",
    ),
    Code(
        "E601",
        "data that cannot be used",
        "`arrays` reads an .npz file with `x_train`, `y_train`, `x_test` and `y_test`: images [n, c, h, w] or [n, "
        "h, w], and whole numbers for classes or floats for regression. `images` reads PNG and JPEG files from "
        "`train/CLASS/` and `test/CLASS/`, of one size unless `resize` follows. Paths are relative to the working "
        "directory. `given` takes `size`, or `height` and `width`.",
        'data arrays("missing.npz")',
        'data arrays("mine.npz")',
    ),
    Code(
        "E602",
        "a transform or `invariance` that does not fit the data",
        "The message says what it needs and what the data have.",
        "data digits |> pad(4)",
        "data digits(size = 4) |> pad(8)",
    ),
    Code(
        "W101",
        "the same candidate twice",
        "Two equal candidates share the work between them, so their shares say nothing.",
        "input image(1, 8, 8)\nlayer: CONV(3) + CONV(3) -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(3) + CONV(5) -> 4\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "W102",
        "a `let` that nothing uses",
        "Remove it, or check how its name is spelt where it should be used.",
        "let width = 4",
        "let epochs = 4\nsearch {\n  epochs = epochs\n}",
    ),
    Code(
        "W103",
        "a group that the input size breaks",
        "A quarter turn keeps only square images in shape. The network is equivariant only to the elements of the "
        "group that keep this shape.",
        'data arrays("wide.npz")\ninput image(1, 4, 6)\nlift p4\nproject max\nflatten\nlayer: FC -> classes',
        'data arrays("wide.npz") |> pad(6)\ninput image(1, 6, 6)\nlift p4\nproject max\nflatten\nlayer: FC -> classes',
    ),
    Code(
        "W104",
        "a search that never reaches its first evidence step",
        "Evidence steps come every `every` training steps after `burnin` epochs. A search that "
        "ends before the first learns no structure.",
        "search {\n  epochs = 2\n  burnin = 2\n}",
        "search {\n  epochs = 3\n  burnin = 2\n}",
    ),
    Code(
        "W105",
        "curvature factors that may take much memory",
        "The Kronecker factors of this layer's curvature may take more than 8 GiB. With many examples, a dense "
        "kind needs a square matrix with the side of a whole map. Factored kinds and convolutions need far less.",
        "input image(1, 8, 8)\nlayer: FC -> 1000\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: F-FC -> 100\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "W106",
        "`flatten` of a lifted map",
        "Later layers can tell the elements of the group apart, so the network is not invariant to the group. "
        "`project` before `flatten` makes it invariant.",
        "input image(1, 8, 8)\nlift p4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlift p4\nproject max\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "W107",
        "a division that is a comment",
        "`//` starts a comment and does not divide. Divisions without remainder give whole numbers; `floor` and "
        "`ceil` round others.",
        "let epochs = 10 // 2\nsearch {\n  epochs = epochs\n}",
        "let epochs = floor(10 / 2)\nsearch {\n  epochs = epochs\n}",
    ),
    Code(
        "W109",
        "a kernel larger than the map",
        "Maps are tori, so a kernel larger than the map meets some positions several times. Its weights there "
        "cannot be told apart, yet each counts as a parameter. A kernel of 3 on a map of side 2 is allowed.",
        "input image(1, 8, 8)\nlayer: CONV(11) -> 4\nflatten\nlayer: FC -> classes",
        "input image(1, 8, 8)\nlayer: CONV(7) -> 4\nflatten\nlayer: FC -> classes",
    ),
    Code(
        "W110",
        "classes without examples",
        "Labels count classes from 0; the largest says how many there are. A class without training examples "
        "cannot be learned.",
        'data arrays("gaps.npz")',
        'data arrays("mine.npz")',
    ),
    Code(
        "W111",
        "targets that look like those of the other task",
        "Floats are regression targets, whole numbers classes. These floats are 1.0, 2.0, ..., or two whole numbers, "
        "each many times, or rows of zeros with a single 1, or whole numbers that hardly repeat. `task = ...` confirms "
        "them.",
        'data arrays("one_hot.npz")',
        'data arrays("one_hot.npz", task = regression)',
    ),
    Code(
        "W112",
        "images whose channels may come last",
        "Images are [n, channels, rows, columns]. These look like [n, rows, columns, channels]: `x.transpose(0, 3, "
        "1, 2)` turns them.",
        'data arrays("channels_last.npz")\ninput image(8, 8, 1)\nflatten\nlayer: FC -> classes',
        'data arrays("mine.npz")\ninput image(1, 8, 8)\nflatten\nlayer: FC -> classes',
    ),
    Code(
        "W113",
        "a setting that the objective has no use for",
        "`start`, `examples` and `prior_optimizer` serve the Laplace evidence, `fisher` only its Kronecker factors.",
        "search {\n  objective = elbo\n  examples = 100\n}",
        "search {\n  objective = elbo\n  every = 10\n}",
    ),
    Code(
        "W114",
        "regression targets of another scale",
        "Initial weights and learning rates are for targets of mean 0 and variance 1. `standardize(targets)` brings "
        "them there; figures keep the targets' own units.",
        "data digits |> rotate(degrees = 45, label = angle)",
        "data digits |> rotate(degrees = 45, label = angle) |> standardize(targets)",
    ),
    Code(
        "W115",
        "images that are left out",
        "Only PNG and JPEG files in the folder of a class are read, by their names.",
        'data images("mixed")',
        'data images("photos")',
    ),
)

CODES: dict[str, Code] = {code.code: code for code in _TABLE}
"""Every code, in order."""
