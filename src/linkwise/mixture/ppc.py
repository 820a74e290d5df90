"""Penalized probabilistic clustering (Lu & Leen 2007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats
from linkwise._validation import align_rows, check_whole_number
from linkwise.constraints import Constraints
from linkwise.mixture.linked import LinkedGaussianMixture
from linkwise.mixture.links.noise import LinkNoise, check_learn_noise


class DoubtfulAnswer(NamedTuple):
    """An answer about a pair that may be wrong; a list of them makes a table: ``pandas.DataFrame(answers)``.

    Attributes
    ----------
    i, j : int or id
        The pair: row numbers, or ids if the links have an index.
    kind : {"must_link", "cannot_link"}
        What was answered.
    source : str
        Who answered; "" if nobody is named.
    probability : float
        Probability that the answer is wrong, given the data and all other answers.
    """

    i: Any
    j: Any
    kind: str
    source: str
    probability: float


class PPC(LinkedGaussianMixture):
    r"""Gaussian mixture with a prior that favours labels which keep the links.

    The model is (Lu & Leen 2007, Eq. 2.4, in penalty form)

    .. math:: P(X, Z) = \frac{1}{\Omega} \prod_i \pi_{z_i} N(x_i; \mu_{z_i}, \Sigma_{z_i})
              \prod_{(i,j)\ \mathrm{broken}} e^{-2 |W_{ij}|}

    and Omega makes the prior of the labels sum to one. Links may be soft, hard, or both. Without links and
    with ``shrinkage=0`` it is scikit-learn's GaussianMixture.

    Parameters
    ----------
    n_components : int, optional
        Number of clusters; 1 if neither this nor ``n_clusters`` is given.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    inference : str or engine, default="auto"
        How the labels of linked rows are inferred: a method of :func:`linkwise.inference.marginals`.
    inference_options : dict, optional
        Options of that method, for example ``{"max_iter": 200, "damping": 0.5}``.
    mixing : {"exact", "disjoint", "grid", "ignore", "fixed"}, default="exact"
        How the weights pi are updated. ``exact`` maximises the penalised likelihood. ``disjoint`` assumes
        that no two links share a point, or a chunklet of hard must-links (Shental et al. 2003). ``grid``
        searches multiples of 0.01 (the paper; up to four components). ``ignore`` leaves Omega out, which is
        exact EM of the joint likelihood of data and links: right when pairs were chosen at random and every
        answer was kept, badly biased when only must-links were kept. ``fixed`` keeps ``weights_init`` (equal
        weights if None).
    tol : float, default=1e-3
        EM stops when the objective per sample changes by less. With links, no component may move any more
        either: its weight by less than this, its mean by less than this many standard deviations, its
        covariance by less than this share of itself. A few linked rows can still change the solution while
        the mean over all rows hardly changes.
    reg_covar : float, default=1e-6
        Added to the variances.
    shrinkage : float or "auto", default="auto"
        Number of pseudo-rows that every component has beside its own; 0 switches them off. Fifteen of sixteen
        are spread like all components together (the harmonic mean of their covariances), the others like the
        data. They are a prior of the covariances, in the form of an inverse Wishart density, that does not
        depend on the units, and part of the objective. "auto" takes as many as a covariance has entries, D (D
        + 1) / 2, but at most 55: few rows per parameter shrink much, many hardly. With more than ten columns
        and at least ten rows for each, "full" and "tied" covariances have 5.5 pseudo-rows for each column,
        and those that are spread like the data have its correlations, too; otherwise only its variances.
        "tied" covariances are pooled already, and only one row of sixteen acts on them.
    linked_weight : float or "auto", default="auto"
        What a row that carries links counts in EM, where a row without counts one; 1 is the model above.
        Weights are scaled so that all rows together count ``n_samples``. Clusters are rarely Gaussian, and
        then the likelihood of many free rows can lead EM away from clusters that keep the links, though it
        started there. "auto" runs EM with 1, and once more from the start of the best run with 2 n / (K (D +
        1)), at least 1 and at most 10, for n linked rows, K Gaussians and D columns. The second run is kept
        if it predicts the links better (see ``n_init``) by more than 3 nats. It is left out with
        ``learn_noise``, and where all rows carry links.
    max_iter : int, default=200
    n_init : int, default=2
        Number of starts. Without links the run with the highest objective is kept. With links it is the one
        whose mixture predicts the links best: log P(links | X, parameters), plus the objective per sample to
        break ties. The likelihood of all rows would outweigh the links, and the highest one is often
        spurious. With ``learn_noise`` runs differ in their error rates, and the objective decides. Engines
        without a partition function (Gibbs) are compared by that of ``auto`` at the parameters found.
    init_params : {"constraints", "kmeans", "random"}, default="constraints"
        With links, ``constraints`` takes these starts in turn: k-means; k-means in the directions in which
        cannot-linked rows differ more than must-linked ones; k-means; the means of must-linked groups that
        lie far apart. In all but the third the links then act first: in six EM steps the densities of linked
        rows are raised to a power that grows from .1 to 1 and free rows count a tenth, so that linked rows
        get their labels first and the components are fitted to them. This is left out if soft must-links are
        more than twenty times as many as cannot-links (neighbours in an image), or if it empties a cluster.
        With several components per cluster, the links decide which pieces of a k-means make up a cluster.
        ``kmeans`` and ``random`` (each component at a random row) do not use the links.
    weights_init, means_init, precisions_init : array_like, optional
        Parts of the start, as in GaussianMixture.
    decode : {"marginal", "map"}, default="marginal"
        Labels of the training rows: most probable one by one, or most probable together. Rows whose labels
        one by one would break a hard link are decoded together in any case.
    learn_noise : {False, True, "kind", "source"}, default=False
        Learn how often soft links are wrong, one rate for all, one for each kind or one for each source
        (annotator, laboratory, ...), and weight them by it. Sources are those of
        ``Constraints(..., source=names)``; where several judged a pair, all their answers count. The
        certainties in the constraints are then only a start, and for sources also a prior that counts like
        two answers. Links are treated as observations (as with ``mixing="ignore"``).
    n_clusters : int, optional
        Another name of ``n_components``, for use beside other clusterers. Both may only be given if equal;
        ``set_params`` of one clears the other.
    components_per_cluster : int, default=1
        Gaussians per cluster; links act on the cluster, so that clusters need not be Gaussian. Only links
        tell which Gaussians make up a cluster: without, or with few, one component is the safer choice.
    warm_start : bool, default=False
        Start from the last fit. If its components, clusters, features or covariance type are others, a
        warning says so and EM starts afresh.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads over starts, or over rows when there is one start. Results do not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    weights_, means_, covariances_, precisions_cholesky_ : ndarray
        As in GaussianMixture; with several components per cluster those of a cluster stand side by side.
    labels_ : (n_samples,) int64
        Labels of the training rows, using the links.
    responsibilities_ : (n_samples, n_components)
        Constrained posterior of the training rows; only stored when links were given.
    violations_ : (n_pairs,) bool
        Whether ``labels_`` break each link, in the order of ``constraints.pairs``; empty without links.
    violation_probability_ : (n_pairs,)
        Posterior probability that each link is violated, in the order of ``constraints.pairs``. Sort by it to
        find links that contradict the data and the other links.
    n_occupied_ : int
        Clusters that are the most probable one of some row and whose weight is not 0 (1e-6 or more). If links
        were given and clusters of the start are empty, a warning says why.
    noise_ : float, (2,) ndarray or dict
        Learned share of wrong links, if ``learn_noise``; for "kind" that of must-links and of cannot-links,
        for "source" a dict from source to rate. NaN for those without soft links.
    noise_interval_ : (2,) ndarray, (2, 2) ndarray or dict
        Lowest and highest plausible rate: 90 % of the posterior of each rate, from a flat prior, or the one
        above. The clusters count as known, so the interval is somewhat too short where they are doubtful.
    answer_error_probability_ : (n_answers,) ndarray
        Probability that each of ``constraints.judgements`` is wrong, if ``learn_noise``.
    linked_weight_ : float
        What a linked row counts in the run that was kept, see ``linked_weight``.
    shrinkage_ : float
        Pseudo-rows of every component, see ``shrinkage``.
    lower_bound_ : float
        Penalised log-likelihood log sum_Z P(X, Z) g(Z) - log Omega of the last iteration, plus the log prior
        of the covariances, divided by n_samples (without log Omega for ``mixing="ignore"``; the parts of free
        and of linked rows have the weights of ``linked_weight``); approximate
        where inference is approximate. For engines without a partition function (Gibbs) it is computed once,
        at the fitted parameters, by ``auto``; ``inference_["details"]["objective"]`` says so.
    lower_bounds_ : list of float
        The same for every iteration; NaN for engines without a partition function.
    objective_, objectives_ : float, (n_iter,) ndarray
        ``lower_bound_`` and ``lower_bounds_``, by the names that all estimators share.
    n_iter_ : int
    converged_ : bool
    n_decreases_ : int
        Iterations that lowered the objective: 0 for exact inference and ``reg_covar=0``.
    inference_ : dict
        How the last E-step was done: ``method`` (engines joined by "+"), ``exact``, ``converged``,
        ``n_iter``, ``parts`` (rows by engine) and ``details``. With links, details are ``prior_exact``,
        whether log Omega was exact; ``objective``, the engine whose partition function is in
        ``lower_bound_``; and ``reason``, what was too expensive because of dense cannot-links: None, or the
        posterior (mean field from then on), the prior (log Omega then keeps its value), or both.
    classes_, cluster_names_, contingency_ : (L,), (K,) and (L, K) ndarrays
        If the links were built from labels (``Constraints.from_labels``): the classes, a name of each
        cluster after the commonest class of its labelled rows, and the labelled rows of each class in each
        cluster. ``cluster_names_[labels_]`` names all rows.
    split_classes_, shared_clusters_ : dict
        Classes with labelled rows in several clusters, and clusters with those of several classes.
    n_features_in_ : int

    See Also
    --------
    ConstrainedEM : the same idea with hard links and two sampling assumptions.

    Notes
    -----
    ``predict`` uses the fitted mixture alone; on the training rows it may differ from ``labels_`` and break
    links.

    References
    ----------
    Z. Lu and T. K. Leen, Penalized probabilistic clustering, Neural Computation 19, 2007. The printed Omega
    has its exponents swapped and the printed mean field lacks a factor 2; see the page of errata.

    Examples
    --------
    >>> from linkwise import PPC, Constraints
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Constraints.sample(y, 40, certainty=0.95, random_state=0)
    >>> model = PPC(3, n_init=5, random_state=0).fit(X, constraints=links)
    >>> float((model.violation_probability_ > 0.5).mean())
    0.0
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_clusters: int | None = None,
        covariance_type: str = "full",
        inference: str | Callable[..., Any] = "auto",
        inference_options: dict[str, Any] | None = None,
        mixing: str = "exact",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        shrinkage: float | str = "auto",
        linked_weight: float | str = "auto",
        max_iter: int = 200,
        n_init: int = 2,
        init_params: str = "constraints",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        decode: str = "marginal",
        learn_noise: bool | str = False,
        components_per_cluster: int = 1,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.covariance_type = covariance_type
        self.inference = inference
        self.inference_options = inference_options
        self.mixing = mixing
        self.tol = tol
        self.reg_covar = reg_covar
        self.shrinkage = shrinkage
        self.linked_weight = linked_weight
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.decode = decode
        self.learn_noise = learn_noise
        self.components_per_cluster = components_per_cluster
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _n_gaussians(self) -> int:
        return int(self._n_clusters * self.components_per_cluster)

    def _check_parameters(self, n_samples: int) -> None:
        check_whole_number(self.components_per_cluster, "components_per_cluster")
        check_learn_noise(self.learn_noise)
        super()._check_parameters(n_samples)

    def _link_noise(self, constraints: Constraints | None) -> LinkNoise | None:
        learn_noise = check_learn_noise(self.learn_noise)
        if learn_noise is False:
            return None
        return LinkNoise.of(learn_noise, Constraints(0) if constraints is None else constraints)

    def _store_noise(self, noise: LinkNoise | None, coupling: Floats, agreement: Floats) -> None:
        for name in ("noise_", "noise_interval_", "answer_error_probability_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if noise is None:
            return
        self.answer_error_probability_ = noise.wrong_probability(agreement)
        rates = noise.rates(coupling)
        intervals = noise.intervals(rates, self.answer_error_probability_)
        if noise.kind == "source":
            self.noise_: Any = dict(zip(noise.names, rates.tolist(), strict=True))
            self.noise_interval_: Any = dict(zip(noise.names, intervals, strict=True))
        elif noise.kind == "kind":
            self.noise_, self.noise_interval_ = rates, intervals
        else:
            self.noise_, self.noise_interval_ = float(rates[0]), intervals[0]

    def _in_order_of(self, X: Any, constraints: Constraints) -> Constraints:
        """Links in the order of the rows of X."""
        aligned: Constraints = align_rows(X, constraints)[1]
        return aligned

    def doubtful_answers(
        self, X: Any, constraints: Constraints, *, n_answers: int = 10
    ) -> list[DoubtfulAnswer]:
        """List the answers that are most probably wrong: the pairs to ask about again.

        Parameters
        ----------
        X : array_like or DataFrame
            The rows of the fit; they tell the order of rows if the links have ids.
        constraints : Constraints
            The links of the fit.
        n_answers : int, default=10
            Length of the list if there are as many. Without ``learn_noise`` the answers are the links.

        Returns
        -------
        list of DoubtfulAnswer
            The most doubtful first.

        Examples
        --------
        >>> from linkwise import PPC, Constraints
        >>> X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
        >>> links = Constraints(
        ...     8, must_link=[(0, 1), (2, 3), (4, 5), (3, 4)], cannot_link=[(0, 4)], certainty=0.8,
        ...     source=["Ann", "Ann", "Ann", "Bob", "Bob"],
        ... )
        >>> model = PPC(2, covariance_type="tied", learn_noise="source", random_state=0)
        >>> model = model.fit(X, constraints=links)
        >>> model.doubtful_answers(X, links, n_answers=1)[0][:4]
        (3, 4, 'must_link', 'Bob')
        """
        check_is_fitted(self)
        n_answers = check_whole_number(n_answers, "n_answers")
        aligned = self._in_order_of(X, constraints)
        said = aligned.judgements
        if hasattr(self, "answer_error_probability_"):
            pairs, weights, doubt = said.pairs, said.weights, self.answer_error_probability_
            source = said.source
        else:
            pairs, weights, source = aligned.pairs, aligned.weights, None
            doubt = getattr(self, "violation_probability_", np.empty(0))
        if len(doubt) != len(pairs):
            raise ValueError(
                f"the model was fitted with {len(doubt)} answers, but these links have {len(pairs)}; pass "
                "the links of the fit"
            )
        worst = np.argsort(-doubt, kind="stable")[:n_answers].tolist()
        ends = pairs[worst] if aligned.index is None else aligned.index[pairs[worst]]
        return [
            DoubtfulAnswer(
                first,
                second,
                "must_link" if weights[row] > 0 else "cannot_link",
                "" if source is None else str(source[row]),
                float(doubt[row]),
            )
            for row, (first, second) in zip(worst, ends.tolist(), strict=True)
        ]
