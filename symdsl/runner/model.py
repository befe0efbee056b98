"""The file of a learned network, which says by itself how the network is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from symdsl import lowering
from symdsl.analysis.facts import Data
from symdsl.data.preprocessing import Preprocessing
from symdsl.diagnostics import RunError
from symdsl.graph import from_json, to_json
from symdsl.graph.build import layers
from symdsl.kinds import KINDS
from symdsl.nn import Network

if TYPE_CHECKING:
    import networkx as nx

SCHEMA = 1

_ENTRY = "symdsl"


@attrs.frozen(eq=False)
class Model:
    """A learned network, and what a prediction by it needs.

    Attributes:
        network: without the paths that were pruned, weights loaded.
        graph: of the network as the spec has it.
        preprocessing: what its training data were standardized with, and the names of its classes.
        noise: variance of the Gaussian likelihood; 1 for classification.
    """

    network: Network
    graph: nx.DiGraph[str]
    preprocessing: Preprocessing
    noise: float

    @property
    def data(self) -> Data:
        """Where the network's examples came from and what was done to them."""
        found: Data = self.graph.graph["data"]
        return found


def model_bytes(net: Network, graph: nx.DiGraph[str], preprocessing: Preprocessing, noise: float) -> bytes:
    """Return the content of `model.safetensors`: weights by the keys of `net.state_dict()`, and all else as JSON.

    Pruned paths have no weights in it, and are named.

    Args:
        net: the learned network.
        graph: that it was built from.
        preprocessing: of its data.
        noise: variance of the Gaussian likelihood.
    """
    without = tuple(f"{one}." for one in net.pruned)
    kept = {
        key: value.detach().cpu().contiguous() for key, value in net.state_dict().items() if not key.startswith(without)
    }
    # Without what a resumed run need not have in common: spans, and the name of its spec's file.
    document = to_json(graph, spans=False)
    document["graph"] = {name: value for name, value in document["graph"].items() if name != "name"}
    header = {
        "schema": SCHEMA,
        "graph": document,
        "shapes": {key: list(value.shape) for key, value in kept.items()},
        "pruned": net.pruned,
        "preprocessing": preprocessing.record(),
        "noise": noise,
    }
    return save(kept, {_ENTRY: json.dumps(header, sort_keys=True, ensure_ascii=False)})


def weights_of(path: Path) -> tuple[dict[str, Tensor], list[str]]:
    """Return every parameter tensor in a file of `model_bytes`, by key, and the paths that were pruned: these are zero.

    Raises:
        RunError: the file is missing or damaged.
    """
    header, weights = _read(path)
    every = lowering.compile(_graph(header, path)).tensors()
    found = {key: weights.get(key, torch.zeros_like(parameter.data)) for key, parameter in every.items()}
    return found, header["pruned"]


def read_model(path: Path) -> Model:
    """Return the network in a file that `model_bytes` wrote, ready to be trained on.

    Args:
        path: the file.

    Raises:
        RunError: the file is missing or damaged, or its weights are not those of the network.
    """
    header, weights = _read(path)
    try:
        own = _graph(header, path)
        net = lowering.compile(own)
        for one in header["pruned"]:
            layer, name = one.split(".", 1)
            net.remove(layer, name)
        net.load_state_dict(weights)
        return Model(net.eval(), own, Preprocessing.read(header["preprocessing"]), float(header["noise"]))
    except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path}: does not hold the weights of this network: {reason}") from error


def _graph(header: Mapping[str, Any], path: Path) -> nx.DiGraph[str]:
    """The graph in a header, of which every kind is known here."""
    graph = from_json(header["graph"])
    unknown = sorted({one.kind for layer in layers(graph) for one in layer.candidates} - set(KINDS))
    if unknown:
        raise RunError(f"{path}: uses the kind `{unknown[0]}`, of a package that is not installed here")
    return graph


def _read(path: Path) -> tuple[Mapping[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(_ENTRY, "null"))
            if not isinstance(header, dict) or header.get("schema") != SCHEMA:
                raise RunError(f"{path}: was written by another version of symdsl, which alone can load it")
            return header, {key: file.get_tensor(key) for key in header["shapes"]}
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: does not hold the weights of this network: {error}") from error
