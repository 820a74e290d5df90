"""LinkedClustering: one estimator that finds out by the links which clustering fits the data."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from linkwise._compat import CallbackSupportMixin, fit_task, with_callbacks
from linkwise._running import warn_once
from linkwise._validation import (
    align_rows,
    as_generator,
    check_choice,
    check_constraints,
    check_whole_number,
    counted,
    refuse_dask,
    validate_rows,
)
from linkwise.auto.candidates import EFFORTS, Candidate, own_candidates, scouts, usable
from linkwise.auto.choice import (
    Gain,
    agreement,
    doubted_links,
    held_out_kept,
    paired_gain,
    right_log_odds,
    share_without_links,
    vote_weights,
)
from linkwise.auto.consensus import Consensus, Plain, consensus_labels, with_plain
from linkwise.auto.search import (
    Trial,
    enough_folds,
    fit_members,
    rows_to_choose_on,
    try_candidates,
)
from linkwise.auto.shape import gaussian_nats, n_clusters_by_links, n_clusters_by_shape, silhouettes
from linkwise.constraints import Constraints
from linkwise.constraints.groups import pair_codes
from linkwise.constraints.naming import NamedClustersMixin
from linkwise.exceptions import InfeasibleConstraints
from linkwise.model_selection.held_out import LinkFold, Questions, link_folds

__all__ = ["CandidateRecord", "LinkedClustering"]

#: Numbers of clusters that "auto" tries.
_MOST_CLUSTERS = 10
#: Fewer links cannot choose.
_FEWEST_LINKS = 5
#: Candidates with a smaller vote are left out.
_LEAST_VOTE = 0.01


class CandidateRecord(NamedTuple):
    """A candidate that was tried; a list of them makes a table: ``pandas.DataFrame(model.selection_)``.

    Attributes
    ----------
    candidate : str
    uses_links : bool
    n_clusters : int
    agreement : float
        Share of the links left out of its fits that it keeps; NaN if there were none to check.
    error : float
        Standard error of the agreement.
    weight : float
        Its vote in the result.
    chosen : bool
    reason : str
        Why it was chosen, why its vote is larger, or why it failed.
    """

    candidate: str
    uses_links: bool
    n_clusters: int
    agreement: float
    error: float
    weight: float
    chosen: bool
    reason: str


class LinkedClustering(NamedClustersMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Compare clustering methods on links that were left out of their fit; the best ones vote.

    It is not known beforehand whether clusters are blobs, rings or neighbours in a graph, nor whether the
    links help. Every candidate, with links and without, is fitted without a fifth of the links and compared
    with these; after five such folds every link was held out once. Candidates then vote: the more held-out
    links a candidate kept, the larger its vote; one that does not use the links must keep more to count as
    much. Mixtures have a larger vote where the rows speak for one Gaussian per cluster: where K of them
    foretell left-out rows better than 2 K. Rows that most votes put together share a cluster. Hard links
    are never broken.

    The clustering without links, by vote of the candidates that use none, has a small share of the votes as
    well, which matters where links are few (``share_without_links_``).

    Soft links may be wrong. Fits that did not see a link vote on it, too: in the final fits a link that they
    contradict is believed less, and one that they confirm more (``violation_probability_``). If all rows were
    compared, the fits that did not see a fold share the vote of their candidate with the final one; under
    hard links alone they do so where these are fewer than the rows they link.

    Parameters
    ----------
    n_clusters : int, list of int or "auto", default="auto"
        Of several numbers the links choose the one that keeps most held-out links. Where they leave several
        open, and without links, the one with the highest silhouette of K-means is taken. "auto": with labels
        the number of classes, if they are of two or more, else chosen from up to ten.
    candidates : "auto" or list, default="auto"
        Names of candidates, as ``selection_`` lists them, clusterers with ``n_clusters`` or ``n_components``
        (also of scikit-learn), or pairs (name, clusterer).
    cv : int, default=5
        Folds of links. Of more than a hundred hard links fewer folds are asked for, at least two, once they
        have a hundred answers; soft links are all asked for, because each may be wrong.
    effort : {"quick", "balanced", "thorough"}, default="balanced"
        ``quick`` compares nine candidates on at most 500 rows, ``balanced`` all on 1000, ``thorough`` on
        3000. Up to 5, 12 or 18 of them vote.
    random_state : int, RandomState, Generator or None
    n_jobs : int or None
        Threads over fits. Results do not depend on it.
    verbose : int, default=0
        1 prints the table of candidates.

    Attributes
    ----------
    labels_ : (n_samples,) int64
    n_clusters_ : int
    best_estimator_ : estimator or Consensus
        What gave the labels: a fitted candidate, or several with their votes.
    selection_ : list of CandidateRecord
        The candidates, the share of held-out links that each keeps, and its vote. The last record is that of
        all votes together.
    gain_ : Gain
        How many more held-out links the result keeps than the best candidate without links, as a share:
        ``value``, and ``low`` and ``high`` of a 90 % interval; NaN without links.
    violations_ : (n_pairs,) bool
        Which links ``labels_`` break, in the order of ``constraints.pairs``; never a hard one.
    violation_probability_ : (n_pairs,) float64
        Probability that each link is wrong, by its certainty and the votes of fits that did not see it; 0 for
        hard links. The final fits use it; a link that is rather wrong than right is left out of them.
    noise_ : float
        Share of the soft links that ``labels_`` break, an estimate of how many are wrong; NaN without.
    share_without_links_ : float
        Share of the votes about ``labels_`` of the clustering without links, 3 / (3 + n) beside n independent
        answers; 0 if not all rows were compared, or one candidate has all the votes.
    n_rows_compared_ : int
        Rows that candidates were compared on; all rows are in the final fits.
    converged_ : bool
        Whether all fits that vote converged.
    classes_, cluster_names_, contingency_ : (L,), (K,) and (L, K) ndarrays
        If labels were given: the classes, a name of each cluster and their counts, as in :class:`PPC`; also
        ``split_classes_`` and ``shared_clusters_``.
    n_features_in_ : int

    See Also
    --------
    DiscriminativeClustering, ConstrainedSpectralClustering, PPC : candidates, to be used alone.

    Notes
    -----
    Columns are taken as they are: put them on comparable scales first (``StandardScaler``), because
    k-means and graphs of neighbours depend on units.

    A held-out link that follows from the others does not count. Where most links follow from others, as in
    complete groups of rows, all links of a fifth of the rows are left out instead.

    References
    ----------
    T. Van Craenendonck and H. Blockeel, Constraint-based clustering selection, Machine Learning 106, 2017.

    Examples
    --------
    >>> from linkwise import Constraints, LinkedClustering
    >>> from linkwise.datasets import make_rings
    >>> from linkwise.metrics import rand_score
    >>> X, y = make_rings(50, random_state=0)
    >>> links = Constraints.sample(y, 30, certainty=0.95, random_state=0)
    >>> model = LinkedClustering(2, effort="quick", random_state=0).fit(X, constraints=links)
    >>> rand_score(y, model.labels_) > 0.9
    True
    """

    #: Whether the clustering without links has a vote. Labels of questions were measured without it.
    _cautious = True
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"constraints": True, "labels": True}
    __metadata_request__fit_predict: ClassVar[dict[str, bool]] = {"constraints": True, "labels": True}

    def __init__(
        self,
        n_clusters: int | list[int] | str = "auto",
        *,
        candidates: Any = "auto",
        cv: int = 5,
        effort: str = "balanced",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.candidates = candidates
        self.cv = cv
        self.effort = effort
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        constraints: Constraints | None = None,
        labels: ArrayLike | None = None,
    ) -> Self:
        """Choose and fit a clustering of the rows of X (n_samples, n_features); y is ignored.

        ``labels`` are classes of some rows, with -1, NaN or None for unknown ones. They become hard links.
        """
        self._check_parameters()
        effort, candidates = EFFORTS[self.effort], own_candidates(self.candidates, self.effort)
        X, constraints = align_rows(X, constraints)
        data = validate_rows(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        links = _joined(check_constraints(constraints, len(data), y), labels, X, len(data))
        counts = self._counts(len(data), links)
        # Candidates get arrays, whose rows have no ids.
        links = None if links is None else links.with_index(None)
        rng = as_generator(self.random_state)
        seed = int(rng.integers(2**31))
        candidates = usable(candidates, links, counts, data.shape)
        task = fit_task(self, len(candidates))
        rows = rows_to_choose_on(len(data), links, effort.n_rows, rng)
        sample, known = data[rows], None if links is None else links[rows]
        self.n_rows_compared_, self.share_without_links_ = len(rows), 0.0
        self.violation_probability_ = np.empty(0)
        if links is not None:
            self.violation_probability_ = expit(-2.0 * np.abs(links.weights))
        questions: Questions | None = None
        folds: list[LinkFold] = []
        if known is not None and known.n_pairs >= _FEWEST_LINKS:
            questions, folds = link_folds(known, self.cv, rng)
            if folds and np.isinf(known.weights).all():
                questions, folds = enough_folds(questions, folds)
        with warn_once():
            if links is None or questions is None or not folds:
                self._fit_unasked(data, sample, links, candidates, counts, seed)
            else:
                chosen, trials = self._compare(candidates, counts, sample, questions, folds, seed, task)
                support = _support(chosen, questions, folds, effort.n_members)
                log_odds = right_log_odds(links.weights, _of_links(links, rows[questions.pairs], support))
                self.violation_probability_ = expit(-log_odds)
                doubted = doubted_links(links, log_odds)
                self._fit_chosen(data, doubted, questions, folds, chosen, trials, seed, effort.n_members)
        self.labels_ = np.asarray(self.best_estimator_.labels_, dtype=np.int64)
        n_found = len(np.unique(self.labels_))
        if n_found < self.n_clusters_:
            warnings.warn(
                f"only {n_found} of n_clusters={self.n_clusters_} clusters have rows: there are too few "
                "rows, or too few that differ; ask for fewer clusters",
                UserWarning,
                stacklevel=2,
            )
        self.violations_ = np.empty(0, dtype=bool) if links is None else links.violations(self.labels_)
        soft = np.empty(0, dtype=bool) if links is None else np.isfinite(links.weights)
        self.noise_ = float(self.violations_[soft].mean()) if soft.any() else np.nan
        self._store_cluster_names(links, self.n_clusters_)
        if self.verbose:
            print(self.table())
        task.end()
        return self

    def fit_predict(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        constraints: Constraints | None = None,
        labels: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Fit and return ``labels_``."""
        return self.fit(X, y, constraints=constraints, labels=labels).labels_

    def _check_parameters(self) -> None:
        """Refuse parameters that no data would make right."""
        check_choice(self.effort, "effort", tuple(EFFORTS))
        check_whole_number(self.cv, "cv", 2)
        own_candidates(self.candidates, self.effort)
        if isinstance(self.n_clusters, str):
            check_choice(self.n_clusters, "n_clusters", ("auto",))
        elif isinstance(self.n_clusters, list | tuple | range):
            for k in self.n_clusters:
                check_whole_number(k, "n_clusters")
        else:
            check_whole_number(self.n_clusters, "n_clusters")

    def _counts(self, n_samples: int, links: Constraints | None) -> list[int]:
        """Numbers of clusters to try: those given, that of the classes, or all that hard links allow."""
        if isinstance(self.n_clusters, list | tuple | range):
            return self._given_counts(self.n_clusters, n_samples, links)
        if not isinstance(self.n_clusters, str):
            k = int(self.n_clusters)
            if k > n_samples:
                raise ValueError(
                    f"n_clusters={k} clusters cannot be made of n_samples={n_samples} rows; ask for fewer"
                )
            if links is not None:
                links.check(k)
            return [k]
        if links is not None and links.classes is not None and len(links.classes) > 1:
            links.check(len(links.classes))
            return [len(links.classes)]
        most = min(_MOST_CLUSTERS, n_samples)
        if links is None or not links.n_pairs:
            return list(range(1, most + 1))
        possible: list[int] = []
        for k in range(2, n_samples + 1):
            try:
                links.check(k)
            except InfeasibleConstraints:
                if k == n_samples:
                    raise
            else:
                possible.append(k)
            if possible and k >= most:
                break
        return possible

    def _given_counts(self, several: Sequence[int], n_samples: int, links: Constraints | None) -> list[int]:
        """Those of several numbers of clusters that the hard links allow."""
        given = sorted({int(k) for k in several})
        if not given or given[-1] > n_samples:
            raise ValueError(
                f"n_clusters={several!r} must hold numbers from 1 to n_samples={n_samples}; correct it"
            )
        if links is None:
            return given
        links.check(given[-1])
        return [k for k in given if allows(links, k)]

    def _compare(
        self,
        candidates: list[Candidate],
        counts: list[int],
        X: NDArray[np.floating],
        questions: Questions,
        folds: list[LinkFold],
        seed: int,
        task: Any,
    ) -> tuple[list[Trial], list[Trial]]:
        """Trials of all candidates with the number of clusters that scouts found, and all trials."""
        earlier: list[Trial] = []
        if len(counts) > 1:
            earlier = try_candidates(
                scouts(candidates), counts, X, questions, folds, seed, n_jobs=self.n_jobs
            )
            counts = [n_clusters_by_links(earlier, questions, silhouettes(X, counts, seed))]
        done = {trial.candidate.name: trial for trial in earlier if trial.n_clusters == counts[0]}
        left = [one for one in candidates if one.name not in done]
        trials = try_candidates(left, counts, X, questions, folds, seed, n_jobs=self.n_jobs, task=task)
        by_name = {**done, **{trial.candidate.name: trial for trial in trials}}
        nats = _shape_nats(candidates, X, counts[0], seed)
        chosen = [
            by_name[one.name]._replace(more_nats=more) for one, more in zip(candidates, nats, strict=True)
        ]
        if all(trial.failure for trial in chosen):
            raise ValueError(f"no candidate could be fitted: {chosen[0].failure}; pass other candidates")
        return chosen, [trial for trial in earlier if trial.n_clusters != counts[0]] + chosen

    def _fit_chosen(
        self,
        data: NDArray[np.floating],
        links: Constraints | None,
        questions: Questions,
        folds: list[LinkFold],
        chosen: list[Trial],
        trials: list[Trial],
        seed: int,
        n_members: int,
    ) -> None:
        """Fit the candidates that vote to all rows and links; store the result and what was tried."""
        trust = questions.trust
        k = self.n_clusters_ = chosen[0].n_clusters
        members, weights = _voters(chosen, questions, n_members)
        others: dict[str, tuple[NDArray[np.int64], ...]] = {}
        plain = None
        if self.n_rows_compared_ == len(data):
            others = _fits_of_folds(chosen, questions)
            plain = _without_links(chosen, questions, seed) if self._cautious and len(members) > 1 else None
        kept = held_out_kept(
            questions,
            folds,
            [
                _fold_consensus(chosen, questions, folds, number, n_members, seed, plain)
                for number in range(len(folds))
            ],
        )
        voters = [chosen[m].candidate for m in members]
        vote_of = self._store_result(data, links, voters, weights, seed, others, plain)
        unlinked = [trial for trial in chosen if not trial.candidate.uses_links and not trial.failure]
        best = max(unlinked, key=lambda trial: trial.agreement, default=None)
        self.gain_ = Gain(np.nan, np.nan, np.nan) if best is None else paired_gain(kept, best.kept, trust)
        self.selection_ = [_record(trial, k, vote_of) for trial in trials]
        self._add_consensus_record(vote_of, *agreement(kept, trust))

    def _fit_unasked(
        self,
        data: NDArray[np.floating],
        sample: NDArray[np.floating],
        links: Constraints | None,
        candidates: list[Candidate],
        counts: list[int],
        seed: int,
    ) -> None:
        """Without links to ask, candidates that fit what is known vote as the rows alone speak for them."""
        if links is not None and links.n_pairs:
            few = counted(links.n_pairs, "link")
            if links.row_classes is not None:
                few += f" that {counted(int((links.row_classes >= 0).sum()), 'label')} gave"
            warnings.warn(
                f"{few} {'is' if links.n_pairs == 1 else 'are'} too few to choose a "
                "clustering by; candidates with links vote whatever they say. Give at least "
                f"{_FEWEST_LINKS} links that do not follow from each other.",
                UserWarning,
                stacklevel=4,
            )
        linked = links is not None and links.n_pairs > 0
        voters = [one for one in candidates if one.uses_links == linked] or candidates
        self.n_clusters_ = counts[0] if len(counts) == 1 else n_clusters_by_shape(sample, counts, seed)
        two = len(voters) <= 2
        nats = np.zeros(len(voters)) if two else _shape_nats(voters, sample, self.n_clusters_, seed)
        votes = _votes_of_rows(nats)
        vote_of = self._store_result(data, links, voters, votes, seed)
        self.gain_ = Gain(np.nan, np.nan, np.nan)
        self.selection_ = [
            CandidateRecord(
                one.name, one.uses_links, self.n_clusters_, np.nan, np.nan, vote_of.get(one.name, 0.0),
                list(vote_of) == [one.name], "",
            )
            for one in candidates
        ]  # fmt: skip
        self._add_consensus_record(vote_of, np.nan, np.nan)

    def _store_result(
        self,
        data: NDArray[np.floating],
        links: Constraints | None,
        members: list[Candidate],
        weights: NDArray[np.float64],
        seed: int,
        others: Mapping[str, Sequence[NDArray[np.int64]]] = MappingProxyType({}),
        plain: Plain | None = None,
    ) -> dict[str, float]:
        """Fit the members to all rows and links, store them or the only one, and return their votes.

        ``others`` are labels (n,) by name, of fits with part of the links, which share the vote of a member;
        ``plain`` has the vote of the clustering without links.
        """
        k = self.n_clusters_
        members, fitted, weights = fit_members(members, weights, data, links, k, seed)
        vote_of = {one.name: float(weight) for one, weight in zip(members, weights, strict=True)}
        self.converged_ = all(bool(getattr(model, "converged_", True)) for model in fitted)
        if len(members) == 1 and not _breaks_hard_links(fitted[0].labels_, links):
            self.best_estimator_ = fitted[0]
        else:
            more = [others.get(name, ()) for name in vote_of]
            self.best_estimator_ = Consensus(list(vote_of), fitted, weights, k, links, seed, more, plain)
            self.share_without_links_ = 0.0 if plain is None else plain.share
        return vote_of

    def _add_consensus_record(self, vote_of: dict[str, float], share: float, error: float) -> None:
        """Record the votes together, unless there was one."""
        if len(vote_of) > 1:
            self.selection_.append(
                CandidateRecord(
                    "consensus", True, self.n_clusters_, share, error, 1.0, True,
                    f"{len(vote_of)} candidates vote by their agreement",
                )
            )  # fmt: skip

    # After fitting

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Clusters (n,) of new rows, of which no links are known."""
        check_is_fitted(self)
        if lacking := _lacking(self, "predict"):
            raise AttributeError(f"{lacking} has no predict; use labels_, or pass other candidates")
        refuse_dask(X)
        data = validate_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(self.best_estimator_.predict(data), dtype=np.int64)

    @available_if(lambda self: not hasattr(self, "best_estimator_") or not _lacking(self, "predict_proba"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities (n, K) of the clusters of new rows; of several candidates the shares of votes."""
        check_is_fitted(self)
        refuse_dask(X)
        data = validate_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(self.best_estimator_.predict_proba(data))

    def table(self) -> str:
        """The candidates and what links gained, as text."""
        check_is_fitted(self)
        width = max(len(record.candidate) for record in self.selection_)
        lines = [f"{'candidate':{width}}  clusters  agreement  error  vote"]
        for record in sorted(
            self.selection_,
            key=lambda one: (one.chosen, np.nan_to_num(one.agreement, nan=-np.inf)),
            reverse=True,
        ):
            lines.append(
                f"{record.candidate:{width}}  {record.n_clusters:8d}  {record.agreement:9.3f}  "
                f"{record.error:5.3f}  {record.weight:4.2f}{'  chosen' if record.chosen else ''}"
                f"{'  ' + record.reason if record.reason else ''}"
            )
        return "\n".join(lines)


def _lacking(model: LinkedClustering, method: str) -> str:
    """Name a member that has no such method, or return ""; several together need ``predict`` alone."""
    best = model.best_estimator_
    members, method = (best.estimators, "predict") if isinstance(best, Consensus) else ((best,), method)
    return next((type(one).__name__ for one in members if not hasattr(one, method)), "")


def _joined(
    links: Constraints | None, labels: ArrayLike | None, X: Any, n_samples: int
) -> Constraints | None:
    """Links and those of labels together; None if there are none."""
    if labels is None:
        return links
    _refuse_other_order(labels, X)
    told = Constraints.from_labels(labels)
    if len(told) != n_samples:
        raise ValueError(
            f"labels has {len(told)} entries, but X has {n_samples} rows; give -1 or None for unknown ones"
        )
    return told if links is None else links + told


def _refuse_other_order(labels: Any, X: Any) -> None:
    """Refuse labels (pandas) whose ids are those of the rows of X, but in another order."""
    if not hasattr(labels, "iloc") or not hasattr(X, "iloc"):
        return
    theirs, ours = labels.index, X.index
    # Ids of several types, such as numbers and text, cannot be sorted.
    if theirs.equals(ours) or Counter(theirs.tolist()) != Counter(ours.tolist()):
        return
    row = int(np.argmax(np.asarray(theirs != ours)))
    told, here = theirs[row : row + 1].tolist()[0], ours[row : row + 1].tolist()[0]
    raise ValueError(
        f"labels and X have the same ids in different orders: row {row} is {told!r} in labels and {here!r} "
        "in X; pass labels.loc[X.index], or labels.to_numpy() if the order is right"
    )


def _voters(
    chosen: list[Trial], questions: Questions, n_members: int, unseen: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Candidates with the largest votes and these, without the answers to the ``unseen`` questions."""
    shares = np.array([trial.agreement for trial in chosen])
    if unseen is not None:
        for number, trial in enumerate(chosen):
            seen = trial.kept.copy()
            seen[unseen] = np.nan
            shares[number] = agreement(seen, questions.trust)[0]
        if not np.isfinite(shares).any():
            shares = np.where([trial.failure == "" for trial in chosen], 0.0, np.nan)
    uses_links = np.array([trial.candidate.uses_links for trial in chosen])
    more_nats = np.array([trial.more_nats for trial in chosen])
    certain = bool((questions.trust == 1.0).all())
    votes = vote_weights(shares, uses_links, questions.n_independent, more_nats, certain=certain)
    members = np.argsort(-votes, kind="stable")[:n_members]
    members = members[votes[members] >= _LEAST_VOTE]
    return members, votes[members] / votes[members].sum()


def _shape_nats(
    candidates: Sequence[Candidate], X: NDArray[np.floating], n_clusters: int, seed: int
) -> NDArray[np.float64]:
    """What the rows alone say for candidates (c,), in nats: mixtures gain where clusters look Gaussian."""
    gaussian = np.array([one.gaussian for one in candidates])
    mixed = gaussian.any() and not gaussian.all()
    return gaussian * (gaussian_nats(X, n_clusters, seed) if mixed else 0.0)


def _votes_of_rows(nats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Votes (c,) of candidates for which the rows alone speak with so many nats (c,); even ones of two."""
    # Of two voters the larger vote would decide alone. With it, labels after ten answers were worse by .01
    # (19 sets, five draws): the first clusters of questions come from a quick choice of two.
    return np.asarray(softmax(nats if len(nats) > 2 else np.zeros(len(nats))))


def _support(
    chosen: list[Trial], questions: Questions, folds: list[LinkFold], n_members: int
) -> NDArray[np.float64]:
    """Share of the votes (q,) that give the answer to each question, of fits that did not know it.

    The votes of a fold do not count its own answers. NaN if no fold asks; the mean if several do.
    """
    votes, asked = np.zeros(len(questions.pairs)), np.zeros(len(questions.pairs))
    for fold in folds:
        members, weights = _voters(chosen, questions, n_members, fold.asked)
        votes[fold.asked] += weights @ [chosen[m].kept[fold.asked] for m in members]
        asked[fold.asked] += 1.0
    return np.divide(votes, asked, out=np.full(len(votes), np.nan), where=asked > 0)


def _of_links(
    links: Constraints, pairs: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values (q,) of pairs (q, 2), for each link (m,); NaN for a link that is none of the pairs."""
    found = np.full(links.n_pairs, np.nan)
    own, codes = (pair_codes(links.n_samples, some) for some in (links.pairs, pairs))
    place = np.minimum(np.searchsorted(own, codes), links.n_pairs - 1)
    known = own[place] == codes
    found[place[known]] = values[known]
    return found


def _fits_of_folds(chosen: list[Trial], questions: Questions) -> dict[str, tuple[NDArray[np.int64], ...]]:
    """Labels (n,) of the fits with part of the links, by candidate; none where certain links interlock.

    A wrong link pulls at the final fits of all candidates alike, but each of these fits has not seen a fifth
    of the links, and their votes differ. Mean adjusted Rand index by the final fits alone, and with these:
    half A of the leaderboard and 15 other sets, which decided, 189 trials, .632 and .639 (standard error of
    the difference .004); half B, 76 trials, .600 and .608. The gain was largest with 15 % wrong links among
    30 % of the rows, .019. Final fits with links as they were told, beside these, gained no more.

    A few right links may mislead all final fits, too. Hard disjoint pairs over 5, 15 and 30 % of the rows, 22
    sets, two draws, 132 trials: .533 and .535, and worse by .02 than without links in 25 and 17 trials; over
    30 % of the rows of the leaderboard, 19 trials, .668 and .682, and 3 and 1. Where hard links share
    rows they imply others, and a fit without a fifth of them knows far less: with all pairs among 5 % of the
    rows of 17 sets, .628 and .611. There these fits have no vote.
    """
    if (questions.trust == 1.0).all() and len(questions.pairs) >= len(np.unique(questions.pairs)):
        return {}
    return {trial.candidate.name: trial.memberships for trial in chosen if trial.candidate.uses_links}


def _fold_consensus(
    chosen: list[Trial],
    questions: Questions,
    folds: list[LinkFold],
    number: int,
    n_members: int,
    seed: int,
    plain: Plain | None,
) -> NDArray[np.int64]:
    """Labels (n,) by vote of the fits of a fold; answers that the fold asks for do not count."""
    fold, k = folds[number], chosen[0].n_clusters
    members, weights = _voters(chosen, questions, n_members, fold.asked)
    fits = [chosen[m].memberships[number] for m in members]
    return consensus_labels(*with_plain(fits, weights, plain), k, fold.kept, seed)


def _without_links(chosen: list[Trial], questions: Questions, seed: int) -> Plain | None:
    """The vote of the candidates without links, as if there were no links; None if there are none of them."""
    plain = [trial for trial in chosen if not trial.candidate.uses_links and not trial.failure]
    if not plain:
        return None
    votes = _votes_of_rows(np.array([trial.more_nats for trial in plain]))
    fits = [trial.memberships[0] for trial in plain]
    labels = consensus_labels(fits, votes, chosen[0].n_clusters, None, seed)
    return Plain(labels, share_without_links(questions.n_independent))


def allows(links: Constraints, n_clusters: int) -> bool:
    """Tell whether so many clusters can keep the hard links."""
    try:
        links.check(n_clusters)
    except InfeasibleConstraints:
        return False
    return True


def _breaks_hard_links(labels: NDArray[np.integer], links: Constraints | None) -> bool:
    return links is not None and bool(links.violations(labels)[np.isinf(links.weights)].any())


def _record(trial: Trial, k: int, vote_of: dict[str, float]) -> CandidateRecord:
    """What is said about a trial."""
    weight = vote_of.get(trial.candidate.name, 0.0) if trial.n_clusters == k else 0.0
    reason = trial.failure
    if not reason and trial.more_nats > 0:
        reason = f"clusters look Gaussian: vote times {np.exp(trial.more_nats):.1f}"
    return CandidateRecord(
        trial.candidate.name, trial.candidate.uses_links, trial.n_clusters, trial.agreement, trial.error,
        weight, weight == 1.0, reason,
    )  # fmt: skip
