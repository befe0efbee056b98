"""The network as a graph of records: building, hashing, writing, costs and what it preserves."""

from symdsl.graph.build import build, chain
from symdsl.graph.cost import (
    Memory,
    layer_curvature_bytes,
    memory,
    multiply_adds,
    parameters,
)
from symdsl.graph.serial import content_hash, from_json, to_json
from symdsl.graph.summary import summary_json
from symdsl.graph.symmetry import Symmetry, strict_symmetry

__all__ = [
    "Memory",
    "Symmetry",
    "build",
    "chain",
    "content_hash",
    "from_json",
    "layer_curvature_bytes",
    "memory",
    "multiply_adds",
    "parameters",
    "strict_symmetry",
    "summary_json",
    "to_json",
]
