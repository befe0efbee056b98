"""Folders of one run, of several seeds or of a sweep: no crash, full disk or second process can spoil them."""

from symdsl.runs.files import SCHEMA, finite, write_atomic
from symdsl.runs.folder import RunFolder, default_folder, new_folder, versions
from symdsl.runs.schema import Status
from symdsl.runs.seeds import SeedsFolder
from symdsl.runs.sweeps import SweepFolder

__all__ = [
    "SCHEMA",
    "RunFolder",
    "SeedsFolder",
    "Status",
    "SweepFolder",
    "default_folder",
    "finite",
    "new_folder",
    "versions",
    "write_atomic",
]
