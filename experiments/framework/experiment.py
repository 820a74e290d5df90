"""An experiment: independent trials that may be run in parallel, stopped and taken up again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from experiments.framework.data_files import DataMissing
from experiments.framework.summary import Row, summarise
from experiments.framework.trials import Trial, TrialFile, source_state

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Outcome", "Size"]

#: What a trial's data were missing, in the outcome of a trial that was not run.
_MISSING = "DataMissing"


@dataclass(frozen=True)
class Size:
    """How much of an experiment is run.

    Attributes
    ----------
    settings : sequence of dict
        Every setting with the same keys, in the same order; values are numbers or text.
    n_draws : int
        Repetitions of every setting, numbered from 0. A draw fixes data, links and starts for all methods.
    """

    settings: Sequence[dict[str, Any]]
    n_draws: int


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes
    ----------
    table : list of dict
        The tidy table of :func:`experiments.framework.summary.summarise`.
    n_trials : int
        Trials in the table.
    skipped : dict of str to list
        Sentence about data that are missing, and the settings that need them.
    failed : list of Trial
        Trials that raised an error; they are tried again by the next run.
    seconds : float
        Sum over the trials in the table, measured when each was run.
    sources : dict of str to int
        States of the code (:func:`experiments.framework.trials.source_state`) and how many trials each ran.
    """

    table: list[Row]
    n_trials: int
    skipped: dict[str, list[dict[str, Any]]]
    failed: list[Trial]
    seconds: float
    sources: dict[str, int]


@dataclass(frozen=True)
class Experiment:
    """A claim put to the test: trials, how many of them, and what is compared.

    Attributes
    ----------
    name : str
        On the command line.
    title : str
        One line: what is measured.
    paper : str
        Whose experiment this is, and where it stands there.
    trial : callable
        ``trial(draw, **setting)`` returns rows, one for each method: a dict with "method" and the measures.
        All methods of a trial see the same data, links and starts.
    quick, full : Size
        A few minutes on two cores; and what is reported.
    measures : tuple of str
        Columns with numbers, of which means and confidence intervals are formed.
    reference : str, optional
        Method that the others are compared with, draw by draw.
    texts : tuple of str
        Columns with words; the table holds the most frequent one.
    axis : str, optional
        Setting along which a figure is drawn.
    alone : bool
        Times are measured, so trials run one after another.
    picture : callable, optional
        ``picture(path)`` writes a PNG that shows more than curves could; it may raise ``DataMissing``.
    chart : callable, optional
        ``chart(table)`` draws the tidy table in another way than by curves along the axis.
    methods : tuple of str
        Methods that can be run alone, with the same data, links and starts: the trial has a parameter
        ``methods``.
    """

    name: str
    title: str
    paper: str
    trial: Callable[..., list[Row]]
    quick: Size
    full: Size
    measures: tuple[str, ...]
    reference: str | None = None
    texts: tuple[str, ...] = ()
    axis: str | None = None
    alone: bool = False
    picture: Callable[[Path], None] | None = None
    chart: Callable[[list[Row]], Figure] | None = None
    methods: tuple[str, ...] = ()

    @property
    def has_figure(self) -> bool:
        """Whether there is something to draw."""
        return any(one is not None for one in (self.picture, self.chart, self.axis))

    def size(self, quick: bool) -> Size:
        """The quick or the full size."""
        return self.quick if quick else self.full

    def run(
        self,
        *,
        quick: bool = True,
        path: str | Path | None = None,
        n_jobs: int = 1,
        progress: Callable[[int, int], None] | None = None,
        only_stored: bool = False,
    ) -> Outcome:
        """Run the trials that a file does not hold yet, and summarise all of them.

        Parameters
        ----------
        quick : bool
        path : path, optional
            File of trials. A trial is stored as soon as it ends, so a run that is stopped goes on from there.
        n_jobs : int
            Processes.
        progress : callable, optional
            ``progress(done, total)`` is called at the start and after every trial.
        only_stored : bool
            Run nothing: summarise the trials that the file holds.

        Returns
        -------
        Outcome

        Examples
        --------
        >>> from experiments.framework.experiment import Experiment, Size
        >>> def trial(draw, size):
        ...     return [{"method": "twice", "value": 2.0 * size + draw}]
        >>> size = Size([{"size": 1}, {"size": 2}], n_draws=3)
        >>> experiment = Experiment("doubling", "", "", trial, size, size, measures=("value",))
        >>> outcome = experiment.run()
        >>> [(row["size"], row["method"], row["mean"]) for row in outcome.table]
        [(1, 'twice', 3.0), (2, 'twice', 5.0)]
        """
        size = self.size(quick)
        # Draws are the outer loop: a run that is cut short covers all settings.
        wanted = [Trial(dict(setting), draw) for draw in range(size.n_draws) for setting in size.settings]
        store = TrialFile(path)
        done = {trial.key: trial for trial in store.read()}
        missing = [trial for trial in wanted if trial.key not in done]
        n_before = len(wanted) - len(missing)
        if only_stored:
            missing = []
        if progress is not None:
            progress(n_before, len(wanted))
        skipped: dict[str, list[dict[str, Any]]] = {}
        failed = []
        finished = Parallel(n_jobs=1 if self.alone else n_jobs, return_as="generator_unordered")(
            delayed(_run_trial)(self.trial, trial) for trial in missing
        )
        for n_run, trial in enumerate(finished, start=1):
            if trial.error.startswith(_MISSING):
                reason = trial.error.removeprefix(f"{_MISSING}: ")
                settings = skipped.setdefault(reason, [])
                if trial.setting not in settings:
                    settings.append(trial.setting)
            elif trial.error:
                failed.append(trial)
            else:
                store.append(trial)
                done[trial.key] = trial
            if progress is not None:
                progress(n_before + n_run, len(wanted))
        trials = [done[trial.key] for trial in wanted if trial.key in done]
        places = {Trial(dict(setting), 0).key: place for place, setting in enumerate(size.settings)}
        trials.sort(key=lambda trial: places[trial._replace(draw=0).key])
        table = summarise(trials, self.measures, self.reference, self.texts)
        sources = dict(Counter(trial.source for trial in trials))
        return Outcome(table, len(trials), skipped, failed, sum(trial.seconds for trial in trials), sources)


def _run_trial(function: Callable[..., list[Row]], trial: Trial) -> Trial:
    """The trial with its rows, or with the error that ended it: one bad draw does not end a long run."""
    start = time.perf_counter()
    try:
        # Trials run side by side, and the threads of small matrix products wait for each other on a busy
        # machine: spectral fits took 20 times as long.
        with threadpool_limits(1):
            rows = function(trial.draw, **trial.setting)
    except DataMissing as error:
        return trial._replace(error=f"{_MISSING}: {error}")
    except Exception as error:
        return trial._replace(error=f"{type(error).__name__}: {error}")
    return trial._replace(rows=rows, seconds=time.perf_counter() - start, source=source_state())
