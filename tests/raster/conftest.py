import pytest

from tests.raster.raster_cases import scene


@pytest.fixture(scope="session")
def fitted():
    """A mixture fitted to a scene like the ones of the tests."""
    from linkwise import CPPC

    values, truth = scene()
    return CPPC(random_state=0, n_clusters=3).fit(
        values.reshape(len(values), -1).T.astype(float), truth.ravel()
    )
