"""
One cannot-link splits a continuum
==================================

Figure 3 of Lu & Carreira-Perpiñán (2008): forty samples without any gap, and one cannot-link between the 5th
and the 15th. Without it the normalised cut is in the middle, after sample 20. With it the affinities around
the two samples weaken and the cut moves between them. That needs a kernel that reaches from one to the other:
with a third of the width used here, the cut stops at sample 16.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import ConstrainedSpectralClustering, Constraints

BLUE, RED = "#0072B2", "#B03A00"

# %%
x = np.linspace(0.0, 4.0, 40)
link = Constraints(len(x), cannot_link=[(4, 14)])

# %%
# The second eigenvector changes from a slope to two plateaus.
figure, axes = plt.subplots(2, 3, figsize=(10, 5.8), layout="constrained")
for row, (title, links) in zip(axes, {"no link": None, "cannot-link 5–15": link}.items(), strict=True):
    model = ConstrainedSpectralClustering(2, affinity="rbf", sigma=0.6, random_state=0, softness=0.3)
    model.fit(x[:, np.newaxis], constraints=links)
    row[0].imshow(model.affinity_matrix_, cmap="Greys", vmin=0.0, vmax=1.0, extent=(0.5, 40.5, 40.5, 0.5))
    row[0].set_title(f"affinities, {title}", fontsize=11)
    second = model.embedding_[:, 1] / model.embedding_[:, 0]
    row[1].plot(np.arange(1, 41), second / np.abs(second).max(), color=BLUE)
    row[1].set_title("second eigenvector", fontsize=11)
    last = int(np.flatnonzero(np.diff(model.labels_))[0]) + 1
    for label, marker in ((0, "o"), (1, "s")):
        here = np.flatnonzero(model.labels_ == label)
        row[2].plot(here + 1, np.zeros(len(here)), marker, color="black", fillstyle="none", markersize=5)
    if links is not None:
        arc = np.linspace(0.0, np.pi, 50)
        row[2].plot(10 - 5 * np.cos(arc), 0.3 * np.sin(arc), color=RED, linestyle="--")
    row[2].axvline(last + 0.5, color="0.6", linewidth=1.0)
    row[2].set_ylim(-0.4, 0.6)
    row[2].set_yticks([])
    row[2].set_title(f"cut after sample {last}", fontsize=11)
for ax in axes[1]:
    ax.set_xlabel("sample")

plt.show()
