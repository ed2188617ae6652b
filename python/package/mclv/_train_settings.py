"""The settings of training, for type checkers and editors.

The library defines them; a test compares this list with the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

import numpy as np

if TYPE_CHECKING:
    from ._model import RBM
    from ._sklearn import BernoulliRBM
    from ._training import TrainResult

__all__ = ["TrainSettings"]

#: A model, or something that holds one.
Model: TypeAlias = "RBM | TrainResult | BernoulliRBM"


class TrainSettings(TypedDict, total=False):
    """The settings of ``mclv.train``. None means the default.

    Examples
    --------
    >>> import mclv
    >>> common: mclv.TrainSettings = {"epochs": 2, "gradient": "pcd"}
    >>> digits = mclv.datasets.load("digits", split="train")
    >>> mclv.train(digits, 4, **common).settings["gradient"]
    'pcd'
    """

    preset: Literal["default", "paper"] | None
    """Set of defaults: `default` is the best we know, `paper` is the protocol of the paper's code.
    Default: default."""

    init: Literal["data", "paper"] | Model | None
    """Initial parameters: `data` computes biases and weight scale from the data, `paper` copies the
    paper's code. Default: data (paper: paper).

    Or a model to go on from: an `RBM`, a `TrainResult` or a fitted `BernoulliRBM`."""

    gradient: Literal["cd", "pcd", "lvs", "tempered", "ucd", "exact"] | None
    """Gradient estimator: `cd` (contrastive divergence), `pcd` (persistent contrastive divergence),
    `lvs` (Las Vegas tours), `tempered` (parallel tempering), `ucd` (unbiased contrastive
    divergence) or `exact` (enumeration, small models only). Default: lvs up to 64 hidden units,
    else pcd (paper: lvs)."""

    k: int | Literal["dynamic"] | None
    """Gibbs steps per update. Tours also accept `dynamic`: run until all tours return. Default: 3
    for pcd and for lvs with unfinished="carry", else 1 (paper: 1)."""

    n_chains: int | Literal["auto"] | None
    """Number of persistent chains, of tours per update, or of ladders (tempered); `auto`: one per
    row of the minibatch, or 32 ladders. Default: auto (paper: 128, or 32 ladders)."""

    n_rungs: int | None
    """Number of rungs of each ladder, the model's own included (tempered only). More rungs exchange
    more often, and cost more. Default: 10 up to 64 hidden units, else 20."""

    max_meeting: int | None
    """Gibbs steps after which two coupled chains that have not met are cut (ucd only). Each cut
    biases the gradient, and is counted. Default: 1000."""

    visible: Literal["sampled", "mean-field"] | None
    """Visible layer of the chain: `sampled` is a true Gibbs chain, `mean-field` uses probabilities
    as the paper's code does. Default: sampled (paper: mean-field)."""

    unfinished: Literal["drop", "keep", "carry"] | None
    """What to do with tours that have not returned: `drop` them (as in the paper), `keep` the steps
    made so far, or `carry` them over to the next update. Default: carry (paper: drop)."""

    starts: Literal["fresh", "weighted", "metropolis"] | None
    """How tours choose their starts: `fresh` evaluates the whole stopping set at every update,
    `weighted` draws from an older table and weights the tours, `metropolis` proposes from an older
    table and accepts or rejects (only with unfinished="carry"). Default: metropolis for carry, else
    weighted (paper: fresh)."""

    statistics: Literal["sampled", "mean-hidden", "mean-visible"] | None
    """What is averaged along tours: the sampled states (`sampled`), or with E[h|v] or E[v|h] in
    place of one layer. Default: mean-hidden (paper: sampled)."""

    samples_per_row: int | None
    """Number of hidden states drawn per row for the stopping set. Default: 1."""

    row_fraction: float | Literal["auto"] | None
    """Share of the training rows used for the stopping set; `auto`: 3 %, but at least 1,000 rows.
    Default: auto for carry, else 1 (paper: 1)."""

    redraw_every: int | None
    """Epochs until the stopping set is drawn again. Default: 1."""

    min_ess: float | None
    """Rebuild the table of starts when the effective sample size (or the acceptance rate) falls
    below this share. Default: 0.2."""

    target_completion: float | Literal["off"] | None
    """Adapt the size of the stopping set (rows and samples per row) until this share of tours
    returns; `off`: do not adapt it. Default: off."""

    max_states: int | None
    """Memory limit of an adaptive stopping set: the largest number of states drawn for it. Default:
    1000000."""

    max_set_cost: float | Literal["off"] | None
    """Time limit of an adaptive stopping set: states drawn and evaluated for it per Gibbs step of
    the tours; `off`: no limit. Default: off."""

    warm_up_epochs: int | None
    """Epochs of contrastive divergence before the chosen estimator takes over, with the same kind
    of visible layer. Default: 0 (paper: 15 before lvs)."""

    warm_up_k: int | None
    """Gibbs steps per update during the warm-up. Default: 1."""

    epochs: int | Literal["auto"] | None
    """Passes over the training rows; `auto`: 100, or more if 100 passes make fewer than 10,000
    updates. Default: auto (paper: 100)."""

    batch_size: int | None
    """Rows per update. Default: 128."""

    drop_last: bool | None
    """Skip the last minibatch of an epoch if it is incomplete. Default: false (paper: true)."""

    learning_rate: float | None
    """Initial learning rate. Default: 0.6 for lvs with unfinished="carry" up to 64 hidden units,
    else 0.4 (paper: 0.1); 0.01 with optimizer="adam"."""

    schedule: Literal["linear", "cosine", "plateau", "constant"] | None
    """How the learning rate changes: `linear` or `cosine` falls to zero, `plateau` falls every ten
    epochs (as in the paper), `constant` does not fall. Default: linear (paper: plateau)."""

    restarts: int | Sequence[int] | Literal["off"] | None
    """Epochs at which the schedule of the learning rate begins again, such as `100,150`; `off`: it
    does not begin again. Default: off."""

    optimizer: Literal["sgd", "adam"] | None
    """Optimiser. Default: sgd."""

    momentum: float | None
    """Momentum of sgd: the share of the previous step that is added to the next. Default: 0."""

    beta1: float | None
    """Decay rate of the mean gradient (adam only). Default: 0.9."""

    beta2: float | None
    """Decay rate of the mean squared gradient (adam only). Default: 0.999."""

    epsilon: float | None
    """Small constant that keeps steps finite (adam only). Default: 1e-8."""

    l1: float | None
    """L1 weight decay (absolute values). Default: 0."""

    l2: float | None
    """L2 weight decay (squares). Default: 0."""

    clip: float | Literal["off"] | None
    """Largest norm of a gradient; longer ones are scaled down; `off`: no limit. Default: off."""

    centred: bool | None
    """Centre the gradient: subtract the mean activity of each unit. Default: true (paper:
    false)."""

    offset_rate: float | None
    """Weight of one minibatch in the running mean of hidden activities that centring subtracts.
    Default: 0.01."""

    redraw_bits: bool | None
    """Resample the bits of grey data every epoch (with binarize="bernoulli"). Default: false."""

    eval_every: int | Literal["auto", "never"] | None
    """Epochs between two evaluations of the likelihood; `auto`: the initial model, epochs 1, 2, 5,
    10, …, and more if they fit into 10 % of the time; `never`: not even at the end. Default:
    auto."""

    final_se: float | Literal["auto"] | None
    """Standard error of log Z that the last evaluation aims for within a minute; `auto`: 0.02, or
    what 2 seconds or 10 % of the time allow. Default: auto."""

    patience: int | Literal["off"] | None
    """Stop after this number of evaluations without a better validation likelihood; `off`: do not
    stop early. Default: off."""

    validation_fraction: float | Literal["off"] | None
    """Share of the training rows to hold out for validation, instead of the data set's own
    validation rows; `off`: hold out none. Default: off."""

    snapshots: int | Sequence[int] | Literal["log", "off"] | None
    """Epochs after which a copy of the model is kept: a list such as `1,2,5,10` (0 is the initial
    model), `log` (1, 2, 5, 10, 20, 50, …) or `off`. Default: off."""

    seed: int | np.random.Generator | np.random.RandomState | None
    """Seed of all random numbers; the same seed gives the same result. Default: 0."""
