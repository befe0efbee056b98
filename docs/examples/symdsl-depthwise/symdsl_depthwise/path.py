"""The module of DEPTHWISE(k) and its curvature."""

from typing import ClassVar

from torch.nn import functional

from symdsl.evidence import Factors, Handler
from symdsl.kinds.convolution.weight_use import moment_of_sums, patch_sums
from symdsl.nn import Path, circular_conv, circular_pad, normal_parameter


def _patches(path, inputs):
    """`[C, S^2, n T]`: the patches of each plane at every kept position, taps row by row."""
    kernel = path.w.shape[-1]
    patches = functional.unfold(circular_pad(inputs, kernel), kernel, stride=path.stride)
    return patches.unflatten(1, (len(path.w), kernel**2)).permute(1, 2, 0, 3).flatten(2)


def _expand_inputs(path, inputs):
    """The filter of plane c reads a slot of its own: one block per plane, `[C, S^2, S^2]`."""
    a = _patches(path, inputs)
    return a @ a.mT


def _expand_gradients(path, inputs, gradients):
    """Mean over planes and positions of sum_n g^2: `[1, 1, 1]`."""
    return gradients.square().sum().reshape(1, 1, 1) / gradients[0].numel()


def _reduce_inputs(path, inputs):
    """(1/R) sum_n a a^T per plane, a the sum of an example's R patches: `[C, S^2, S^2]`."""
    a = patch_sums(inputs, path.w.shape[-1], path.stride).transpose(0, 1)
    uses = inputs.shape[2] * inputs.shape[3] / path.stride**2
    return a.mT @ a / uses


def _reduce_gradients(path, inputs, gradients):
    """Mean over planes of (1/R) sum_n g^2, g summed over the R positions: `[1, 1, 1]`."""
    sums = gradients.sum((2, 3)).reshape(-1, 1)
    return moment_of_sums(sums, gradients[0].numel())


class Depthwise(Path):
    """y[c, t] = sum_s x[c, t + s] w[c, s], circular."""

    samples: ClassVar[bool] = True
    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def __init__(self, planes, kernel, stride, scale, generator):
        super().__init__()
        self.stride = stride
        self.w = normal_parameter((planes, kernel, kernel), scale / kernel, generator)

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
    return Depthwise(layer.in_shape.planes, candidate.argument("k"), layer.stride, scale, generator)


def weight_use(path):
    """What the curvature needs of every parameter tensor of the path."""
    return {"w": Handler(Factors(_expand_inputs, _expand_gradients), Factors(_reduce_inputs, _reduce_gradients))}
