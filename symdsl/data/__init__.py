"""Data: sources, transforms, and `load`, which reads what a spec names; `from_tensors` makes what it is handed."""

from symdsl.data.augment import Augmentation
from symdsl.data.given import from_datasets, from_tensors
from symdsl.data.loading import load
from symdsl.data.preprocessing import Preprocessing
from symdsl.data.records import Dataset, Examples, fingerprint
from symdsl.data.report import Inspection, inspect

__all__ = [
    "Augmentation",
    "Dataset",
    "Examples",
    "Inspection",
    "Preprocessing",
    "fingerprint",
    "from_datasets",
    "from_tensors",
    "inspect",
    "load",
]
