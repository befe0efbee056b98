import re
import struct
from xml.etree import ElementTree

import attrs
import pytest

from graph.factory import Chain, pyramid
from render.results import result
from symdsl.graph import build
from symdsl.kinds import KINDS
from symdsl.render import architecture, mean_architecture
from symdsl.render.colours import colour
from symdsl.render.dot import BAR_WIDTH
from symdsl.spec import parse

SVG = "{http://www.w3.org/2000/svg}"
A4_POINTS = 595


def two_layers():
    return build(Chain(1, 8, 8).layer("l1", "F-FC CONV", 4, 2, ("relu",)).layer("l2", "F-FC CONV", 4).flatten().facts())


def ten_layers():
    return build(pyramid().layer("h3", "FC", 10).facts("ten"))


def dot(graph, found=None) -> str:
    return architecture(graph, found, "dot").decode()


def texts(graph, found=None) -> list[str]:
    root = ElementTree.fromstring(architecture(graph, found, "svg"))
    return [" ".join("".join(element.itertext()).split()) for element in root.iter(f"{SVG}text")]


def size_in_points(image: bytes) -> tuple[float, float]:
    root = ElementTree.fromstring(image)
    return float(root.attrib["width"].removesuffix("pt")), float(root.attrib["height"].removesuffix("pt"))


def test_learned_network_shows_types_and_shares():
    shown = texts(two_layers(), result(two_layers(), {"l1": [0.45, 0.55], "l2": [0.004, 0.996]}))
    assert {"l1 CONV", "l2 CONV", "4 to 4 channels"} <= set(shown)
    assert [text for text in shown if text.endswith("%") and "accuracy" not in text] == ["45 %", "55 %", "0 %", "100 %"]
    assert "learned structure, test accuracy 95.7 %" in shown


def blocks():
    chain = Chain(1, 8, 8).layer("l1", "CONV", 4).residual(("l2", "F-FC CONV", 4), ("l3", "CONV", 4))
    return build(chain.residual(("l4", "CONV", 4)).flatten().facts())


def edges(drawn: str) -> list[str]:
    return re.findall(r"(n\d+(?::e)? -> n\d+(?::e)?) \[(?!style=invis)", drawn)


def test_shortcuts_run_beside_the_layers():
    shown = dot(blocks())
    assert edges(shown)[-2:] == ["n1:e -> n4:e", "n4:e -> n6:e"]
    assert texts(blocks()).count("+") == 2
    assert "dashed" not in shown


def averaged():
    text = "data digits\nnetwork n {\n  input image(1, 8, 8)\n  average"
    text += " affine(rotation = 30, translate_x = 0.1, shear = 0.4)"
    return parse(text + " {\n flatten\n layer h1: FC -> 4 |> relu\n }\n layer h: FC -> classes\n}").graph()


def test_ranges_of_an_average_are_drawn_with_their_numbers():
    shown = dot(averaged())
    for words in ("rotation \u00b130\u00b0", "translate_x \u00b110 %", "shear \u00b10.4"):
        assert words in texts(averaged())
    wedges = "#eeeeee;0.1667:#8fb8de;0.1667:#eeeeee;0.6667"
    assert re.search(rf'n1-fan.*color=transparent fillcolor="{wedges}".*style=wedged', shown)
    assert "mean of the copies" in texts(averaged())


def test_a_learned_range_is_drawn_in_place_of_its_start():
    found = {"name": "average", "ranges": {"rotation": 180.0, "translate_x": 0.0, "shear": 0.4}}
    learned = result(averaged(), {}) | {"averages": [found]}
    shown = dot(averaged(), learned)
    assert "rotation \u00b1180\u00b0" in shown
    assert "style=filled" in shown


def test_removed_blocks_are_a_dashed_line():
    found = result(blocks(), {"l2": [0.5, 0.5]})
    for layer in found["layers"]:
        if layer["name"] in ("l2", "l3"):
            layer |= {"chosen": None, "kept": []}
    shown = dot(blocks(), found)
    assert re.findall(r'(n\d -> n\d) \[label="  4×8×8, 1 block removed" style=dashed\]', shown) == ["n1 -> n2"]
    assert edges(shown)[-1] == "n1:e -> n3:e"
    assert not {"l2", "l3"} & {text.split()[0] for text in texts(blocks(), found) if text}
    for layer in found["layers"]:
        layer |= {"chosen": None, "kept": []} if layer["name"] == "l4" else {}
    assert "4×8×8, 2 blocks removed" in dot(blocks(), found)


def test_stride_channels_and_activations_stand_in_the_box():
    assert "1 to 4 channels, stride 2, relu" in texts(two_layers())


def test_shapes_stand_on_the_edges():
    assert re.findall(r'n\d -> n\d \[label="  (.*)"\]', dot(two_layers())) == ["1×8×8", "4×4×4", "4×4×4"]


def test_header_has_the_colour_of_the_chosen_type():
    drawn = dot(two_layers(), result(two_layers(), {"l1": [0.2, 0.8], "l2": [0.9, 0.1]}))
    headers = re.findall(r'colspan="3" bgcolor="(#\w+)"', drawn)
    assert headers == [colour("CONV"), colour("F-FC")]


def test_swatches_of_a_network_that_is_only_compiled_have_a_column_of_their_own():
    graph = build(Chain(1, 8, 8).layer("l1", "F-FC CONV", 4).flatten().facts())
    drawn = dot(graph)
    assert len(re.findall(r"</table></td><td [^>]*><font [^>]*>keeps ", drawn)) == 2
    assert re.findall(r'colspan="(\d)"', drawn) == ["4"]


def test_bars_are_as_long_as_shares():
    graph = build(Chain(1, 8, 8).layer("l1", "F-FC CONV", 4).flatten().facts())
    drawn = dot(graph, result(graph, {"l1": [0.2, 0.8]}))
    for kind, share in (("F-FC", 0.2), ("CONV", 0.8)):
        widths = re.findall(rf'width="(\d+)" height="9" fixedsize="true" bgcolor="{colour(kind)}"', drawn)
        assert str(round(share * BAR_WIDTH)) in widths


def test_compiled_network_shows_parameters_instead_of_shares():
    shown = texts(two_layers())
    assert {"keeps nothing", "keeps translations", "36", "number: parameters"} <= set(shown)
    assert not [text for text in shown if "%" in text]


def test_map_result_shows_candidates_without_bars():
    found = result(two_layers(), None, "map")
    shown = texts(two_layers(), found)
    assert "trained, structure not learned, test accuracy 95.7 %" in shown
    assert {"F-FC", "CONV", "keeps translations"} <= set(shown)
    assert shown.count("l1") == 1


def test_a_regression_shows_its_error_and_no_accuracy():
    found = result(two_layers(), {"l1": [0.2, 0.8], "l2": [0.9, 0.1]})
    shown = texts(two_layers(), found | {"test": {"rmse": 3.14159, "r2": 0.98765, "nll": 1.0}})
    assert "learned structure, test RMSE 3.14, R² 0.988" in shown
    shown = texts(two_layers(), found | {"test": {"rmse": 0.5, "r2": None, "nll": 1.0}})
    assert "learned structure, test RMSE 0.5" in shown


def test_the_mean_picture_of_a_regression_shows_mean_errors():
    metrics = {"test.rmse": {"mean": 2.5}, "test.r2": {"mean": 0.5}, "train.rmse": {"mean": 1.0}}
    content = result(two_layers(), {"l1": [0.2, 0.8], "l2": [0.9, 0.1]}) | {"metrics": metrics, "finished": 3}
    drawn = mean_architecture(two_layers(), content, "dot").decode()
    assert "learned structure, mean of 3 seeds, test RMSE 2.5, R² 0.500" in drawn


def test_candidates_that_are_not_kept_are_grey_and_the_chosen_bold():
    drawn = dot(two_layers(), result(two_layers(), {"l1": [0.0, 1.0], "l2": [0.3, 0.7]}))
    first, second = re.findall(r'<font point-size="10" color="(#\w+)" face="([\w-]+)">F-FC</font>', drawn)
    assert first == ("#6b6b6b", "Helvetica")
    assert second == ("#1a1a1a", "Helvetica")
    assert drawn.count('face="Helvetica-Bold">CONV</font>') == 2


def test_nodes_that_are_no_layers_are_plain_boxes():
    graph = build(Chain(1, 4, 4).lift().layer("l1", "GCONV CONV", 2).project().pool().flatten().facts())
    assert {"input", "lift p4", "project max", "pool mean", "flatten"} <= set(texts(graph))


def test_legend_names_the_kinds_that_occur():
    legend = dot(ten_layers()).split("legend [", 1)[1]
    assert [kind for kind in KINDS if f">\u2002{kind}\u2003<" in legend] == ["FC", "CONV", "F-FC"]


@pytest.mark.parametrize("depth", [1, 4, 7])
def test_picture_fits_the_width_of_a_page_at_any_depth(depth):
    width, _ = size_in_points(architecture(build(pyramid(depth=depth).facts()), None, "svg"))
    assert 250 < width < A4_POINTS


def test_text_is_large_enough_to_read():
    image = architecture(ten_layers(), None, "svg").decode()
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)"', image)) >= 9


def test_names_are_escaped():
    name = 'a<b> & "c" \\N \x07'
    graph = build(Chain(1, 8, 8, name="in<&>").layer("l<1>", "F-FC CONV", 4).flatten().facts(name))
    shown = texts(graph)
    assert 'a<b> & "c" \\N ?' in shown
    assert {"in<&>", "l<1>"} <= set(shown)


def test_candidates_of_one_kind_are_told_apart_by_name():
    graph = two_layers()
    layer = graph.nodes["l1"]["record"]
    wide = attrs.evolve(layer.candidates[1], name="CONV(5)")
    graph.nodes["l1"]["record"] = attrs.evolve(layer, candidates=(layer.candidates[1], wide))
    found = result(graph, {"l1": [0.3, 0.7], "l2": [0.5, 0.5]})
    assert "l1 CONV(5)" in texts(graph, found)


def test_svg_is_xml_with_a_title_and_no_trace_of_where_or_when():
    image = architecture(ten_layers(), None, "svg")
    assert next(ElementTree.fromstring(image).iter(f"{SVG}title")).text == "ten"
    assert b"Generated" not in image
    assert not re.search(rb"/(home|tmp|usr|work)/|20\d\d-\d\d", image)


@pytest.mark.parametrize("format", ["dot", "svg", "png", "pdf"])
def test_same_input_gives_same_bytes(format):
    found = result(two_layers(), {"l1": [0.2, 0.8], "l2": [0.9, 0.1]})
    assert architecture(two_layers(), found, format) == architecture(two_layers(), found, format)


def test_png_is_sharp_enough_for_print():
    image = architecture(two_layers(), None, "png")
    width, height = struct.unpack(">II", image[16:24])
    points = size_in_points(architecture(two_layers(), None, "svg"))
    assert image.startswith(b"\x89PNG")
    assert (width / points[0], height / points[1]) == pytest.approx((192 / 72, 192 / 72), rel=0.02)


def test_pdf_is_a_pdf_without_a_date_of_its_own():
    image = architecture(two_layers(), None, "pdf")
    assert image.startswith(b"%PDF")
    assert set(re.findall(rb"CreationDate \(D:(\d{8})", image)) <= {b"19700101"}


def test_result_of_another_network_is_refused():
    found = result(ten_layers(), {f"l{number}": [0.5, 0.5] for number in range(1, 8)})
    other = build(Chain(1, 8, 8).layer("m1", "F-FC CONV", 4).flatten().facts())
    with pytest.raises(ValueError, match="the result has no layer `m1`"):
        architecture(other, found, "dot")


def test_result_of_a_deeper_network_is_refused():
    found = result(two_layers(), {"l1": [0.5, 0.5], "l2": [0.5, 0.5]})
    first = build(Chain(1, 8, 8).layer("l1", "F-FC CONV", 4, 2, ("relu",)).flatten().facts())
    with pytest.raises(ValueError, match="the network has no layer `l2`, which the result has"):
        architecture(first, found, "dot")


def test_result_with_other_candidates_is_refused():
    found = result(two_layers(), {"l1": [0.5, 0.5], "l2": [0.5, 0.5]})
    other = build(Chain(1, 8, 8).layer("l1", "FC CONV", 4).flatten().facts())
    with pytest.raises(ValueError, match=r"layer `l1` has the candidates \['FC', 'CONV'\], but the result has"):
        architecture(other, found, "dot")
