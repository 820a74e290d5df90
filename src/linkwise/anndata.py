"""Cluster the cells of an AnnData object with links or a few labels.

Links name cells by ``obs_names``. Results are written where scanpy looks for them: clusters as a categorical
column of ``obs``, probabilities in ``obsm``, settings and doubtful links in ``uns``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from linkwise._exports import ESTIMATORS
from linkwise._validation import label_codes
from linkwise.constraints import Constraints
from linkwise.constraints.naming import name_clusters

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["cluster"]

#: Links that the fit thinks wrong with at least this probability are listed in ``uns``.
_DOUBTFUL = 0.5


def cluster(
    adata: AnnData,
    *,
    use_rep: str = "X_pca",
    links: Any = None,
    labels: str | None = None,
    beliefs: Any = None,
    method: Any = "auto",
    n_clusters: int | None = None,
    certainty: float | None = None,
    key_added: str = "linkwise",
    random_state: int | None = 0,
    copy: bool = False,
) -> AnnData | None:
    """Cluster cells with links, or with the types of some cells.

    Parameters
    ----------
    adata : AnnData
        In memory or backed. ``obs_names`` must be unique.
    use_rep : str, default="X_pca"
        Entry of ``obsm`` to cluster in, or "X" for ``adata.X`` (which is then read into memory).
    links : Constraints, DataFrame, path or name in ``obsp``, optional
        Pairs of cells that belong together or apart. A table or file has two columns of ``obs_names``, a
        column ``kind``, and may have ``certainty`` and ``source``, see :meth:`Constraints.from_frame`.
        A matrix of ``obsp`` has a positive entry for cells that belong together and a negative one for cells
        apart; its size is the weight in nats, infinite for a hard link.
    labels : str, optional
        Column of ``obs`` with the type of some cells; missing values are unknown. Cells of one type are
        kept together, cells of two types apart. With ``method="CPPC"`` the types are doubtful instead.
    beliefs : ClassBeliefs or array_like, optional
        Beliefs about the types in ``labels``; needs ``method="CPPC"``.
    method : str or estimator, default="auto"
        Name of an estimator of linkwise, or one with its settings. "auto" is
        :class:`~linkwise.LinkedClustering`, which compares methods on links left out of their fit.
    n_clusters : int, optional
        By default the number of types in ``labels``; without labels "auto" finds it, other methods need it.
    certainty : float, optional
        Of the labels, and of links without a certainty; by default they are certain.
    key_added : str, default="linkwise"
        Where results go. A column of this name that linkwise did not write is not replaced.
    random_state : int or None, default=0
        Of an estimator given by name.
    copy : bool, default=False
        Return a changed copy instead of changing ``adata``.

    Returns
    -------
    AnnData or None
        The copy, if asked for. What is written:

        - ``obs[key_added]``: cluster of each cell, categorical; a cluster with labelled cells is named after
          them.
        - ``obsm[key_added + "_probabilities"]``: (n_obs, K), if the method has them.
        - ``uns[key_added]``: ``params``, ``method``, ``names`` of the columns above, ``link_counts`` and
          ``doubtful_links``, a table of the links that are broken or probably wrong. With ``method="auto"``
          also ``candidates``, a table of the methods that were compared, and ``gain``: how many more left-out
          links the result keeps than the best method without links, with an interval of 90 %; NaN without
          links.

    Raises
    ------
    ValueError
        Naming the key, cell or value that is wrong, and the fix.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from linkwise.anndata import cluster
    >>> from linkwise.datasets import make_four_blobs
    >>> X, y = make_four_blobs(random_state=0)
    >>> known = np.where(np.arange(len(y)) % 5, None, y.astype(str))
    >>> adata = anndata.AnnData(X, obsm={"X_pca": X}, obs={"known": known})
    >>> cluster(adata, labels="known", method="PPC")
    >>> sorted(adata.obs["linkwise"].cat.categories)
    ['0', '1']
    """
    _check_names(adata)
    target = adata.copy() if copy else adata
    _check_free(target, key_added)
    data = _representation(target, use_rep)
    by_class = method == "CPPC" or type(method).__name__ == "CPPC"
    if beliefs is not None and not (by_class and labels is not None):
        raise ValueError(
            'beliefs are about the types in labels: pass labels="column of obs" and method="CPPC"'
        )
    carried = isinstance(links, Constraints) or (isinstance(links, str) and links in target.obsp)
    if certainty is not None and (by_class or (carried and labels is None)):
        raise ValueError(
            "certainty has nothing to apply to: CPPC takes beliefs, Constraints and matrices of obsp have "
            "weights of their own; leave it out, or build the links with it"
        )
    types = None if labels is None else _types(target, labels)
    constraints = _links(target, links, certainty)
    if types is not None and not by_class:
        of_labels = Constraints.from_labels(types, certainty=certainty).with_index(target.obs_names)
        constraints = of_labels if constraints is None else of_labels + constraints
    if by_class and (links is not None or types is None):
        raise ValueError(
            'CPPC redefines types and takes no links: pass labels="column of obs", or another method'
        )
    estimator = _estimator(method, n_clusters, types, beliefs, random_state)
    if by_class:
        estimator.fit(data, types)
    else:
        # The rows of data are in the order of obs_names, and so are the links by now.
        estimator.fit(data, constraints=None if constraints is None else constraints.with_index(None))
    _write(target, key_added, estimator, constraints, types, use_rep, labels)
    return target if copy else None


def _check_names(adata: AnnData) -> None:
    names = adata.obs_names
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        raise ValueError(f"the cell {twice!r} is in obs_names twice; call adata.obs_names_make_unique()")


def _check_free(adata: AnnData, key: str) -> None:
    """Refuse to replace results that linkwise did not write."""
    ours = isinstance(adata.uns.get(key), dict) and adata.uns[key].get("software") == "linkwise"
    if ours:
        return
    for place, name in (("obs", key), ("obsm", f"{key}_probabilities"), ("uns", key)):
        if name in getattr(adata, place):
            raise ValueError(
                f"adata.{place}[{name!r}] exists already; choose another key_added, or delete it"
            )


def _representation(adata: AnnData, use_rep: str) -> NDArray[np.floating]:
    """The coordinates of the cells, (n_obs, D)."""
    if use_rep == "X":
        matrix = adata.X[:] if adata.isbacked else adata.X
        return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
    if use_rep not in adata.obsm:
        there = ", ".join(adata.obsm) or "nothing"
        raise ValueError(
            f"obsm has no {use_rep!r}, it holds {there}; run scanpy.pp.pca(adata), or pass use_rep= one of "
            'these or "X"'
        )
    return np.asarray(adata.obsm[use_rep])


def _types(adata: AnnData, column: str) -> NDArray[Any]:
    """Types of the cells as strings, None where they are unknown."""
    if column not in adata.obs:
        raise ValueError(f"obs has no column {column!r}; pass one of {', '.join(adata.obs.columns)}")
    values = adata.obs[column]
    types = np.full(len(values), None, dtype=object)
    known = values.notna().to_numpy()
    types[known] = [str(value) for value in values[known]]
    if not known.any():
        raise ValueError(f"every value of obs[{column!r}] is missing; fill in the types of some cells")
    return types


def _links(adata: AnnData, links: Any, certainty: float | None) -> Constraints | None:
    if links is None:
        return None
    if isinstance(links, Constraints):
        return links.with_index(adata.obs_names) if links.index is None else links.align(adata.obs_names)
    if isinstance(links, str) and links in adata.obsp:
        return _links_of_matrix(adata, links)
    if isinstance(links, str | os.PathLike):
        if not os.path.exists(links):
            there = ", ".join(adata.obsp) or "nothing"
            raise ValueError(
                f"links={str(links)!r} is neither a file nor in obsp, which holds {there}; correct the name"
            )
        return Constraints.read_csv(links, index=adata.obs_names, certainty=certainty)
    return Constraints.from_frame(links, index=adata.obs_names, certainty=certainty)


def _links_of_matrix(adata: AnnData, name: str) -> Constraints:
    """Links of a matrix of ``obsp``: its sign is the kind, its size the weight; (i, j) and (j, i) agree."""
    matrix = sp.coo_array(adata.obsp[name])
    row, column, weight = matrix.row, matrix.col, np.asarray(matrix.data, dtype=np.float64)
    if np.isnan(weight).any():
        raise ValueError(f"obsp[{name!r}] holds NaN; remove these entries")
    kept = weight != 0.0
    row, column, weight = row[kept], column[kept], weight[kept]
    if (row == column).any():
        cell = adata.obs_names[row[row == column][0]]
        raise ValueError(f"obsp[{name!r}] links the cell {cell!r} to itself; set its diagonal to 0")
    mirrored = np.asarray(sp.csr_array(matrix).T.tocsr()[row, column]).ravel()
    differ = (mirrored != 0.0) & (mirrored != weight)
    if differ.any():
        cells = f"{adata.obs_names[row[differ][0]]!r} and {adata.obs_names[column[differ][0]]!r}"
        raise ValueError(f"obsp[{name!r}] says two things about {cells}; correct one of them")
    once = (row < column) | (mirrored == 0.0)
    pairs, weight = np.column_stack([row, column])[once], weight[once]
    together = weight > 0
    return Constraints(
        adata.n_obs,
        must_link=pairs[together],
        cannot_link=pairs[~together],
        weight=np.abs(np.r_[weight[together], weight[~together]]),
    ).with_index(adata.obs_names)


def _estimator(
    method: Any, n_clusters: int | None, types: NDArray[Any] | None, beliefs: Any, random_state: int | None
) -> Any:
    """The estimator to fit, from its name or from one with settings of its own."""
    if isinstance(method, BaseEstimator):
        given = {"n_clusters": n_clusters, "beliefs": beliefs}
        return clone(method).set_params(**{name: value for name, value in given.items() if value is not None})
    if n_clusters is None and types is not None:
        n_clusters = len({name for name in types if name is not None})
    if method in ("auto", "LinkedClustering"):
        from linkwise.auto import LinkedClustering

        return LinkedClustering("auto" if n_clusters is None else n_clusters, random_state=random_state)
    if n_clusters is None and method != "CPPC":
        raise ValueError(
            'how many clusters? Pass n_clusters=, labels= with a few types of each, or method="auto"'
        )
    if method not in ESTIMATORS:
        raise ValueError(f"no method {method!r}; use auto or one of {', '.join(ESTIMATORS)}")
    import linkwise

    kind = getattr(linkwise, method)
    settings: dict[str, Any] = {} if n_clusters is None else {"n_clusters": n_clusters}
    if beliefs is not None:
        settings["beliefs"] = beliefs
    return kind(**settings, random_state=random_state)


def _write(
    adata: AnnData,
    key: str,
    estimator: Any,
    constraints: Constraints | None,
    types: NDArray[Any] | None,
    use_rep: str,
    labels: str | None,
) -> None:
    """Write labels, probabilities and diagnostics, all of them after the fit has succeeded."""
    import pandas as pd

    names = _names(estimator, types)
    adata.obs[key] = pd.Categorical.from_codes(estimator.labels_, categories=names)
    probabilities = getattr(_chosen(estimator), "responsibilities_", None)
    if probabilities is not None:
        adata.obsm[f"{key}_probabilities"] = np.asarray(probabilities)
    else:
        adata.obsm.pop(f"{key}_probabilities", None)
    adata.uns[key] = {
        "software": "linkwise",
        "method": type(estimator).__name__,
        "params": {name: str(value) for name, value in estimator.get_params(deep=False).items()},
        "use_rep": use_rep,
        "labels": labels or "",
        "names": np.array(names),
        "converged": bool(estimator.converged_),
        "link_counts": {
            "must_link": 0 if constraints is None else len(constraints.must_link),
            "cannot_link": 0 if constraints is None else len(constraints.cannot_link),
            "broken": 0 if constraints is None else int(constraints.violations(estimator.labels_).sum()),
        },
        "doubtful_links": _doubtful_links(adata, estimator, constraints),
    }
    if hasattr(estimator, "selection_"):
        candidates = pd.DataFrame(estimator.selection_).rename(columns={"weight": "vote"})
        adata.uns[key] |= {"candidates": candidates, "gain": estimator.gain_._asdict()}


def _chosen(estimator: Any) -> Any:
    """What gave the labels: the estimator, or what it chose."""
    return getattr(estimator, "best_estimator_", estimator)


def _names(estimator: Any, types: NDArray[Any] | None) -> list[str]:
    """Names of the clusters: those of the estimator, of the types inside, or numbers."""
    if hasattr(estimator, "cluster_names_"):
        return [str(name) for name in estimator.cluster_names_]
    n_clusters = int(estimator.labels_.max()) + 1
    if types is None:
        return [str(k) for k in range(n_clusters)]
    codes, classes = label_codes(types)
    return name_clusters(estimator.labels_, codes, np.array(classes), n_clusters).names.tolist()


def _doubtful_links(adata: AnnData, estimator: Any, constraints: Constraints | None) -> Any:
    """Links that the labels break or that are probably wrong, most doubtful first."""
    import pandas as pd

    columns = ["left", "right", "kind", "broken", "probability_wrong"]
    if constraints is None or not constraints.n_pairs:
        return pd.DataFrame({name: [] for name in columns})
    broken = constraints.violations(estimator.labels_)
    wrong = np.asarray(getattr(estimator, "violation_probability_", broken.astype(float)))
    rows = np.flatnonzero(broken | (wrong >= _DOUBTFUL))
    rows = rows[np.argsort(-wrong[rows], kind="stable")]
    left, right = (adata.obs_names.to_numpy()[constraints.pairs[rows, side]].astype(str) for side in (0, 1))
    kind = np.where(constraints.weights[rows] > 0, "must_link", "cannot_link")
    return pd.DataFrame(dict(zip(columns, (left, right, kind, broken[rows], wrong[rows]), strict=True)))
