"""
Did it converge?
================

The objective of every iteration is kept. Left, the penalised likelihood of PPC from three starts: it rises
at every step, and the starts end at different heights, which is what ``n_init`` is for. Right, the cost of
HMRF-KMeans with and without a learned metric: it never rises, neither by labels nor by centres nor by the
metric.
"""

import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, Constraints, HMRFKMeans
from linkwise.datasets import load_bundled
from linkwise.displays import ConvergenceDisplay

X, y = load_bundled("wine")
X = StandardScaler().fit_transform(X)
links = Constraints.sample(y, 60, certainty=0.95, random_state=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.2), layout="constrained")
mixtures = {
    f"start {seed}": PPC(3, covariance_type="diag", init_params="random", tol=1e-5, random_state=seed).fit(
        X, constraints=links
    )
    for seed in range(3)
}
ConvergenceDisplay.from_estimator(mixtures, ax=left)
left.set_title("PPC")
kmeans = {
    str(metric): HMRFKMeans(3, metric=metric, random_state=0).fit(X, constraints=links)
    for metric in [None, "diag"]
}
ConvergenceDisplay.from_estimator(kmeans, ax=right)
right.set_title("HMRF-KMeans, metric")
plt.show()
