"""``ActiveClustering``: ask about a pair, be told, and have labels at any time; ``suggest_pairs``."""

from __future__ import annotations

import os
import warnings
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from linkwise._arrays import Floats, Ints
from linkwise._validation import align_rows, check_constraints, check_whole_number, refuse_dask
from linkwise.active import long as long_session
from linkwise.active.checks import checked_count, checked_metric, checked_pairs, checked_rows
from linkwise.active.contradictions import Contradiction, find_contradictions
from linkwise.active.journal import Journal, answers_beyond, fingerprint_of, read_answers
from linkwise.active.knowledge import (
    DIFFERENT,
    NO_ANSWERS,
    SAME,
    SAYS,
    UNSURE,
    WORDS,
    Answers,
    Knowledge,
    append,
    as_constraints,
    chosen_answers,
    first_answers,
    joined,
    learned_certainty,
)
from linkwise.active.labelling import (
    are_few,
    better_clusters,
    keep_facts,
    label_landmarks,
    label_rows,
    last_choice,
)
from linkwise.active.landscape import N_LANDMARKS, Landscape, landmarks, survey
from linkwise.active.long import last_look, summarise
from linkwise.active.quality import Quality, estimate_quality
from linkwise.active.strategies import Strategy, find_strategy
from linkwise.constraints import Constraints

#: More landmarks are drawn when more than this share of them was asked about: a quarter of the first number
#: each time, since time and memory grow with their square and more.
_MOST_ASKED, _MORE = 0.8, 0.25
#: Pairs that are right and expected errors per row at which more answers hardly help.
_GOOD, _FEW_ERRORS = 0.99, 0.005


class Doubt(NamedTuple):
    """An answer that contradicts the others: its place among the answers, and how probably it is wrong."""

    answer: int
    i: int
    j: int
    says: str
    probability: float
    source: str


class StopHint(NamedTuple):
    """Whether more answers would hardly change anything, and why."""

    stop: bool
    reason: str


class ActiveClustering:
    """Choose the next pair to ask about, and cluster with the answers so far.

    Ask for a pair, look at its two rows, and tell whether they belong together. Labels are available at any
    time. The number of clusters need not be known, and an answer may be wrong: if it contradicts the others,
    it counts as doubtful, and is checked by questions about other rows.

    Parameters
    ----------
    X : (n_samples, n_features) array_like
        Rows, with columns of comparable scale. With ``metric="precomputed"`` their distances, (n, n).
    constraints : Constraints, optional
        Links that are known already.
    n_clusters : int or "auto", default="auto"
        "auto": as many as the answers find.
    strategy : str or callable, default="auto"
        How questions are chosen: "auto" ("spread", then "information"), "spread", "information", "npu",
        "min_max", "explore_consolidate" or "random". A function ``(knowledge, n_pairs, rng)`` works too.
    journal : path, optional
        File that keeps every answer. It is made if it is missing, and continued if it holds answers about the
        same rows. When ``tell`` returns, the answer is on disk.
    metric : str or callable, default="euclidean"
        Distance between rows, as in scikit-learn's ``pairwise_distances``, or "precomputed".
    random_state : int or None, default=None
        Seed. A journal keeps it.

    Attributes
    ----------
    labels_ : (n_samples,) ndarray of int
        Cluster of each row, given the answers so far.
    quality_ : Quality
        Estimated share of the pairs of rows that the labels get right, with a 90 % interval (low, high).
    n_answers : int
        Answers that stand.
    n_clusters_ : int
        Number of clusters in ``labels_``.
    error_rate_ : float
        Share of the answers that is wrong, estimated.
    converged_ : bool
        Whether the probabilities given the answers so far converged; else ``labels_`` warns.
    constraints : Constraints
        The links given at first, and the answers as links.
    should_stop_ : StopHint
        Whether more answers would hardly change anything, and why.

    See Also
    --------
    suggest_pairs : Pairs to ask about, without a session.
    LabelOracle : Answers from known classes, to try a strategy.

    Notes
    -----
    Of more than 1000 rows, questions are about a sample, the landmarks; the other rows have the label of the
    nearest landmark. So the next question takes as long for a million rows as for a thousand.

    Labels follow the rows in answers. While links, given and told, are few, up to 13 for each cluster, the
    rows are also clustered with them (:class:`LinkedClustering`), after 10, 15, 25, 40, 60, 80 and 100
    answers, which takes one to four seconds. Such clusters label the rows if they foretell answers that were
    left out better. Questions do not depend on this.

    After 200 answers, if more than 200 rows are in answers, groups are searched for among 200 of these, those
    that are new or in doubt first; the others keep their group unless answers and similar rows contradict it.
    So the next question of a long session takes hardly longer. Questions differ from those of a search among
    all rows then; on five sets the score after 400 answers was .965, not .969, and with 10 % wrong answers
    .82, not .83.

    Examples
    --------
    >>> from linkwise.active import ActiveClustering, LabelOracle
    >>> from linkwise.datasets import load_bundled
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = load_bundled("iris")
    >>> person = LabelOracle(y)
    >>> session = ActiveClustering(X, random_state=0)
    >>> for _ in range(25):
    ...     i, j = session.ask()
    ...     session.tell(i, j, person(i, j))
    >>> adjusted_rand_score(y, session.labels_) > 0.9
    True
    """

    _question: tuple[int, int] | None
    _look: tuple[int, Ints] | None
    _choice: tuple[int, Landscape, Ints | None] | None
    _view: Knowledge | None
    _labels: Ints | None
    _quality: Quality | None

    def __init__(
        self,
        X: ArrayLike,
        constraints: Constraints | None = None,
        *,
        n_clusters: int | str = "auto",
        strategy: str | Strategy = "auto",
        journal: str | PathLike[str] | None = None,
        metric: Any = "euclidean",
        random_state: int | None = None,
    ) -> None:
        refuse_dask(X)
        X, constraints = align_rows(X, constraints)
        self._X = checked_rows(X, metric)
        self._metric = checked_metric(metric, self._X)
        self._n_clusters = checked_count(n_clusters, len(self._X))
        self._strategy = find_strategy(strategy)
        self._given = check_constraints(constraints, len(self._X))
        self._given_answers = _as_answers(self._given)
        if random_state is None:
            seed = int(np.random.default_rng().integers(2**31))
        else:
            seed = check_whole_number(random_state, "random_state", 0)
        self.journal = Journal(
            journal,
            n_samples=len(self._X),
            fingerprint=fingerprint_of(self._X),
            seed=seed,
            strategy=strategy if isinstance(strategy, str) else None,
        )
        self._seed = int(self.journal.header.get("seed") or 0)
        self._landscape: Landscape | None = None
        self._forget_all()
        try:
            self._check_facts(self.answers)
        except BaseException:
            self.close()
            raise

    def ask(self) -> tuple[int, int]:
        """Two rows whose answer tells most now; the same two until an answer is given.

        Raises
        ------
        ValueError
            If every pair was asked about.
        """
        if self._question is None:
            self._question = self._next_question()
        return self._question

    def _next_question(self) -> tuple[int, int]:
        """The next question of the last look at all rows, or the first of a new look.

        It depends on the answers alone: a session that was resumed, or in which answers were taken
        back, goes on with the same question.
        """
        told = self.answers.pairs
        first, n_pairs = last_look(len(told))
        if self._look is None or self._look[0] != first:
            self._look = first, self._questions(first, n_pairs)
        questions = self._look[1]
        place = len(told) - first
        if place < len(questions) and np.array_equal(
            np.sort(told[first:], axis=1), np.sort(questions[:place], axis=1)
        ):
            pair = questions[place]
        else:  # other questions were answered than those asked
            more = self._questions(len(told), 1)
            if not len(more):
                raise ValueError("every pair was asked about; there is nothing left to ask")
            pair = more[0]
        return int(pair[0]), int(pair[1])

    def suggest(self, n_pairs: int = 1) -> Ints:
        """Pairs whose answers tell most now, the most useful first: (n_pairs, 2), fewer if no more are left.

        Several people can answer them at the same time, or one while the next ones are looked for.
        """
        return self._questions(self.n_answers, check_whole_number(n_pairs, "n_pairs"))

    def _questions(self, n_answers: int, n_pairs: int) -> Ints:
        """Questions that the strategy has after the first so many answers, the best first."""
        knowledge = self._knowledge if n_answers == self.n_answers else self._known_after(n_answers)
        rng = np.random.default_rng([self._seed, n_answers])
        return checked_pairs(self._strategy(knowledge, n_pairs, rng), len(self._X))

    def tell(
        self, i: int, j: int, says: str, certainty: float | None = None, source: str | None = None
    ) -> None:
        """Take an answer; when this returns, it is in the journal.

        Parameters
        ----------
        i, j : int
            Two rows, those of ``ask`` or any others.
        says : {"same", "different", "unsure"}
            An unsure pair is not asked about again, and is no link.
        certainty : float, optional
            Probability that such an answer is right, above 0.5; 1 makes it a fact. None: as certain as the
            other answers turn out to be.
        source : str, optional
            Who answered.

        Raises
        ------
        InfeasibleConstraints
            If a fact contradicts earlier facts; nothing is kept then.
        """
        self.journal.check_answer(i, j, says, certainty=certainty, source=source)
        if certainty == 1.0 and SAYS[says] != UNSURE:
            self._check_facts(append(self.answers, i, j, SAYS[says], certainty))
        self.journal.tell(i, j, says, certainty=certainty, source=source)
        self._forget()

    def merge(self, journal: str | PathLike[str]) -> int:
        """Take the answers in the journal of another session about the same rows.

        An answer that the same person gave in both counts once, so that merging twice adds nothing. Answers
        without a name get that of the journal's file.

        Parameters
        ----------
        journal : path
            It is read, not changed; the other session may go on.

        Returns
        -------
        int
            Number of answers that were new.

        Raises
        ------
        InfeasibleConstraints
            If facts contradict each other; nothing is taken then.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from linkwise.active import ActiveClustering
        >>> X, folder = [[0.0], [0.1], [5.0], [5.1]], Path(tempfile.mkdtemp())
        >>> with ActiveClustering(X, journal=folder / "ann.journal", random_state=0) as ann:
        ...     ann.tell(0, 1, "same", source="Ann")
        >>> with ActiveClustering(X, journal=folder / "bob.journal", random_state=0) as bob:
        ...     bob.tell(0, 2, "different", source="Bob")
        ...     bob.merge(folder / "ann.journal"), bob.merge(folder / "ann.journal"), bob.n_answers
        (1, 0, 2)
        """
        if self.journal.path is not None and os.path.realpath(journal) == os.path.realpath(self.journal.path):
            raise ValueError(f"{journal} is the journal of this session; name that of another one")
        told = read_answers(journal, n_samples=len(self._X), fingerprint=fingerprint_of(self._X))
        told = told._replace(source=tuple(name or Path(journal).name for name in told.source))
        new = answers_beyond(self.answers, told)
        self._check_facts(joined(self.answers, new))
        for (i, j), said, sure, source in zip(*(one.tolist() for one in new[:3]), new.source, strict=True):
            self.journal.tell(i, j, WORDS[said], certainty=None if np.isnan(sure) else sure, source=source)
        self._forget_all()
        return len(new.says)

    def undo(self) -> None:
        """Take back the last answer, or the last retraction."""
        self.journal.undo()
        self._forget_all()

    def retract(self, answer: int, source: str | None = None) -> None:
        """Take back the answer at this place of ``answers``, counted from 0; ``source`` is who does it."""
        self.journal.retract(answer, source=source)
        self._forget_all()

    def contradictions(self) -> list[Contradiction]:
        """Chains of answers that cannot all be right, the shortest first."""
        return find_contradictions(self.answers, self._n_clusters)

    def doubts(self, least: float = 0.5) -> list[Doubt]:
        """Answers that are wrong with at least this probability, the most doubtful first."""
        wrong = self._knowledge.posterior.wrong[self._knowledge.n_given :]
        answers = self.answers
        order = np.argsort(-wrong, kind="stable")
        return [
            Doubt(
                int(k), int(answers.pairs[k, 0]), int(answers.pairs[k, 1]), WORDS[int(answers.says[k])],
                float(wrong[k]), answers.source[k],
            )
            for k in order
            if wrong[k] >= least
        ]  # fmt: skip

    @property
    def answers(self) -> Answers:
        """What was told and stands, in the order of telling."""
        return self.journal.answers()

    @property
    def n_answers(self) -> int:
        """Number of answers that stand."""
        return len(self.journal)

    @property
    def labels_(self) -> Ints:
        """Cluster of each row, given the answers so far."""
        if self._labels is None:
            knowledge = self._knowledge
            if not self.converged_:
                warnings.warn(
                    f"probabilities did not come to rest after {self.n_answers} answers, so that labels of "
                    "doubtful rows may be wrong; look at contradictions() and doubts()",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            labels = label_rows(
                knowledge.surveyed, knowledge.posterior, self._n_clusters, self._better_clusters()
            )
            facts = self._facts(self.answers)
            self._labels = keep_facts(labels, facts.pairs, facts.says)
        return self._labels

    @property
    def landmark_of_(self) -> Ints:
        """The landmark, a row, that each row has its label from: (n,). A landmark has itself."""
        surveyed = self._knowledge.surveyed
        return np.asarray(surveyed.rows[surveyed.nearest], dtype=np.int64)

    def cluster_probabilities(self, rows: ArrayLike) -> Floats:
        """Probability of each cluster of ``labels_`` for these rows, and last of one not found yet.

        They are those of the landmark of each row, so the sum can be less than 1 by groups that have no row.
        """
        knowledge, labels = self._knowledge, self.labels_
        surveyed, prob = knowledge.surveyed, knowledge.posterior.prob
        group = label_landmarks(surveyed, knowledge.posterior, self._n_clusters, self._better_clusters())
        found = np.zeros((len(np.atleast_1d(rows)), int(labels.max()) + 2))
        places = surveyed.nearest[np.atleast_1d(rows)]
        found[:, -1] = prob[places, -1]
        for number in range(prob.shape[1] - 1):
            members = labels[surveyed.rows[group == number]]
            if len(members):
                found[:, np.bincount(members).argmax()] += prob[places, number]
        return found

    @property
    def n_clusters_(self) -> int:
        """Number of clusters in ``labels_``."""
        return int(self.labels_.max()) + 1

    @property
    def error_rate_(self) -> float:
        """Share of the answers that is wrong, estimated."""
        return self._knowledge.posterior.error_rate

    @property
    def converged_(self) -> bool:
        """Whether the probabilities given the answers so far converged."""
        return self._knowledge.posterior.converged

    @property
    def quality_(self) -> Quality:
        """Estimated share of the pairs of rows that the labels get right."""
        if self._quality is None:
            knowledge = self._knowledge
            rng = np.random.default_rng([self._seed, self.n_answers, 1])
            self._quality = estimate_quality(
                knowledge.surveyed, knowledge.posterior, self._n_clusters, rng, self._better_clusters()
            )
        return self._quality

    @property
    def should_stop_(self) -> StopHint:
        """Whether more answers would hardly change anything, and why."""
        prob = self._knowledge.posterior.prob
        if self.quality_.low >= _GOOD:
            return StopHint(True, f"at least {_GOOD:.0%} of the pairs are right, by the estimate")
        if (1.0 - prob.max(axis=1)).mean() < _FEW_ERRORS:
            return StopHint(True, "hardly any row is in doubt")
        return StopHint(False, "")

    @property
    def constraints(self) -> Constraints:
        """The links given at first, and the answers as links."""
        return self._as_links(self._knowledge)

    def _as_links(self, knowledge: Knowledge) -> Constraints:
        """The links given at first, and the answers of some knowledge as links."""
        told = first_answers(self.answers, len(knowledge.answers.says) - knowledge.n_given)
        certainty = learned_certainty(knowledge.posterior.error_rate)
        links = as_constraints(told, len(self._X), certainty=certainty)
        return links if self._given is None else self._given + links

    def widget(self, records: Any = None, *, labels: ArrayLike | None = None) -> Any:
        """The page of the workbench in a notebook; answers given there belong to this session.

        Parameters
        ----------
        records : DataFrame or (n_samples, c) array_like, optional
            What is shown of each row; by default the columns of X.
        labels : (n_samples,) array_like, optional
            Present classes, to be redefined.

        Returns
        -------
        anywidget.AnyWidget
            Needs ``linkwise[workbench]``, pandas and anywidget.
        """
        from linkwise.workbench.widget import widget_of

        shown = self._X if records is None else records
        return widget_of(self, self._X, self._given, self._blank, shown, labels)

    def _blank(self, strategy: str | None = None) -> ActiveClustering:
        """A session about the same rows, without answers and journal; with this strategy if it is named."""
        return ActiveClustering(
            self._X, self._given, n_clusters=self._n_clusters or "auto", strategy=strategy or self._strategy,
            metric=self._metric, random_state=self._seed,
        )  # fmt: skip

    def close(self) -> None:
        """Release the journal for other sessions."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        """Drop what depends on the answers."""
        self._question, self._view, self._labels, self._quality = None, None, None, None

    def _forget_all(self) -> None:
        """Drop what depends on the answers and on those of the last look and choice as well."""
        self._look, self._choice = None, None
        self._forget()

    def _facts(self, told: Answers) -> Answers:
        """Links given as facts, and these answers as far as they are facts."""
        both = joined(self._given_answers, told)
        return chosen_answers(both, np.flatnonzero((both.certainty == 1.0) & (both.says != UNSURE)))

    def _check_facts(self, told: Answers) -> None:
        """Raise InfeasibleConstraints if facts, given or told, contradict each other or ``n_clusters``."""
        as_constraints(self._facts(told), len(self._X)).check(self._n_clusters)

    @property
    def _knowledge(self) -> Knowledge:
        """The rows and all answers, with landmarks that hold every row in an answer."""
        if self._view is None:
            self._view = self._known_after(self.n_answers)
        return self._view

    def _better_clusters(self) -> Ints | None:
        """Clusters (l,) of the landmarks that label rows better than the predictors do, or None.

        They depend on the answers at the last choice alone.
        """
        first = last_choice(self.n_answers)
        if not first:
            return None
        now = self._knowledge.surveyed
        if self._choice is None or self._choice[0] != first:
            known = self._known_after(first)
            self._choice = first, known.surveyed, better_clusters(known, self._as_links(known))
        _, then, clusters = self._choice
        if clusters is None or not are_few(self.constraints.n_pairs, int(clusters.max()) + 1):
            return None
        return clusters if np.array_equal(then.rows, now.rows) else clusters[then.nearest[now.rows]]

    def _known_after(self, n_answers: int) -> Knowledge:
        """What was known after the first so many answers; depends on nothing else."""
        told = first_answers(self.answers, n_answers)
        given = summarise(self._given_answers, long_session.N_ROWS, self._seed)
        asked = np.unique(np.concatenate([given.pairs, told.pairs]))
        wanted = N_LANDMARKS
        while len(asked) > _MOST_ASKED * wanted:
            wanted += int(_MORE * N_LANDMARKS)
        rows = landmarks(len(self._X), asked, n_landmarks=wanted, seed=self._seed)
        if self._landscape is None or not np.array_equal(self._landscape.rows, rows):
            self._landscape = survey(
                self._X, asked=asked, n_clusters=self._n_clusters, metric=self._metric, seed=self._seed,
                n_landmarks=wanted, known=self._landscape, links=self._given,
            )  # fmt: skip
        if given is not self._given_answers:
            # Links that were left out are not asked about all the same.
            known = self._given_answers.pairs
            known = known[(self._landscape.place[known] >= 0).all(axis=1)]
            n = len(known)
            silent = Answers(known, np.full(n, UNSURE, dtype=np.int8), np.full(n, np.nan), ("",) * n)
            given = joined(silent, given)
        answers = joined(given, told)
        return Knowledge(self._X, answers, self._n_clusters, self._landscape, len(given.says))


def _as_answers(links: Constraints | None) -> Answers:
    """Links as answers without a source; only hard ones have the certainty 1."""
    if links is None:
        return NO_ANSWERS
    most = 1.0 - np.finfo(np.float64).eps
    certainty = np.where(np.isinf(links.weights), 1.0, np.minimum(expit(2.0 * np.abs(links.weights)), most))
    says = np.where(links.weights > 0.0, SAME, DIFFERENT).astype(np.int8)
    return Answers(links.pairs, says, certainty, ("",) * links.n_pairs)


def suggest_pairs(
    X: ArrayLike,
    constraints: Constraints | None = None,
    *,
    n_pairs: int = 1,
    strategy: str | Strategy = "auto",
    n_clusters: int | str = "auto",
    metric: Any = "euclidean",
    random_state: int | None = None,
) -> Ints:
    """Pairs of rows whose answers tell most, given the links so far; each pair differs from the others.

    Parameters
    ----------
    X : (n_samples, n_features) array_like
    constraints : Constraints, optional
        What is known already.
    n_pairs : int, default=1
    strategy, n_clusters, metric, random_state
        As in :class:`ActiveClustering`.

    Returns
    -------
    (n_pairs, 2) ndarray of int
        Rows to ask about, the most useful pair first; fewer if no more are left.

    Examples
    --------
    >>> from linkwise.active import suggest_pairs
    >>> from linkwise.datasets import load_bundled
    >>> X, _ = load_bundled("iris")
    >>> suggest_pairs(X, n_pairs=3, random_state=0).shape
    (3, 2)
    """
    check_whole_number(n_pairs, "n_pairs")
    seed = 0 if random_state is None else random_state
    session = ActiveClustering(
        X, constraints, n_clusters=n_clusters, strategy=strategy, metric=metric, random_state=seed
    )
    rng = np.random.default_rng([seed, session._given_answers.says.size])
    return checked_pairs(session._strategy(session._knowledge, n_pairs, rng), len(session._X))
