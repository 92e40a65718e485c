"""Fixed inputs give the bits that earlier commits made of them (`fixtures/pipeline_digests.py`)."""

import importlib.util
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:in batches, the mexican hat")

FIXTURES = Path(__file__).parents[1] / "fixtures"

spec = importlib.util.spec_from_file_location("pipeline_digests", FIXTURES / "pipeline_digests.py")
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)

RECORDED = json.loads((FIXTURES / "pipeline_digests-8db4b20.json").read_text())
RECORDED["digests"] |= json.loads((FIXTURES / "pipeline_digests-2258b13.json").read_text())["digests"]  # cases of later


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where inputs are kept that several cases need."""
    return tmp_path_factory.mktemp("digests")


def check(client, folder, name):
    for operation in made.ARITHMETIC.get(name, []):
        if made.arithmetic()[operation] != RECORDED["arithmetic"][operation]:
            pytest.skip(f"{operation} rounds otherwise on this machine than where the digests were made")
    assert made.digest_of(client, name, folder) == RECORDED["digests"][name]


def test_every_case_is_recorded():
    assert set(RECORDED["digests"]) == set(made.CASES)
    assert set(made.QUICK) <= set(made.CASES)


@pytest.mark.parametrize("name", made.QUICK)
def test_same_bits(client, folder, name):
    check(client, folder, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", made.CASES)
def test_same_bits_by_three_workers(three, folder, name):
    check(three, folder, name)
