"""A store whose folder or data file is gone: one error for each kind of absence, whoever asks, with what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ef
from ef.errors import EfError, NotFound, StoreUnavailable
from ef.session import verify_path
from tests.log.build import filled


@pytest.mark.parametrize("quick", [True, False])
def test_a_folder_that_goes_away_under_an_open_store_is_unavailable_until_it_is_back(
    tmp_path: Path, quick: bool
) -> None:
    path = filled(tmp_path / "store")
    with ef.open(path, create=False) as store:
        assert store.verify(quick=quick).ok
        away = path.rename(tmp_path / "away")
        with pytest.raises(
            StoreUnavailable, match=r"cannot be read: No such file.*Put its"
        ) as said:
            store.verify(quick=quick)
        assert said.value.exit_code == 69 and str(path) in str(said.value)
        away.rename(path)
        assert store.verify(quick=quick).ok


@pytest.mark.parametrize("quick", [True, False])
def test_a_data_file_that_is_gone_is_one_error_for_all_who_open_the_store(
    tmp_path: Path, quick: bool
) -> None:
    path = filled(tmp_path / "store")
    away = (path / "data.mdb").rename(tmp_path / "away")
    said: list[EfError] = []
    for ask in (
        lambda: verify_path(path, quick=quick),
        lambda: ef.open(path, create=False),
        lambda: ef.open(path),
        lambda: ef.open(path, readonly=True),
    ):
        with pytest.raises(
            StoreUnavailable, match=r"holds no data.mdb, and was a store. Put its"
        ) as e:
            ask()
        said.append(e.value)
    assert {(str(each), each.exit_code) for each in said} == {(str(said[0]), 69)}
    away.rename(path / "data.mdb")
    assert verify_path(path, quick=quick).verdict == "sound"


def asked(path: Path) -> list[EfError]:
    """What verify and an opening say of a store that is not to be had."""
    with pytest.raises(EfError) as of_verify:
        verify_path(path)
    with pytest.raises(EfError) as of_opening:
        ef.open(path, create=False)
    return [of_verify.value, of_opening.value]


def test_a_store_that_never_was_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("none", "empty"):
        assert {(type(e), e.exit_code) for e in asked(tmp_path / name)} == {(NotFound, 66)}
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    found = asked(tmp_path / "full")
    assert {(type(e), str(e)) for e in found} == {(StoreUnavailable, str(found[0]))}
    assert "the folder holds no data.mdb. Give a new path" in str(found[0])
    path = filled(tmp_path / "store")
    shutil.rmtree(tmp_path / "full")
    shutil.copytree(path, tmp_path / "full")
    assert verify_path(tmp_path / "full").verdict == "sound"
