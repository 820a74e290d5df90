"""
States of a time series
=======================

A machine is idle, working or strained, and two noisy sensors overlap. Recordings of three days follow each
other. Links between consecutive moments of one day (``Constraints.from_sequence`` with breaks between the
days) tell the clustering that states last for some time, so single outliers are corrected.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import PPC, Constraints
from linkwise.metrics import clustering_accuracy, match_clusters

rng = np.random.default_rng(3)
day_length, n_days = 200, 3
states = []
for _ in range(n_days):
    day = []
    while len(day) < day_length:
        day += [int(rng.integers(3))] * int(rng.integers(15, 40))
    states += day[:day_length]
states = np.array(states)
X = np.array([[0.0, 0.0], [1.6, 0.4], [2.4, 2.0]])[states] + rng.normal(0.0, 0.8, (len(states), 2))

links = Constraints.from_sequence(len(X), breaks=[day_length, 2 * day_length], certainty=0.95)
alone = PPC(3, n_init=5, random_state=0).fit(X)
remembering = PPC(3, n_init=5, random_state=0).fit(X, constraints=links)
print("inference exact:", remembering.inference_["exact"], "by", remembering.inference_["method"])

figure, axes = plt.subplots(
    4, 1, figsize=(10, 6), layout="constrained", sharex=True, height_ratios=[3, 1, 1, 1]
)
axes[0].plot(X[:, 0], color="#0072B2", linewidth=0.9, label="sensor 1")
axes[0].plot(X[:, 1], color="#D55E00", linewidth=0.9, linestyle=(0, (3, 1)), label="sensor 2")
axes[0].legend(frameon=False, loc="upper right", ncols=2)
rows = {"truth": states, "alone": alone.labels_, "with links": remembering.labels_}
for ax, (name, labels) in zip(axes[1:], rows.items(), strict=True):
    matched = match_clusters(states, labels).apply(labels)
    ax.imshow(matched[None, :], aspect="auto", cmap="cividis", interpolation="nearest")
    ax.set_yticks([])
    title = name if name == "truth" else f"{name}: accuracy {clustering_accuracy(states, labels):.2f}"
    ax.set_title(title, loc="left", fontsize=10)
for ax in axes:
    for end in (day_length, 2 * day_length):
        ax.axvline(end - 0.5, color="red", linestyle="--", linewidth=1)
axes[-1].set_xlabel("moment (red: a new day)")
plt.show()
