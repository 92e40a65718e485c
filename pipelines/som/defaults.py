"""Defaults of a training, for `train_som`, `tilepath som train` and the estimators.

The sides of the grid, the first radius and the metric follow from other options if they are not given:
`pipelines.som.start.usual_sides`, `pipelines.som.schedule.first_and_last`, the map of `initial`. This module imports
nothing, as `--help` shows the defaults.
"""

METRIC = "euclidean"
KERNEL = "gaussian"
EPOCHS = 20
SIGMA_END = 1.0  # in units of the grid
SCHEDULE = "linear"
INITIAL = "pca"
SEED = 0
RATE, RATE_END = 0.5, 0.01
