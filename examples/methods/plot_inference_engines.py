"""
Engines on a grid
=================

A noisy picture of two colours, 40 x 40 pixels, neighbours linked. Which labels are most probable, all
together? ``icm`` stops at a local optimum far below; belief propagation comes close; and with two labels
``auto`` takes a minimum cut, which finds the best labelling and proves it. The best score need not be
nearest to the truth.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from linkwise import Constraints
from linkwise.inference import PottsField, best_labels

rng = np.random.default_rng(0)
row, column = np.mgrid[0:40, 0:40]
truth = ((row - 20) ** 2 + (column - 15) ** 2 < 130) | (np.abs(column - 33) < 4)
noisy = truth + rng.normal(0.0, 0.8, truth.shape)
scores = np.stack([-(noisy**2), -((noisy - 1) ** 2)], axis=-1).reshape(-1, 2) / (2 * 0.8**2)
links = Constraints.from_grid(truth.shape, certainty=0.8)
# A link of weight W is a coupling of 2 W nats.
field = PottsField(scores, links.pairs, 2.0 * links.weights)

figure, axes = plt.subplots(1, 5, figsize=(14, 3.4), layout="constrained")
axes[0].imshow(noisy, cmap="gray")
axes[0].set_title("scores")
axes[1].imshow(truth, cmap="gray", interpolation="nearest")
axes[1].set_title("truth")
for ax, method in zip(axes[2:], ["icm", "belief_propagation", "auto"], strict=True):
    best_labels(field, method, random_state=0)  # compiles
    begin = perf_counter()
    found = best_labels(field, method, random_state=0)
    spent = perf_counter() - begin
    right = (found.labels.reshape(truth.shape) == truth).mean()
    print(f"{method}: score {found.score:.1f}, right {right:.3f}, {1000 * spent:.0f} ms")
    ax.imshow(found.labels.reshape(truth.shape), cmap="gray", interpolation="nearest")
    ax.set_title(f"{method}\nscore {found.score:.1f}{', proven best' if found.optimal else ''}", fontsize=11)
for ax in axes:
    ax.set_axis_off()
plt.show()
