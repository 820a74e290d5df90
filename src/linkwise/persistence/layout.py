"""What a fitted estimator consists of: the type, shape and bounds of every attribute, in one table each.

Models are checked against these tables before they are stored and after they are read: kernels do not check
bounds. Sizes are letters: K clusters, G Gaussians, D features, N training rows, P links, L classes, M columns
of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from linkwise._exports import ESTIMATORS
from linkwise.kmeans.distortions import chosen_metric
from linkwise.persistence.checks import (
    ANY,
    ROUNDING,
    Check,
    Entries,
    LayoutError,
    Sizes,
    array,
    either,
    flag,
    kind_of,
    labels_of,
    list_of,
    nothing,
    probability,
    real,
    sequence,
    table,
    table_of,
    text,
    unit_rows,
    whole,
)


class Layout(NamedTuple):
    """How to check one kind of estimator.

    ``parameters`` raises ValueError or TypeError if they are bad. ``sizes`` are known before any array is
    looked at, ``entries`` are the fitted attributes, ``state`` what prediction needs beside them.
    ``relations`` raises LayoutError where entries of right shapes contradict each other.
    """

    parameters: Callable[[Any, int], object]
    sizes: Callable[[Any, Mapping[str, Any]], dict[str, int]]
    entries: Callable[[Any], Entries]
    relations: Callable[[Any, Mapping[str, Any]], None] = lambda model, fitted: None
    state: Callable[[Any], Entries] | None = None


_OF_DATA: dict[str, Check] = {"n_features_in_": whole(1, size="D")}
_NAMES: dict[str, Check] = {"feature_names_in_": labels_of("D", only_text=True)}
#: Of links that were built from labels; all of them or none.
_CLASSES: dict[str, Check] = {
    "classes_": labels_of("L"),
    "cluster_names_": labels_of("K"),
    "contingency_": array("i", "L", "K", low=0),
}
_OF_LINKS: dict[str, Check] = {**_NAMES, **_CLASSES}
_RUN: dict[str, Check] = {"n_iter_": whole(), "converged_": flag}


def _gaussian_entries(model: Any) -> dict[str, Check]:
    shape: tuple[str, ...] = {
        "full": ("G", "D", "D"),
        "tied": ("D", "D"),
        "diag": ("G", "D"),
        "spherical": ("G",),
    }[model.covariance_type]
    return {
        **_OF_DATA,
        "means_": array("f", "G", "D"),
        "weights_": probability("G"),
        "covariances_": array("f", *shape),
        "precisions_cholesky_": array("f", *shape),
        "labels_": array("i", "N", low=0, below="K"),
        "lower_bounds_": list_of(real()),
        "lower_bound_": real(),
        "n_decreases_": whole(),
        "n_occupied_": whole(0, "K"),
        **_RUN,
    }


def _gaussian_relations(model: Any, fitted: Mapping[str, Any]) -> None:
    total = float(fitted["weights_"].sum())
    if abs(total - 1.0) > 1e-3:
        raise LayoutError("fitted/weights_", f"their sum is {total:.6g}, not 1")
    for name in ("covariances_", "precisions_cholesky_"):
        values = fitted[name]
        if model.covariance_type in ("full", "tied"):
            values = np.diagonal(values, axis1=-2, axis2=-1)
        if not (values > 0.0).all():
            raise LayoutError(f"fitted/{name}", f"a variance or its root is {values.min():.6g}, not above 0")


def _inference(details: Check) -> Check:
    """The keys of ``inference_`` in every estimator."""
    return table(
        {
            "method": text(),
            "exact": flag,
            "converged": flag,
            "n_iter": whole(),
            "parts": table_of(whole(0, "N")),
            "details": details,
        }
    )


def _link_mixture_entries(model: Any) -> Entries:
    noise, interval = real(0.0, 0.5), array("f", 2, low=0.0, high=0.5, nan=True)
    if getattr(model, "learn_noise", False) == "source":
        noise, interval = table_of(noise), table_of(interval)
    elif getattr(model, "learn_noise", False) == "kind":
        noise, interval = interval, array("f", 2, 2, low=0.0, high=0.5, nan=True)
    details = {"prior_exact": flag, "objective": text(), "reason": either(nothing, text())}
    optional: dict[str, Check] = {
        **_OF_LINKS,
        "linked_weight_": real(0.0, nan=False),
        "shrinkage_": real(0.0),
        "responsibilities_": probability("N", "K"),
        "violation_probability_": probability("P"),
    }
    if hasattr(model, "learn_noise"):
        optional |= {
            "noise_": noise,
            "noise_interval_": interval,
            "answer_error_probability_": probability(ANY),
        }
    of_links = {"violations_": array("b", "P"), "inference_": _inference(table({}, details))}
    return Entries({**_gaussian_entries(model), **of_links}, optional)


_EVIDENCE: dict[str, Check] = {
    "kind": text("split", "merge"),
    "classes": list_of(either(text(), real())),
    "n_parts": whole(1),
    "gain": real(),
    "data_gain": real(),
    "stability": real(-1.0, 1.0),
    "n_rows": whole(),
    "accepted": flag,
    "reason": text(),
}


def _class_entries(model: Any) -> Entries:
    return Entries(
        {
            "classes_": labels_of("L"),
            **_gaussian_entries(model),
            "beliefs_": array("f", "L", "L", low=-1.0, high=1.0),
            "contingency_": array("i", "L", "K", low=0),
            "separability_": array("f", "L", "L", low=-1.0 - ROUNDING, high=1.0 + ROUNDING, nan=True),
            "adherence_": real(0.0),
            "criteria_": table_of(real()),
            "sweep_": text("sequential", "block"),
            "shrinkage_": real(0.0, nan=False),
            "evidence_": list_of(table(_EVIDENCE)),
            "alternatives_": table_of(table({"n_clusters": real(0.0), "icl": real()})),
        },
        {
            **_NAMES,
            "responsibilities_": probability("N", "K"),
            "mixing_": table(
                {
                    "effective_sample_size": real(0.0),
                    "smallest_effective_sample_size": real(0.0),
                    "n_draws": whole(),
                    "n_ignored": whole(),
                }
            ),
        },
    )


def _class_sizes(model: Any, fitted: Mapping[str, Any]) -> dict[str, int]:
    """Return as many clusters as asked for, or as were found."""
    n_clusters = model._wanted_clusters()
    if n_clusters is None:
        n_clusters = len(np.atleast_1d(fitted.get("means_", [])))
    return {"K": int(n_clusters), "G": int(n_clusters)}


_CENTRES: dict[str, Check] = {
    **_OF_DATA,
    "cluster_centers_": array("f", "K", "D"),
    "labels_": array("i", "N", low=0, below="K"),
    "objective_": real(),
    "objectives_": array("f", ANY, nan=True, infinite=True),
    "violations_": array("b", "P"),
    "n_reseeds_": whole(),
    **_RUN,
}


def _hmrf_entries(model: Any) -> Entries:
    metric: dict[str | None, Check] = {
        None: nothing,
        "diag": array("f", "D", low=0.0),
        "full": array("f", "D", "D"),
        "per_cluster": array("f", "K", "D", low=0.0),
    }
    return Entries(
        {
            **_CENTRES,
            "metric_": metric[chosen_metric(model.metric, model.distortion)],
            "inference_": _inference(table({}, {"gaps": array("f", ANY, nan=True, infinite=True)})),
        },
        _OF_LINKS,
    )


def _hmrf_relations(model: Any, fitted: Mapping[str, Any]) -> None:
    centres, metric = fitted["cluster_centers_"], fitted["metric_"]
    if model.distortion in ("kl", "i_divergence") and not (centres >= 0.0).all():
        raise LayoutError("fitted/cluster_centers_", f"means of counts are never {centres.min():.6g}")
    if model.distortion == "cosine" and not centres.any(axis=1).all():
        raise LayoutError("fitted/cluster_centers_", "a centre is zero throughout and has no direction")
    if model.metric == "per_cluster" and not (metric > 0.0).all():
        raise LayoutError("fitted/metric_", "a weight is 0, and has no logarithm")
    if model.metric == "full":
        try:
            np.linalg.cholesky(metric)
        except np.linalg.LinAlgError:
            raise LayoutError("fitted/metric_", "the matrix is not positive definite") from None
        if not np.allclose(metric, metric.T, rtol=1e-6, atol=1e-6 * np.abs(metric).max()):
            raise LayoutError("fitted/metric_", "the matrix is not symmetric")


def _check_hmrf_parameters(model: Any, n_rows: int) -> None:
    model._check_parameters()
    model._make_distortion()


def _cop_entries(model: Any) -> Entries:
    return Entries(
        {**_CENTRES, "inertia_": real(0.0), "inference_": _inference(table({"n_unproven": whole()}))},
        _OF_LINKS,
    )


def _embedding_entries(model: Any) -> dict[str, Check]:
    return {
        **_OF_DATA,
        "labels_": array("i", "N", low=0, below="K"),
        "embedding_": unit_rows("N", "M"),
        "embedding_centers_": unit_rows("K", "M", nan=True),
        "eigenvalues_": array("f", "M"),
        "violation_rate_": real(0.0, 1.0, nan=False),
        "violations_": array("b", "P"),
        "objective_": real(),
        "objectives_": array("f", ANY),
        **_RUN,
    }


def _spectral_entries(model: Any) -> Entries:
    return Entries(
        {
            **_embedding_entries(model),
            "base_rate_": real(0.0, 1.0),
            "diffusion_time_": real(0.0),
            "n_redundant_": whole(),
            "unbalanced_components_": list_of(array("i", ANY, low=0, below="N")),
            "trace_ratio_": real(),
            "ineffective_links_": array("b", "P"),
            "algorithm_": text("A", "B"),
            "solver_": text(),
        },
        {
            **_OF_LINKS,
            "affinity_matrix_": array("f", "N", "N"),
            "link_reliability_": probability("P", nan=True),
        },
    )


def _spectral_learning_entries(model: Any) -> Entries:
    return Entries({**_embedding_entries(model), "affinity_matrix_": array("f", "N", "N")}, _OF_LINKS)


def _discriminative_entries(model: Any) -> Entries:
    # Squared distances of larger numbers leave the range of floats.
    place: dict[str, Any] = {"low": -1e150, "high": 1e150}
    return Entries(
        {
            **_OF_DATA,
            "labels_": array("i", "N", low=0, below="K"),
            "centre_": array("f", "D", **place),
            "unit_": real(0.0),
            "width_": real(0.0),
            "landmarks_": array("f", "R", "Q", **place),
            **({"directions_": array("f", "D", "Q", **place)} if model.whiten else {}),
            "landmark_features_": array("f", ANY, "B"),
            "coefficients_": array("f", ANY, "K"),
            "objective_": real(),
            "objectives_": array("f", ANY),
            "n_rows_learned_": whole(1, "N"),
            "violations_": array("b", "P"),
            "inference_": _inference(table({})),
            **_RUN,
        },
        _OF_LINKS,
    )


def _discriminative_relations(model: Any, fitted: Mapping[str, Any]) -> None:
    """Check that there is a coefficient for every feature, and features for every landmark."""
    n_columns, (n_table, n_features) = fitted["landmarks_"].shape[1], fitted["landmark_features_"].shape
    of_landmarks = model.features in ("rbf", "graph")
    products = n_columns * (n_columns + 1) // 2 if model.features == "quadratic" else 0
    wanted = n_features if of_landmarks else n_columns + products
    if len(fitted["coefficients_"]) != wanted + 1:
        raise LayoutError("fitted/coefficients_", f"it has not one row for each of {wanted + 1} features")
    if not model.whiten and n_columns != len(fitted["centre_"]):
        raise LayoutError("fitted/landmarks_", f"it has {n_columns} columns, but the centre has others")
    if n_table != (len(fitted["landmarks_"]) if of_landmarks else 1) or (
        not of_landmarks and n_features != products
    ):
        raise LayoutError("fitted/landmark_features_", "it does not belong to the landmarks")
    if not fitted["unit_"] > 0.0 or not fitted["width_"] > 0.0:
        raise LayoutError("fitted/unit_", "a unit and a width are above 0")
    if model.features == "quadratic" and not (fitted["landmark_features_"] > 0.0).all():
        raise LayoutError("fitted/landmark_features_", "scales of products are above 0")


def _group_entries(model: Any) -> Entries:
    learned: dict[str, Check] = {
        "coefficients_": array("f", "Q", "D"),
        "intercepts_": array("f", "Q"),
    }
    if model.method == "forest":
        learned = {
            "roots_": array("i", ANY, low=0),
            "children_": array("i", "M", 2, low=-1),
            "features_": array("i", "M", low=0, below="D"),
            "thresholds_": array("f", "M"),
            "shares_": probability("M", "Q"),
        }
    return Entries({**_OF_DATA, "labels_": array("i", "N", low=0, below="K"), **learned})


def _group_relations(model: Any, fitted: Mapping[str, Any]) -> None:
    """Check that no group is beyond the clusters, and that every way through a tree ends in a leaf."""
    if model.method == "discriminant":
        n_groups = len(fitted["intercepts_"])
    else:
        n_nodes, n_groups = fitted["shares_"].shape
        children, roots = fitted["children_"], fitted["roots_"]
        leaf = (children < 0).all(axis=1)
        later = (children > np.arange(n_nodes)[:, None]).all(axis=1) & (children < n_nodes).all(axis=1)
        if not (leaf | later).all():
            raise LayoutError("fitted/children_", "nodes are no leaves and do not lead to later nodes")
        if not len(roots) or roots.max() >= n_nodes:
            raise LayoutError("fitted/roots_", "it names no node")
    if not 2 <= n_groups <= model.n_clusters:
        raise LayoutError("fitted", f"it has {n_groups} groups, but there are {model.n_clusters} clusters")


def _embedding_relations(model: Any, fitted: Mapping[str, Any]) -> None:
    """Check that centres of empty clusters are NaN throughout, and that not all centres are."""
    holes = np.isnan(fitted["embedding_centers_"])
    if (holes.any(axis=1) != holes.all(axis=1)).any() or holes.all():
        raise LayoutError("fitted/embedding_centers_", "it holds NaN")


def _neighbour_state(model: Any) -> Entries:
    return Entries(
        {
            # Squared distances of larger numbers leave the range of floats.
            "reference": array("f", "R", "D", low=-1e150, high=1e150),
            "rows": unit_rows("R", "C"),
            "n_neighbors": whole(1, "R"),
        }
    )


def _n_clusters(model: Any, fitted: Mapping[str, Any]) -> dict[str, int]:
    return {"K": int(model.n_clusters)}


def _n_components(model: Any, fitted: Mapping[str, Any]) -> dict[str, int]:
    return {"K": int(model._n_clusters), "G": int(model._n_gaussians)}


def _linked_entries(model: Any) -> Entries:
    record = sequence(text(), flag, whole(1), real(0.0, 1.0), real(0.0), real(0.0, 1.0), flag, text())
    return Entries(
        {
            "n_clusters_": whole(1, size="K"),
            **_OF_DATA,
            "labels_": array("i", "N", low=0, below="K"),
            "violations_": array("b", "P"),
            "noise_": real(0.0, 1.0),
            "n_rows_compared_": whole(0, "N"),
            "converged_": flag,
            "gain_": sequence(real(), real(), real()),
            "selection_": list_of(record),
        },
        # Models that were stored before it was there can be read all the same.
        {**_OF_LINKS, "violation_probability_": probability("P"), "share_without_links_": real(0.0, 1.0)},
    )


def _own_check(model: Any, n_rows: int) -> None:
    model._check_parameters()


def _own_check_of_rows(model: Any, n_rows: int) -> None:
    model._check_parameters(n_rows)


_LINK_MIXTURE = Layout(_own_check_of_rows, _n_components, _link_mixture_entries, _gaussian_relations)
_HMRF = Layout(_check_hmrf_parameters, _n_clusters, _hmrf_entries, _hmrf_relations)

#: Where the estimators are that may vote in LinkedClustering.
MEMBERS = {**ESTIMATORS, "GroupClassifier": "linkwise.auto.groups"}

#: By the name of the class; the same names as in ``MEMBERS``, and LinkedClustering.
LAYOUTS = {
    "COPKMeans": Layout(_own_check, _n_clusters, _cop_entries),
    "CPPC": Layout(_own_check_of_rows, _class_sizes, _class_entries, _gaussian_relations),
    "ConstrainedEM": _LINK_MIXTURE,
    "ConstrainedSpectralClustering": Layout(
        _own_check, _n_clusters, _spectral_entries, _embedding_relations, _neighbour_state
    ),
    "DiscriminativeClustering": Layout(
        _own_check, _n_clusters, _discriminative_entries, _discriminative_relations
    ),
    "GroupClassifier": Layout(_own_check, _n_clusters, _group_entries, _group_relations),
    "HMRFKMeans": _HMRF,
    "LinkedClustering": Layout(_own_check, lambda model, fitted: {}, _linked_entries),
    "MPCKMeans": _HMRF,
    "PCKMeans": _HMRF,
    "PPC": _LINK_MIXTURE,
    "SpectralLearning": Layout(
        _own_check, _n_clusters, _spectral_learning_entries, _embedding_relations, _neighbour_state
    ),
}


_MANY_ROWS = 2**62


def check_fitted(model: Any, fitted: Mapping[str, Any], state: Mapping[str, Any] | None) -> None:
    """Refuse parameters of ``model``, ``fitted`` and ``state`` that do not belong together (LayoutError)."""
    layout = LAYOUTS[type(model).__name__]
    labels = fitted.get("labels_")
    counted = "labels_" in fitted  # not where rows were beyond memory
    if counted and (not isinstance(labels, np.ndarray) or labels.ndim != 1):
        raise LayoutError("fitted/labels_", "it is not one label for each row")
    try:
        _check_common_parameters(model)
        layout.parameters(model, len(labels) if isinstance(labels, np.ndarray) else _MANY_ROWS)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise LayoutError("parameters", str(error)) from None
    sizes = Sizes(layout.sizes(model, fitted))
    if not counted:
        sizes["N"] = _MANY_ROWS
    entries = layout.entries(model)
    if not counted:
        required = {name: check for name, check in entries.required.items() if name != "labels_"}
        entries = Entries(required, entries.optional)
    entries.check(fitted, sizes, "fitted")
    missing = [name for name in _CLASSES if name in entries.optional and name not in fitted]
    if 0 < len(missing) < len(_CLASSES):
        raise LayoutError(f"fitted/{missing[0]}", "it is missing, but other entries about classes are there")
    layout.relations(model, fitted)
    if layout.state is not None:
        if state is None:
            raise LayoutError("state", "it is missing")
        layout.state(model).check(state, sizes, "state")
        if sizes["C"] < sizes["M"]:
            raise LayoutError("state/rows", f"it has {sizes['C']} columns, but the centres have {sizes['M']}")
    elif state is not None:
        raise LayoutError("state", "this estimator has no such entry")


def _check_common_parameters(model: Any) -> None:
    """Check parameters that the estimators themselves do not check."""
    n_jobs = getattr(model, "n_jobs", None)
    if n_jobs is not None and (type(n_jobs) is not int or not 0 < abs(n_jobs) < 2**15):
        raise ValueError(f"n_jobs must be None or a whole number, not {kind_of(n_jobs)}")
    seed = model.random_state
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ValueError(f"random_state must be None or a whole number >= 0, not {kind_of(seed)}")
