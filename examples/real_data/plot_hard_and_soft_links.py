"""
Hard links under noise
======================

Half of the iris flowers are in linked pairs, and a growing share of the links is wrong. Hard links are always
kept, so wrong ones put flowers into the wrong cluster. Soft links with their true certainty may be broken
where the data contradict them.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import PPC, Constraints
from linkwise.datasets import load_bundled
from linkwise.metrics import clustering_accuracy

X, y = load_bundled("iris")
flip_rates = [0.0, 0.1, 0.2, 0.3]
n_draws = 5

scores = {"hard": [], "soft": []}
for flip in flip_rates:
    for kind, runs in scores.items():
        certainty = None if kind == "hard" else 1.0 - max(flip, 0.01)
        accuracies = []
        for seed in range(n_draws):
            links = Constraints.sample(y, 37, flip=flip, certainty=certainty, random_state=seed)
            # Right because pairs are drawn at random and every answer is kept; faster than the default.
            model = PPC(3, mixing="ignore", init_params="kmeans", n_init=2, random_state=seed)
            model.fit(X, constraints=links)
            accuracies.append(clustering_accuracy(y, model.labels_))
        runs.append(accuracies)
alone = clustering_accuracy(y, PPC(3, init_params="kmeans", n_init=5, random_state=0).fit_predict(X))

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (kind, runs), style in zip(scores.items(), ["s--", "o-"], strict=True):
    mean, error = np.mean(runs, axis=1), np.std(runs, axis=1, ddof=1) / np.sqrt(n_draws)
    colour = "#D55E00" if kind == "hard" else "#0072B2"
    ax.errorbar(flip_rates, mean, error, fmt=style, color=colour, capsize=3, label=f"{kind} links")
ax.axhline(alone, color="0.4", linestyle=":", label="no links")
ax.set_xlabel("share of wrong links")
ax.set_ylabel(f"accuracy (mean of {n_draws} draws ± standard error)")
ax.legend(frameon=False)
plt.show()
