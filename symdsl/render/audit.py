"""The output of `symdsl audit`: a table, and a picture of logits and saliency maps around the orbit."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.diagnostics import shortened
from symdsl.render.cells import new_table, number_text, percent_text
from symdsl.render.colours import INK, PAPER, QUIET
from symdsl.render.markup import text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Group

_LINES = ("#1f6feb", "#c2410c", "#15803d", "#8b3fd1", "#b3261e", "#0e7490", "#8a6d00", "#9d3370", "#5c5c5c", "#111111")
_SIDE, _GAP, _CHART, _LEFT, _LEGEND, _LETTERS = 84, 8, 190, 46, 150, 22


def audit_table(content: Mapping[str, Any]) -> Group:
    """Return a table of an audit's measures, and of how far every layer is from equivariant.

    Args:
        content: the audit as JSON has it.
    """
    from rich.console import Group

    measures = new_table((("measure", "left"), ("value", "right"), ("", "left")))
    for cells in _measures(content):
        measures.add_row(*cells)
    layers = new_table((("layer", "left"), ("distance from equivariant", "right")))
    for one in content["layers"]:
        layers.add_row(one["name"], number_text(one["distance"]))
    return Group(measures, layers)


def _measures(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    orbit = f"over {len(content['elements'])} elements of {content['group']}, {content['examples']:,} examples"
    yield "accuracy", percent_text(content["accuracy"]), orbit
    worst = content["elements"][content["accuracies"].index(content["worst_accuracy"])]
    yield "worst accuracy", percent_text(content["worst_accuracy"]), f"at {worst}"
    yield "NLL", number_text(content["nll"]), f"nats; worst element {number_text(content['worst_nll'])}"
    yield "DI", number_text(content["distribution_invariance"]), "KL of predictions, nats; 0 where invariant"
    yield "LI", number_text(content["logit_invariance"]), "half the squared distance of logits; 0 where invariant"
    yield "SI", number_text(content["saliency_similarity"]), "cosine of saliency maps turned back; 1 where invariant"
    yield "Jacobian", number_text(content["jacobian_norm"]), "largest singular value, mean over examples"


def audit_svg(
    title: str,
    elements: Sequence[str],
    outputs: Sequence[str],
    logits: NDArray[np.floating[Any]],
    images: NDArray[np.floating[Any]],
    maps: NDArray[np.floating[Any]],
) -> bytes:
    """Draw outputs of the first example around the orbit, and saliency maps of some examples, turned back.

    The outputs that are largest at the first element have colours and names, others are thin and grey.

    Args:
        title: what is audited.
        elements: names of the elements shown.
        outputs: names of the network's outputs: classes or targets.
        logits: `[element, output]`, of the first example.
        images: `[example, row, column]`.
        maps: `[example, element, row, column]`.
    """
    step = _SIDE + _GAP
    right = _LEFT + len(elements) * step
    width = right + _LEGEND
    height = 64 + _CHART + len(images) * step + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="Helvetica">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        _text(_LEFT, 18, title, 13),
        _text(_LEFT, 36, "logits of one example around the orbit; below, saliency maps turned back", 10, QUIET),
    ]
    low, high = float(logits.min()), float(logits.max())
    largest = logits[0].argsort(kind="stable")[::-1]
    for rank, number in reversed(list(enumerate(largest.tolist()))):
        points = " ".join(
            f"{_LEFT + column * step + _SIDE / 2:.1f},"
            f"{48 + _CHART * (1 - (float(value) - low) / max(high - low, 1e-9)):.1f}"
            for column, value in enumerate(logits[:, number])
        )
        line, stroke = (_LINES[rank], 1.5) if rank < len(_LINES) else (QUIET, 0.5)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{line}" stroke-width="{stroke}"/>')
        if rank < len(_LINES):
            middle = 56 + 16 * rank
            parts.append(f'<path d="M {right} {middle} h 14" stroke="{line}" stroke-width="2"/>')
            parts.append(_text(right + 20, middle + 3, shortened(outputs[number], _LETTERS, "…"), 10))
    parts += [_text(2, 54, f"{high:.3g}", 9, QUIET), _text(2, 48 + _CHART, f"{low:.3g}", 9, QUIET)]
    top = 64 + _CHART
    for column, name in enumerate(elements):
        parts.append(_text(_LEFT + column * step + _SIDE / 2, top - 2, name, 10, middle=True))
    for row, image in enumerate(images):
        for column in range(len(elements)):
            data = base64.b64encode(_png(image, maps[row, column])).decode()
            place = f'x="{_LEFT + column * step}" y="{top + 6 + row * step}" width="{_SIDE}" height="{_SIDE}"'
            look = 'style="image-rendering:pixelated"'
            parts.append(f'<image {place} {look} href="data:image/png;base64,{data}"/>')
    return "\n".join([*parts, "</svg>\n"]).encode()


def _text(x: float, y: float, words: str, size: int, ink: str = INK, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{ink}"{anchor}>{text(words)}</text>'


def _png(image: NDArray[np.floating[Any]], saliency: NDArray[np.floating[Any]]) -> bytes:
    import numpy as np
    from PIL import Image

    low, high = float(image.min()), float(image.max())
    grey = 1 - 0.6 * (image - low) / max(high - low, 1e-9)
    heat = saliency / max(float(saliency.max()), 1e-9)
    colours = np.stack([grey, grey * (1 - heat), grey * (1 - heat)], -1)
    file = io.BytesIO()
    Image.fromarray((255 * colours).round().clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()
