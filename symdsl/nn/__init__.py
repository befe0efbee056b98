"""Path modules and the layers built of them; knows neither spec nor curvature."""

from symdsl.nn.basis import BasisPlan
from symdsl.nn.convolution import Conv, circular_conv, circular_pad
from symdsl.nn.factored import FactoredFullyConnected
from symdsl.nn.factored_group_convolution import DepthwiseGroupConv, SeparableGroupConv
from symdsl.nn.fully_connected import FullyConnected
from symdsl.nn.group_convolution import GroupConv, GroupPath, PointwiseGroupConv
from symdsl.nn.initial import gain, mean_share, normal_parameter
from symdsl.nn.maps import Flatten, Lift, Pool, Project
from symdsl.nn.network import Activation, Network
from symdsl.nn.path import Path, Recorder
from symdsl.nn.relaxed import BIAS, RelaxedLayer, Use
from symdsl.nn.sparse_convolution import SparseConv
from symdsl.nn.sparse_fully_connected import SparseFullyConnected
from symdsl.nn.sparse_group_convolution import SparseGroupConv

__all__ = [
    "BIAS",
    "Activation",
    "BasisPlan",
    "Conv",
    "DepthwiseGroupConv",
    "FactoredFullyConnected",
    "Flatten",
    "FullyConnected",
    "GroupConv",
    "GroupPath",
    "Lift",
    "Network",
    "Path",
    "PointwiseGroupConv",
    "Pool",
    "Project",
    "Recorder",
    "RelaxedLayer",
    "SeparableGroupConv",
    "SparseConv",
    "SparseFullyConnected",
    "SparseGroupConv",
    "Use",
    "circular_conv",
    "circular_pad",
    "gain",
    "mean_share",
    "normal_parameter",
]
