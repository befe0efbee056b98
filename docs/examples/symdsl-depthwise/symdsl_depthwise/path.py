"""The module of DEPTHWISE(k), and how it uses its weights."""

import math
from typing import ClassVar

from symdsl.evidence import WeightUse
from symdsl.kinds.convolution.weight_use import patches
from symdsl.nn import Path, circular_conv, normal_parameter, pair


class Depthwise(Path):
    """A circular convolution of every plane by itself: y[c, t] = sum_s x[c, t + s] w[c, s]."""

    samples: ClassVar[bool] = True
    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def __init__(self, planes, kernel, stride, scale, generator):
        super().__init__()
        self.stride = pair(stride)
        self.w = normal_parameter((planes, *pair(kernel)), scale * math.prod(pair(kernel)) ** -0.5, generator)

    def forward(self, x, record=None):
        """Tells of the use of `w`, then maps `x`."""
        if record is not None:
            record("w", x, None)
        return self._convolved(x, self.stride)

    def fine(self, x):
        """The map at stride 1, from which the sampled phase is chosen."""
        return self._convolved(x, 1)

    def _convolved(self, x, stride):
        return circular_conv(x, self.w[:, None], stride, groups=len(self.w))


def build(layer, candidate, scale, generator):
    """The path of a candidate."""
    kernel = layer.in_shape.sides(candidate.argument("k"))
    return Depthwise(layer.in_shape.planes, kernel, layer.strides, scale, generator)


def _inputs(path, x):
    """The filter of plane c reads the patches of that plane: `[n, C, T, S^2]`, a block for each plane."""
    return patches(x, path.w.shape[1:], path.stride).mT


def _gradients(path, x, y):
    """And gives one number for each position: `[n, C, T, 1]`."""
    return y.flatten(2).unsqueeze(3)


def weight_use(path):
    """How the path uses every parameter tensor, from which its curvature follows."""
    return {"w": WeightUse(_inputs, _gradients)}
