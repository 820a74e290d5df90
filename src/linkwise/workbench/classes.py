"""Beliefs about the present classes, kept on disk with every edit, and runs of CPPC with them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._arrays import Ints
from linkwise._files import replacing
from linkwise._tables import first_line
from linkwise.beliefs import ClassBeliefs
from linkwise.cli.classes import present_classes, propose_classes, read_beliefs
from linkwise.cli.samples import output_frame
from linkwise.cli.tables import write_csv, write_frame
from linkwise.workbench.desk import Missing
from linkwise.workbench.table import Table

if TYPE_CHECKING:
    import pandas

    from linkwise.mixture.classes.report import ClassReport
    from linkwise.mixture.cppc import CPPC

BELIEFS = "beliefs.csv"
# Runs of CPPC from different seeds, which the report compares.
_REPEATS = 3
_log = logging.getLogger("linkwise")


@dataclass(frozen=True)
class Run:
    """One run of CPPC: how far it is, and what came out."""

    status: str = "none"
    message: str = ""
    step: int = 0
    n_steps: int = _REPEATS + 1
    beliefs: ClassBeliefs | None = None
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None
    model: CPPC | None = None
    report: ClassReport | None = None
    accepted: str | None = None


class ClassDesk:
    """The classes of a table: beliefs that can be edited, and the run that redefines the classes."""

    def __init__(self, table: Table, folder: Path | None, *, seed: int = 0) -> None:
        assert table.label_column is not None
        self.table, self._folder, self._seed = table, folder, seed
        self.classes = present_classes(table.samples, table.label_column)
        self._path = None if folder is None else folder / BELIEFS
        self._lock = threading.Lock()
        self.beliefs = ClassBeliefs.keep(self.classes)
        if self._path is not None and self._path.exists():
            self.beliefs = read_beliefs(self._path, self.classes)
        self.run = Run()

    def table_of_beliefs(self) -> dict[str, Any]:
        """The beliefs, the size of each class, and the state of the run."""
        labels = self.table.samples.labels
        assert labels is not None
        counts = dict.fromkeys(self.classes, 0)
        for name in labels.tolist():
            if name in counts:
                counts[name] += 1
        return {
            "classes": [str(name) for name in self.classes],
            "counts": list(counts.values()),
            "beliefs": self.beliefs.values.tolist(),
            "run": self.run_state(),
        }

    def believe(self, i: int, j: int, belief: str) -> None:
        """Change one belief; when this returns it is on disk."""
        if max(i, j) >= len(self.classes):
            raise ValueError(f"there is no class {max(i, j)}; pass one of 0..{len(self.classes) - 1}")
        words = ("split", "keep", "unsure") if i == j else ("merge", "apart", "unsure")
        if belief not in words:
            about = "one class" if i == j else "two classes"
            raise ValueError(f"{belief!r} is no belief about {about}; choose {', '.join(words)}")
        first, second = self.classes[i], self.classes[j]
        with self._lock:
            edits: dict[str, Callable[[], ClassBeliefs]] = {
                "split": lambda: self.beliefs.split(first),
                "keep": lambda: self.beliefs.keep_whole(first),
                "merge": lambda: self.beliefs.merge(first, second),
                "apart": lambda: self.beliefs.separate(first, second),
                "unsure": lambda: (
                    self.beliefs.keep_whole(first, strength=0.0)
                    if i == j
                    else self.beliefs.merge(first, second, 0.0)
                ),
            }
            changed = edits[belief]()
            if self._path is not None:
                with replacing(self._path) as draft:
                    changed.to_csv(draft)
            self.beliefs = changed

    def start(self) -> None:
        """Begin a run with the beliefs as they are; refused while another one is at work."""
        with self._lock:
            if self.run.status == "running":
                raise ValueError("a run is at work already; wait for it")
            self.run = Run("running", "looking for evidence", beliefs=self.beliefs)
            threading.Thread(target=self._work, name="linkwise classes", daemon=True).start()

    def _work(self) -> None:
        """Run CPPC; called in a thread of its own."""
        beliefs = self.run.beliefs
        assert beliefs is not None
        try:
            model, report = propose_classes(
                self,  # type: ignore[arg-type]
                self.table.X, self.table.samples.labels, beliefs, {}, repeats=_REPEATS, seed=self._seed,
            )  # fmt: skip
        except Exception as error:
            _log.exception("the run of CPPC failed")
            self.run = replace(self.run, status="failed", message=first_line(error))
            return
        seconds = time.monotonic() - self.run.began
        self.run = replace(
            self.run,
            status="done",
            message="",
            step=self.run.n_steps,
            seconds=seconds,
            model=model,
            report=report,
        )

    @contextmanager
    def progress(self, task: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Count the steps of a run: what ``propose_classes`` calls."""
        self.run = replace(self.run, message=task)

        def advance() -> None:
            self.run = replace(self.run, step=self.run.step + 1)

        yield advance

    def run_state(self) -> dict[str, Any]:
        """The run as the page shows it."""
        run = self.run
        state: dict[str, Any] = {
            "status": run.status,
            "message": run.message,
            "iteration": run.step,
            "progress": run.step / run.n_steps if run.status == "running" else None,
            "seconds": run.seconds,
            "stale": run.report is not None and run.beliefs != self.beliefs,
            "accepted": run.accepted,
        }
        if run.report is None:
            return {
                **state,
                "lines": [],
                "splits": [],
                "merges": [],
                "kept": [],
                "table": None,
                "new_names": [],
            }
        report = run.report
        sentences: dict[str, list[str]] = {"split": [], "merged": [], "kept": [], "scattered": []}
        for decision in report.decisions:
            inside = report.contingency[:, list(decision.clusters)].sum(axis=0)
            into = ", ".join(
                f"{report.legend[cluster]} ({count} rows)"
                for cluster, count in zip(decision.clusters, inside.tolist(), strict=True)
            )
            who = " and ".join(str(name) for name in decision.classes)
            verb = {"split": "is split into", "merged": "are merged into", "kept": "stays:"}
            sentences[decision.kind].append(f"{who} {verb.get(decision.kind, 'is scattered:')} {into}")
        return {
            **state,
            "lines": str(report).splitlines(),
            "splits": sentences["split"],
            "merges": sentences["merged"],
            "kept": [*sentences["kept"], *sentences["scattered"]],
            "table": {
                "old": [str(name) for name in report.classes],
                "new": list(report.legend),
                "counts": report.contingency.tolist(),
            },
            "new_names": list(report.legend),
        }

    def _done(self) -> tuple[CPPC, ClassReport]:
        run = self.run
        if run.model is None or run.report is None:
            raise Missing("there is no proposal of new classes yet; run one first")
        return run.model, run.report

    def proposal(self) -> pandas.DataFrame:
        """The rows with their present and their new class."""
        model, report = self._done()
        labels: Ints = np.asarray(model.labels_)
        present = self.table.samples.labels
        assert present is not None
        results = {
            "new_class": np.array(report.legend, dtype=object)[labels],
            "cluster": labels,
            "probability": np.asarray(model.responsibilities_)[np.arange(len(labels)), labels],
        }
        kept = {str(self.table.label_column): [None if name is None else str(name) for name in present]}
        return output_frame(self.table.samples, results, kept, note=_log.info)

    def proposal_csv(self) -> str:
        """The same as CSV."""
        import io

        stream = io.StringIO()
        write_csv(self.proposal(), stream)
        return stream.getvalue()

    def report_html(self) -> str:
        """The report of the run as a page."""
        return self._done()[1].to_html()

    def accept(self) -> Path:
        """Write the new classes to a new file in the folder of the session; earlier ones stay."""
        frame = self.proposal()
        if self._folder is None:
            raise Missing("the session has no folder to write to; take classes.csv home instead")
        with self._lock:
            number = 1
            while (self._folder / f"classes-{number}.csv").exists():
                number += 1
            path = write_frame(self._folder / f"classes-{number}.csv", frame)
            self.run = replace(self.run, accepted=path.name)
        return path
