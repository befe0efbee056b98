"""Folders of one run, or of several seeds: written so that no crash, full disk or second process can spoil them."""

from symdsl.runs.files import SCHEMA, finite, write_atomic
from symdsl.runs.folder import RunFolder, default_folder, versions
from symdsl.runs.schema import Status
from symdsl.runs.seeds import SeedsFolder

__all__ = ["SCHEMA", "RunFolder", "SeedsFolder", "Status", "default_folder", "finite", "versions", "write_atomic"]
