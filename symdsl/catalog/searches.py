"""The keys of a `search` block, with types and defaults."""

from __future__ import annotations

from symdsl.catalog.signatures import Choice, Parameter, Real, Signature, Switch, Variant, Whole

_LARGEST = 10**9
_SCHEDULE = Parameter("schedule", Choice(("cosine", "constant")), "cosine")


def _prior_schedule(default: str) -> Parameter:
    return Parameter("schedule", Choice(("onecycle", "cosine", "constant")), default)


def _rate(default: float) -> Parameter:
    return Parameter("lr", Real(0, 1e3, above=True), default)


_FISHER = Variant((Signature("exact"), Signature("mc", (Parameter("samples", Whole(1, 10**6), 1),))))
_KFAC = Variant((Signature("kfac", (Parameter("sharing", Choice(("expand", "reduce")), "expand"),)),))
_OBJECTIVE = Variant(
    (Signature("laplace", (Parameter("approximation", _KFAC, "kfac"), Parameter("fisher", _FISHER, "mc"))),)
)
_CLIP = Parameter("clip", Real(0, 1e9), 1.0)
_STEPS = Parameter("steps", Choice(("relative", "absolute")), "relative")
_OPTIMIZER = Variant((Signature("adam", (_rate(0.005), _SCHEDULE, _CLIP, _STEPS)),))
_PRIOR_OPTIMIZER = Variant(
    (
        Signature("mackay", (Parameter("damping", Real(0, 1, below=True), 0.0), _prior_schedule("onecycle"))),
        Signature("adam", (_rate(0.1), _prior_schedule("cosine"))),
    )
)

SEARCH = Signature(
    "search",
    (
        Parameter("objective", _OBJECTIVE, "laplace"),
        Parameter("epochs", Whole(1, _LARGEST), 60),
        Parameter("burnin", Whole(0, _LARGEST), 0),
        Parameter("every", Whole(1, _LARGEST), 3),
        Parameter("steps", Whole(1, 10**6), 5),
        Parameter("optimizer", _OPTIMIZER, "adam"),
        Parameter("prior_optimizer", _PRIOR_OPTIMIZER, "mackay"),
        Parameter("batch", Whole(1, _LARGEST), 128),
        Parameter("seed", Whole(0, 2**63 - 1), 711),
        Parameter("keep_paths", Switch(), False),
    ),
)
"""Every key of `search`; epochs count passes over the training data, `batch` counts examples."""
