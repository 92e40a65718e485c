"""Errors of the system: never taken for damage of a store, and told with the file and the cure."""

import errno
import os

import pytest
from failures import Failures

from pipelines.stores.errors import StoreError, disk_errors, explained
from tilepath.cli.describe import store_facts


@pytest.mark.parametrize("operation", ["open", "read"])
@pytest.mark.parametrize("name", ["graph", "part-distances", "codebook"])
def test_what_cannot_be_read_is_not_taken_for_damaged(tiny_stores, monkeypatch, name, operation):
    failures = Failures(monkeypatch, tiny_stores)
    store_facts(tiny_stores / name, verify=True)
    count = failures.count[operation]
    for n in range(1, count + 1, count // 6 + 1):
        failures.plan(operation, n, errno.EIO)
        with pytest.raises(OSError, match="Input/output error") as told:
            store_facts(tiny_stores / name, verify=True)
        assert failures.struck.startswith(str(told.value.filename))


def test_an_array_without_permission_is_not_taken_for_missing(tiny_stores, monkeypatch):
    look = os.stat

    def refused(path, **options):
        if str(path).endswith("indices/zarr.json"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return look(path, **options)

    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(PermissionError, match="Permission denied: .*indices/zarr.json"):
        store_facts(tiny_stores / "graph")


@pytest.mark.parametrize(
    ("number", "file", "said"),
    [
        (errno.ENOSPC, None, "the disk is full; free some space and run again, with resume .*, or write elsewhere"),
        (errno.EDQUOT, "x.zarr/a/c/0", "the disk is full"),
        (errno.EIO, ".x.zarr.host.5.partial/zarr.json", r"the disk failed \(Input/output error\); look at the log"),
        (errno.EMFILE, "x.zarr.new/zarr.json", None),
        (errno.EMFILE, "x.zarr/zarr.json", r"too many files are open; raise the limit \(ulimit -n\) and run again"),
        (errno.ENOENT, "x.zarr/a/c", "a part was removed while it was written; remove the rest, and begin again"),
        (errno.EROFS, "x.zarr", r"cannot be written \(Read-only file system\); choose another place"),
        (
            errno.ENAMETOOLONG,
            ".x.zarr.pieces",
            "/x.zarr: the name is too long; choose a shorter one, or write elsewhere",
        ),
        (errno.EFBIG, None, r"x.zarr: a file is larger .*; raise the limit \(ulimit -f\) and run again.* elsewhere"),
        (errno.EMFILE, "", "too many files are open"),  # its folder
        (errno.EIO, "input.zarr/a/c/0", None),
    ],
)
def test_an_error_about_the_output_is_a_store_error(tmp_path, number, file, said):
    place = None if file is None else str(tmp_path / file)
    with pytest.raises(OSError if said is None else StoreError, match=said), disk_errors(tmp_path / "x.zarr"):
        raise OSError(number, os.strerror(number), *[place] * (place is not None))


def test_errors_are_explained_with_file_and_cure():
    about = OSError(errno.EACCES, os.strerror(errno.EACCES), "in.csv")
    assert explained(about) == "in.csv: access is refused (Permission denied); correct the permissions"
    assert explained(MemoryError("12 bytes")).startswith("out of memory (12 bytes); ")
    assert explained(OSError("something else")) is explained(ValueError("no")) is None
    assert explained(UnicodeEncodeError("ascii", "a table with ü", 13, 14, "")) is None  # about the terminal, no name
