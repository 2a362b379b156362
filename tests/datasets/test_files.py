"""The paper's files: found, verified, downloaded, or missed with directions."""

import errno
import hashlib

import pooch
import pytest
import requests

from hidldl import list_datasets, load_dataset
from hidldl.datasets import registry
from hidldl.datasets.files import cache_folder, fetch, locate
from hidldl.datasets.registry import FILES, find_entry
from hidldl.errors import DatasetUnavailableError

ENTRY = FILES["SJAFFE"]


@pytest.fixture
def empty_machine(tmp_path, monkeypatch):
    """Neither HIDLDL_DATA nor anything in the cache."""
    monkeypatch.delenv("HIDLDL_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    return tmp_path


@pytest.fixture
def published(monkeypatch):
    """Pretend that some bytes are what was published as SJAFFE."""
    content = b"the published file"
    monkeypatch.setitem(registry._SHA256, ENTRY.file, hashlib.sha256(content).hexdigest())
    return content


def pretend_download(monkeypatch, content):
    def download(self, url, output_file, pooch_instance, check_only=False):
        if isinstance(content, Exception):
            raise content
        with open(output_file, "wb") as file:  # noqa: PTH123
            file.write(content)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)


def test_the_papers_names_and_the_usual_aliases():
    assert len(FILES) == 12
    for alias, name in {
        "alpha": "Yeast-alpha",
        "yeast_cdc": "Yeast-cdc",
        "Scene": "Natural-Scene",
        "natural scene": "Natural-Scene",
        "ns.mat": "Natural-Scene",
        "SBU": "SBU3DFE",
        "sbu_3dfe": "SBU3DFE",
        "Emo": "Emotion6",
        "RAF": "RAF-ML",
        "raf_ml": "RAF-ML",
        "s-jaffe": "SJAFFE",
    }.items():
        assert find_entry(alias).name == name


def test_every_name_file_and_alias_leads_to_its_dataset():
    for entry in FILES.values():
        for name in (entry.name, entry.file, *entry.aliases):
            assert find_entry(name) is entry


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"no dataset 'Yeast-alfa'. Did you mean 'Yeast-alpha'"):
        load_dataset("Yeast-alfa")
    with pytest.raises(ValueError, match=r"Known names: Yeast-alpha, .*VADER"):
        load_dataset("???")


def test_offline_the_error_says_which_file_goes_where(empty_machine, monkeypatch):
    pretend_download(monkeypatch, requests.exceptions.ConnectionError("no route"))
    with pytest.raises(DatasetUnavailableError) as caught:
        load_dataset("SJAFFE")
    message = str(caught.value)
    for part in (ENTRY.file, ENTRY.url, ENTRY.checksum, str(cache_folder()), "HIDLDL_DATA", "ConnectionError"):
        assert part in message


def test_a_download_is_verified_and_kept(empty_machine, monkeypatch, published):
    pretend_download(monkeypatch, published)
    path = fetch(ENTRY)
    assert path == cache_folder() / ENTRY.file
    assert [file.name for file in cache_folder().iterdir()] == [ENTRY.file]
    pretend_download(monkeypatch, AssertionError("downloaded again"))
    assert fetch(ENTRY) == path


@pytest.mark.parametrize("content", [b"a login page", b"the published fil", b"the published file\n", b""])
def test_a_wrong_download_leaves_nothing_behind(empty_machine, monkeypatch, published, content):
    pretend_download(monkeypatch, content)
    with pytest.raises(DatasetUnavailableError, match="not the published file"):
        fetch(ENTRY)
    assert list(cache_folder().iterdir()) == []


def test_a_full_disk_is_the_reason_that_is_given(empty_machine, monkeypatch, published):
    pretend_download(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(DatasetUnavailableError, match="downloading failed with No space left on device"):
        fetch(ENTRY)
    assert list(cache_folder().iterdir()) == []
    pretend_download(monkeypatch, published)
    assert fetch(ENTRY).read_bytes() == published


def test_a_cache_that_cannot_be_made_is_the_reason_that_is_given(empty_machine, monkeypatch, published):
    (empty_machine / "cache").write_text("a file where the folder should be")
    pretend_download(monkeypatch, published)
    with pytest.raises(DatasetUnavailableError, match="downloading failed with Not a directory"):
        fetch(ENTRY)


def test_hidldl_data_comes_before_the_cache(empty_machine, monkeypatch, published):
    for folder in (empty_machine / "mine", cache_folder()):
        folder.mkdir(parents=True)
        (folder / ENTRY.file).write_bytes(published)
    monkeypatch.setenv("HIDLDL_DATA", str(empty_machine / "mine"))
    assert locate(ENTRY).parent == empty_machine / "mine"
    monkeypatch.delenv("HIDLDL_DATA")
    assert locate(ENTRY).parent == cache_folder()


def test_a_changed_file_is_not_read(empty_machine, monkeypatch):
    (empty_machine / ENTRY.file).write_bytes(b"changed")
    monkeypatch.setenv("HIDLDL_DATA", str(empty_machine))
    with pytest.raises(DatasetUnavailableError, match=r"not the published file of SJAFFE .*Remove it"):
        load_dataset("SJAFFE")


def test_a_git_blob_id_verifies_too(monkeypatch):
    # What `printf 'hello\n' | git hash-object --stdin` prints.
    monkeypatch.setitem(registry._GIT_BLOB, "RAF_ML.mat", "ce013625030ba8dba906f756967f9e9ca394464a")
    assert FILES["RAF-ML"].matches(b"hello\n")
    assert not FILES["RAF-ML"].matches(b"hello")


@pytest.mark.parametrize("name", [name for name in list_datasets() if name in FILES])
def test_the_papers_datasets_load(data_folder, name):
    entry = FILES[name]
    if not (data_folder / entry.file).exists():
        pytest.skip(f"{entry.file} is not in HIDLDL_DATA")
    data = load_dataset(name)
    assert data.features.shape == (entry.n_rows, entry.n_features)
    assert data.distributions.shape == (entry.n_rows, entry.n_labels)
    assert (len(data.feature_names), len(data.label_names)) == (entry.n_features, entry.n_labels)
    assert abs(data.distributions.sum(axis=1) - 1).max() < 1e-12
    assert data.distributions.min() >= 0
