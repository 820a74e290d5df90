"""
How many clusters
=================

Nine classes were drawn from eleven Gaussians; classes 1 and 4 have two modes, 5 to 9 overlap.
``sweep_components`` fits CPPC for a range of K, several times each, and the criterion cBIC (likelihood,
number of parameters and beliefs) chooses. The dotted line tells how many clusters hold a row at all. Without
a range of K, CPPC divides and joins classes by itself, as far as there is evidence.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from linkwise import CPPC, ClassBeliefs
from linkwise.datasets import make_eleven_gaussians
from linkwise.displays import CriterionDisplay, SeparabilityDisplay
from linkwise.model_selection import sweep_components

X, y, _ = make_eleven_gaussians(random_state=0)
beliefs = ClassBeliefs.keep(range(1, 10)).keep_whole(1, strength=0.1).merge(2, 3, 0.5)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)  # empty clusters are drawn
    sweep = sweep_components(
        CPPC(beliefs=beliefs), X, y, n_components=range(8, 12), n_repeats=2, random_state=0
    )
print(sweep)

figure, (left, right) = plt.subplots(1, 2, figsize=(15, 5.4), layout="constrained")
CriterionDisplay.from_sweep(sweep, ax=left)
SeparabilityDisplay.from_estimator(sweep.best, ax=right)
right.set_title(f"separability of the classes, K = {sweep.best_n_components}")
plt.show()
