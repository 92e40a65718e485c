"""Files of samples for tests, and what a store has of them."""

import flowio
import numpy as np


def fcs(path, events, names, labels=None, **facts):
    """Write an FCS file of events (n, channels)."""
    with open(path, "wb") as file:
        flowio.create_fcs(file, np.asarray(events, float).ravel().tolist(), names, labels, facts)


def labels_of(samples):
    """Return the label of each sample, None without one."""
    names = [*samples.label_names(), None]
    return [names[code] for code in samples.labels()]
