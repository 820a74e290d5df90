"""
How many links help
===================

Ten measurements of cells, benign or malignant; accuracy against the number of links. How much a method gains
depends on the shape of clusters that it assumes. Each point is the mean of three draws of the links, the band
one standard deviation.
"""

import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, COPKMeans, MPCKMeans
from linkwise.datasets import load_bundled
from linkwise.displays import LinkCurveDisplay

X, y = load_bundled("breast_cancer")
X = StandardScaler().fit_transform(X)[:, :10]

figure, ax = plt.subplots(figsize=(8.5, 4.4), layout="constrained")
LinkCurveDisplay.from_estimator(
    {
        "PPC, diagonal": PPC(2, covariance_type="diag", n_init=2),
        "MPCKMeans": MPCKMeans(2, n_init=2),
        "COPKMeans": COPKMeans(2, n_init=2),
    },
    X,
    y,
    n_links=[0, 50, 100, 200, 400],
    n_repeats=3,
    random_state=0,
    ax=ax,
)
plt.show()
