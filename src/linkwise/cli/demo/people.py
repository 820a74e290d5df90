"""What people answer: who errs, ten good questions, and answers that contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise._pages import TextTable
from linkwise.cli.demo.chapter import Chapter, Gain, Illustration
from linkwise.cli.output import Output

_ANNOTATORS = {"Ann": 0.03, "Bob": 0.15, "Carl": 0.35}
_ANSWERS, _SHARED, _AGAIN = 100, 33, 30
_QUESTIONS = 25


def annotators(out: Output) -> Chapter:
    """Three annotators, of whom the model is told nothing: their error rates, and which answers are wrong."""
    from linkwise._pages import new_figure, png_of
    from linkwise.constraints import Constraints
    from linkwise.datasets import load_bundled
    from linkwise.displays import AnnotatorDisplay
    from linkwise.mixture.ppc import PPC

    X, y = load_bundled("iris")
    rng = np.random.default_rng(0)
    every_pair = np.column_stack(np.triu_indices(len(y), k=1))
    shared = rng.choice(every_pair, _SHARED, replace=False)
    others = [rng.choice(every_pair, _ANSWERS - _SHARED) for _ in _ANNOTATORS]
    pairs = np.concatenate([np.vstack([shared, own]) for own in others])
    wrong = rng.random(len(pairs)) < np.repeat(list(_ANNOTATORS.values()), _ANSWERS)
    same = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong
    who = np.repeat(list(_ANNOTATORS), _ANSWERS)
    links = Constraints(len(y), pairs[same], pairs[~same], certainty=0.8, source=[*who[same], *who[~same]])
    with out.progress("three annotators"):
        model = PPC(3, n_init=2, learn_noise="source", random_state=0).fit(X, constraints=links)
    doubtful = model.doubtful_answers(X, links, n_answers=_AGAIN)
    found = np.mean([(y[one.i] == y[one.j]) != (one.kind == "must_link") for one in doubtful])
    rows = []
    for name in _ANNOTATORS:
        low, high = model.noise_interval_[name]
        rows.append(
            [
                name,
                f"{wrong[who == name].mean():.0%}",
                f"{model.noise_[name]:.0%}",
                f"{low:.0%} to {high:.0%}",
            ]
        )
    figure, ax = new_figure(size=(5.0, 2.8))
    AnnotatorDisplay.from_estimator(model, constraints=links, ax=ax)
    return Chapter(
        "Which annotator errs, and where",
        [
            f"Three annotators say of {_ANSWERS} pairs of iris flowers each whether they are of the same "
            "species. The model is not told how often each is wrong. It learns that from the flowers and "
            f"from the answers of the others, and lists the {_AGAIN} answers that are most likely wrong: "
            "those to ask again."
        ],
        [
            Gain(
                "three annotators",
                f"{len(pairs)} answers, {wrong.mean():.0%} wrong",
                f"wrong answers among {_AGAIN} to ask again",
                float(wrong.mean()),
                float(found),
            )
        ],
        [TextTable("Wrong answers", ["annotator", "in truth", "learned", "90 % interval"], rows)],
        [
            Illustration(
                "annotators.png",
                png_of(figure),
                "The learned error rate of each annotator with its interval",
                "Learned error rates with their intervals.",
            )
        ],
        code='links = Constraints.read_csv("answers.csv", index=ids, certainty=0.8)  # with a source\n'
        'model = PPC(3, learn_noise="source").fit(X, constraints=links)\n'
        "model.noise_, model.doubtful_answers(X, links)",
        command="linkwise fit flowers.csv -k 3 --id id --links answers.csv --learn-noise source -o result",
    )


def answers(out: Output) -> Chapter:
    """Irises with a person who answers questions; the number of clusters is not given."""
    from sklearn.metrics import adjusted_rand_score
    from sklearn.preprocessing import StandardScaler

    from linkwise.active import ActiveClustering, LabelOracle
    from linkwise.datasets import load_bundled

    X, y = load_bundled("iris")
    person = LabelOracle(y)
    with out.progress("answers", _QUESTIONS) as advance:
        session = ActiveClustering(StandardScaler().fit_transform(X), random_state=0)
        before, rows = adjusted_rand_score(y, session.labels_), []
        for number in range(1, _QUESTIONS + 1):
            i, j = session.ask()
            session.tell(i, j, person(i, j))
            score = adjusted_rand_score(y, session.labels_)
            rows.append([str(number), f"{i} and {j}", person(i, j), str(session.n_clusters_), f"{score:.2f}"])
            advance()
    return Chapter(
        "Answers to good questions",
        [
            "150 irises of three species, of which nothing is known, not even how many there are. linkwise "
            "asks a person about one pair at a time, the pair whose answer tells most. The index compares "
            "the clusters with the species: 1 is perfect, 0 is chance."
        ],
        [Gain("iris, no labels", f"{_QUESTIONS} answers", "adjusted Rand index", before, score)],
        [TextTable("The questions", ["", "flowers", "answer", "clusters", "index"], rows, 3)],
        code="session = ActiveClustering(X)\n"
        "i, j = session.ask()\n"
        'session.tell(i, j, "same")\n'
        "session.labels_",
        command="linkwise ask irises.csv --id id -o pairs.csv",
    )


def refusals(out: Output) -> Chapter:
    """Two mistakes people make, and the answers."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    def refusal(ask: Callable[[], Any]) -> str:
        try:
            ask()
        except InfeasibleConstraints as error:
            return str(error)
        raise AssertionError("these links were meant to contradict each other")

    kinds = Constraints(150, cannot_link=[(0, 50), (50, 100), (0, 100)])
    rows = [
        [
            "must-link 3-8 and 8-17, cannot-link 3-17",
            refusal(lambda: Constraints(150, must_link=[(3, 8), (8, 17)], cannot_link=[(3, 17)])),
        ],
        ["three flowers of three kinds, but two clusters", refusal(lambda: kinds.check(n_clusters=2))],
    ]
    return Chapter(
        "Links that cannot hold are refused, with the reason",
        [],
        [],
        [TextTable("Two mistakes people make", ["links", "answer"], rows, 2)],
        code="Constraints(150, must_link=[(3, 8), (8, 17)], cannot_link=[(3, 17)])",
        command="linkwise check pairs.csv --data data.csv --id id -k 2",
    )
