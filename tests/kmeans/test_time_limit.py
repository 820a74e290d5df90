"""COPKMeans within its time limit, and interrupted in the middle of a search."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from linkwise import Constraints, COPKMeans
from linkwise._running import run_interruptibly
from linkwise.graph import adjacency, group_labels
from linkwise.inference import best_labels
from linkwise.kmeans.hard.assignment import assign_chunklets
from linkwise.kmeans.hard.search import search_parts
from tests import warm_python
from tests.kmeans.hard.test_assignment import wide_case
from tests.kmeans.test_cop_kmeans import assert_falling


class Clock:
    """Stands for the clock of the search: every look at it takes ``step`` seconds."""

    def __init__(self, step):
        self.step = step
        self.now = 0.0

    def perf_counter(self):
        self.now += self.step
        return self.now


def use_clock(monkeypatch, step):
    clock = Clock(step)
    for module in ("assignment", "search"):
        monkeypatch.setattr(f"linkwise.kmeans.hard.{module}.time", clock)
    return clock


def vehicles(n=846, k=4, n_pairs=2000):
    """Rows, features and clusters of the vehicles data set, with cannot-links that the data do not show."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    X = 0.2 * rng.normal(size=(k, 18))[y] + rng.normal(size=(n, 18))
    links = Constraints.sample(y, n_pairs, overlap=True, random_state=0)
    return X, Constraints(n, cannot_link=links.cannot_link)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.ApproximationWarning")
class TestTimeLimit:
    def test_one_limit_for_all_starts_and_iterations(self, monkeypatch):
        X, links = vehicles(n=200, n_pairs=300)
        clock = use_clock(monkeypatch, 0.05)
        steps = []
        monkeypatch.setattr(
            "linkwise.kmeans.hard.descent.assign_chunklets",
            lambda *arguments, **options: steps.append(clock.now) or assign_chunklets(*arguments, **options),
        )
        model = COPKMeans(4, n_init=1000, time_limit=20.0, random_state=0).fit(X, constraints=links)
        assert 20.0 < clock.now < 30.0  # the grace, and the three steps of a start that had begun
        assert len(steps) > 10
        assert not links.violations(model.labels_).any()
        assert_falling(model.objectives_)

    def test_what_is_over_and_what_to_do(self, monkeypatch):
        X, links = vehicles(n=200, n_pairs=500)
        use_clock(monkeypatch, 0.5)
        with pytest.warns(
            ConvergenceWarning, match=r"time_limit=4.0 seconds sufficed for \d of n_init=90 starts"
        ):
            COPKMeans(4, n_init=90, time_limit=4.0, random_state=0).fit(X, constraints=links)
        with pytest.warns(
            ConvergenceWarning, match=r"still moving when time_limit=1.0 seconds were over; raise"
        ):
            model = COPKMeans(4, time_limit=1.0, random_state=0).fit(X, constraints=links)
        assert not model.converged_
        assert model.n_iter_ == 3
        assert not links.violations(model.labels_).any()

    def test_after_the_limit_no_work_grows_with_the_number_of_groups(self, monkeypatch):
        X, links = vehicles()
        use_clock(monkeypatch, 0.0)
        work, calls = [], []

        def counted_search(part, n_parts, *arguments, max_work, **options):
            work.append(n_parts * max_work)
            return search_parts(part, n_parts, *arguments, max_work=max_work, **options)

        def counted_labels(field, method, seed, **options):
            calls.append((method, options))
            return best_labels(field, method, seed, **options)

        monkeypatch.setattr("linkwise.kmeans.hard.assignment.search_parts", counted_search)
        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", counted_labels)
        # The clock stands still, and a limit of nothing is over at once.
        model = COPKMeans(4, n_init=2, time_limit=0.0, max_iter=3, random_state=0).fit(X, constraints=links)
        assert 0 < max(work) <= 10 * 10**6
        assert {method for method, _ in calls} == {"exact", "icm"}
        for method, options in calls:
            assert method != "exact" or (options["time_limit"] == 0.0 and options["max_table"] <= 2**16)
        assert not links.violations(model.labels_).any()

    def test_one_step_does_not_take_all_the_time_and_a_failed_proof_is_not_tried_again(self, monkeypatch):
        X, links = vehicles(n=200, n_pairs=800)
        groups, _ = group_labels(200, links.cannot_link)
        assert np.bincount(groups).max() > 190
        calls, steps = [], []

        def counted_labels(field, method, seed, **options):
            if options.get("time_limit", 0.0) > 0.0:
                calls.append((len(steps), options["time_limit"]))
            return best_labels(field, method, seed, **options)

        monkeypatch.setattr("linkwise.kmeans.hard.assignment.SEARCH_WORK", 10**4)
        monkeypatch.setattr("linkwise.kmeans.hard.assignment._LONGER_SEARCH", 1)
        monkeypatch.setattr("linkwise.kmeans.hard.assignment.best_labels", counted_labels)
        monkeypatch.setattr(
            "linkwise.kmeans.hard.descent.assign_chunklets",
            lambda *arguments, **options: steps.append(1) or assign_chunklets(*arguments, **options),
        )
        model = COPKMeans(4, n_init=3, time_limit=8.0, random_state=0).fit(X, constraints=links)
        assert len(steps) > 6
        # Integer programs for the one large group, which grows within the first step until one fails.
        assert {step for step, _ in calls} == {1}
        assert max(limit for _, limit in calls) <= 0.4  # a twentieth
        assert not links.violations(model.labels_).any()

    def test_a_limit_that_is_not_hit_changes_nothing(self, monkeypatch):
        X, links = vehicles(n=150, n_pairs=300)
        fits = []
        for step, limit in ((0.0, 1.0), (1.0, 1e9)):
            use_clock(monkeypatch, step)
            fits.append(COPKMeans(4, n_init=3, time_limit=limit, random_state=0).fit(X, constraints=links))
        np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
        np.testing.assert_array_equal(fits[0].objectives_, fits[1].objectives_)
        assert fits[0].inference_["exact"]

    def test_rows_without_links_know_no_time(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(300, 3))
        expected = COPKMeans(5, n_init=3, random_state=0).fit(X)
        use_clock(monkeypatch, 100.0)
        np.testing.assert_array_equal(
            COPKMeans(5, n_init=3, time_limit=0.0, random_state=0).fit(X).labels_, expected.labels_
        )


class TestSlicedSearch:
    def test_slices_give_what_one_call_gives(self, monkeypatch):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            n, k = 24, 3
            truth = rng.integers(k, size=n)
            pairs = np.array([(i, j) for i in range(n) for j in range(i) if truth[i] != truth[j]])
            pairs = pairs[rng.random(len(pairs)) < 0.25]
            part = np.unique(group_labels(n, pairs)[0], return_inverse=True)[1]
            cost = rng.random((n, k))
            results = []
            for size in (10**9, 1, 300):
                monkeypatch.setattr("linkwise.kmeans.hard.search._SLICE", size)
                for start in (None, truth):
                    results.append(
                        search_parts(part, part.max() + 1, cost, adjacency(n, pairs), start, max_work=40_000)
                    )
            for place, result in enumerate(results):
                for got, expected in zip(result, results[place % 2], strict=True):
                    np.testing.assert_array_equal(got, expected)

    def test_the_deadline_is_looked_at_between_slices(self, monkeypatch):
        clock = use_clock(monkeypatch, 1.0)
        monkeypatch.setattr("linkwise.kmeans.hard.search._SLICE", 10**4)
        links, cost, truth = wide_case(0)
        graph = adjacency(len(cost), links.cannot_link)
        part = np.zeros(len(cost), dtype=np.int64)
        labels, found, proven = search_parts(part, 1, cost, graph, truth, max_work=10**15, deadline=20.0)
        assert clock.now == 20.0
        assert not proven[0]
        assert found[0] == pytest.approx(cost[np.arange(len(cost)), labels].sum())
        assert not links.violations(labels).any()


#: A search without end in the kernel, or an integer program of an hour; it says when it is in the middle.
INTERRUPTED = {
    "search": """
        import linkwise.kmeans.hard.search as conflict_search
        hard_assignment.SEARCH_WORK = 10**15
        slices, search_slice = [], conflict_search._search_slice
        def slice_and_tell(*arguments):
            slices.append(1)
            if len(slices) == 5:
                print("searching", flush=True)
            return search_slice(*arguments)
        conflict_search._search_slice = slice_and_tell
    """,
    "integer program": """
        import linkwise.inference.local_polytope as milp
        hard_assignment.SEARCH_WORK = 0
        hard_assignment._LONGER_SEARCH = 0
        solve = milp.milp
        def tell_and_solve(*arguments, **options):
            print("searching", flush=True)
            return solve(*arguments, **options)
        milp.milp = tell_and_solve
    """,
    # Python needs four seconds to take itself apart, and the solver returns within them. It works for three,
    # so that a signal that comes late on a busy machine finds it at work.
    "integer program that returns meanwhile": """
        import time
        import linkwise.inference.local_polytope as milp
        class Slow:
            def __del__(self, sleep=time.sleep):
                sleep(4.0)
        kept = Slow()
        hard_assignment.SEARCH_WORK = 0
        hard_assignment._LONGER_SEARCH = 0
        solve = milp.milp
        def tell_and_solve(*arguments, options, **others):
            print("searching", flush=True)
            return solve(*arguments, options={**options, "time_limit": 3.0}, **others)
        milp.milp = tell_and_solve
    """,
}
CHILD = """
    import linkwise.kmeans.hard.assignment as hard_assignment
    from linkwise import COPKMeans
    from tests.kmeans.test_time_limit import vehicles
    X, links = vehicles(n_pairs=3500)
    COPKMeans(4, time_limit=3600.0, random_state=0).fit(X, constraints=links)
"""


class TestInterrupted:
    @pytest.mark.parametrize("place", sorted(INTERRUPTED))
    def test_control_c_is_a_keyboard_interrupt(self, place, tmp_path):
        lines = textwrap.dedent(CHILD).splitlines()
        program = "\n".join([*lines[:2], textwrap.dedent(INTERRUPTED[place]), *lines[2:]])
        child = warm_python.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout.readline() == "searching\n", child.communicate()[1]
            time.sleep(0.2)  # well inside the kernel or the solver
            child.send_signal(signal.SIGINT)
            errors = child.communicate(timeout=60)[1]
        finally:
            child.kill()
        assert child.returncode in (-signal.SIGINT, 130), errors
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
        assert "SystemError" not in errors


class TestRunInterruptibly:
    def test_results_errors_and_context(self):
        assert run_interruptibly(lambda: 5) == 5
        with pytest.raises(ZeroDivisionError, match="division"):
            run_interruptibly(lambda: 1 // 0)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            run_interruptibly(lambda: np.float64(1e300) ** 2)

    def test_in_another_thread_it_is_a_plain_call(self):
        seen = []
        worker = threading.Thread(
            target=lambda: run_interruptibly(lambda: seen.append(threading.current_thread()))
        )
        worker.start()
        worker.join()
        assert seen == [worker]

    def test_an_interrupt_does_not_wait_for_the_function(self):
        release = threading.Event()

        def wait():
            os.kill(os.getpid(), signal.SIGINT)
            return release.wait(60)

        # A job in the background of a shell ignores SIGINT, and hands that on.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                run_interruptibly(wait)
            assert not release.is_set()
        finally:
            release.set()
            signal.signal(signal.SIGINT, before)
