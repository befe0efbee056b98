"""The keys of a `search` block, with types and defaults."""

from __future__ import annotations

from symdsl.catalog.networks import PRECISION
from symdsl.catalog.signatures import Choice, Parameter, Real, Signature, Switch, Variant, Whole

_LARGEST = 10**9

PROJECTED_WIDTH = 512
PROJECTED_ROWS = 1024
"""Dimensions of the projections of a full curvature, if nothing else is asked for."""

_SCHEDULE = Parameter(
    "schedule", Choice(("cosine", "constant")), "cosine", "how the learning rate goes down over the run"
)


def _prior_schedule(default: str) -> Parameter:
    about = "how the size of the updates changes over the run"
    return Parameter("schedule", Choice(("onecycle", "cosine", "constant")), default, about)


def _rate(default: float) -> Parameter:
    return Parameter("lr", Real(0, 1e3, above=True), default, "learning rate at the start")


_FISHER = Variant(
    (
        Signature("exact", about="all columns of the Jacobian"),
        Signature(
            "mc",
            (Parameter("samples", Whole(1, 10**6), 1, "labels drawn for each example"),),
            "labels drawn from the network's own predictions",
        ),
        Signature(
            "signs",
            (Parameter("samples", Whole(1, 10**6), 1, "sums of all columns for each example"),),
            "all columns added up with random signs",
        ),
    )
)
_SHARING = Parameter(
    "sharing", Choice(("expand", "reduce")), "expand", "`reduce` sums the uses of a shared weight first"
)
_BOUNDED = Parameter("bounded", Switch(), True, "whether what single examples add bounds the determinants")
_WIDTH = Parameter(
    "width",
    Whole(1, 1 << 16),
    PROJECTED_WIDTH,
    "numbers that a gradient is projected to in tensors of more",
)
_ROWS = Parameter(
    "rows",
    Whole(1, 1 << 16),
    PROJECTED_ROWS,
    "rows that all examples' columns are projected to, if more; drawn among them where sums tell too little",
)
_APPROXIMATION = Variant(
    (
        Signature("kfac", (_SHARING, _BOUNDED), "a block for every tensor, by its Kronecker factors"),
        Signature("full", (_WIDTH, _ROWS), "all tensors together, by random projections of gradients"),
    )
)
_OBJECTIVE = Variant(
    (
        Signature(
            "laplace",
            (
                Parameter("approximation", _APPROXIMATION, "kfac", "of the curvature"),
                Parameter("fisher", _FISHER, "mc", "how the expectation over labels is taken"),
            ),
            "the marginal likelihood, by Laplace's approximation",
        ),
    )
)
_CLIP = Parameter("clip", Real(0, 1e9), 1.0, "bound on the norm of the gradient; 0 for none")
_STEPS = Parameter(
    "steps",
    Choice(("relative", "absolute")),
    "relative",
    "`relative` shrinks a tensor's steps as the tensor shrinks below its initial size",
)
_WARMUP = Parameter(
    "warmup", Real(0, 1), 0.0, "share of the run in which the learning rate rises to its schedule; 0 for none"
)
_SCALES = Parameter("scales", Switch(), False, "whether the scale of each tensor takes steps of its own, too")
_OPTIMIZER = Variant(
    (Signature("adam", (_rate(0.005), _SCHEDULE, _CLIP, _STEPS, _WARMUP, _SCALES), "Adam on the weights"),)
)
_DAMPING = Parameter("damping", Real(0, 1, below=True), 0.0, "share of the old log precision that is kept")
_PRIOR_OPTIMIZER = Variant(
    (
        Signature("mackay", (_DAMPING, _prior_schedule("onecycle")), "MacKay's fixed point"),
        Signature("adam", (_rate(0.1), _prior_schedule("cosine")), "Adam on the log precisions"),
    )
)

SEARCH = Signature(
    "search",
    (
        Parameter("objective", _OBJECTIVE, "laplace", "what the search maximises"),
        Parameter("epochs", Whole(1, _LARGEST), 60, "passes over the training data"),
        Parameter("burnin", Whole(0, _LARGEST), 0, "epochs before the first evidence step"),
        Parameter(
            "burnin_fit",
            Real(0, 1),
            1.0,
            "share of the training targets' deviance that ends `burnin` early once an epoch explains more; 1 for never",
        ),
        Parameter("every", Whole(1, _LARGEST), 3, "epochs between evidence steps"),
        Parameter("steps", Whole(1, 10**6), 5, "prior updates per evidence step"),
        Parameter("optimizer", _OPTIMIZER, "adam", "how the weights are trained"),
        Parameter("prior_optimizer", _PRIOR_OPTIMIZER, "mackay", "how the prior precisions are updated"),
        Parameter(
            "rescale",
            Switch(),
            False,
            "whether the scales of tensors are brought to their mode before every evidence step and at the end",
        ),
        Parameter(
            "breaking_precision",
            PRECISION,
            3.0,
            "where the prior of a candidate starts that breaks what another of its layer keeps, if the spec gives none",
        ),
        Parameter(
            "breaking_per",
            Choice(("candidate", "element")),
            "candidate",
            "what `breaking_precision` counts for: the candidate, or each element of the symmetry that it breaks",
        ),
        Parameter("batch", Whole(1, _LARGEST), 128, "examples per batch"),
        Parameter("seed", Whole(0, 2**63 - 1), 711, "of initial weights, order of examples, and drawn labels"),
        Parameter("keep_paths", Switch(), False, "whether candidates that are switched off stay alive"),
    ),
)
"""Every key of `search`; epochs count passes over the training data, `batch` counts examples."""
