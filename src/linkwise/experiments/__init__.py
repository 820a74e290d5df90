"""The papers' experiments as functions that return tables; ``make reproduce`` prints them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from linkwise.experiments.coarse_classes import coarse_digits, doubled_wine
from linkwise.experiments.cppc import cppc_fixed_groupings, cppc_readings
from linkwise.experiments.engines import engine_accuracy
from linkwise.experiments.faces import faces as yale_faces
from linkwise.experiments.hmrf import hmrf_learning_curve
from linkwise.experiments.land_cover import land_cover_legend
from linkwise.experiments.leaderboard import leaderboard as quality_leaderboard
from linkwise.experiments.newsgroups import hmrf_newsgroups
from linkwise.experiments.ppc import iris_hard_links, iris_noise_level, noisy_links
from linkwise.experiments.spectral import spectral_newsgroups, spectral_two_class, spectral_uci
from linkwise.experiments.teachers import teachers as teachers_protocol
from linkwise.experiments.texture import texture_mosaic
from linkwise.experiments.widths import link_graph_widths

__all__ = [
    "EXPERIMENTS",
    "coarse_digits",
    "cppc_fixed_groupings",
    "cppc_readings",
    "doubled_wine",
    "engine_accuracy",
    "hmrf_learning_curve",
    "hmrf_newsgroups",
    "iris_hard_links",
    "iris_noise_level",
    "land_cover_legend",
    "link_graph_widths",
    "noisy_links",
    "quality_leaderboard",
    "spectral_newsgroups",
    "spectral_two_class",
    "spectral_uci",
    "teachers_protocol",
    "texture_mosaic",
    "yale_faces",
]

#: Name on the command line and the function that returns (head, rows).
EXPERIMENTS: dict[str, Callable[[], tuple[list[str], list[list[Any]]]]] = {
    "link_graph_widths": link_graph_widths,
    "engine_accuracy": engine_accuracy,
    "iris_hard_links": iris_hard_links,
    "iris_noisy_links": noisy_links,
    "wine_noisy_links": partial(noisy_links, "wine", "diag"),
    "iris_noise_level": iris_noise_level,
    "cppc_fixed_groupings": cppc_fixed_groupings,
    "cppc_readings": cppc_readings,
    "coarse_digits": coarse_digits,
    "doubled_wine": doubled_wine,
    "land_cover_satimage": land_cover_legend,
    "land_cover_matogrosso": partial(land_cover_legend, "modis_matogrosso"),
    "hmrf_iris": hmrf_learning_curve,
    "hmrf_wine": partial(hmrf_learning_curve, "wine"),
    "hmrf_letters": partial(hmrf_learning_curve, "letters_ijl"),
    "hmrf_protein": partial(hmrf_learning_curve, "protein116"),
    "hmrf_news_easy": hmrf_newsgroups,
    "hmrf_news_difficult": partial(hmrf_newsgroups, "difficult"),
    "teachers": teachers_protocol,
    "faces": yale_faces,
    "texture_quadrants": texture_mosaic,
    "texture_curved": partial(texture_mosaic, "curved"),
    "spectral_moons": spectral_two_class,
    "spectral_spirals": partial(spectral_two_class, "spirals"),
    "spectral_rings": partial(spectral_two_class, "rings"),
    "spectral_iris": spectral_uci,
    "spectral_wine": partial(spectral_uci, "wine"),
    "spectral_digits": partial(spectral_uci, "digits389"),
    "spectral_ionosphere": partial(spectral_uci, "ionosphere"),
    "spectral_wine_wrong": partial(spectral_uci, "wine", (100, 200), 0.1),
    "spectral_satimage_wrong": partial(spectral_uci, "satimage", (100, 200), 0.1),
    "spectral_news_easy": spectral_newsgroups,
    "spectral_news_medium": partial(spectral_newsgroups, "medium"),
    "spectral_news_difficult": partial(spectral_newsgroups, "difficult"),
    "leaderboard": quality_leaderboard,
}
