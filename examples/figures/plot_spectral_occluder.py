"""
A bar in front of a gradient
============================

An image of 16 x 16 pixels after figure 7 of Lu & Carreira-Perpiñán (2008): a grey bar in front of a
background that runs from dark to bright, so that the bar's outline vanishes in places and the bar cuts the
background in two. Without links the cut does not find the bar. With eight links, drawn by hand, it does: four
across the outline (dashed) and four that join what belongs together (solid).
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import ConstrainedSpectralClustering, Constraints
from linkwise.datasets import make_occluder
from linkwise.metrics import rand_score

BLUE, RED = "#0072B2", "#B03A00"

# %%
# A pixel is its place and its brightness.
image, truth = make_occluder(random_state=0)
row, column = np.indices(image.shape)
X = np.column_stack([row.ravel(), column.ravel(), 40.0 * image.ravel()])

must = [((2, 1), (13, 14)), ((13, 2), (2, 13)), ((2, 6), (13, 9)), ((8, 1), (8, 14))]
cannot = [((2, 2), (2, 6)), ((2, 11), (3, 7)), ((13, 5), (13, 9)), ((13, 14), (12, 9))]


def pixels(pairs):
    return [(16 * i[0] + i[1], 16 * j[0] + j[1]) for i, j in pairs]


links = Constraints(image.size, pixels(must), pixels(cannot))

# %%
# ``update`` clusters the same pixels again under the links.
model = ConstrainedSpectralClustering(2, softness=0.3, random_state=0).fit(X)
alone = model.labels_.reshape(image.shape)
linked = model.update(links).labels_.reshape(image.shape)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained")
axes[0].imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
for pairs, colour, line in ((must, BLUE, "-"), (cannot, RED, "--")):
    for first, second in pairs:
        axes[0].plot(*zip(first[::-1], second[::-1], strict=True), color=colour, linestyle=line, marker=".")
axes[0].set_title("image and links", fontsize=11)
for ax, labels, title in ((axes[1], alone, "without links"), (axes[2], linked, "with links")):
    ax.imshow(labels == labels[8, 7], cmap="Greys", vmin=-0.3, vmax=1.3)
    ax.contour(truth, levels=[0.5], colors=RED, linewidths=1.2)
    ax.set_title(f"{title}: Rand index {rand_score(truth.ravel(), labels.ravel()):.2f}", fontsize=11)
for ax in axes:
    ax.set_xticks([])
    ax.set_yticks([])
figure.supxlabel("red outline: the true bar", fontsize=10)

plt.show()
