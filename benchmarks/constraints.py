"""Building and checking links: the costs every user pays first."""

from __future__ import annotations

import numpy as np

from benchmarks._timing import best_of, print_table
from linkwise import Constraints


def run() -> None:
    n = 1_000_000
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, n, size=(n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = rng.integers(0, 10, size=n)
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    star = np.column_stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)])
    links = Constraints(n, pairs, weight=1.0)
    half = rng.permutation(n)[: n // 2]
    cases = {
        "build, 1e6 random soft pairs": lambda: Constraints(n, pairs, weight=1.0),
        "build, hard must-link chain of 1e6": lambda: Constraints(n, chain),
        "build, hard must-link star of 1e6": lambda: Constraints(n, star),
        "components, 1e6 random pairs": links.components,
        "components, chain of 1e6": Constraints(n, chain).components,
        "from_labels, 1e6 labels of 10 classes": lambda: Constraints.from_labels(y),
        "sample 1e6 overlapping pairs": lambda: Constraints.sample(
            y, n, overlap=True, certainty=0.9, random_state=0
        ),
        "from_grid 1000 x 1000": lambda: Constraints.from_grid((1000, 1000), weight=1.0),
        "links[half of the rows]": lambda: links[half],
        "violations": lambda: links.violations(y),
    }
    print_table(["work", "seconds"], [[name, best_of(case)[0]] for name, case in cases.items()])
