"""Calls of `fsync` that fail, and what follows; `test_power_cuts.py` tests when they are needed."""

import errno
import os

import pytest

from pipelines.stores import durable


def failing(number):
    def fsync(_file):
        raise OSError(number, os.strerror(number))

    return fsync


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_without_fsync_of_folders(tmp_path, monkeypatch, number):
    monkeypatch.setattr(os, "fsync", failing(number))
    durable.sync_names(tmp_path)
    (tmp_path / "file").touch()
    with (tmp_path / "file").open() as file, pytest.raises(OSError, match=os.strerror(number)):
        durable.sync_file(file)


def test_a_fault_of_a_folder_is_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="Input/output error"):
        durable.sync_names(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_not_renamed_before_its_bytes_are_durable(tmp_path, monkeypatch):
    (tmp_path / "new").write_text("new")
    (tmp_path / "place").write_text("old")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        durable.replace(tmp_path / "new", tmp_path / "place")
    assert (tmp_path / "place").read_text() == "old"


def test_a_chunk_of_zarr_whose_fsync_fails_leaves_nothing(tmp_path, monkeypatch):
    import zarr

    array = zarr.create_array(durable.DurableStore(tmp_path / "a"), shape=(4,), chunks=(2,), dtype="int32")
    array[:2] = 7
    before = sorted(tmp_path.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.ENOSPC))
        with pytest.raises(OSError, match="No space left"):
            array[:2] = 1
    assert sorted(tmp_path.rglob("*")) == before
    assert array[:].tolist() == [7, 7, 0, 0]


def test_a_deleted_folder_takes_no_file_with_it_that_a_link_names(tmp_path):
    """Also if the folder itself is a link, which `shutil.rmtree` refuses."""
    for name in "elsewhere/kept", "tree/within/file", "tree/.hidden":
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "tree/within/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    durable.delete_tree(tmp_path / "tree")
    with pytest.raises(OSError, match="link"):
        durable.delete_tree(tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "link"]
    assert os.listdir(tmp_path / "elsewhere") == ["kept"]


def test_files_that_cannot_be_deleted_are_reported_or_left(tmp_path, monkeypatch):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").touch()
    unlink = os.unlink

    def refuse(_path, **_options):
        raise PermissionError(errno.EACCES, "refused")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError, match="refused"):
        durable.delete_tree(tmp_path / "tree")
    durable.delete_tree(tmp_path / "tree", ignore_errors=True)
    assert (tmp_path / "tree/file").exists()
    monkeypatch.setattr(os, "unlink", unlink)
    durable.delete_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
