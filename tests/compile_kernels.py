"""Compile the kernels that most tests need, in one process: ``make test`` does so while it lints.

Without it the workers of the tests would all compile them at the same time.
"""

from __future__ import annotations

import gc
import warnings
from contextlib import suppress

import numpy as np

import linkwise
from linkwise import Constraints
from linkwise._exports import ESTIMATORS
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.engines import engine_options


def main() -> None:
    """Solve fields of both forms of coupling by every engine, and fit every estimator in two precisions."""
    warnings.simplefilter("ignore")
    # What numba makes is kept for long: to look through it every 700 objects was 8 % of the time.
    gc.set_threshold(100_000, 20, 100)
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    X = 4.0 * rng.normal(size=(3, 2))[y] + rng.normal(size=(24, 2))
    links = Constraints.sample(y, 30, overlap=True, random_state=0)
    pairs, unary = links.pairs, rng.normal(size=(24, 3))
    for coupling in (4.0 * np.sign(links.weights), 4.0 * rng.normal(size=(len(pairs), 3))):
        field = PottsField(unary, pairs, coupling)
        for solve in (marginals, best_labels):
            for method in engine_options(solve.__name__):
                # Some engines are not for such a field.
                with suppress(ValueError, RuntimeError):
                    solve(field, method=method, random_state=0)
    soft = Constraints(24, links.must_link, links.cannot_link, certainty=0.9)
    for name in ESTIMATORS:
        for data, given in ((X, links), (X, soft), (X.astype(np.float32), links)):
            model = getattr(linkwise, name)(3, random_state=0)
            # Some estimators take hard links only.
            with suppress(ValueError):
                model.fit(data, **({"y": y} if name == "CPPC" else {"constraints": given}))


if __name__ == "__main__":
    main()
