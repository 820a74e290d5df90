"""
Redefine classes
================

A map has four classes. An expert believes that "crops" may be several, and that "mixed" and "deciduous" wood
may be one. CPPC combines these beliefs with the data: it splits the crops, merges the two woods and keeps the
water. The report explains it in words; the heat maps compare the beliefs with the result.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import CPPC, ClassBeliefs
from linkwise.displays import BeliefDisplay, ClusterDisplay

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [6.0, 0.5], [0.5, 6.0], [1.5, 6.3], [7.0, 7.0]])
X = np.repeat(centres, 60, axis=0) + rng.normal(size=(300, 2))
y = np.repeat(["crops", "crops", "mixed", "deciduous", "water"], 60)

beliefs = ClassBeliefs.keep(np.unique(y)).keep_whole("crops", strength=0.1).merge("mixed", "deciduous", 0.5)
# The number of clusters is not given: classes are divided and joined as far as there is evidence.
model = CPPC(beliefs=beliefs, random_state=0).fit(X, y)
for one in model.evidence_:
    print(f"{one['kind']} {' + '.join(one['classes'])}: {one['gain']:.0f} nats, accepted: {one['accepted']}")
print(model.report())

figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
ClusterDisplay.from_predictions(X, y, ax=axes[0, 0])
axes[0, 0].set_title("classes as they were")
ClusterDisplay.from_estimator(model, X, ax=axes[0, 1])
axes[0, 1].set_title("clusters found")
BeliefDisplay.from_estimator(model, ax=axes[1])
plt.show()
