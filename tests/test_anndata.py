"""Cells: the real anndata and scanpy packages on the data that scanpy ships."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from linkwise import CPPC, PPC, Constraints, LinkedClustering
from linkwise.auto import candidates
from linkwise.exceptions import SharedClusterWarning

anndata = pytest.importorskip("anndata")

from linkwise.anndata import cluster  # noqa: E402  (after the packages it needs)

PAIR = ("CD14+ Monocyte", "CD19+ B")


@pytest.fixture(scope="module")
def sc():
    """Scanpy, imported by the one worker that needs it: it takes 2.5 s."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("scanpy")


@pytest.fixture(scope="module")
def pbmc(sc):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = sc.datasets.pbmc68k_reduced()
    adata.obsm["X_10"] = adata.obsm["X_pca"][:, :10].astype(np.float64)
    types = adata.obs["bulk_labels"].astype(str)
    known = pd.Series(None, index=adata.obs_names, dtype=object)
    rng = np.random.default_rng(0)
    for name in types.unique():
        known[rng.permutation(adata.obs_names[types == name])[:5]] = name
    adata.obs["partial"] = pd.Categorical(known)
    return adata


@pytest.fixture
def adata(pbmc):
    return pbmc.copy()


def blobs(n=60, seed=0):
    """Three far groups of cells."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 8.0 * np.column_stack([y == 1, y == 2])
    names = [f"cell{i}" for i in range(n)]
    return anndata.AnnData(X.astype(np.float32), obs=pd.DataFrame(index=names), obsm={"X_pca": X}), y


@pytest.mark.parametrize("method", ["auto", "PPC", "COPKMeans"])
def test_few_labels_are_kept_and_name_the_clusters(adata, method, monkeypatch):
    # One candidate of each kind is enough to be kept to the labels.
    names = ("spectral, near", "mixture, tied", "discriminant of groups", "k-means, no links")
    few = {name: candidates.CANDIDATES[name] for name in names}
    monkeypatch.setattr(candidates, "CANDIDATES", few)
    if method == "auto":  # every candidate is fitted once for each part of the links
        adata = adata[(np.arange(adata.n_obs) % 3 == 0) | adata.obs["partial"].notna()].copy()
    types = adata.obs["bulk_labels"].astype(str)
    cluster(adata, use_rep="X_10", labels="partial", method=method)
    found = adata.obs["linkwise"]
    assert isinstance(found.dtype, pd.CategoricalDtype)
    known = adata.obs["partial"].notna()
    assert (found[known].astype(str) == adata.obs["partial"][known].astype(str)).all()
    assert set(found.cat.categories) == set(types)
    assert adjusted_rand_score(types, found) > adjusted_rand_score(types, adata.obs["louvain"]) + 0.1
    assert adata.uns["linkwise"]["link_counts"]["broken"] == 0
    if method == "auto":
        assert adata.uns["linkwise"]["method"] == "LinkedClustering"
    if method != "COPKMeans":
        probabilities = adata.obsm["linkwise_probabilities"]
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_merged_types_are_found_again(adata):
    types = adata.obs["bulk_labels"].astype(str)
    coarse = types.replace(dict.fromkeys(PAIR, "merged"))
    adata.obs["coarse"] = pd.Categorical(coarse)
    n_types = coarse.nunique()
    beliefs = -np.ones((n_types, n_types)) + 1.1 * np.eye(n_types)
    model = CPPC(n_components=n_types + 1, beliefs=beliefs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster(adata, use_rep="X_10", labels="coarse", method=model)
    inside = types.isin(PAIR)
    assert adjusted_rand_score(types[inside], adata.obs["linkwise"][inside]) > 0.85
    names = adata.obs["linkwise"][inside].astype(str)
    for kind in PAIR:
        assert names[types[inside] == kind].mode()[0].startswith("merged (")


def test_scanpy_colours_by_the_result_and_files_keep_it(adata, sc, tmp_path):
    cluster(adata, use_rep="X_10", labels="partial", method="PPC")
    figure = sc.pl.umap(adata, color="linkwise", show=False, return_fig=True)
    legend = {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    assert legend == set(adata.obs["linkwise"].cat.categories)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = sc.read_h5ad(tmp_path / "cells.h5ad")
    pd.testing.assert_series_equal(again.obs["linkwise"], adata.obs["linkwise"])
    assert again.uns["linkwise"]["method"] == "PPC"
    assert list(again.uns["linkwise"]["doubtful_links"].columns)[:3] == ["left", "right", "kind"]


def test_a_backed_object_gives_the_same_clusters(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    assert backed.isbacked
    model = PPC(10, n_init=1, max_iter=9, random_state=0)
    for target in (adata, backed):
        cluster(target, use_rep="X_10", labels="partial", method=model)
    pd.testing.assert_series_equal(adata.obs["linkwise"], backed.obs["linkwise"])


def same_links():
    """The same links as Constraints by row and by id, as a table, a file and a matrix."""
    must, cannot = [(0, 3), (4, 10)], [(0, 1), (5, 9)]
    weight = [1.5, 0.7, 2.0, 0.4]
    pairs, signs = must + cannot, [1, 1, -1, -1]
    rows = np.array(pairs)
    matrix = sp.coo_array((np.array(weight) * signs, (rows[:, 1], rows[:, 0])), shape=(60, 60)).tocsr()
    table = pd.DataFrame(
        {
            "one": [f"cell{i}" for i, _ in pairs],
            "other": [f"cell{j}" for _, j in pairs],
            "kind": ["same", "same", "different", "different"],
            "weight": weight,
        }
    )
    links = Constraints(60, must_link=must, cannot_link=cannot, weight=weight)
    return links, table, matrix


@pytest.mark.parametrize("form", ["rows", "ids", "table", "file", "obsp", "obsp symmetric"])
def test_links_of_every_form_are_the_same_links(form, tmp_path):
    adata, _ = blobs()
    links, table, matrix = same_links()
    adata.obsp["mine"] = matrix
    adata.obsp["both"] = sp.csr_array(matrix + matrix.T)
    table.to_csv(tmp_path / "links.csv", index=False)
    given = {
        "rows": links,
        # The same links of the cells in another order.
        "ids": links.with_index(adata.obs_names)[np.random.default_rng(0).permutation(60)],
        "table": table,
        "file": tmp_path / "links.csv",
        "obsp": "mine",
        "obsp symmetric": "both",
    }[form]
    cluster(adata, links=given, method=PPC(3, random_state=0))
    plain = PPC(3, random_state=0).fit(adata.obsm["X_pca"], constraints=links)
    np.testing.assert_array_equal(adata.obs["linkwise"].cat.codes, plain.labels_)
    np.testing.assert_allclose(adata.obsm["linkwise_probabilities"], plain.responsibilities_, atol=1e-12)
    assert adata.uns["linkwise"]["link_counts"]["must_link"] == 2
    assert adata.uns["linkwise"]["link_counts"]["cannot_link"] == 2


def test_links_and_labels_together_and_the_doubtful_link_is_named():
    adata, y = blobs()
    adata.obs["known"] = pd.Categorical([f"type{k}" if i < 6 else None for i, k in enumerate(y)])
    wrong = pd.DataFrame({"a": ["cell20"], "b": ["cell21"], "kind": ["same"], "certainty": [0.7]})
    cluster(adata, labels="known", links=wrong, method="PPC")
    assert adjusted_rand_score(y, adata.obs["linkwise"]) == 1.0
    doubtful = adata.uns["linkwise"]["doubtful_links"]
    assert doubtful[["left", "right", "kind"]].values.tolist() == [["cell20", "cell21", "must_link"]]
    assert doubtful["broken"].all()
    assert (doubtful["probability_wrong"] > 0.9).all()


def test_doubtful_links_of_a_choice_are_those_that_were_given():
    """The candidate is fitted without links that are rather wrong; the table has them all the same."""
    adata, y = blobs()
    rows = [(i, i + 3, "same") for i in range(8)] + [(30, 31, "same"), (31, 32, "same")]
    frame = pd.DataFrame(
        [(f"cell{i}", f"cell{j}", kind, 0.6) for i, j, kind in rows], columns=["a", "b", "kind", "certainty"]
    )
    cluster(adata, links=frame, method=LinkedClustering(3, candidates=["mixture, tied"], random_state=0))
    assert adjusted_rand_score(y, adata.obs["linkwise"]) == 1.0
    doubtful = adata.uns["linkwise"]["doubtful_links"]
    assert sorted(doubtful[["left", "right"]].values.tolist()) == [["cell30", "cell31"], ["cell31", "cell32"]]
    # Odds 1.5 of the certainty, divided by 4 of the votes.
    np.testing.assert_allclose(doubtful["probability_wrong"], 1 / (1 + 1.5 / 4))


@cache
def chosen_for_blobs():
    """What the library chooses for the blobs and these links."""
    adata, y = blobs()
    links = Constraints.sample(y, 25, certainty=0.95, random_state=0)
    return LinkedClustering(random_state=0).fit(adata.obsm["X_pca"], constraints=links)


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("method", ["auto", LinkedClustering(random_state=0)])
def test_links_choose_the_method_and_the_number_of_clusters(method, sc, tmp_path):
    adata, y = blobs()
    links = Constraints.sample(y, 25, certainty=0.95, random_state=0)
    cluster(adata, links=links, method=method)
    assert adjusted_rand_score(y, adata.obs["linkwise"]) == 1.0
    model = chosen_for_blobs()
    told = adata.uns["linkwise"]
    assert told["gain"] == pytest.approx(model.gain_._asdict())
    assert told["candidates"]["candidate"].tolist() == [one.candidate for one in model.selection_]
    np.testing.assert_allclose(told["candidates"]["vote"], [one.weight for one in model.selection_])
    np.testing.assert_allclose(
        adata.obsm["linkwise_probabilities"], model.best_estimator_.responsibilities_, atol=1e-12
    )
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = sc.read_h5ad(tmp_path / "cells.h5ad").uns["linkwise"]
    assert again["gain"]["low"] == told["gain"]["low"]
    assert again["candidates"]["agreement"].tolist() == told["candidates"]["agreement"].tolist()


def test_without_links_there_is_no_gain():
    adata, _ = blobs()
    cluster(adata, n_clusters=3)
    assert np.isnan(adata.uns["linkwise"]["gain"]["value"])
    assert len(adata.obs["linkwise"].cat.categories) == 3


def test_settings_beside_an_estimator_are_used():
    adata, _ = blobs()
    cluster(adata, n_clusters=3, method=PPC(2, random_state=0))
    assert len(adata.obs["linkwise"].cat.categories) == 3


def test_copy_leaves_the_object_and_own_results_are_replaced():
    adata, _ = blobs()
    copied = cluster(adata, n_clusters=3, method="PPC", copy=True)
    assert "linkwise" not in adata.obs
    assert "linkwise" in copied.obs
    cluster(copied, n_clusters=2, method="PCKMeans")
    assert len(copied.obs["linkwise"].cat.categories) == 2
    assert "linkwise_probabilities" not in copied.obsm


@pytest.mark.parametrize("place", ["obs", "obsm", "uns"])
def test_entries_of_the_user_are_not_replaced(place):
    adata, _ = blobs()
    name = "linkwise_probabilities" if place == "obsm" else "linkwise"
    getattr(adata, place)[name] = np.arange(60).reshape(60, 1) if place == "obsm" else "mine"
    with pytest.raises(ValueError, match=rf"{place}\['{name}'\].*key_added"):
        cluster(adata, n_clusters=3, method="PPC")


def mistakes():
    looped, torn, nan = (sp.lil_array((60, 60)) for _ in range(3))
    looped[4, 4] = 1.0
    torn[1, 2], torn[2, 1] = 1.0, -1.0
    nan[1, 2] = np.nan
    unknown = pd.DataFrame({"a": ["cell1"], "b": ["nobody"], "kind": ["same"]})
    return [
        ({"use_rep": "X_umap", "n_clusters": 3}, "X_umap.*X_pca"),
        ({"labels": "typ"}, "no column 'typ'.*known"),
        ({"labels": "empty"}, "empty.*missing"),
        ({"links": unknown, "n_clusters": 3}, "nobody"),
        ({"links": "nowhere.csv", "n_clusters": 3}, "nowhere.csv.*looped"),
        ({"links": "looped", "n_clusters": 3}, "cell4.*itself"),
        ({"links": "torn", "n_clusters": 3}, "cell1' and 'cell2"),
        ({"links": "nan", "n_clusters": 3}, "NaN"),
        ({"links": same_links()[0], "method": "PPC"}, "n_clusters.*auto"),
        ({"method": "KMeans", "n_clusters": 3}, "KMeans.*PPC"),
        ({"method": "CPPC", "n_clusters": 3}, "labels"),
        ({"beliefs": np.eye(2), "labels": "known"}, "beliefs"),
        ({"links": same_links()[0], "certainty": 0.9, "n_clusters": 3}, "certainty.*leave it out"),
        ({"labels": "known", "certainty": 0.9, "method": "CPPC"}, "certainty.*beliefs"),
    ], {"looped": looped, "torn": torn, "nan": nan}


@pytest.mark.parametrize("number", range(14))
def test_mistakes_are_named_and_nothing_is_written(number):
    cases, matrices = mistakes()
    arguments, message = cases[number]
    adata, y = blobs()
    adata.obs["known"] = pd.Categorical([f"type{k}" for k in y])
    adata.obs["empty"] = pd.Categorical([None] * 60)
    for name, matrix in matrices.items():
        adata.obsp[name] = matrix.tocsr()
    with pytest.raises(ValueError, match=message):
        cluster(adata, **arguments)
    assert "linkwise" not in adata.obs
    assert "linkwise" not in adata.uns


def test_names_that_repeat_are_refused():
    adata, _ = blobs()
    adata.obs_names = ["twin", "twin", *adata.obs_names[2:]]
    with pytest.raises(ValueError, match=r"twin.*obs_names_make_unique"):
        cluster(adata, n_clusters=3)


def test_two_types_in_one_cluster_are_reported():
    adata, y = blobs()
    adata.obs["known"] = pd.Categorical([f"type{k}" for k in y])
    with pytest.warns(SharedClusterWarning):
        cluster(adata, labels="known", certainty=0.51, method="PPC", n_clusters=2)
    assert any(" + " in name for name in adata.obs["linkwise"].cat.categories)
