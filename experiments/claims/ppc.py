"""What Lu & Leen (2007) claim about PPC, and how each claim is judged."""

from __future__ import annotations

from experiments.framework.summary import Row
from experiments.framework.verdicts import (
    FAILS,
    HOLDS,
    PARTLY,
    Claim,
    Finding,
    against,
    by_majority,
    by_threshold,
    gains,
    mean_of,
    rows_of,
    signs,
)

__all__ = ["PPC"]

_SETS = ("artificial 1", "artificial 2", "artificial 3", "iris", "waveform", "pendigits")
_REAL = _SETS[3:]


def _pairs(table: list[Row], data: str) -> list[int]:
    return sorted({row["pairs"] for row in table if row["data"] == data})


def _reaches(data: str, pairs: int, train: float, test: float, says: str, why: str = "") -> Claim:
    """PPC's accuracy on an artificial set, within .03 of what the paper names."""

    def judge(table: list[Row]) -> Finding:
        found = [mean_of(table, m, data=data, pairs=pairs, method="PPC") for m in ("train", "test")]
        start = mean_of(table, "train", data=data, pairs=0, method="PPC")
        verdict = by_threshold([found[0] - train, found[1] - test], lambda miss: miss >= -0.03)
        return Finding(
            f"{start:.2f} without links; {found[0]:.2f} train and {found[1]:.2f} test with {pairs}", verdict
        )

    return Claim("PPC", f"experiment 1, {data}", says, "ppc_hard_links", judge, why)


def _cop_stays_below(data: str, limit: float, most: int, says: str) -> Claim:
    def judge(table: list[Row]) -> Finding:
        counts = tuple(n for n in _pairs(table, data) if n <= most)
        rows = rows_of(table, "train", data=data, method="COP k-means", pairs=counts)
        best = max(rows, key=lambda row: row["mean"])
        below = all(row["high"] < limit for row in rows)
        return Finding(
            f"at most {best['mean']:.3f}, interval up to {best['high']:.3f}, on the training rows",
            HOLDS if below else PARTLY if best["mean"] < limit else FAILS,
        )

    def tried(table: list[Row]) -> str:
        draws = max(row["n"] for row in rows_of(table, "train", data=data, method="COP k-means"))
        return f"The intervals are those of {draws} draws; the paper has 100"

    return Claim(
        "PPC",
        f"experiment 1, {data}",
        says,
        "ppc_hard_links",
        judge,
        tried=tried,
        cause="Nothing was changed for this algorithm, because it does not use EM",
    )


def _third_set_needs_many(table: list[Row]) -> Finding:
    by_pairs = {n: mean_of(table, "train", data="artificial 3", pairs=n, method="PPC")
                for n in _pairs(table, "artificial 3")}  # fmt: skip
    enough = [n for n, mean in by_pairs.items() if mean >= 0.95]
    text = ", ".join(f"{n}: {mean:.2f}" for n, mean in by_pairs.items())
    verdict = HOLDS if enough and min(enough) > 100 else PARTLY if not enough else FAILS
    return Finding(f"training accuracy by pairs {text}", verdict)


def _pairs_help_on_real_data(table: list[Row]) -> Finding:
    counted = [0, 0, 0]
    texts = []
    for data in _REAL:
        counts = _pairs(table, data)
        for measure in ("train", "test"):
            many, none = (
                rows_of(table, measure, data=data, pairs=n, method="PPC") for n in (counts[-1], counts[0])
            )
            counted = [a + b for a, b in zip(counted, against(many, none), strict=True)]
            texts.append(f"{data} {measure} {none[0]['mean']:.2f} to {many[0]['mean']:.2f}")
    return Finding("; ".join(texts), by_majority(*counted))


def _cop_gains_less(table: list[Row]) -> Finding:
    less, more, texts = 0, 0, []
    for data in _REAL:
        counts = _pairs(table, data)
        gain = {
            method: mean_of(table, "train", data=data, pairs=counts[-1], method=method)
            - mean_of(table, "train", data=data, pairs=counts[0], method=method)
            for method in ("PPC", "COP k-means")
        }
        if gain["COP k-means"] < 0.5 * gain["PPC"]:
            less += 1
        else:
            more += 1
        texts.append(f"{data} {gain['COP k-means']:+.3f} against {gain['PPC']:+.3f}")
    return Finding("gain of training accuracy: " + "; ".join(texts), by_majority(less, 0, more))


def _ppc_against_constrained_em(table: list[Row]) -> Finding:
    rows = [
        row
        for data in _SETS
        for measure in ("train", "test")
        for row in rows_of(table, measure, data=data, pairs=_pairs(table, data)[-1], method="PPC")
    ]
    better, undecided, worse = gains(rows)
    largest = max(rows, key=lambda row: abs(row["difference"]))
    return Finding(
        f"with the most pairs, of {len(rows)} comparisons (train and test) {better} better, {worse} worse; "
        f"largest difference {largest['difference']:+.3f} ({largest['data']})",
        by_majority(better, undecided, worse),
    )


def _ppc_at_all_pairs(table: list[Row]) -> str:
    rows = [row for m in ("train", "test") for row in rows_of(table, m, method="PPC") if row["pairs"] > 0]
    better, _, worse = gains(rows)
    return (
        f"With any number of pairs: better in {better} of {len(rows)} comparisons, worse in {worse}; "
        f"{max(row['n'] for row in rows)} draws, the paper has 100"
    )


def _noisy(table: list[Row], method: str, sets: tuple[str, ...] = _SETS) -> list[Row]:
    return rows_of(table, "accuracy", method=method, data=sets)


def _soft_against(table: list[Row], method: str, sets: tuple[str, ...] = _SETS) -> tuple[int, int, int]:
    """Cases in which soft PPC is better than a method, undecided and worse."""
    if all(row["measure"] != "soft_gain" for row in table):  # tables of an earlier run
        return against(_noisy(table, "soft PPC", sets), _noisy(table, method, sets))
    return signs(rows_of(table, "soft_gain", method=method, data=sets))


def _soft_beats_hard(table: list[Row]) -> Finding:
    sets = tuple(name for name in _SETS if name != "artificial 3")
    counted = _soft_against(table, "hard PPC", sets)
    mean = [
        sum(row["mean"] for row in rows) / len(rows)
        for rows in (_noisy(table, method, sets) for method in ("soft PPC", "hard PPC"))
    ]
    return Finding(
        f"means over these sets and rates {mean[0]:.3f} soft, {mean[1]:.3f} hard; better in "
        f"{counted[0]} of "
        f"{sum(counted)}, worse in {counted[2]}",
        by_majority(*counted),
    )


def _soft_beats_none(table: list[Row]) -> Finding:
    sets = tuple(name for name in _SETS if name != "artificial 3")
    rows = _noisy(table, "soft PPC", sets)
    counted = gains(rows)
    texts = [f"{row['data']} q = {row['flip']:g} {row['difference']:+.3f}" for row in rows]
    return Finding(f"paired gain: {'; '.join(texts)}", by_majority(*counted))


def _soft_optimum(table: list[Row]) -> str:
    texts = []
    for data in _SETS:
        rows = rows_of(table, "objective", data=data, method="from the classes")
        accuracy = rows_of(table, "accuracy", data=data, method="from the classes")
        found = ", ".join(
            f"{round(row['difference']):+d} (accuracy {other['mean']:.2f})"
            for row, other in zip(rows, accuracy, strict=True)
        )
        texts.append(f"{data} {found}")
    return (
        "Started at the classes themselves, soft PPC ends at a log-likelihood that differs from that of a "
        "run from the mixture without links (best of ten) by, at q = .15 and .3: "
        f"{'; '.join(texts)}. Where that is negative, the maximum at the classes is not the highest, and "
        "more starts would not choose it; where it is positive, ten starts missed a higher one. So on "
        "artificial 1 the cause is ours: the paper's set is not published, and on the one that we made the "
        "points prefer the wrong clusters by more than soft pairs weigh"
    )


def _hard_best_on_third(table: list[Row]) -> Finding:
    found = {m: mean_of(table, "accuracy", method=m, data="artificial 3", flip=0.3)
             for m in ("GMM", "soft PPC", "hard PPC")}  # fmt: skip
    text = ", ".join(f"{method} {mean:.3f}" for method, mean in found.items())
    return Finding(text, HOLDS if max(found, key=lambda m: found[m]) == "hard PPC" else FAILS)


def _soft_beats_kmeans(table: list[Row]) -> Finding:
    others = ("k-means", "soft k-means, oracle weight", "hard k-means")
    counted = [0, 0, 0]
    for method in others:
        counted = [a + b for a, b in zip(counted, _soft_against(table, method), strict=True)]
    return Finding(
        f"of {sum(counted)} comparisons (six sets, two rates, three k-means) {counted[0]} better, "
        f"{counted[2]} worse",
        by_majority(*counted),
    )


def _hard_is_harmful(table: list[Row]) -> Finding:
    rows = _noisy(table, "hard PPC")
    better, _, worse = gains(rows)
    lowest = min(rows, key=lambda row: row["difference"])
    return Finding(
        f"worse than no links in {worse} of {len(rows)} cases, better in {better}; at worst "
        f"{lowest['difference']:+.3f} ({lowest['data']}, q = {lowest['flip']:g})",
        HOLDS if worse >= 2 else PARTLY if worse else FAILS,
    )


def _toy(table: list[Row]) -> Finding:
    tilts = sorted({row["tilt"] for row in table})
    weights = ("w = 0", "w = 1.3", "w = 3")
    right = {t: [mean_of(table, "right", tilt=t, method=w) for w in weights] for t in tilts}
    met = any(none <= 0.1 and weak <= 0.1 and strong >= 0.9 for none, weak, strong in right.values())
    ordered = all(none <= weak <= strong for none, weak, strong in right.values())
    text = "; ".join(f"{t:g}: " + ", ".join(f"{share:.0%}" for share in found) for t, found in right.items())
    return Finding(
        f"draws that end right with w = 0, 1.3 and 3, by tilt of the start: {text}",
        HOLDS if met else PARTLY if ordered else FAILS,
    )


def _partial_classes(table: list[Row]) -> Finding:
    lost, test = (rows_of(table, measure, method="PPC") for measure in ("lost", "test"))
    fewer = gains(lost)[2]
    counted = [a + b for a, b in zip(gains(lost)[::-1], gains(test), strict=True)]
    falls = [f"{row['mean'] - row['difference']:.2f} to {row['mean']:.2f}" for row in lost]
    return Finding(
        f"the share taken for the wrong group falls in {fewer} of {len(lost)} settings "
        f"({'; '.join(falls)}); "
        f"test accuracy rises in {gains(test)[0]}",
        by_majority(*counted),
    )


def _comparable(table: list[Row]) -> Finding:
    rows = rows_of(table, "over_mean_field", method="Gibbs")
    text = "; ".join(f"{row['layout']} {row['mean']:+.3f} ± {row['high'] - row['mean']:.3f}" for row in rows)
    return Finding(
        f"adjusted Rand index of Gibbs sampling less mean field's: {text}",
        by_threshold([max(-row["low"], row["high"]) for row in rows], lambda largest: largest < 0.05),
    )


def _mean_field_from_textures(table: list[Row]) -> str:
    """Where mean field ends from the textures, beside where it ends from the mixture without links."""
    if all(row["measure"] != "objective" for row in table):  # tables of an earlier run
        return ""
    name = "mean field, from the textures"
    texts = []
    for best in rows_of(table, "objective", method=name):
        layout = best["layout"]
        higher = best["mean"] - mean_of(table, "objective", method="mean field", layout=layout)
        before, after = (mean_of(table, "ari", method=m, layout=layout) for m in ("mean field", name))
        texts.append(f"{layout} {before:.2f} and {after:.2f}, {higher:+.2f}")
    return (
        "The adjusted Rand index of mean field from the mixture without links and from the textures, and how "
        f"much higher its own objective per block is from the textures: {'; '.join(texts)}. Where it is "
        "higher, the start is to blame and not mean field. Eight mixtures from random rows and eight broad "
        "starts on each of two mosaics did not find that maximum; more steps of EM, and links half as strong "
        "(the printed equation), changed nothing"
    )


def _better_than_gmm(table: list[Row]) -> Finding:
    rows = rows_of(table, "ari", method=("mean field", "Gibbs"))
    text = "; ".join(f"{row['layout']}, {row['method']} {row['difference']:+.2f}" for row in rows)
    return Finding(f"gain over the mixture without links: {text}", by_majority(*gains(rows)))


def _fifty_times(table: list[Row]) -> Finding:
    rows = rows_of(table, "time_ratio", method="Gibbs")
    text = ", ".join(f"{row['mean']:.0f} ({row['layout']})" for row in rows)
    ratios = [row["mean"] for row in rows]
    return Finding(
        f"processor time of Gibbs over mean field: {text}",
        HOLDS if min(ratios) >= 25 else PARTLY if min(ratios) >= 3 else FAILS,
    )


PPC: tuple[Claim, ...] = (
    Claim(
        "PPC",
        "figure 2",
        "from a poor start, weights 0 and 1.3 end at the wrong solution and 3 at the right one",
        "ppc_toy",
        _toy,
        "The order holds; which weight is enough depends on the start, which the paper does not give",
        "32 starts were tried (four tilts, two distances of the means, four covariances): the best showed "
        "all three ends in three of ten draws",
    ),
    _reaches(
        "artificial 1",
        70,
        1.0,
        1.0,
        "from 60 % to nearly 100 %, train and test, after 70 pairs",
        "The paper does not give its set; ours was designed from the paper's text",
    ),
    _cop_stays_below("artificial 1", 0.6, 100, "COP k-means stays below 60 % with up to 100 pairs"),
    _reaches(
        "artificial 2",
        150,
        0.95,
        0.9,
        "from 75 % to about 95 % (train) and 90 % (test) with more pairs (read: 150)",
    ),
    Claim(
        "PPC",
        "experiment 1, artificial 3",
        "95 % need more than 100 pairs",
        "ppc_hard_links",
        _third_set_needs_many,
        "The paper shows its third set only in a figure; ours was designed from its text",
        "There are not enough training rows for more than 180 disjoint pairs",
    ),
    _cop_stays_below(
        "artificial 3", 0.55, 150, "COP k-means never reaches 55 % (read: with up to 150 pairs)"
    ),
    Claim(
        "PPC",
        "experiment 1, UCI",
        "accuracy on training and test rows rises with the number of pairs",
        "ppc_hard_links",
        _pairs_help_on_real_data,
    ),
    Claim(
        "PPC",
        "experiment 1, UCI",
        "COP k-means gains much less from the same pairs (read: less than half)",
        "ppc_hard_links",
        _cop_gains_less,
    ),
    Claim(
        "PPC",
        "experiment 1",
        "with many pairs PPC is slightly better than constrained EM",
        "ppc_hard_links",
        _ppc_against_constrained_em,
        "With disjoint pairs the two models differ only in the update of the mixing weights, which hardly "
        "matters where classes have similar sizes",
        _ppc_at_all_pairs,
    ),
    Claim(
        "PPC",
        "experiment 2",
        "with wrong pairs, soft PPC beats hard PPC on five of six sets at both rates",
        "ppc_noisy_links",
        _soft_beats_hard,
        tried=_soft_optimum,
        tried_in="ppc_soft_optimum",
    ),
    Claim(
        "PPC",
        "experiment 2",
        "with wrong pairs, soft PPC beats the mixture without links on the same five sets",
        "ppc_noisy_links",
        _soft_beats_none,
        tried=_soft_optimum,
        tried_in="ppc_soft_optimum",
    ),
    Claim(
        "PPC",
        "experiment 2",
        "on the third artificial set with q = .3, hard PPC is best",
        "ppc_noisy_links",
        _hard_best_on_third,
    ),
    Claim(
        "PPC",
        "experiment 2",
        "soft PPC beats every k-means, even with the weight that is best for accuracy, on all sets",
        "ppc_noisy_links",
        _soft_beats_kmeans,
        tried="As in the two rows above: where soft PPC ends at the mixture without links, it gains nothing "
        "on k-means",
    ),
    Claim(
        "PPC",
        "experiment 2",
        "hard links can be harmful when pairs are wrong (below no links in two panels)",
        "ppc_noisy_links",
        _hard_is_harmful,
    ),
    Claim(
        "PPC",
        "experiment 3",
        "with hard cannot-links from partial classes far fewer snow blocks are taken for no snow",
        "ppc_partial_classes",
        _partial_classes,
    ),
    Claim(
        "PPC",
        "experiment 4",
        "Gibbs sampling and mean field give comparable segmentations (read: within .05)",
        "texture_mosaic",
        _comparable,
        tried=_mean_field_from_textures,
    ),
    Claim(
        "PPC",
        "experiment 4",
        "links between neighbours segment better than the mixture without links",
        "texture_mosaic",
        _better_than_gmm,
    ),
    Claim(
        "PPC",
        "experiment 4",
        "mean field is about 50 times faster than Gibbs sampling (read: at least 25)",
        "texture_mosaic",
        _fifty_times,
        "The ratio is proportional to the number of sweeps, which the paper does not give; its 20 iterations "
        "of mean field, each as long as a sweep, imply about 1000; here it is 200",
        "With 1000 sweeps, which would take five times as long, one draw of quadrants took 303 times as long "
        "as mean field: the claim would hold there",
    ),
)
