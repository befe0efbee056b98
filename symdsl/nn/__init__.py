"""Layers and networks of paths; knows no kind, no spec and no curvature."""

from symdsl.nn.average import Average, Mean
from symdsl.nn.circular import Sides, circular_conv, circular_pad, pair
from symdsl.nn.initial import Moments, moments, normal_parameter
from symdsl.nn.maps import Flatten, Lift, Pool, Project
from symdsl.nn.mode import derivatives_on, evaluation_mode
from symdsl.nn.network import Activation, Block, Join, Network
from symdsl.nn.outputs import outputs_of, read_by
from symdsl.nn.path import Path, Recorder
from symdsl.nn.relaxed import BIAS, RelaxedLayer, Use

__all__ = [
    "BIAS",
    "Activation",
    "Average",
    "Block",
    "Flatten",
    "Join",
    "Lift",
    "Mean",
    "Moments",
    "Network",
    "Path",
    "Pool",
    "Project",
    "Recorder",
    "RelaxedLayer",
    "Sides",
    "Use",
    "circular_conv",
    "circular_pad",
    "derivatives_on",
    "evaluation_mode",
    "moments",
    "normal_parameter",
    "outputs_of",
    "pair",
    "read_by",
]
