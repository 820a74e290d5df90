"""Other packages as methods of the leaderboard, each in a process of its own that can be stopped."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.leaderboard import peer_fits
from experiments.leaderboard.methods import Method
from linkwise.constraints import Constraints

__all__ = ["PEERS", "TIME_LIMIT", "Peer", "PeerError", "PeerMissing", "PeerTimeLimit"]

#: Seconds after which a fit is stopped.
TIME_LIMIT = 20.0

#: Seconds to start a process and import a package.
START_LIMIT = 60.0


class PeerError(RuntimeError):
    """What a peer raised, its type first."""


class PeerMissing(PeerError):
    """The package is not installed."""


class PeerTimeLimit(PeerError):
    """The fit was stopped at its time limit."""


class Peer:
    """A peer of :data:`experiments.leaderboard.peer_fits.PEER_FITS` with the ``fit`` of an estimator.

    Peers have one weight for all links, their default: certainties and weights are not passed on. Nothing
    checks that links are kept, not even where the algorithm promises it.

    Fits run in a process of the package, which is used again; stopping a fit ends it. The environment
    variable ``LINKWISE_PEER_PYTHON`` names another Python (3.11 or newer) for it, where peers find older
    versions of their dependencies than linkwise needs: metric-learn 0.7 breaks with scikit-learn 1.8 and
    newer. Linkwise need not be installed there.

    Parameters
    ----------
    name : str
        "algorithm (package)".
    n_clusters, seed : int
    time_limit : float
        Seconds.

    Attributes
    ----------
    labels_ : (n,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.leaderboard.peers import Peer
    >>> peer = Peer("PCKMeans (active-semi-supervised-clustering)", n_clusters=2, seed=0)
    >>> peer.fit(np.array([[0.0], [0.1], [5.0], [5.1]])).labels_  # doctest: +SKIP
    array([0, 0, 1, 1])
    """

    def __init__(self, name: str, n_clusters: int, seed: int, time_limit: float = TIME_LIMIT) -> None:
        self.name = name
        self.n_clusters = n_clusters
        self.seed = seed
        self.time_limit = time_limit
        self._worker = _worker_of(name)

    def fit(self, X: NDArray[np.float64], constraints: Constraints | None = None) -> Peer:
        """Fit in the process of the package.

        Parameters
        ----------
        X : (n, d) float64
        constraints : Constraints, optional

        Returns
        -------
        self

        Raises
        ------
        PeerMissing, PeerTimeLimit, PeerError
        """
        links = Constraints(len(X)) if constraints is None else constraints
        job = {
            "name": self.name,
            "X": np.asarray(X, dtype=np.float64).tolist(),
            "must_link": links.must_link.tolist(),
            "cannot_link": links.cannot_link.tolist(),
            "n_clusters": self.n_clusters,
            "seed": self.seed,
        }
        self.labels_ = np.array(self._worker.ask(job, self.time_limit)["labels"], dtype=np.int64)
        return self


class _Worker:
    """A process that fits the peers of one package, one at a time."""

    def __init__(self, name: str, python: str) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        # -P: a module of this folder must not stand in for one that a peer imports.
        self._process = subprocess.Popen(
            [python, "-P", peer_fits.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, text=True,
        )  # fmt: skip
        self._answers: queue.Queue[str] = queue.Queue()
        self._failure: PeerError | None = None
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.ask({"name": name}, START_LIMIT)
        except PeerError as error:
            self._failure = error
            self._stop()

    def ask(self, job: dict[str, Any], time_limit: float) -> dict[str, Any]:
        """Answer to a job, or what kept the peer from answering."""
        if self._failure is not None:
            raise self._failure
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=time_limit)
        except queue.Empty:
            self._stop()
            raise PeerTimeLimit(f"time limit of {time_limit:g} s") from None
        except OSError:
            line = ""
        if not line:
            self._stop()
            raise PeerError(f"the process ended with code {self._process.returncode}")
        answer = json.loads(line)
        if "missing" in answer:
            raise PeerMissing(f"{answer['missing']} is not installed")
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def usable(self) -> bool:
        """Whether it can be asked again, or failed for good."""
        return self._failure is not None or self._process.poll() is None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()


#: By process (a forked one must not share pipes), Python and package.
_WORKERS: dict[tuple[int, str, str], _Worker] = {}


def _worker_of(name: str) -> _Worker:
    python = os.environ.get("LINKWISE_PEER_PYTHON", sys.executable)
    key = os.getpid(), python, peer_fits.PEER_FITS[name].package
    if key not in _WORKERS or not _WORKERS[key].usable():
        _WORKERS[key] = _Worker(name, python)
    return _WORKERS[key]


# Others of PEER_FITS break, take minutes, or repeat one of these.
_NAMES = (
    "PCKMeans (active-semi-supervised-clustering)",
    "MPCKMeans (active-semi-supervised-clustering)",
    "COPKMeans (active-semi-supervised-clustering)",
    "ITML + KMeans (metric-learn)",
    "RCA + KMeans (metric-learn)",
    "average linkage (constrained-linkage)",
    "SpectralClusterer (spectralcluster)",
)

#: Other packages with links, as methods of the leaderboard.
PEERS: dict[str, Method] = {
    f"peer {name}": Method(partial(Peer, name), peer_fits.PEER_FITS[name].links, "sklearn KMeans")
    for name in _NAMES
}
