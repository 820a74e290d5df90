"""
Which annotator errs, and where
===============================

Three annotators judge pairs of iris flowers: Ann is wrong 3 % of the time, Bob 15 % and Carl 35 %. Nobody
tells the model. ``PPC(learn_noise=sources)`` finds a rate for each of them (left) and a probability for
every link that it is wrong (right): the wrong links, crosses, stand at the top of each list, to be asked
again.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import PPC, Constraints
from linkwise.datasets import load_bundled

X, y = load_bundled("iris")
true_rates = {"Ann": 0.03, "Bob": 0.15, "Carl": 0.35}

# Each annotator gets other pairs: a pair that two of them judged would be one row of links.pairs.
rng = np.random.default_rng(0)
every_pair = np.column_stack(np.triu_indices(len(y), k=1))
chosen = rng.choice(every_pair, size=300, replace=False)
annotator = np.repeat(list(true_rates), 100)
wrong = rng.random(300) < np.repeat(list(true_rates.values()), 100)
says_same = (y[chosen[:, 0]] == y[chosen[:, 1]]) ^ wrong
links = Constraints(len(y), chosen[says_same], chosen[~says_same], certainty=0.8)

# links.pairs is sorted: look up who judged each of its rows.
judged_by = {tuple(pair): name for pair, name in zip(chosen.tolist(), annotator, strict=True)}
sources = np.array([judged_by[tuple(pair)] for pair in links.pairs.tolist()])
is_wrong = links.violations(y)

model = PPC(3, n_init=5, learn_noise=sources, random_state=0).fit(X, constraints=links)
for name in true_rates:
    mine = sources == name
    print(f"{name}: learned {model.noise_[name]:.3f}, really wrong {is_wrong[mine].mean():.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 2])
places = np.arange(3)
really = [is_wrong[sources == name].mean() for name in true_rates]
left.bar(places - 0.2, [model.noise_[name] for name in true_rates], 0.4, color="#0072B2", label="learned")
left.bar(places + 0.2, really, 0.4, color="white", edgecolor="black", hatch="//", label="really wrong")
left.set_xticks(places, list(true_rates))
left.set_ylabel("share of wrong links")
left.legend(frameon=False)

for place, name in enumerate(true_rates):
    mine = sources == name
    suspicion = model.violation_probability_[mine]
    order = np.argsort(suspicion)
    x = place + np.linspace(-0.38, 0.38, mine.sum())
    good = ~is_wrong[mine][order]
    right.scatter(x[good], suspicion[order][good], s=14, color="0.6", label="right" if place == 0 else None)
    right.scatter(
        x[~good],
        suspicion[order][~good],
        s=34,
        marker="x",
        color="#B00020",
        label="wrong" if place == 0 else None,
    )
right.set_xticks(places, list(true_rates))
right.set_ylabel("violation_probability_")
right.set_xlabel("links of each annotator, sorted")
right.legend(frameon=False, loc="center left")
plt.show()
