"""The text of `model.py`: a learned network as a module that needs PyTorch alone."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import nn

from symdsl.data.inputs import Preparation
from symdsl.export import plain
from symdsl.nn import maps

Arguments = Mapping[str, Any]
"""Arguments of a step, as `Preparation.recipe` gives them."""

_HEAD = '''"""{title}, learned by symdsl {version}, in plain PyTorch.

    from model import {names}
    {outputs}

`images` is `[n, {channels}, row, column]`, as the data have them: floats, which for 8 bits are in [0, 1], or uint8.
The network reads {reads}.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = {classes}
"""Names of the outputs, in order."""'''
_LOAD = '''def load(path: str | Path = Path(__file__).with_name("weights.pt")) -> nn.Sequential:
    """The learned network, ready to predict with or to be trained on."""
    net = network()
    net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return net.eval()'''
_CALLS = {
    "classification": ("CLASSES, load, prepare", "logits = load()(prepare(images))    # `[n, class]`"),
    "regression": ("load, prepare, restore", "means = restore(load()(prepare(images)))    # `[n, target]`"),
}
"""What a reader imports and calls, by task."""


def model_source(
    net: nn.Sequential,
    title: str,
    version: str,
    classes: tuple[str, ...],
    prepare: Preparation,
    shares: Mapping[str, str],
    noise_std: list[float],
) -> str:
    """Return the text of `model.py`.

    Args:
        net: as `plain_network` gives it.
        title: what it is.
        version: of symdsl.
        classes: names of the outputs.
        prepare: what is done to inputs.
        shares: by name of a layer, what is to be said of it.
        noise_std: of a regression, the standard deviation of each target's noise, in the units of the data.
    """
    data = prepare.data
    names, call = _CALLS[data.task]
    head = _HEAD.format(
        title=title.replace("\\", r"\\").replace('"', r"\""),
        version=version,
        names=names,
        outputs=call,
        channels=data.channels,
        reads=f"`[n, {data.channels}, {data.height}, {data.width}]`",
        classes="[\n" + "".join(f"    {name!r},\n" for name in classes) + "]",
    )
    used = {type(module) for module in net.modules()}
    parts = [head, _prepared(prepare)]
    if data.task == "regression":
        parts += [_restored(prepare, noise_std)]
    if used & {maps.Project, maps.Pool}:
        parts.insert(1, 'Reduction = Literal["max", "mean"]')
    else:
        parts[0] = parts[0].replace("from typing import Literal\n", "")
    if not used & {plain.FullyConnected, plain.RandomFeatures}:
        parts[0] = parts[0].replace("import math\n", "")
    parts += [inspect.getsource(one).rstrip() for one in _CLASSES if one in used]
    parts += [_network(net, shares), _LOAD]
    return "\n\n\n".join(parts) + "\n"


_CLASSES = (
    *(plain.Sum, plain.Convolution, plain.FullyConnected, plain.RandomFeatures, plain.Factored),
    *(plain.Residual, plain.Copies, plain.Mean),
    *(maps.Lift, maps.Project, maps.Pool, maps.Flatten),
)


def _network(net: nn.Sequential, shares: Mapping[str, str]) -> str:
    body = textwrap.indent(f"return {_written(net, shares)}", "    ")
    return f'def network() -> nn.Sequential:\n    """The network before its weights are loaded."""\n{body}'


def _written(module: nn.Module, shares: Mapping[str, str]) -> str:
    """A call that makes a module of this form, with what is to be said of layers in comments."""
    if isinstance(module, plain.Sum):
        terms = "".join(f"    {_written(term, shares)},\n" for term in module.terms)
        return f"Sum(\n    {module.shape},\n{terms})"
    if isinstance(module, nn.Sequential):
        parts = ""
        for name, stage in module.named_children():
            parts += f"# {shares[name]}\n" if name in shares else ""
            parts += f"({name!r}, {_written(stage, shares)}),\n"
        made = "Residual" if isinstance(module, plain.Residual) else "nn.Sequential"
        return f"{made}(\n    OrderedDict(\n        [\n{textwrap.indent(parts, ' ' * 12)}        ]\n    )\n)"
    return repr(module) if type(module) in _CLASSES else f"nn.{module!r}"


def _prepared(prepare: Preparation) -> str:
    lines = ["def prepare(x: Tensor) -> Tensor:", '    """Images as the network reads them."""']
    lines += ['    if hasattr(x, "astype"):  # a NumPy array, which may be flipped or big-endian']
    lines += ['        x = x.astype(x.dtype.newbyteorder("="), order="C")']
    lines += ["    x = torch.as_tensor(x)"]
    if prepare.data.channels == 1:
        lines += ["    x = x[:, None] if x.ndim == 3 else x"]
    lines += [f"    if x.ndim != 4 or x.shape[1] != {prepare.data.channels}:"]
    expected = f"expected [n, {prepare.data.channels}, row, column]"
    lines += [f'        raise ValueError(f"the images are of shape {{list(x.shape)}}, {expected}")']
    lines += ["    if x.dtype != torch.uint8 and not x.is_floating_point():"]
    lines += ['        raise ValueError(f"the images hold {x.dtype}, expected floats or uint8")']
    lines += ["    x = x / 255 if x.dtype == torch.uint8 else x.float()"]
    for name, arguments in prepare.recipe():
        lines += textwrap.indent("\n".join(_STEPS[name](arguments, prepare)), "    ").splitlines()
    lines += [f"    if x.shape[2:] != ({prepare.data.height}, {prepare.data.width}):"]
    expected = f"expected {prepare.data.height}x{prepare.data.width}"
    lines += [f'        raise ValueError(f"the images come out as {{x.shape[2]}}x{{x.shape[3]}}, {expected}")']
    return "\n".join([*lines, "    return x"])


def _restored(prepare: Preparation, noise_std: list[float]) -> str:
    targets = prepare.found.targets
    lines = [f"NOISE_STD = {noise_std!r}", '"""Standard deviation of the noise of every target, in its own units."""']
    lines += ["", "", "def restore(outputs: Tensor) -> Tensor:", '    """Means of the targets in their own units."""']
    if targets is None:
        return "\n".join([*lines, "    return outputs"])
    for name, values in {"mean": targets.mean, "std": targets.std}.items():
        lines += [f"    {name} = torch.tensor({list(values)!r}, dtype=torch.float64, device=outputs.device)"]
    return "\n".join([*lines, "    return outputs.double() * std + mean"])


def _standardize(arguments: Arguments, prepare: Preparation) -> Iterator[str]:
    found = prepare.found.standardize
    assert found is not None, "the run has found it"
    yield f"mean = torch.tensor({list(found.mean)!r}, dtype=torch.float64).float()[:, None, None].to(x.device)"
    yield f"std = torch.tensor({list(found.std)!r}, dtype=torch.float64).float()[:, None, None].to(x.device)"
    yield "x = (x - mean) / std"


def _resize(arguments: Arguments, prepare: Preparation) -> Iterator[str]:
    size = arguments["size"]
    yield f"if x.shape[2:] != ({size}, {size}):"
    smooth = f"antialias={size} < max(x.shape[2:])"
    yield f'    x = functional.interpolate(x, ({size}, {size}), mode="bilinear", {smooth})'


def _pad(arguments: Arguments, prepare: Preparation) -> Iterator[str]:
    size = arguments["size"]
    yield f"if max(x.shape[2:]) > {size}:"
    yield f'    raise ValueError(f"images of {{x.shape[2]}}x{{x.shape[3]}} cannot be padded to {size}x{size}")'
    yield f"top, left = ({size} - x.shape[2]) // 2, ({size} - x.shape[3]) // 2"
    yield f"x = functional.pad(x, (left, {size} - x.shape[3] - left, top, {size} - x.shape[2] - top))"


def _crop(arguments: Arguments, prepare: Preparation) -> Iterator[str]:
    size = arguments["size"]
    yield f"if min(x.shape[2:]) < {size}:"
    yield f'    raise ValueError(f"images of {{x.shape[2]}}x{{x.shape[3]}} are too small for a crop to {size}x{size}")'
    yield f"top, left = (x.shape[2] - {size}) // 2, (x.shape[3] - {size}) // 2"
    yield f"x = x[:, :, top : top + {size}, left : left + {size}]"


def _unroll(arguments: Arguments, prepare: Preparation) -> Iterator[str]:
    yield "x = x.flatten(2).unsqueeze(2)"


def _shuffle(arguments: Arguments, prepare: Preparation) -> Iterator[str]:
    yield "order = torch.tensor("
    yield from textwrap.wrap(str(arguments["order"]), 100, initial_indent="    ", subsequent_indent="    ")
    yield ")"
    yield "if x.shape[2] * x.shape[3] != len(order):"
    expected = f"expected {len(arguments['order'])} pixels, which are shuffled"
    yield f'    raise ValueError(f"the images come as {{x.shape[2]}}x{{x.shape[3]}}, {expected}")'
    yield "x = x.flatten(2)[:, :, order.to(x.device)].reshape(x.shape)"


_STEPS: dict[str, Callable[[Arguments, Preparation], Iterator[str]]] = {
    "standardize": _standardize,
    "resize": _resize,
    "pad": _pad,
    "crop": _crop,
    "shuffle": _shuffle,
    "unroll": _unroll,
}
