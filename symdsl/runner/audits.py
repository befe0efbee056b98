"""Audits of finished runs, and of the networks of specs before they learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch

from symdsl import data as data_room
from symdsl import lowering
from symdsl.auditing import Audit, audit, elements_of, saliency
from symdsl.data import Examples
from symdsl.diagnostics import RunError
from symdsl.nn import Network, outputs_of
from symdsl.render.audit import audit_svg
from symdsl.runner.device import resolve_device
from symdsl.runner.evaluate import Tell, examples_for, untold
from symdsl.runner.loading import load_run
from symdsl.runner.start import settle
from symdsl.spec import load

_SHOWN, _MOST_ELEMENTS = 4, 8


@attrs.frozen(eq=False)
class Audited:
    """The result of an audit: its measures and its picture.

    Attributes:
        found: the measures.
        picture: logits around the orbit and saliency maps turned back, an SVG.
    """

    found: Audit
    picture: bytes


def audit_spec_or_run(
    path: Path,
    group: str,
    device: str = "auto",
    tell: Tell = untold,
    overrides: Mapping[str, Any] | None = None,
) -> Audited:
    """Audit the network of a finished run, or of a spec with its initial weights, on the test data.

    Args:
        path: a run's folder, or a spec, which ends with `.sym`.
        group: see `symdsl.audit`.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        tell: takes a line about data that have changed since the run, or that are not like its own.
        overrides: changes to the spec's data.

    Raises:
        SpecError: the spec is wrong, or the overrides do not fit it.
        RunError: the run is not finished, its data cannot be used, or the group does not fit the images.
    """
    if path.suffix == ".sym":
        net, test, outputs = _of_spec(path, device, overrides)
    else:
        run = load_run(path, device)
        net, test, outputs = run.network, examples_for(run, overrides, tell=tell), run.classes
    try:
        found = audit(net, test, group)
    except ValueError as error:
        raise RunError(f"{path}: cannot be audited: {error}") from None
    return Audited(found, _picture(net, test, outputs, found, path.stem))


def _of_spec(path: Path, device: str, overrides: Mapping[str, Any] | None) -> tuple[Network, Examples, Sequence[str]]:
    spec = load(path, overrides)
    net, dataset = lowering.compile(spec).to(resolve_device(device)), data_room.load(spec)
    settle(net, dataset.train.x, spec.facts.search.seed)
    return net, dataset.test, dataset.preprocessing.names(spec.facts.data.classes)


def _picture(net: Network, test: Examples, outputs: Sequence[str], found: Audit, title: str) -> bytes:
    net.eval()
    orbit = elements_of(found.group, test.x.shape[2], test.x.shape[3])
    elements = orbit[:_MOST_ELEMENTS]
    some = f", the first {len(elements)} of {len(orbit)} elements" if len(elements) < len(orbit) else ""
    x, y = test.x[:_SHOWN].to(net.device), test.y[:_SHOWN].to(net.device)
    maps = [one.undo(saliency(net, one.act(x), y, found.group))[:, 0] for one in elements]
    around = [outputs_of(net, one.act(x[:1]))[0] for one in elements]
    return audit_svg(
        f"{title} under {found.group}{some}: LI {found.logit_invariance:.3g}, SI {found.saliency_similarity:.3g}",
        [one.name for one in elements],
        outputs,
        torch.stack(around).double().cpu().numpy(),
        x.double().mean(1).cpu().numpy(),
        torch.stack(maps, 1).double().cpu().numpy(),
    )
