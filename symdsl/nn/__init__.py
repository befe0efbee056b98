"""Layers and networks of paths; knows no kind, no spec and no curvature."""

from symdsl.nn.circular import circular_conv, circular_pad
from symdsl.nn.initial import gain, mean_share, normal_parameter
from symdsl.nn.maps import Flatten, Lift, Pool, Project
from symdsl.nn.network import Activation, Network
from symdsl.nn.path import Path, Recorder
from symdsl.nn.relaxed import BIAS, RelaxedLayer, Use

__all__ = [
    "BIAS",
    "Activation",
    "Flatten",
    "Lift",
    "Network",
    "Path",
    "Pool",
    "Project",
    "Recorder",
    "RelaxedLayer",
    "Use",
    "circular_conv",
    "circular_pad",
    "gain",
    "mean_share",
    "normal_parameter",
]
