"""
Segment an image by spatial links
=================================

Four textures. A single block of 7 x 7 pixels is not enough to recognise its texture, so a mixture that treats
each block separately gives a speckled map. Soft must-links between neighbouring blocks, of certainty 0.97,
remove the speckles.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from linkwise import PPC, Constraints
from linkwise.datasets import make_texture_mosaic, texture_features
from linkwise.displays import ClassMapDisplay
from linkwise.metrics import clustering_accuracy, match_clusters

image, truth = make_texture_mosaic(random_state=0)
blocks, grid = texture_features(image)
true_blocks = truth[::7, ::7].ravel()
features = PCA(5, random_state=0).fit_transform(blocks)
neighbours = Constraints.from_grid(grid, certainty=0.97)

# Without links first, then with them from where that ended: from scratch, two thousand links would freeze
# whatever the start says. The links are about neighbours, not about sizes: keep the weights fixed.
model = PPC(4, mixing="fixed", n_init=5, warm_start=True, random_state=0)
alone = model.fit_predict(features)
together = model.fit_predict(features, constraints=neighbours)
print("inference:", model.inference_["method"])

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
axes[0].imshow(image, cmap="gray")
axes[0].set_title("image")
for ax, found, title in zip(
    axes[1:], [alone, together], ["each block alone", "with spatial links"], strict=True
):
    labels = match_clusters(true_blocks, found).apply(found)
    ClassMapDisplay.from_predictions(labels, grid, ax=ax)
    ax.set_title(f"{title}: accuracy {clustering_accuracy(true_blocks, labels):.2f}")
plt.show()
