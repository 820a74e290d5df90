"""What ignoring or approximating the normaliser of the links costs (Shental et al. 2003, section 2.2)."""

from __future__ import annotations

import warnings

from experiments.em.teachers import teachers_links
from experiments.framework.experiment import Experiment, Size
from experiments.framework.starts import CONVERGED, RIDGE
from experiments.framework.summary import Row
from experiments.leaderboard.data import load_set
from linkwise.constraints import Constraints
from linkwise.metrics import pairwise_f1
from linkwise.mixture.constrained_em import ConstrainedEM

__all__ = ["EXPERIMENTS", "normaliser"]

#: Column of the table and value of ``mixing``.
MIXING = {"exact": "exact", "pseudo-likelihood": "disjoint", "ignored": "ignore"}


def normaliser(draw: int, data: str, share: float, kinds: str) -> list[Row]:
    """Pairwise F of constrained EM with three treatments of Z in the M-step of the mixing weights.

    Teachers sort ten points each, as in :func:`experiments.em.teachers.teachers_links`; all three start
    from the same labels, which ignore the links, and run to the maximum, as in
    :func:`experiments.em.teachers.teachers`.

    Parameters
    ----------
    draw : int
    data : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    share : float
        Share of the points that teachers see.
    kinds : {"both", "cannot"}
        With "cannot" the must-links of the teachers are left out. A likelihood without Z is that of the data
        and of all answers, which suits teachers; it does not suit links of which one kind was kept. Not for
        protein116, whose six classes make a fit with so many cannot-links take minutes.

    Returns
    -------
    list of dict
        "f" on all rows, and "weights", the largest mixing weight.

    Examples
    --------
    >>> from experiments.em.weights import normaliser
    >>> [row["method"] for row in normaliser(0, "iris", 0.15, "both")]
    ['exact', 'pseudo-likelihood', 'ignored']
    """
    X, y = load_set(data, n_rows=400)
    links = teachers_links(y, share, 10, draw)
    if kinds == "cannot":
        links = Constraints(len(y), cannot_link=links.cannot_link)
    ridge = RIDGE * float(X.var(axis=0).mean())
    rows = []
    for name, mixing in MIXING.items():
        model = ConstrainedEM(y.max() + 1, mixing=mixing, reg_covar=ridge, random_state=draw, **CONVERGED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # approximate components are part of the protocol
            labels = model.fit(X, constraints=links).labels_
        rows.append({"method": name, "f": pairwise_f1(y, labels), "weights": float(model.weights_.max())})
    return rows


def _settings(*sets: str) -> list[Row]:
    return [
        {"data": name, "share": share, "kinds": kinds}
        for kinds in ("both", "cannot")
        for name in sets
        for share in (0.15, 0.3)
        if not (kinds == "cannot" and name == "protein116")
    ]


EXPERIMENTS = (
    Experiment(
        "normaliser",
        "Pairwise F of constrained EM when Z is exact, approximated or ignored",
        "constrained EM, section 2.2; CPPC, section 3",
        normaliser,
        quick=Size(_settings("iris", "wine"), 2),
        full=Size(_settings("iris", "wine", "balance_scale", "ionosphere", "protein116"), 20),
        measures=("f", "weights"),
        reference="exact",
    ),
)
