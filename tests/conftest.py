import numpy as np
import pytest


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request):
    """The array library of a test: NumPy, and where there is a GPU also CuPy."""
    if request.param == "numpy":
        return np
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    return cupy
