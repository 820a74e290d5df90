"""What CPPC accepts: labels, beliefs and parameters, each refused with a message that names the fix."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from linkwise._validation import (
    as_vector,
    check_choice,
    check_number,
    check_whole_number,
    label_codes,
    refuse_links_as_labels,
)
from linkwise.beliefs import ClassBeliefs, check_belief_array
from linkwise.mixture.gaussian.gaussians import COVARIANCE_TYPES

__all__ = ["check_beliefs", "check_class_labels", "check_class_parameters"]


def check_class_labels(y: Any, n_samples: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Class number of each row, -1 where unlabelled, and the sorted classes.

    Parameters
    ----------
    y : (n_samples,) array_like
    n_samples : int

    Returns
    -------
    codes : (n_samples,) int64
    classes : (L,)

    Examples
    --------
    >>> from linkwise.mixture.classes.inputs import check_class_labels
    >>> check_class_labels(["wood", None, "lake"], 3)
    (array([ 1, -1,  0]), array(['lake', 'wood'], dtype='<U4'))
    """
    if y is None:
        raise ValueError(
            "CPPC requires y to be passed, but the target y is None: pass the present class of each row"
        )
    refuse_links_as_labels(y)
    values = as_vector(y, "y")
    if len(values) != n_samples:
        raise ValueError(f"y has {len(values)} labels, but X has {n_samples} rows; pass one label per row")
    codes, classes = label_codes(values)
    if not len(classes):
        raise ValueError("y has no labelled row (all are -1, NaN or None); label some, or use PPC")
    if classes.dtype.kind == "f":
        check_classification_targets(values[codes >= 0])
    return codes, classes


def check_beliefs(beliefs: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """The matrix C in the order of the classes; None keeps the classes as they are.

    Parameters
    ----------
    beliefs : ClassBeliefs, DataFrame, (L, L) array_like or None
    classes : (L,)

    Returns
    -------
    (L, L) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.classes.inputs import check_beliefs
    >>> check_beliefs(None, np.array(["lake", "wood"]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if beliefs is None:
        return 2.0 * np.eye(len(classes)) - 1.0
    if isinstance(beliefs, ClassBeliefs) or hasattr(beliefs, "columns"):
        return ClassBeliefs(beliefs).for_classes(classes.tolist())
    return check_belief_array(beliefs, len(classes))


def check_class_parameters(parameters: Mapping[str, Any], n_samples: int) -> float:
    """Refuse bad parameters of CPPC.

    Parameters
    ----------
    parameters : mapping
        ``get_params()`` of the estimator.
    n_samples : int

    Returns
    -------
    float
        Weight of the beliefs in the criteria.
    """
    if parameters["n_components"] is not None:
        check_whole_number(parameters["n_components"], "n_components")
    for name in ("max_iter", "n_init"):
        check_whole_number(parameters[name], name)
    for name in ("confidence", "tol", "reg_covar"):
        check_number(parameters[name], name)
    for name, allowed in (
        ("normalize", ("class", "none")),
        ("sweep", ("auto", "sequential", "block")),
        ("covariance_type", COVARIANCE_TYPES),
        ("mixing", ("ignore", "sampled")),
    ):
        check_choice(parameters[name], name, allowed)
    n_components, confidence = parameters["n_components"], parameters["confidence"]
    if n_components is not None and n_samples < n_components:
        raise ValueError(
            f"{n_components} components cannot be fitted to n_samples={n_samples}; "
            "use at most as many components as rows"
        )
    given = parameters["criterion_weight"]
    weight = confidence if given is None else given
    if not isinstance(weight, numbers.Real) or not 0.0 <= float(weight) <= 1.0:
        raise ValueError(
            f"criterion_weight must lie between 0 and 1, got {given!r} with confidence={confidence!r}; "
            "a confidence above 1 needs a criterion_weight of its own"
            ": pass one"
        )
    return float(weight)
