"""Data: sources, transforms, and `load`, which reads what a spec names."""

from symdsl.data.loading import load
from symdsl.data.records import Dataset, Examples, fingerprint

__all__ = ["Dataset", "Examples", "fingerprint", "load"]
