"""Work that fits share: computed once, also by threads, and without an effect on any result."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import NamedTuple

import numpy as np
import pytest

from linkwise import ConstrainedSpectralClustering, Constraints, DiscriminativeClustering
from linkwise._shared_work import SharedWork, shared
from linkwise.auto.candidates import CANDIDATES
from linkwise.datasets import make_two_moons
from tests.repeats import LONG


class Counted:
    """Makes a value and counts how often."""

    def __init__(self, value):
        self.value, self.calls = value, 0

    def __call__(self):
        self.calls += 1
        return self.value


class TestValues:
    def test_each_is_found_once_for_its_key(self):
        work, first, second = SharedWork(), Counted(1), Counted(None)
        assert [work.get("a", first), work.get("b", second), work.get("a", second)] == [1, None, 1]
        assert work.get("b", first) is None
        assert (first.calls, second.calls) == (1, 1)

    def test_nothing_is_shared_without_shared_work(self):
        find = Counted(2)
        assert [shared(None, "a", find), shared(None, "a", find)] == [2, 2]
        assert find.calls == 2

    def test_threads_wait_for_the_one_that_is_first(self):
        work, find, together = SharedWork(), Counted(3), Barrier(4)

        def ask(_):
            together.wait()
            return work.get("a", find)

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(ask, range(4))) == [3] * 4
        assert find.calls == 1

    def test_a_value_may_be_made_of_others(self):
        work = SharedWork()
        assert work.get("sum", lambda: work.get("a", lambda: 1) + work.get("b", lambda: 2)) == 3

    def test_a_process_that_it_is_sent_to_begins_with_nothing(self):
        work, again = SharedWork(100), Counted(2)
        work.get("a", lambda: np.zeros(10))
        sent = pickle.loads(pickle.dumps(work))
        assert sent.get("a", again) == 2
        assert sent.get("b", lambda: np.zeros(10)) is sent.get("b", lambda: np.ones(10))
        assert sent.get("c", lambda: np.zeros(10)) is not sent.get("c", lambda: np.zeros(10))

    def test_one_that_fails_is_tried_again(self):
        work = SharedWork()

        def fails():
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            work.get("a", fails)
        assert work.get("a", lambda: 1) == 1

    def test_what_is_too_large_is_computed_each_time(self):
        class Pair(NamedTuple):
            first: np.ndarray
            second: list

        class Holder:
            def __init__(self):
                self.table = np.zeros(100)

        work = SharedWork(most_bytes=1000)
        finds = [
            Counted(value)
            for value in (np.zeros(50), Holder(), Pair(np.zeros(50), [np.zeros(50)]), np.zeros(70), "text")
        ]
        for _ in range(2):
            for number, find in enumerate(finds):
                assert work.get(number, find) is find.value
        # 400 bytes are kept, 800 and 800 do not fit beside them, 560 do.
        assert [find.calls for find in finds] == [1, 2, 2, 1, 1]


def links_of(kind, y):
    certainty = None if kind == "hard" else 0.9
    return Constraints.sample(y, 40, overlap=True, certainty=certainty, random_state=1)


NAMES = [name for name in CANDIDATES if name.startswith(("boundaries", "spectral"))]


class TestFits:
    @pytest.mark.parametrize("kind", ["soft", "hard"])
    def test_are_the_same_with_and_without(self, kind):
        X, y = make_two_moons(40, random_state=0)
        X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), 12 if LONG else 3))])
        links, work = links_of(kind, y), SharedWork()
        fewer = links[np.arange(len(y))]
        fewer = Constraints._from_signed(len(y), fewer.pairs[::2], fewer.weights[::2])
        for given in (links, fewer, links):
            for name in NAMES:
                alone = CANDIDATES[name].fit(X, given, 2, 3)
                sharing = CANDIDATES[name].fit(X, given, 2, 3, work)
                np.testing.assert_array_equal(sharing.labels_, alone.labels_)
                np.testing.assert_array_equal(sharing.violations_, alone.violations_)
                for attribute in ("coefficients_", "objectives_", "embedding_"):
                    if hasattr(alone, attribute):
                        np.testing.assert_array_equal(getattr(sharing, attribute), getattr(alone, attribute))
                np.testing.assert_array_equal(sharing.predict(X), alone.predict(X))

    def test_with_more_rows_than_boundaries_are_learned_from(self):
        X, y = make_two_moons(60, random_state=0)
        links, work = links_of("soft", y), SharedWork()
        for features, n_rows in (("rbf", 50), ("graph", 50), ("rbf", 60), ("rbf", 30)):
            model = DiscriminativeClustering(2, features=features, n_rows=n_rows, random_state=0)
            alone = model.fit(X, constraints=links).coefficients_
            np.testing.assert_array_equal(model._fit_sharing(work, X, links).coefficients_, alone)

    def test_of_other_settings_share_nothing_that_depends_on_them(self):
        X, y = make_two_moons(40, random_state=0)
        links, work = links_of("soft", y), SharedWork()
        for settings in (
            {},
            {"random_state": 1},
            {"width": 0.5},
            {"penalty": 9.0},
            {"whiten": True},
            {"n_clusters": 3},
        ):
            model = DiscriminativeClustering(**{"n_clusters": 2, "random_state": 0, **settings})
            alone = model.fit(X, constraints=links).coefficients_
            np.testing.assert_array_equal(model._fit_sharing(work, X, links).coefficients_, alone)
        for settings in ({}, {"n_neighbors": 5}, {"affinity": "rbf"}, {"sigma": 2.0, "affinity": "rbf"}):
            spectral = ConstrainedSpectralClustering(2, random_state=0, **settings)
            alone = spectral.fit(X, constraints=links).embedding_
            np.testing.assert_array_equal(spectral._fit_sharing(work, X, links).embedding_, alone)

    def test_links_can_be_changed_afterwards(self):
        X, y = make_two_moons(40, random_state=0)
        links = links_of("soft", y)
        model = ConstrainedSpectralClustering(2, random_state=0)._fit_sharing(SharedWork(), X, None)
        alone = ConstrainedSpectralClustering(2, random_state=0).fit(X, constraints=links)
        np.testing.assert_array_equal(model.update(links).labels_, alone.labels_)
