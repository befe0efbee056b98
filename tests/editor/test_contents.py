"""The table of contents of a text."""

from editor.marks import SPEC
from symdsl.editor.contents import Heading, contents
from symdsl.editor.reading import Reading


def listed(text: str) -> list[object]:
    return [shown(one) for one in contents(Reading(text).file.inside, text)]


def shown(one: Heading) -> object:
    words = (one.what, one.name, one.detail)
    return (*words, [shown(inner) for inner in one.inside]) if one.inside else words


def test_it_names_statements_and_what_is_in_their_braces():
    assert listed(SPEC) == [
        ("let", "width", "4"),
        ("let", "wide", "4*width"),
        ("let", "both", "[F-FC, CONV(3)]"),
        ("data", "data", "digits(size = 16) |> standardize"),
        (
            *("network", "net", ""),
            [
                ("item", "input", "image(channels, 16, 16)"),
                ("layer", "l1", "both -> width |> relu"),
                (
                    *("item", "repeat", "[(2, 1), (4, 2)] as (m, s)"),
                    [("layer", "layer", "F-FC + CONV(3) -> m*width stride s |> relu")],
                ),
                ("item", "flatten", ""),
                ("layer", "h1", "FC -> classes"),
            ],
        ),
        ("search", "prior", "", [("setting", "l1.CONV", "normal(precision = 10, fixed)")]),
        ("search", "search", "", [("setting", "epochs", "20"), ("setting", "optimizer", "adam(lr = 0.01)")]),
    ]


def test_titles_are_in_their_entries():
    text = "let\nnetwork {\nlayer\n}\n= 3\nlet a = 4"
    for one in contents(Reading(text).file.inside, text):
        assert one.name
        assert one.reach[0] <= one.title[0] < one.title[1] <= one.reach[1]
