"""A posterior as a file: eigenvectors and eigenvalues by parameter tensor, all else as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from symdsl.diagnostics import RunError
from symdsl.evidence.loss import Likelihood
from symdsl.predictive.posterior import PARTS, Posterior, TensorPosterior

SCHEMA = 2
"""Of schema 1 the eigenvectors of every input factor are a square matrix."""

_ENTRY = "symdsl"


def posterior_bytes(posterior: Posterior) -> bytes:
    """Return the content of `posterior.safetensors`."""
    tensors = {
        f"{key}/{part}": getattr(one, part).cpu().contiguous()
        for key, one in posterior.tensors.items()
        for part in PARTS
    }
    header = {
        "schema": SCHEMA,
        "precisions": {key: one.precision for key, one in posterior.tensors.items()},
        "noise": posterior.noise,
        "temperature": posterior.temperature,
    }
    return save(tensors, {_ENTRY: json.dumps(header, sort_keys=True)})


def read_posterior(path: Path, likelihood: Likelihood) -> Posterior:
    """Return the posterior in a file that `posterior_bytes` wrote.

    Args:
        path: the file.
        likelihood: of the network's targets.

    Raises:
        RunError: the file is missing, damaged or of another version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(_ENTRY, "null"))
            if header["schema"] not in (1, SCHEMA):
                raise RunError(f"{path}: was written by another version of symdsl, which alone can load it")
            tensors = {
                key: TensorPosterior(**{part: file.get_tensor(f"{key}/{part}") for part in PARTS}, precision=precision)
                for key, precision in header["precisions"].items()
            }
            return Posterior(tensors, likelihood, header["noise"], header["temperature"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: does not hold a posterior: {error}") from error
