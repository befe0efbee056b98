"""The keys of a `search` block, with types and defaults, and what came in place of the keys it once had."""

from __future__ import annotations

from collections.abc import Iterator

from symdsl.catalog.signatures import Choice, Parameter, Real, Signature, Variant, Whole

_LARGEST = 10**9

LARGEST_SEED = 2**63 - 1
"""Seed beyond which generators of random numbers take none."""

EXAMPLES = 256
"""Training examples that an evidence step estimates the curvature on, if nothing else is asked for."""

FEW_EXAMPLES = 1 << 14
"""Up to this many training examples weights are trained by Adam, beyond by SOAP, and a search by default tries both
starts and uses the joint curvature."""

TARGET_COLUMNS = 16
"""Gradients of an example that an evidence step of a regression takes at most, each of a sum of targets."""

LEAST_STEPS = 10
"""Evidence steps of a run, whatever they cost, if nothing else is asked for: a run this short costs little."""

BOUND_EVERY = 5
"""Training steps between moves of priors and ranges under the variational bound, if nothing else is asked for."""

_RATE = Parameter(
    "lr", Real(0, 1e3, above=True), 0.025, "learning rate at the start, as a share of the size of a tensor's weights"
)
_SCHEDULE = Parameter(
    "schedule", Choice(("cosine", "constant")), "cosine", "how the learning rate goes down over the run"
)
_CLIP = Parameter("clip", Real(0, 1e9), 1.0, "bound on the norm of the gradient; 0 for none")
_DAMPING = Parameter("damping", Real(0, 1, below=True), 0.8, "share of the old log precision that a step keeps")
_SHARING = Parameter(
    "sharing", Choice(("expand", "reduce")), "reduce", "`expand` takes every use of a shared weight for itself"
)
_SAMPLES = Parameter("samples", Whole(1, 10**6), 1, "labels drawn for each example")

_FISHER = Variant(
    (
        Signature("exact", about="all columns of a square root of the likelihood's curvature"),
        Signature("mc", (_SAMPLES,), "labels drawn from the network's own predictions"),
    ),
    replaced=(("signs", "`laplace(joint)` adds up all columns with random signs by itself"),),
)
_APPROXIMATION = Variant(
    (
        Signature(
            "kfac",
            (_SHARING,),
            "a block for every tensor, by its Kronecker factors",
            replaced=(("bounded", "the joint matrix is used where it mattered, which is with few examples"),),
        ),
        Signature("joint", about="all tensors together, by at most 1,024 sums of gradients"),
    ),
    replaced=(("full", "write `joint`"),),
)
_LAPLACE = Signature(
    "laplace",
    (
        Parameter(
            "approximation",
            _APPROXIMATION,
            None,
            "of the curvature; left out: `joint` up to 16,384 training examples, `kfac` beyond",
        ),
        Parameter("fisher", _FISHER, "mc", "how `kfac` takes the expectation over labels"),
    ),
    "the marginal likelihood, by Laplace's approximation",
)
_ELBO = Signature("elbo", about="a lower bound of it, by a Gaussian posterior of the last layer's weights")
_ADAM = Signature(
    "adam",
    (_RATE, _SCHEDULE, _CLIP),
    "Adam on the weights, beyond 16,384 training examples in the eigenbasis of gradients (SOAP)",
    replaced=(
        ("steps", "all tensors take the same steps"),
        ("warmup", "every run warms up over its first twentieth"),
        ("scales", "leave it out: nothing took its place"),
    ),
)
_MACKAY = Signature(
    "mackay",
    (_DAMPING,),
    "MacKay's fixed point",
    replaced=(("schedule", "every evidence step moves the priors by the same share"),),
)

_ORBIT = Variant(
    (
        Signature("p4", about="quarter turns"),
        Signature("p4m", about="quarter turns and flips"),
        Signature("translations", about="by quarters of a side, around the edges"),
        Signature("rotations", (Parameter("n", Whole(2, 360), about="elements"),), "turns by 360/n degrees, bilinear"),
    )
)
_LOGIT = Signature(
    "logit",
    (
        Parameter("group", _ORBIT, about="the group"),
        Parameter("weight", Real(0, 1e9), 1.0, "factor on the regulariser"),
    ),
    "half the squared distance of the logits of an example from those of its orbit",
)

SEARCH = Signature(
    "search",
    (
        Parameter("objective", Variant((_LAPLACE, _ELBO)), "laplace", "what the search maximises"),
        Parameter(
            "start",
            Choice(("relaxed", "symmetric", "both")),
            None,
            "how a candidate starts that breaks a symmetry which another keeps: `relaxed`, at a tenth of its scale; "
            "`symmetric`, with its output side at zero; `both`, at most a fifth of the epochs after burn-in each, "
            "then the better one by the evidence; left out: `both` up to 16,384 training examples, `relaxed` beyond",
        ),
        Parameter("epochs", Whole(1, _LARGEST), 60, "passes over the training data"),
        Parameter("burnin", Whole(0, _LARGEST), 0, "epochs before the first evidence step"),
        Parameter(
            "every",
            Whole(1, _LARGEST),
            None,
            "training steps between evidence steps; left out: evidence takes about a tenth of the time, in "
            f"{LEAST_STEPS} steps at least; {BOUND_EVERY} for `elbo`",
        ),
        Parameter("examples", Whole(1, _LARGEST), EXAMPLES, "training examples that an evidence step looks at"),
        Parameter("optimizer", Variant((_ADAM,)), "adam", "how the weights are trained"),
        Parameter(
            "prior_optimizer",
            Variant(
                (_MACKAY,),
                replaced=(("adam", "write `mackay`, whose `damping` sets the size of a step"),),
            ),
            "mackay",
            "how the prior precisions are updated",
        ),
        Parameter(
            "invariance",
            Variant((_LOGIT,)),
            None,
            "a regulariser of training, on its batches only; left out: none",
        ),
        Parameter("batch", Whole(1, _LARGEST), 128, "training examples per training step"),
        Parameter("seed", Whole(0, LARGEST_SEED), 711, "of initial weights, order of examples, and drawn labels"),
    ),
    replaced=(
        ("steps", "every evidence step moves the priors once; `every` sets how often"),
        ("burnin_fit", "`start = symmetric` keeps what breaks a symmetry away until the data ask for it"),
        ("rescale", "leave it out: nothing took its place"),
        ("breaking_precision", "write `start = symmetric`, or give the candidate a prior"),
        ("breaking_per", "write `start = symmetric`, or give the candidate a prior"),
        ("keep_paths", "give the candidate a fixed prior: it is then never pruned"),
    ),
)
"""Every key of `search`; `epochs` count passes over the training data, `every` training steps, `batch` examples."""


def setting_with(argument: str) -> tuple[str, str] | None:
    """Return the key whose value has an argument, and such a value, e.g. `adam(lr = ...)`, or nothing."""
    return next(((one.name, call) for one in SEARCH.parameters for call in _calls(one, argument)), None)


def _calls(parameter: Parameter, argument: str) -> Iterator[str]:
    """Yield every value that a parameter can have in which an argument is given."""
    for option in parameter.type.options if isinstance(parameter.type, Variant) else ():
        for own in option.parameters:
            for value in ("...",) if own.name == argument else _calls(own, argument):
                yield f"{option.name}({own.name} = {value})"
