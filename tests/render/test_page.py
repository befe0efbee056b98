"""Results as a notebook shows them."""

from xml.etree import ElementTree

from graph.factory import Chain
from render.results import result
from symdsl.graph import build
from symdsl.render import architecture, result_html, result_markdown
from symdsl.render.table import RESULT_COLUMNS


def learned():
    graph = build(Chain(3, 2, 5).layer("l<1>", "F-FC CONV", 7).flatten().layer("out", "FC", 4).facts())
    return graph, result(graph, {"l<1>": [0.0, 1.0], "out": [1.0]})


def test_html_holds_the_table_the_scores_and_the_picture():
    graph, found = learned()
    svg = architecture(graph, found, "svg").decode()
    page = ElementTree.fromstring(result_html(found, svg))
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    assert rows[0] == [title for title, _ in RESULT_COLUMNS]
    assert [row[:3] for row in rows[1:4]] == [["l<1>", "F-FC", "420"], ["", "CONV", "189"], ["out", "FC", "280"]]
    assert [row[-1] for row in rows[1:4]] == ["removed", "chosen", "chosen"]
    assert "test: accuracy 95.70 %" in "".join(page.itertext())
    assert page.find(".//{http://www.w3.org/2000/svg}svg") is not None


def test_markdown_is_a_table_and_the_scores():
    _, found = learned()
    lines = result_markdown(found).splitlines()
    assert lines[0].startswith("| layer | candidate |")
    assert lines[1].startswith("| --- | --- | ---: |")
    assert {line.count("|") for line in lines[:5]} == {len(RESULT_COLUMNS) + 1}
    assert lines[3].startswith("|  | CONV | 189 |")
    assert lines[6].startswith("test: accuracy 95.70 %")


def test_a_bar_in_a_name_does_not_end_a_cell():
    _, found = learned()
    found["layers"][0]["name"] = "a|b"
    assert "| a&#124;b | F-FC |" in result_markdown(found)
