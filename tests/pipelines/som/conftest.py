"""What several tests of maps share."""

import pytest


@pytest.fixture
def dealt_to_all(monkeypatch):
    """The samples of these tests are few: one worker would have them all."""
    monkeypatch.setattr("pipelines.som.plan.FEW", 0)
