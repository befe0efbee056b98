"""A learned network without symdsl: as a program of `torch.export`, as ONNX, or as a folder of plain PyTorch."""

from symdsl.export.convert import plain_network
from symdsl.export.formats import FORMATS, export_run

__all__ = ["FORMATS", "export_run", "plain_network"]
