import numpy as np
import pytest
from hypothesis import settings

# Speed is not what tests are for: the first example of many compiles something.
settings.register_profile("tilepath", deadline=None)
settings.load_profile("tilepath")


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request):
    """The array library of a test: NumPy, and where there is a GPU also CuPy."""
    if request.param == "numpy":
        return np
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    return cupy
