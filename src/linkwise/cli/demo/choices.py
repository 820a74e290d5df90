"""Classes that an expert doubts, and a method that the links choose."""

from __future__ import annotations

import numpy as np

from linkwise._pages import TextTable
from linkwise.cli.demo.chapter import Chapter, Gain, Illustration
from linkwise.cli.output import Output

_RING_LINKS, _FLIP = 60, 0.1


def new_classes(out: Output) -> Chapter:
    """Wine with bad classes (two cultivars in one, one under two names), corrected by beliefs."""
    from sklearn.preprocessing import StandardScaler

    from linkwise._pages import new_figure, png_of
    from linkwise.beliefs import ClassBeliefs
    from linkwise.cli.classes import decision_table, propose_classes
    from linkwise.datasets import load_bundled
    from linkwise.displays import BeliefDisplay
    from linkwise.metrics import pairwise_f1
    from linkwise.mixture.classes.report.text import evidence_lines

    X, y = load_bundled("wine")
    scaled = StandardScaler().fit_transform(X)
    cultivars = np.unique(y)
    halves = np.where(np.arange(len(y)) % 2 == 0, "sweet", "dessert")
    legend = np.where(y == cultivars[2], halves, "table")
    beliefs = ClassBeliefs.keep(np.unique(legend).tolist()).split("table").merge("sweet", "dessert", 0.5)
    model, report = propose_classes(out, scaled, legend, beliefs, {"covariance_type": "diag"}, repeats=3)
    whole = decision_table(report)
    # As many columns as a phone is wide.
    decisions = TextTable(whole.title, whole.columns[:4], [row[:4] for row in whole.rows], whole.text_columns)
    evidence = TextTable("Why", ["evidence"], [[line] for line in evidence_lines(report)], 1)
    maps, axes = zip(*(new_figure(size=(3.8, 3.3)) for _ in range(2)), strict=True)
    BeliefDisplay.from_estimator(model, ax=np.array(axes))
    return Chapter(
        "Doubtful classes, redefined",
        [
            '178 wines of three cultivars with bad names: "table" holds two cultivars, and the third is '
            'called "sweet" in one cellar and "dessert" in another. The expert writes down two doubts: table '
            "should be split, sweet and dessert may be one. The data decide how many classes there are. "
            "Separability (right) says how much two old classes share the new ones: 1 always, -1 never."
        ],
        [
            Gain(
                "wine, bad legend",
                "2 doubts about 3 classes",
                "pairwise F with the cultivars",
                pairwise_f1(y, legend),
                pairwise_f1(y, model.labels_),
            )
        ],
        [decisions, evidence],
        [
            Illustration(
                "wine_beliefs.png",
                png_of(maps[0]),
                "The table of beliefs as a heat map",
                "What was believed of each two classes.",
            ),
            Illustration(
                "wine_separability.png",
                png_of(maps[1]),
                "The table of separability as a heat map",
                "How much they share their new classes.",
            ),
        ],
        code='beliefs = ClassBeliefs.keep(names).split("table").merge("sweet", "dessert", 0.5)\n'
        "CPPC(beliefs=beliefs).fit(X, y).report(X, y)",
        command="linkwise classes wines.csv --label class --beliefs beliefs.csv -o new",
    )


def chosen_method(out: Output) -> Chapter:
    """Two rings: links choose a method that can have such shapes, and most wrong links stand out."""
    from sklearn.preprocessing import StandardScaler

    from linkwise._pages import new_figure, png_of
    from linkwise.auto import LinkedClustering
    from linkwise.auto.summary import candidate_table, gain_in_words
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_rings
    from linkwise.displays import ClusterDisplay
    from linkwise.metrics import clustering_accuracy, match_clusters

    X, y = make_rings(150, random_state=0)
    scaled = StandardScaler().fit_transform(X)
    links = Constraints.sample(y, _RING_LINKS, flip=_FLIP, certainty=1 - _FLIP, random_state=0)
    with out.progress("rings"):
        plain = LinkedClustering(2, effort="quick", random_state=0).fit(scaled).labels_
        model = LinkedClustering(2, effort="quick", random_state=0).fit(scaled, constraints=links)
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, model.labels_)
    pictures = {}
    for name, labels in {"truth": y, "without": plain, "with": model.labels_}.items():
        figure, ax = new_figure(size=(3.4, 3.2))
        named = match_clusters(y, labels).apply(labels)
        drawn = None if name == "truth" else links
        ClusterDisplay.from_predictions(X, named, constraints=drawn, ax=ax)
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        ax.set_axis_off()
        pictures[name] = png_of(figure)
    return Chapter(
        "The links choose the method",
        [
            f"{len(y)} points on two rings. An annotator was asked about {_RING_LINKS} pairs and is wrong "
            "one time in ten. Every method is fitted without some of the links and compared with them. The "
            "methods that keep most of them vote; here these are the ones that follow neighbours.",
            gain_in_words(model, links.n_pairs),
        ],
        [
            Gain(
                "two rings",
                f"{_RING_LINKS} pairs, one in ten wrong, {1 - _FLIP:.0%} sure",
                "accuracy",
                before,
                after,
            )
        ],
        candidate_table(model),
        [
            Illustration("rings_truth.png", pictures["truth"], "Two rings", "The truth."),
            Illustration(
                "rings_without.png",
                pictures["without"],
                "The rings cut across, many links broken",
                f"Without links: {before:.0%} right. Broken links are red.",
            ),
            Illustration(
                "rings_with.png",
                pictures["with"],
                "The two rings found, few links broken",
                f"With links: {after:.0%} right. Most broken links are wrong answers.",
            ),
        ],
        code="model = LinkedClustering(2).fit(X, constraints=links)\nprint(model.table())",
        command="linkwise fit points.csv --id id --links pairs.csv --certainty 0.9 -k 2 -o result",
    )
