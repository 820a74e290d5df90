"""The contract of a session: what it asks, keeps, takes back, refuses, and labels."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from linkwise import Constraints
from linkwise.active import ActiveClustering, LabelOracle, landscape, long, session, suggest_pairs
from linkwise.active.strategies import strategy_names
from linkwise.datasets import load_bundled
from linkwise.exceptions import InfeasibleConstraints
from tests.repeats import LONG


def blobs(n=30, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return 5.0 * rng.standard_normal((k, 2))[y] + rng.standard_normal((n, 2)), y


def answer(one, person, n_answers):
    for _ in range(n_answers):
        i, j = one.ask()
        one.tell(i, j, person(i, j))
    return one


def state(one):
    """Everything that depends on the answers."""
    return one.ask(), one.labels_.tolist(), one.quality_, one.error_rate_, one.n_answers, one.doubts(0.0)


# --- asking -------------------------------------------------------------------------------------------------


def test_ask_gives_the_same_question_until_something_is_told():
    X, _ = blobs()
    one = ActiveClustering(X, random_state=0)
    first = one.ask()
    assert one.labels_.shape == (30,)
    assert len(one.quality_) == 3
    assert one.constraints.n_pairs == len(one.contradictions()) == 0
    assert one.ask() == first
    assert all(isinstance(row, int) for row in first)
    one.tell(*first, "different")
    assert set(one.ask()) != set(first)
    assert one.n_answers == 1


@pytest.mark.usefixtures("looked_at_anew")
def test_same_seed_same_session():
    X, y = blobs()
    runs = [answer(ActiveClustering(X, random_state=4), LabelOracle(y), 12) for _ in range(2)]
    assert runs[0].answers.pairs.tolist() == runs[1].answers.pairs.tolist()
    assert state(runs[0]) == state(runs[1])


@pytest.mark.parametrize("name", ["information", "random"])
def test_undo_restores_everything(name, monkeypatch):
    # Looks that give several questions come early, so that steps inside of such a look are undone too.
    monkeypatch.setattr(long, "_ANSWERS_PER_QUESTION", 3)
    X, y = blobs(20)
    person = LabelOracle(y, error_rate=0.1, unsure_rate=0.1, random_state=0)
    one = ActiveClustering(X, strategy=name, random_state=1)
    states = [state(one)]
    for _ in range(11):
        answer(one, person, 1)
        states.append(state(one))
    for before in states[-2::-1]:
        one.undo()
        assert state(one) == before
    with pytest.raises(ValueError, match="no answer to take back"):
        one.undo()


def test_retract_equals_never_told():
    X, y = blobs(20)
    one = answer(ActiveClustering(X, random_state=1), LabelOracle(y), 6)
    pairs = one.answers.pairs.tolist()
    one.retract(2)
    other = ActiveClustering(X, random_state=1)
    for i, j in pairs[:2] + pairs[3:]:
        other.tell(i, j, LabelOracle(y)(i, j))
    assert state(one) == state(other)
    one.undo()
    assert one.answers.pairs.tolist() == pairs


@pytest.mark.parametrize("n_answers", [0, 5, 9])
def test_resumed_session_goes_on_as_if_nothing_had_happened(n_answers, tmp_path, monkeypatch):
    monkeypatch.setattr(long, "_ANSWERS_PER_QUESTION", 3)
    X, y = blobs(20)
    person = LabelOracle(y, error_rate=0.1, random_state=0)
    path = tmp_path / "answers.jsonl"
    with ActiveClustering(X, journal=path, random_state=5) as one:
        answer(one, person, n_answers)
        before = state(one)
    # The journal keeps the seed: another one, or none, changes nothing.
    with ActiveClustering(X, journal=path) as resumed:
        assert state(resumed) == before
        answer(resumed, person, 4)
        whole = answer(ActiveClustering(X, random_state=5), person, n_answers + 4)
        assert state(resumed) == state(whole)


@pytest.mark.usefixtures("fewest_candidates")
def test_more_rows_than_landmarks(monkeypatch, tmp_path):
    monkeypatch.setattr(session, "N_LANDMARKS", 24)
    X, y = blobs(60)
    path = tmp_path / "answers.jsonl"
    person = LabelOracle(y)
    with ActiveClustering(X, journal=path, random_state=0) as one:
        answer(one, person, 3)
        outside = np.setdiff1d(np.arange(60), one._knowledge.surveyed.rows)[:2].tolist()
        before = state(one)
        one.tell(*outside, person(*outside))
        assert np.isin(outside, one._knowledge.surveyed.rows).all()
        one.undo()
        assert state(one) == before
        one.tell(*outside, person(*outside))
        # So many answers that more landmarks are needed than at first.
        answer(one, person, 24)
        assert len(one._knowledge.surveyed.rows) == 30
        after = state(one)
        assert one.labels_.shape == (60,)
    with ActiveClustering(X, journal=path) as resumed:
        assert state(resumed) == after


def test_unsure_pairs_are_not_asked_again():
    X, _ = blobs(7)
    one = ActiveClustering(X, random_state=0)
    seen = set()
    for _ in range(21):
        pair = one.ask()
        assert frozenset(pair) not in seen
        seen.add(frozenset(pair))
        one.tell(*pair, "unsure")
        assert one.labels_.shape == (7,)
    with pytest.raises(ValueError, match="every pair was asked about"):
        one.ask()
    assert one.constraints.n_pairs == 0


def manhattan(a, b):
    return float(np.abs(a - b).sum())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("n_clusters", "metric"), [("auto", "euclidean"), (2, "precomputed"), ("auto", manhattan), (2, manhattan)]
)
@pytest.mark.parametrize("name", sorted({*strategy_names(), "auto"}))
def test_sessions_run_until_every_pair_was_asked_about(name, n_clusters, metric):
    for n in (2, 3, 4):
        X, y = blobs(n, k=2, seed=n)
        given = cdist(X, X) if metric == "precomputed" else X
        one = ActiveClustering(given, n_clusters=n_clusters, strategy=name, metric=metric, random_state=0)
        seen = set()
        for _ in range(n * (n - 1) // 2):
            i, j = one.ask()
            assert i != j
            assert frozenset((i, j)) not in seen
            seen.add(frozenset((i, j)))
            one.tell(i, j, "same" if y[i] == y[j] else "different")
        with pytest.raises(ValueError, match="every pair was asked about; there is nothing left to ask"):
            one.ask()
        # Everything was told, so everything is known.
        np.testing.assert_array_equal(one.labels_[:, None] == one.labels_, y[:, None] == y)


def test_own_strategy():
    X, _ = blobs(10)
    calls = []

    def first_pairs(knowledge, n_pairs, rng):
        calls.append((knowledge.n_samples, n_pairs, len(knowledge.answers.says)))
        return [(0, 1 + len(knowledge.asked))]

    one = ActiveClustering(X, strategy=first_pairs, random_state=0)
    one.tell(*one.ask(), "same")
    assert one.ask() == (0, 2)
    assert calls == [(10, 1, 0), (10, 1, 1)]


# --- what is known ------------------------------------------------------------------------------------------


def test_constraints_are_those_given_and_those_told():
    X, _ = blobs(8)
    given = Constraints(8, [(0, 3)], [(1, 2)], certainty=[0.8, 1.0])
    one = ActiveClustering(X, given, random_state=0)
    assert one.constraints.pairs.tolist() == given.pairs.tolist()
    np.testing.assert_allclose(one.constraints.weights, given.weights)
    one.tell(4, 5, "same", certainty=0.9)
    one.tell(0, 3, "same", certainty=0.8)
    one.tell(6, 7, "different", certainty=1.0)
    one.tell(2, 7, "unsure")
    one.tell(0, 1, "different", source="ann")
    found = {
        tuple(p): w for p, w in zip(one.constraints.pairs.tolist(), one.constraints.weights, strict=True)
    }
    learned = 1.0 - one.error_rate_
    assert 0.9 < learned < 1.0

    def weight(certainty):
        return 0.5 * np.log(certainty / (1.0 - certainty))

    assert found == {
        (0, 3): pytest.approx(2.0 * weight(0.8)),
        (1, 2): -np.inf,
        (4, 5): pytest.approx(weight(0.9)),
        (6, 7): -np.inf,
        (0, 1): pytest.approx(-weight(min(learned, 0.99))),
    }


@pytest.mark.usefixtures("fewest_candidates")
def test_given_links_are_known_and_not_asked_about():
    X, y = blobs(9)
    pairs = [(i, j) for i in range(9) for j in range(i)]
    same = [p for p in pairs if y[p[0]] == y[p[1]]]
    different = [p for p in pairs if y[p[0]] != y[p[1]]][1:]
    left = next(p for p in pairs if y[p[0]] != y[p[1]])
    one = ActiveClustering(X, Constraints(9, same, different), n_clusters=3, random_state=0)
    assert one.n_answers == 0
    assert set(one.ask()) == set(left)
    np.testing.assert_array_equal(one.labels_[:, None] == one.labels_, y[:, None] == y)


@pytest.mark.usefixtures("fewest_candidates")
def test_rows_and_links_are_matched_by_id():
    pd = pytest.importorskip("pandas")
    X, _ = blobs(10)
    ids = [f"id{k}" for k in range(10)]
    shuffled = np.random.default_rng(0).permutation(10)
    links = Constraints(10, [("id0", "id3")], [("id0", "id1")], index=ids)
    frame = pd.DataFrame(X, index=ids).iloc[shuffled]
    one = ActiveClustering(frame, links, random_state=0)
    place = np.argsort(shuffled)
    expected = sorted([sorted((place[0], place[3])), sorted((place[0], place[1]))])
    assert one.constraints.pairs.tolist() == expected
    plain = ActiveClustering(X[shuffled], links.with_index(None)[shuffled], random_state=0)
    assert state(one) == state(plain)
    one.tell(int(place[4]), int(place[7]), "same")
    assert sorted((place[4], place[7])) in one.constraints.pairs.tolist()


def test_facts_that_contradict_each_other_are_refused_and_not_kept(tmp_path):
    X, _ = blobs(8)
    path = tmp_path / "answers.jsonl"
    one = ActiveClustering(X, Constraints(8, [(0, 1)]), journal=path, random_state=0)
    one.tell(1, 2, "same", certainty=1.0)
    question, content = one.ask(), path.read_bytes()
    with pytest.raises(InfeasibleConstraints) as caught:
        one.tell(2, 0, "different", certainty=1.0)
    assert set(caught.value.witness.must_link) == {(0, 1), (1, 2)}
    assert path.read_bytes() == content
    assert (one.n_answers, one.ask()) == (1, question)
    # The same answer as an opinion is kept, and it is the one that is doubted.
    one.tell(2, 0, "different")
    assert one.doubts()[0][:4] == (1, 2, 0, "different")
    assert one.labels_[0] == one.labels_[1] == one.labels_[2]
    (chain,) = ActiveClustering(X, random_state=0).contradictions() or [None]
    assert chain is None


def test_facts_that_need_more_clusters_are_refused():
    X, _ = blobs(8)
    one = ActiveClustering(X, n_clusters=2, random_state=0)
    one.tell(0, 1, "different", certainty=1.0)
    one.tell(1, 2, "different", certainty=1.0)
    with pytest.raises(InfeasibleConstraints, match="n_clusters=2"):
        one.tell(0, 2, "different", certainty=1.0)
    assert one.n_answers == 2


def test_journal_whose_facts_contradict_the_links_is_refused_and_given_free(tmp_path):
    X, _ = blobs(8)
    path = tmp_path / "answers.jsonl"
    with ActiveClustering(X, journal=path, random_state=0) as one:
        one.tell(0, 1, "same", certainty=1.0)
    with pytest.raises(InfeasibleConstraints):
        ActiveClustering(X, Constraints(8, [], [(0, 1)]), journal=path)
    with ActiveClustering(X, journal=path) as again:
        assert again.n_answers == 1


@pytest.mark.usefixtures("fewer_candidates")  # with all of them 6 s: no cluster looks like the facts
@pytest.mark.parametrize("seed", range(1, 4 if LONG else 3))
def test_labels_keep_to_facts(seed):
    """Rows of any look: facts are about classes that the features know nothing of."""
    rng = np.random.default_rng(seed)
    X, y = blobs(24, seed=seed)
    y = rng.permutation(y)
    one = ActiveClustering(X, n_clusters=3 if seed % 2 else "auto", random_state=seed)
    for _ in range(15):
        i, j = one.ask()
        one.tell(i, j, "same" if y[i] == y[j] else "different", certainty=1.0)
        assert not one.constraints.violations(one.labels_).any()


@pytest.mark.parametrize("wrong", [0.0, 0.3])
@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_known_number_of_clusters_is_never_exceeded(n_clusters, wrong):
    X, y = blobs(25, k=5)
    person = LabelOracle(y, error_rate=wrong, random_state=0)
    one = ActiveClustering(X, n_clusters=n_clusters, random_state=0)
    for _ in range(10):
        assert one.labels_.max() < n_clusters
        assert one.n_clusters_ == len(np.unique(one.labels_)) <= n_clusters
        answer(one, person, 1)


def test_contradictions_and_doubts_name_the_wrong_answer():
    X, y = blobs(12)
    one = ActiveClustering(X, random_state=0)
    members = np.flatnonzero(y == 0).tolist()
    one.tell(members[0], members[1], "same", source="ann")
    one.tell(members[1], members[2], "same", source="ann")
    one.tell(members[2], members[3], "same", source="ann")
    one.tell(members[0], members[3], "same", source="ann")
    one.tell(members[0], members[2], "different", source="bob")
    (found,) = one.contradictions()
    assert found.answers == (0, 1, 4)
    (doubt, *_) = one.doubts()
    assert (doubt.answer, doubt.says, doubt.source) == (4, "different", "bob")
    assert doubt.probability > 0.5
    assert one.doubts(1.0 + 1e-9) == []


def test_hint_to_stop():
    X, y = load_bundled("iris")
    X, y = X[:100], y[:100]  # two classes that are far apart
    one = ActiveClustering(X, n_clusters=2, random_state=0)
    answer(one, LabelOracle(y), 2)
    assert one.should_stop_ == (False, "")
    answer(one, LabelOracle(y), 23)
    stop, reason = one.should_stop_
    assert stop
    assert reason
    np.testing.assert_array_equal(one.labels_[:, None] == one.labels_, y[:, None] == y)


def test_closed_session(tmp_path):
    X, _ = blobs(6)
    path = tmp_path / "answers.jsonl"
    one = ActiveClustering(X, journal=path, random_state=0)
    with pytest.raises(BlockingIOError, match="in use"):
        ActiveClustering(X, journal=path)
    one.close()
    with pytest.raises(ValueError, match="closed"):
        one.tell(0, 1, "same")
    assert one.n_answers == 0


# --- what is refused ----------------------------------------------------------------------------------------

BAD = {
    "X has 1 dimensions": {"X": np.arange(5.0)},
    "X has 0 dimensions": {"X": None},
    "X has complex numbers": {"X": np.ones((5, 2)) * 1j},
    "X[2, 1] is nan; fill in a number, or leave row 2 out": {"X": [[1, 2], [3, 4], [5, float("nan")]]},
    "X[0, 0] is inf": {"X": [[float("inf"), 2], [3, 4]]},
    "minimum of 2": {"X": [[1.0, 2.0]]},
    "n_clusters must be a whole number": {"n_clusters": 0},
    "n_clusters=9 clusters cannot be made of 6 rows": {"n_clusters": 9},
    "n_clusters='some' is not known": {"n_clusters": "some"},
    "strategy='best' is not known": {"strategy": "best"},
    "random_state must be a whole number": {"random_state": np.random.default_rng(0)},
    "constraints must be a linkwise.Constraints": {"constraints": [(0, 1)]},
    "constraints are about 5 samples": {"constraints": Constraints(5, [(0, 1)])},
    "metric='near' gives no distances (there is no metric of that name)": {"metric": "near"},
    "metric=3 gives no distances": {"metric": 3},
    "distance nan": {"metric": lambda a, b: float("nan")},
    "pass a square array": {"metric": "precomputed"},
    "X[0, 1] is a negative distance": {"X": np.eye(3) - 1.0, "metric": "precomputed"},
    "X[0, 0] is 1, but a row is at distance 0 from itself": {"X": np.eye(3), "metric": "precomputed"},
    "they need 3 clusters but n_clusters=2": {
        "constraints": Constraints(6, [], [(0, 1), (1, 2), (0, 2)]),
        "n_clusters": 2,
    },
}


@pytest.mark.parametrize("message", BAD)
@pytest.mark.parametrize("build", [ActiveClustering, suggest_pairs])
def test_bad_arguments_get_one_line(build, message):
    arguments = {"X": blobs(6)[0], "random_state": 0, **BAD[message]}
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as caught:
        build(arguments.pop("X"), arguments.pop("constraints", None), **arguments)
    assert "\n" not in str(caught.value)


TOLD_BADLY = {
    "the pair is (0, 0)": (0, 0, "same"),
    "the pair is (0, 6); pass two different rows of 0..5": (0, 6, "same"),
    "the pair is (0.5, 1)": (0.5, 1, "same"),
    "the pair is ('a', 1)": ("a", 1, "same"),
    "the answer is 'yes'; pass one of same, different, unsure": (0, 1, "yes"),
    "certainty is 0.5": (0, 1, "same", 0.5),
    "certainty is nan": (0, 1, "same", float("nan")),
    "source is 3": (0, 1, "same", None, 3),
}


@pytest.mark.parametrize("message", TOLD_BADLY)
def test_bad_answers_get_one_line_and_are_not_kept(message):
    one = ActiveClustering(blobs(6)[0], random_state=0)
    told = TOLD_BADLY[message]
    for arguments in (told, (*told, 1.0) if len(told) == 3 else told):  # also as a fact
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            one.tell(*arguments)
        assert "\n" not in str(caught.value)
    assert one.n_answers == 0


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 6)], "asks about (0, 6)"),
        ([(2, 2)], "asks about (2, 2)"),
        (None, "shape ()"),
        ([0.5, 1], "shape"),
    ],
)
def test_strategy_that_returns_no_pairs(pairs, message):
    one = ActiveClustering(blobs(6)[0], strategy=lambda knowledge, n_pairs, rng: pairs, random_state=0)
    with pytest.raises(ValueError, match=re.escape(message)):
        one.ask()


def test_dask_is_refused():
    array = pytest.importorskip("dask.array")
    for build in (ActiveClustering, suggest_pairs):
        with pytest.raises(TypeError, match="of Dask"):
            build(array.from_array(blobs(6)[0]))


def test_metric_that_fails_later():
    X, _ = blobs(8)

    def broken(a, b):
        return float("nan") if (a == X[7]).all() or (b == X[7]).all() else manhattan(a, b)

    with pytest.raises(ValueError, match="and 7 have no finite distance"):
        ActiveClustering(X, metric=broken, random_state=0).ask()


# --- suggestions --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fewest_candidates")
def test_suggested_pairs():
    X, _ = blobs(20)
    links = Constraints(20, [(0, 3)], [(0, 1)])
    pairs = suggest_pairs(X, links, n_pairs=6, random_state=2)
    assert pairs.shape == (6, 2)
    codes = {frozenset(pair) for pair in pairs.tolist()}
    assert len(codes) == 6
    assert not codes & {frozenset((0, 3)), frozenset((0, 1))}
    np.testing.assert_array_equal(pairs, suggest_pairs(X, links, n_pairs=6, random_state=2))
    # The first one is what a session would ask.
    assert tuple(pairs[0]) == ActiveClustering(X, links, random_state=2).ask()
    assert len(suggest_pairs(X[:4], n_pairs=50, random_state=0)) == 6


def test_session_suggests_pairs_that_can_be_answered_at_the_same_time():
    X, y = blobs()
    one = answer(ActiveClustering(X, random_state=0), LabelOracle(y), 6)
    pairs = one.suggest(5)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 5
    told = {frozenset(pair) for pair in one.answers.pairs.tolist()}
    assert not told & {frozenset(pair) for pair in pairs.tolist()}
    assert tuple(pairs[0]) == one.ask()
    assert one.n_answers == 6


def test_probabilities_of_clusters_lead_to_the_labels(monkeypatch):
    monkeypatch.setattr(session, "N_LANDMARKS", 24)
    X, y = blobs(60)
    one = answer(ActiveClustering(X, random_state=0), LabelOracle(y), 15)
    landmark = one.landmark_of_
    assert np.array_equal(landmark[landmark], landmark)
    assert np.array_equal(one.labels_[landmark], one.labels_)
    assert len(np.unique(landmark)) == 24
    prob = one.cluster_probabilities(np.arange(60))
    assert prob.shape == (60, one.n_clusters_ + 1)
    assert (prob >= 0.0).all()
    assert (prob.sum(axis=1) <= 1.0 + 1e-9).all()
    found = prob[:, -1] < 0.5
    assert found.mean() > 0.8
    np.testing.assert_array_equal(prob[found, :-1].argmax(axis=1), one.labels_[found])


def test_few_landmarks_by_default():
    assert session.N_LANDMARKS == landscape.N_LANDMARKS <= 1000


# --- odd rows -----------------------------------------------------------------------------------------------

ODD = {
    "all rows equal": np.full((24, 2), 3.0),
    "one feature": blobs(24)[0][:, :1],
    "duplicates": np.repeat(blobs(4)[0], 6, axis=0),
    "tiny": 1e-12 * blobs(24)[0],
    "huge": 1e12 * blobs(24)[0],
    "far from 0": 1e9 + blobs(24)[0],
    "single precision": blobs(24)[0].astype(np.float32),
    "more features than rows": np.random.default_rng(0).standard_normal((24, 40)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_clusters", ["auto", 3])
@pytest.mark.parametrize("name", ODD)
def test_odd_rows(name, n_clusters):
    y = np.arange(24) % 3
    one = ActiveClustering(ODD[name], n_clusters=n_clusters, random_state=0)
    answer(one, LabelOracle(y), 6)
    assert one.labels_.shape == (24,)
    low, estimate, high = one.quality_.low, one.quality_.estimate, one.quality_.high
    assert 0.0 <= low <= estimate <= high <= 1.0


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_unit_of_the_rows_does_not_matter(scale):
    X, y = blobs(24)
    plain, scaled = (answer(ActiveClustering(Z, random_state=0), LabelOracle(y), 8) for Z in (X, scale * X))
    np.testing.assert_array_equal(plain.answers.pairs[:3], scaled.answers.pairs[:3])
    same = [(one.labels_[:, None] == one.labels_) for one in (plain, scaled)]
    assert (same[0] == same[1]).mean() > 0.9


@pytest.mark.filterwarnings("error")
def test_answers_that_contradict_each_other_massively():
    X, _ = blobs(24)
    one = ActiveClustering(X, random_state=0)
    for _ in range(15):
        i, j = one.ask()
        one.tell(i, j, "same")
        one.tell(j, i, "different")
    assert len(one.contradictions()) == 15
    assert one.error_rate_ > 0.3
    assert one.constraints.n_pairs <= 15
    assert not one.should_stop_.stop


def labels_of_six_clusters(n_links, certainty, n_clusters):
    """True labels of six clusters far apart, and those of a session with right links and right answers."""
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=90)
    X = 3.0 * rng.normal(size=(6, 8))[y] + rng.normal(size=(90, 8))
    links = Constraints.sample(y, n_links, overlap=True, certainty=certainty, random_state=0)
    session = ActiveClustering(X, links, n_clusters=n_clusters, random_state=0)
    person = LabelOracle(y)
    for _ in range(10):
        i, j = session.ask()
        session.tell(i, j, person(i, j))
    return y, session.labels_


@pytest.mark.parametrize(("n_links", "certainty"), [(5, None), (20, 0.95)])
def test_links_given_at_first_do_no_harm(n_links, certainty):
    """Six clusters far apart are found without links; right links and right answers leave them so."""
    assert adjusted_rand_score(*labels_of_six_clusters(n_links, certainty, "auto")) > 0.9


@pytest.mark.usefixtures("all_candidates")  # this once: 2 s
def test_many_links_given_at_first_do_no_harm():
    assert adjusted_rand_score(*labels_of_six_clusters(60, None, 6)) > 0.9


def test_probabilities_that_do_not_come_to_rest_are_told():
    X, y = load_bundled("iris")
    one = answer(ActiveClustering(X, random_state=0), LabelOracle(y), 6)
    assert one.converged_
    knowledge = one._knowledge
    knowledge.__dict__["posterior"] = dataclasses.replace(knowledge.posterior, converged=False)
    assert not one.converged_
    with pytest.warns(ConvergenceWarning, match="after 6 answers"):
        one.labels_  # noqa: B018


@pytest.mark.parametrize("seed", [0, 2] if LONG else [2])
def test_few_answers_about_pairs_at_random_leave_good_clusters_alone(seed):
    """They find few groups of their own; the clusters without answers are good, and agree with them."""
    X, y = load_bundled("wine")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:150]
    X, y = (X[rows] - X.mean(axis=0)) / X.std(axis=0), y[rows]
    one = ActiveClustering(X, random_state=seed)
    before = adjusted_rand_score(y, one.labels_)
    assert before > 0.85
    for i, j in rng.permuted(np.tile(np.arange(150), (25, 1)), axis=1)[:, :2].tolist():
        one.tell(i, j, "same" if y[i] == y[j] else "different")
    assert adjusted_rand_score(y, one.labels_) > before - 0.03


def test_answers_of_another_person_are_taken_once(tmp_path):
    X, _ = blobs(12)
    paths = [tmp_path / name for name in ("ann.journal", "bob.journal")]
    ann = ActiveClustering(X, journal=paths[0], random_state=0)
    ann.tell(0, 1, "different", 0.9, "Ann")
    ann.tell(0, 3, "same")
    ann.tell(4, 5, "unsure", source="Ann")
    ann.tell(2, 5, "same", 1.0, "Ann")
    with ActiveClustering(X, journal=paths[1], random_state=0) as bob:
        bob.tell(0, 1, "different", 0.9, "Bob")
        assert bob.merge(paths[0]) == 4  # while Ann goes on
        ann.tell(0, 1, "same", 0.9, "Ann")  # she changes her mind
        assert [bob.merge(paths[0]), bob.merge(paths[0])] == [1, 0]
        together = bob.answers
    ann.close()
    assert together.pairs.tolist() == [[0, 1], [0, 1], [0, 3], [4, 5], [2, 5], [0, 1]]
    assert together.says.tolist() == [-1, -1, 1, 0, 1, 1]
    assert together.source == ("Bob", "Ann", "ann.journal", "Ann", "Ann", "Ann")
    np.testing.assert_array_equal(together.certainty, [0.9, 0.9, np.nan, np.nan, 1.0, 0.9])
    with ActiveClustering(X, journal=paths[1], random_state=0) as again:  # they are on disk
        assert again.answers.source == together.source


def test_merging_refuses_whole(tmp_path):
    X, _ = blobs(12)
    path, other = tmp_path / "one.journal", tmp_path / "other.journal"
    with ActiveClustering(X, journal=path, random_state=0) as one:
        one.tell(0, 1, "same")
        one.tell(0, 3, "same", 1.0)
        with ActiveClustering(X, random_state=0) as mine:
            mine.tell(0, 3, "different", 1.0)
            with pytest.raises(InfeasibleConstraints):
                mine.merge(path)
            assert mine.n_answers == 1  # not even the answer that contradicts nothing
        with pytest.raises(ValueError, match="journal of this session"):
            one.merge(path)
        with pytest.raises(FileNotFoundError):
            one.merge(other)
    with (
        ActiveClustering(X + 1.0, random_state=0) as elsewhere,
        pytest.raises(ValueError, match="about other data"),
    ):
        elsewhere.merge(path)
