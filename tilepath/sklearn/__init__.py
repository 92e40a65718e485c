"""Self-organizing maps of samples in memory, as estimators of scikit-learn (the extra `sklearn`).

`tilepath.train_som` trains a map with stores and workers; these estimators train it with an array on one device. Both
use the same functions for the steps (`pipelines.som.start`, `pipelines.som.epoch`), so the same samples and options
yield the same codebook, bit by bit.

`estimator` has the parameters and the training, `trained` what a trained map answers, `classifier` classes of samples.
"""

from gpuops.extras import install

try:
    from sklearn.base import BaseEstimator  # noqa: F401
    from sklearn.utils.validation import validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(f"the estimator needs scikit-learn 1.6 or newer: {install('sklearn')}") from error

from tilepath.sklearn.classifier import SelfOrganizingMapClassifier as SelfOrganizingMapClassifier
from tilepath.sklearn.estimator import SelfOrganizingMap as SelfOrganizingMap
