"""Class-level penalised clustering, which follows data and beliefs about classes (Preston et al. 2010)."""

from __future__ import annotations

import numbers
import threading
import warnings
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from linkwise._arrays import Floats, Ints
from linkwise._threads import Workers
from linkwise._validation import (
    as_vector,
    check_choice,
    check_number,
    check_whole_number,
    label_codes,
    refuse_dask,
    refuse_links_as_labels,
    validate_rows,
)
from linkwise.beliefs import ClassBeliefs, check_belief_array
from linkwise.exceptions import ApproximationWarning
from linkwise.metrics import belief_adherence, separability_of_counts
from linkwise.mixture.classes.criteria import class_criteria
from linkwise.mixture.classes.decisions import THRESHOLD
from linkwise.mixture.classes.e_step import block_sweeps_climb, pair_weights
from linkwise.mixture.classes.em import ClassRun, ClassStep, run_class_em
from linkwise.mixture.classes.omega import N_DRAWS, SMALLEST_ESS
from linkwise.mixture.classes.plan import class_start, half_start, make_plan
from linkwise.mixture.classes.report import ClassReport
from linkwise.mixture.classes.tables import (
    ClassSample,
    ClassSource,
    FittedRows,
    LabelledRows,
    fitted_rows,
)
from linkwise.mixture.em import best_run, needed_merit
from linkwise.mixture.gaussian.data import condition
from linkwise.mixture.gaussian.gaussians import COVARIANCE_TYPES, n_free_parameters
from linkwise.mixture.gaussian.shrinkage import check_shrinkage, pseudo_rows
from linkwise.mixture.prediction import FittedMixture

#: Weight of the beliefs in cBIC unless another is given.
_CRITERION_WEIGHT = 0.25


class CPPC(FittedMixture):
    r"""Redefine classes: a Gaussian mixture fitted to the data and to beliefs about the classes.

    Every row has a class label, and a matrix of beliefs C says of each two classes whether their rows belong
    together (> 0), apart (< 0) or neither (0); its diagonal says whether a class is whole (1), may be
    several (near 0) or should be split (< 0). Clusters maximise

    .. math:: \sum_{ik} q_{ik} (\log \pi_k + \log N(x_i; k) - \log q_{ik})
              + \lambda \sum_{i \neq j} C_{l_i l_j} \sum_k q_{ik} q_{jk}

    (Preston et al. 2010, Eq. 1-8, corrected), with atanh(C) / sqrt(N_a N_b) in place of C for classes a and b
    of these sizes if ``normalize="class"``, and the log prior of the covariances (``shrinkage``) added.

    The number of clusters is found unless it is given: a class is divided, and two classes are joined, where
    data and beliefs give reason to (``evidence_``). Where there is no reason, the classes stay as they are.

    Parameters
    ----------
    n_components, n_clusters : int or "auto", default="auto"
        Number of clusters, by either name. "auto" divides and joins classes as far as there is evidence.
    beliefs : ClassBeliefs, DataFrame or (L, L) array_like, optional
        The matrix C, symmetric, in [-1, 1]; an array in the order of the sorted classes. None keeps the
        classes: 1 on the diagonal and -1 elsewhere.
    confidence : float, default=1
        lambda, >= 0: how much beliefs weigh against the data. With ``normalize="class"`` a belief C states
        the certainty (1 + C) / 2, and adds lambda times its log-odds for each row of a class that stays
        whole: 0.2 nats for .1, 1.1 for .5, 2.9 for .9. A belief of ±1 is as good as hard; -1 on the diagonal
        splits the class in any case, and the data decide where.
    criterion_weight : float, optional
        Weight in [0, 1] of the beliefs in the criteria ``cbic`` and ``cbic_paper``. None is 0.25, and
        ``confidence`` with ``normalize="none"``, where the paper has one number for both.
    normalize : {"class", "none"}, default="class"
        ``none`` is the paper's objective. The weight of its beliefs grows with the number of rows and soon
        outweighs any data: on the paper's own example it leaves four clusters, however many are asked for.
    sweep : {"auto", "sequential", "block"}, default="auto"
        How an E-step updates the rows of a class: one after another or all at once. ``auto`` is ``block``
        where that is proved never to lower the objective, and ``sequential`` where a diagonal belief is
        negative (block sweeps would oscillate) or a pair weight 2 lambda C exceeds 2.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    mixing : {"ignore", "sampled"}, default="ignore"
        How the weights pi are updated: by the share of the rows (the paper's choice), or with the normaliser
        Omega of the label prior, estimated from 2000 sampled labellings, by conjugate gradients.
        The effective sample size of that estimate is in ``mixing_``; where it is too small, Omega is ignored
        with a warning.
    tol : float, default=1e-4
        EM stops when the objective per sample gained less than this over ten iterations. It has converged if
        it ends no higher after a small and after a large random disturbance.
    reg_covar : float, default=1e-6
        Added to the variances.
    shrinkage : float or "auto", default="auto"
        Pseudo-rows of each covariance, as in :class:`PPC`; 0 for none.
    init : {"evidence", "paper"}, default="evidence"
        How the classes are divided and joined at the start: where the likelihood and the beliefs gain most,
        or as the paper does, the widest split by k-means and the nearest merged.
    max_iter : int, default=1000
    n_init : int, default=1
        Number of starts; the one with the highest objective is kept. Every further start has a random half of
        the rows of each cluster of the first. With ``init="paper"`` and more clusters than classes every
        start splits classes at random.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads over starts, or over rows when there is one start. Results do not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : (L,) ndarray
        Sorted classes.
    beliefs_ : (L, L) ndarray
        The matrix C in that order.
    labels_ : (n_samples,) int64
        New cluster of every training row.
    responsibilities_ : (n_samples, K)
        Probabilities of the clusters for the training rows, in the type of X; they use the beliefs.
    contingency_ : (L, K) int64
        Rows of each class in each cluster.
    separability_ : (L, L) ndarray
        How much two classes share clusters: 1 always, -1 never; see :func:`linkwise.metrics.separability`.
    adherence_ : float
        G = sum (C - S)^2: 0 if the clusters follow the beliefs.
    criteria_ : dict
        ``bic``, ``icl``, ``cbic``, ``bic_paper``, ``cbic_paper``; lower is better. See
        :mod:`linkwise.mixture.classes.criteria`.
    n_occupied_ : int
        Clusters that are the most probable one of some row. The others are empty, and stay in all tables.
    evidence_ : list of dict
        The evidence for each split and merge that was considered to find the number of clusters: ``kind``,
        ``classes``, ``n_parts``, ``gain`` and ``data_gain`` (nats with and without the beliefs),
        ``stability``, ``n_rows``, ``accepted``, ``reason``. If the number was given, only merges of classes
        that are believed to be one.
    alternatives_ : dict
        ICL and number of clusters of the classes as they are, of each class divided on its own by BIC, and of
        the start; of samples of 2000 rows a class.
    shrinkage_ : float
    weights_, means_, covariances_, precisions_cholesky_ : ndarray
        As in GaussianMixture. An empty cluster keeps its last mean and covariance.
    lower_bound_ : float
        Objective above, per sample (less log Omega if ``mixing="sampled"``).
    lower_bounds_ : list of float
        The same for every iteration, and for the last E-step. It falls where a disturbance was tried.
    objective_, objectives_ : float, (n_iter + 1,) ndarray
        ``lower_bound_`` and ``lower_bounds_``, by the names that all estimators share.
    n_iter_ : int
        EM iterations, those after disturbances included.
    converged_ : bool
    n_decreases_ : int
        Iterations that lowered the objective by more than rounding: 0 with ``reg_covar=0``, unless block
        sweeps are forced.
    sweep_ : {"sequential", "block"}
        What ``sweep="auto"`` chose.
    mixing_ : dict
        With ``mixing="sampled"``: ``effective_sample_size`` at the fitted weights, its smallest value on the
        way, ``n_draws``, and ``n_ignored``, the number of estimates too poor to be used.
    n_features_in_ : int

    See Also
    --------
    PPC : links between single rows.
    linkwise.beliefs.ClassBeliefs : beliefs with names.
    linkwise.model_selection.sweep_components : choose the number of clusters.

    Notes
    -----
    Rows whose class is -1, NaN or None are unlabelled: they influence the clusters, but beliefs do not act on
    them.

    ``predict`` and ``predict_proba`` are for new rows, whose classes are not known. They use the fitted
    mixture alone, and on the training rows may differ from ``labels_`` and ``responsibilities_``.

    An E-step costs O(NK + L^2 K). It needs two tables of N x K numbers, in the type of X, and a third one
    while a disturbance is tried.

    The start depends on the scale of the features: standardise them or take principal components.

    References
    ----------
    D. R. Preston, C. E. Brodley, R. Khardon, D. Sulla-Menashe and M. Friedl, Redefining class definitions
    using constraint-based clustering, KDD 2010.

    Examples
    --------
    One class of wine was given two names. Believing that they may be one is enough to merge them:

    >>> import numpy as np
    >>> from linkwise import CPPC
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> named = np.where((y == 1) & (np.arange(len(y)) % 2 == 0), 3, y)
    >>> beliefs = 2.0 * np.eye(4) - 1.0
    >>> beliefs[1, 3] = beliefs[3, 1] = 1.0
    >>> model = CPPC(3, beliefs=beliefs, covariance_type="tied").fit(X, named)
    >>> bool(model.contingency_[1].argmax() == model.contingency_[3].argmax())
    True
    >>> bool(model.separability_[1, 3] > 0.8 > -0.8 > model.separability_[0, 1])
    True
    """

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        n_clusters: int | str | None = None,
        beliefs: Any = None,
        confidence: float = 1.0,
        criterion_weight: float | None = None,
        normalize: str = "class",
        sweep: str = "auto",
        covariance_type: str = "full",
        mixing: str = "ignore",
        tol: float = 1e-4,
        reg_covar: float = 1e-6,
        shrinkage: float | str = "auto",
        init: str = "evidence",
        max_iter: int = 1000,
        n_init: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.beliefs = beliefs
        self.confidence = confidence
        self.criterion_weight = criterion_weight
        self.normalize = normalize
        self.sweep = sweep
        self.covariance_type = covariance_type
        self.mixing = mixing
        self.tol = tol
        self.reg_covar = reg_covar
        self.shrinkage = shrinkage
        self.init = init
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # The number of clusters may be left to the data, so it is read from what was fitted.

    @property
    def _n_clusters(self) -> int:
        return len(self.means_)

    def _wanted_clusters(self) -> int | None:
        """Return the number of clusters by either of its names; None if it is to be found."""
        given = [value for value in (self.n_components, self.n_clusters) if value is not None]
        if any(isinstance(value, str) for value in given):
            for value in given:
                check_choice(value, "n_clusters", ("auto",))
            return None
        return super()._wanted_clusters()

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find clusters; y (n_samples,) are the present classes: -1, NaN or None where unlabelled."""
        self.fit_predict(X, y)
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.int64]:
        """Find clusters as :meth:`fit` does, and return ``labels_`` of the training rows."""
        refuse_dask(X)
        data: NDArray[np.floating] = validate_rows(
            self, X, dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        criterion_weight = self._check_parameters(len(data))
        codes, classes = _check_labels(y, len(data))
        points, for_starts = condition(data, self.reg_covar, getattr(self, "feature_names_in_", None))
        source = LabelledRows(points, for_starts, codes, len(classes))
        self._fit_classes(source, classes, criterion_weight)
        return self.labels_

    def _fit_classes(self, source: ClassSource, classes: NDArray[Any], criterion_weight: float) -> None:
        """Fit to rows of these sorted classes, wherever they are."""
        beliefs = _check_beliefs(self.beliefs, classes)
        weights = pair_weights(beliefs, self.confidence, source.sizes, self.normalize)
        block = block_sweeps_climb(weights) if self.sweep == "auto" else self.sweep == "block"
        self.shrinkage_ = pseudo_rows(self.shrinkage, source.n_features)
        prior = source.prior(self.shrinkage_, self.reg_covar)
        random_state = check_random_state(self.random_state)
        sample = source.sample
        # A sample has fewer pairs than rows: each counts as much more as there are pairs of rows for it.
        share = np.sqrt(source.sizes / sample.sizes)
        labels = self._plan(sample, classes, beliefs, weights * np.outer(share, share), random_state)
        n_components = int(labels.max()) + 1
        starts: list[tuple[Ints, int]] = []
        for number in range(self.n_init):
            if number > 0:
                if self.init == "paper" and n_components > len(classes):
                    labels = class_start(sample.X, sample.codes, n_components, random_state)
                else:
                    labels = half_start(sample.X, starts[0][0], random_state)
            starts.append((labels, int(random_state.randint(2**31))))
        n_jobs = effective_n_jobs(self.n_jobs)
        lock = threading.Lock()
        leading: list[ClassRun] = []
        # Threads go to the restarts if there are several, otherwise to the blocks of rows.
        workers = Workers(n_jobs if len(starts) == 1 else 1)

        def run(start: tuple[Ints, int]) -> ClassRun:
            labels, seed = start
            step = ClassStep(
                source.tables(labels, n_components, workers), weights, self.covariance_type,
                self.reg_covar, not block, self.mixing, seed, prior,
            )  # fmt: skip
            result = run_class_em(
                step, tol=self.tol, max_iter=self.max_iter, rng=np.random.default_rng(seed),
                verbose=self.verbose,
            )  # fmt: skip
            with lock:
                _keep_leader(leading, result)
            return result

        best = best_run(
            run, starts, tol=self.tol, max_iter=self.max_iter,
            n_jobs=n_jobs if len(starts) > 1 else None, verbose=self.verbose,
        )  # fmt: skip
        self.classes_, self.beliefs_, self.sweep_ = classes, beliefs, "block" if block else "sequential"
        self._store(best)
        found = self._store_rows(source, best.prob)
        self._store_measures(found, source.n_features, criterion_weight)
        self._warn(best)

    def _plan(
        self,
        sample: ClassSample,
        classes: NDArray[Any],
        beliefs: Floats,
        weights: Floats,
        random_state: np.random.RandomState,
    ) -> Ints:
        """Choose the first start (n,), -1 where unlabelled, and store the evidence for it."""
        wanted = self._wanted_clusters()
        self.evidence_: list[dict[str, Any]] = []
        self.alternatives_: dict[str, dict[str, float]] = {}
        if self.init == "paper":
            return class_start(sample.X, sample.codes, wanted or len(classes), random_state)
        plan = make_plan(
            sample.X, sample.codes, beliefs, weights, wanted,
            covariance_type=self.covariance_type, reg_covar=self.reg_covar, shrinkage=self.shrinkage_,
            random_state=random_state,
        )  # fmt: skip
        # Names that are dates or bytes are stored as text, as a saved model needs them.
        names = [name if isinstance(name, str | int | float) else str(name) for name in classes.tolist()]
        for one in plan.evidence:
            self.evidence_.append(one._asdict() | {"classes": [names[code] for code in one.classes]})
        self.alternatives_ = plan.alternatives
        return plan.labels

    def _check_parameters(self, n_samples: int) -> float:
        """Refuse bad parameters; return the weight of the beliefs in the criteria."""
        for name in ("max_iter", "n_init"):
            check_whole_number(getattr(self, name), name)
        for name in ("confidence", "tol", "reg_covar"):
            check_number(getattr(self, name), name)
        for name, allowed in (
            ("normalize", ("class", "none")),
            ("sweep", ("auto", "sequential", "block")),
            ("covariance_type", COVARIANCE_TYPES),
            ("mixing", ("ignore", "sampled")),
            ("init", ("evidence", "paper")),
        ):
            check_choice(getattr(self, name), name, allowed)
        n_components = self._wanted_clusters()
        if n_components is not None and n_samples < n_components:
            raise ValueError(
                f"{n_components} components cannot be fitted to n_samples={n_samples}; "
                "use at most as many components as rows"
            )
        check_shrinkage(self.shrinkage)
        given = self.criterion_weight
        by_default = self.confidence if self.normalize == "none" else _CRITERION_WEIGHT
        weight = by_default if given is None else given
        if not isinstance(weight, numbers.Real) or not 0.0 <= float(weight) <= 1.0:
            raise ValueError(
                f"criterion_weight must lie between 0 and 1, got {given!r} with confidence="
                f"{self.confidence!r}; a confidence above 1 needs a criterion_weight of its own: pass one"
            )
        return float(weight)

    def _store(self, run: ClassRun) -> None:
        for name, value in run.parameters.fitted_attributes().items():
            setattr(self, name, value)
        self.lower_bounds_ = run.lower_bounds
        self.lower_bound_ = run.lower_bounds[-1]
        self.n_iter_ = len(run.lower_bounds) - 1
        self.converged_ = run.converged and run.settled
        self.n_decreases_ = run.n_decreases
        self.__dict__.pop("mixing_", None)  # of an earlier fit
        if run.mixing_steps:
            sizes = [step.effective_sample_size for step in run.mixing_steps]
            self.mixing_ = {
                "effective_sample_size": sizes[-1],
                "smallest_effective_sample_size": min(sizes),
                "n_draws": N_DRAWS,
                "n_ignored": sum(not step.usable for step in run.mixing_steps),
            }

    def _store_rows(self, source: Any, prob: Any) -> FittedRows:
        """Store labels and probabilities of the rows; return what the measures need of them."""
        assert isinstance(source, LabelledRows)
        order = source.rows.order
        self.responsibilities_ = np.empty((len(order), len(self.means_)), dtype=prob.dtype)
        self.responsibilities_[order] = prob[:, : len(self.means_)]
        self.labels_ = self.responsibilities_.argmax(axis=1).astype(np.int64)
        return fitted_rows(
            source.points, source.codes, self.responsibilities_, self._gaussians, np.log(self.weights_),
            len(self.classes_),
        )  # fmt: skip

    def _store_measures(self, found: FittedRows, n_features: int, criterion_weight: float) -> None:
        n_classes, n_components = len(self.classes_), len(self.means_)
        self.contingency_ = found.contingency[:n_classes]
        self.n_occupied_ = int(found.contingency.any(axis=0).sum())
        self.separability_ = separability_of_counts(self.contingency_)
        self.adherence_ = belief_adherence(self.beliefs_, self.separability_)
        self.criteria_ = class_criteria(
            found.likelihoods,
            n_components=n_components,
            n_parameters=n_free_parameters(n_components, n_features, self.covariance_type),
            n_labelled=int(self.contingency_.sum()),
            adherence=self.adherence_ / (4.0 * n_classes**2),
            criterion_weight=criterion_weight,
        )

    def _warn(self, run: ClassRun) -> None:
        if not run.settled:
            warnings.warn(
                f"the last E-step did not settle: {self.sweep_} sweeps still change the probabilities. "
                'Use sweep="auto" or "sequential", a smaller confidence or normalize="class".',
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.n_occupied_ < len(self.means_):
            warnings.warn(
                f"{len(self.means_) - self.n_occupied_} of {len(self.means_)} clusters are empty "
                "(n_occupied_, contingency_). Use fewer components, or weigh the data more by a smaller "
                "confidence.",
                UserWarning,
                stacklevel=4,
            )
        if run.mixing_steps and self.mixing_["n_ignored"]:
            warnings.warn(
                f"in {self.mixing_['n_ignored']} of {len(run.mixing_steps)} M-steps fewer than "
                f"{SMALLEST_ESS:g} of {N_DRAWS} sampled labellings counted, and Omega was ignored (mixing_). "
                'Use a smaller confidence, normalize="class" or mixing="ignore".',
                ApproximationWarning,
                stacklevel=4,
            )

    def report(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, *, threshold: float = THRESHOLD
    ) -> ClassReport:
        """Report which classes were split, merged and kept, with counts, separability and beliefs.

        With the training data X and y the report says which belief would reverse a decision. A cluster holds
        a class if it has at least the share ``threshold`` of it.
        """
        return ClassReport.from_estimator(self, X, y, threshold=threshold)


def _check_labels(y: Any, n_samples: int) -> tuple[Ints, NDArray[Any]]:
    """Return the class number of each row (n,), -1 where unlabelled, and the sorted classes (L,)."""
    if y is None:
        raise ValueError(
            "CPPC requires y to be passed, but the target y is None: pass the present class of each row"
        )
    refuse_links_as_labels(y)
    values = as_vector(y, "y")
    if len(values) != n_samples:
        raise ValueError(f"y has {len(values)} labels, but X has {n_samples} rows; pass one label per row")
    codes, classes = label_codes(values)
    if not len(classes):
        raise ValueError("y has no labelled row (all are -1, NaN or None); label some, or use PPC")
    if classes.dtype.kind == "f":
        check_classification_targets(values[codes >= 0])
    return codes, classes


def _check_beliefs(beliefs: Any, classes: NDArray[Any]) -> Floats:
    """Return the matrix C (L, L) in the order of the classes; None keeps the classes as they are."""
    if beliefs is None:
        return 2.0 * np.eye(len(classes)) - 1.0
    if isinstance(beliefs, ClassBeliefs) or hasattr(beliefs, "columns"):
        return ClassBeliefs(beliefs).for_classes(classes.tolist())
    return check_belief_array(beliefs, len(classes))


def _keep_leader(leading: list[ClassRun], run: ClassRun) -> None:
    """Free the tables of runs that are behind; equal ones are kept, because ``best_run`` takes the first."""
    leading.append(run)
    needed = needed_merit(leading)
    for other in leading:
        if other.merit < needed:
            other.prob = None
