"""The chapters of the demo: pixels, people, and what links and beliefs choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._arrays import Ints
from linkwise._pages import TextTable
from linkwise.cli.output import Output

if TYPE_CHECKING:
    from linkwise.cli.images import Picture
    from linkwise.constraints import Constraints


@dataclass(frozen=True)
class Gain:
    """One row of the table: a score without and with what people know."""

    task: str
    knowledge: str
    measure: str
    without: float
    with_it: float


@dataclass(frozen=True)
class Illustration:
    """A picture of the report, and the name of its file."""

    name: str
    png: bytes
    description: str
    caption: str


@dataclass(frozen=True)
class Chapter:
    """One part of the demo: text, pictures beside each other, tables, and how to do the same."""

    title: str
    text: list[str]
    gain: list[Gain]
    tables: list[TextTable]
    pictures: list[Illustration] = field(default_factory=list)
    code: str = ""
    command: str = ""


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


_PIXEL_LINKS = 40


def _panel(picture: Picture, labels: Ints | None, links: Constraints | None = None) -> bytes:
    """Draw the image with links, or a map of labels, by itself, so that it can be read on a phone."""
    from matplotlib.colors import ListedColormap

    from linkwise._pages import new_figure, png_of
    from linkwise.displays._drawing import COLOURS

    figure, ax = new_figure(size=(3.2, 3.2))
    if labels is None:
        ax.imshow(picture.shown(), cmap="gray", interpolation="nearest")
    else:
        painted = picture.paint(labels)
        colours = ListedColormap(list(COLOURS[: int(painted.max()) + 1]))
        ax.imshow(painted, cmap=colours, interpolation="nearest")
    if links is not None:
        picture.draw_links(ax, links)
    ax.set_axis_off()
    return png_of(figure)


def _views(
    name: str,
    picture: Picture,
    labels: tuple[Ints, Ints, Ints],
    told: list[tuple[str, str]],
    links: Constraints | None = None,
) -> list[Illustration]:
    """The image with its links, the truth, and what was found without links and with them; told in words."""
    from linkwise.metrics import match_clusters

    truth, *found = labels
    maps = [None, truth, *(match_clusters(truth, one).apply(one) for one in found)]
    parts = zip(("image", "truth", "without", "with"), maps, told, strict=True)
    return [
        Illustration(f"{name}_{part}.png", _panel(picture, one, links if one is None else None), *words)
        for part, one, words in parts
    ]


def objects(out: Output) -> Chapter:
    """Objects that fade into the background, segmented with a few links between pixels."""
    from linkwise.cli import images
    from linkwise.cli.segment import segment_spectral
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_noisy_objects
    from linkwise.metrics import clustering_accuracy

    image, truth = make_noisy_objects(random_state=0)
    y = truth.ravel()
    picture = images.Picture(image[:, :, np.newaxis], np.ones(image.shape, dtype=bool))
    links = Constraints.sample(y, _PIXEL_LINKS, overlap=True, random_state=0)
    plain = segment_spectral(out, picture, 4, Constraints(len(y))).labels
    done = segment_spectral(out, picture, 4, links).labels
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, done)
    told = [
        (
            "A noisy grey image with 40 links drawn into it",
            "The image and the links. Solid: same thing, dashed: not.",
        ),
        ("The three true objects", "The truth."),
        (
            "Regions found without links, which ignore the objects",
            f"Without links: {before:.0%} of the pixels right.",
        ),
        ("Regions found with links, which follow the objects", f"With links: {after:.0%} right."),
    ]
    return Chapter(
        "Objects in an image, from 40 pairs of pixels",
        [
            f"A disc, a bar and a triangle whose brightness fades into the background, {image.shape[0]} x "
            f"{image.shape[1]} pixels. Of {_PIXEL_LINKS} pairs of pixels it is known whether they belong to "
            "the same thing. Each link also acts on the pixels near its two ends (Lu & Carreira-Perpiñán "
            "2008)."
        ],
        [Gain("shaded objects", f"{_PIXEL_LINKS} pairs of pixels", "pixels right", before, after)],
        [],
        _views("objects", picture, (y, plain, done), told, links),
        code="links = Constraints(n_pixels, must_link=same, cannot_link=different)\n"
        "ConstrainedSpectralClustering(4).fit(features, constraints=links).labels_",
        command="linkwise segment photo.png -k 4 --method spectral --links pixels.csv -o regions",
    )


def textures(out: Output) -> Chapter:
    """Four textures that are hard to tell from single blocks, segmented with links between neighbours."""
    from linkwise.cli import images
    from linkwise.cli.segment import segment_spatial
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_texture_mosaic
    from linkwise.metrics import clustering_accuracy

    block = 7
    image, truth = make_texture_mosaic(block=block, random_state=0)
    blocks = truth[::block, ::block]
    y = blocks.ravel()
    brightness = (image - image.min()) / np.ptp(image)
    picture = images.Picture(brightness[:, :, np.newaxis], np.ones(blocks.shape, dtype=bool), block)
    done = segment_spatial(out, picture, 4, Constraints(picture.n_samples), n_init=5)
    plain = done.by_colour
    assert plain is not None
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, done.labels)
    told = [
        ("Four textures in four quarters", "The image."),
        ("Four quarters", "The truth."),
        ("Blocks labelled one by one, speckled", f"Without links: {before:.0%} of the blocks right."),
        (
            "Blocks labelled with links between neighbours: four quarters",
            f"With links: {after:.0%} right.",
        ),
    ]
    return Chapter(
        "Textures, from the knowledge that neighbours belong together",
        [
            f"Four textures of equal brightness, cut into {picture.n_samples} blocks of {block} x {block} "
            "pixels. A single block is not enough to know its texture. That neighbouring blocks "
            "belong together, with a certainty of 0.9, is enough (Lu & Leen 2007, experiment 4)."
        ],
        [Gain("texture mosaic", "neighbours, 90% sure", "blocks right", before, after)],
        [],
        _views("textures", picture, (y, plain, done.labels), told),
        code="links = Constraints.from_grid((32, 32), certainty=0.9)\n"
        "PPC(4, warm_start=True).fit(blocks).fit(blocks, constraints=links).labels_",
        command="linkwise segment photo.png -k 4 --block 7 -o regions",
    )
