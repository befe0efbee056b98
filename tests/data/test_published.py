from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision

from data.by_hand import facts, step
from data.files import write_cifar, write_idx
from symdsl.analysis.facts import Data
from symdsl.catalog.data import SOURCES
from symdsl.data import load
from symdsl.diagnostics import RunError

IDX = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST"}
CIFAR = {"cifar10": "CIFAR10", "cifar100": "CIFAR100"}


def source(name: str, root: Path | str, download: bool = False) -> Data:
    known = SOURCES[name].outline
    assert known is not None
    outline = known({})
    shape = (outline.channels, outline.height, outline.width)
    return facts(step(name, root=str(root), download=download), shape=shape, classes=outline.classes)


@pytest.mark.parametrize("name", IDX)
def test_grey_collections_are_read_in_the_published_layout(tmp_path: Path, name: str) -> None:
    values = write_idx(tmp_path / IDX[name] / "raw")
    data = load(source(name, tmp_path))
    assert torch.equal(data.train.x, torch.from_numpy(values)[:, None].float() / 255)
    assert data.test.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", CIFAR)
def test_colour_collections_are_read_in_the_published_layout(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    *train, test = write_cifar(tmp_path, CIFAR[name], monkeypatch).values()
    data = load(source(name, tmp_path))
    expected = torch.from_numpy(np.concatenate(train)).reshape(-1, 3, 32, 32).float() / 255
    assert torch.equal(data.train.x, expected)
    assert torch.equal(data.test.x, torch.from_numpy(test).reshape(-1, 3, 32, 32).float() / 255)
    assert data.train.y.tolist() == [7, 1] * len(train)


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_idx(tmp_path / "data" / "MNIST" / "raw")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(load(source("mnist", "~/data")).train) == 3


@pytest.mark.parametrize(
    ("name", "file", "origin"),
    [
        ("mnist", "MNIST/raw/train-images-idx3-ubyte", "https://ossci"),
        ("fashion_mnist", "FashionMNIST/raw/train-images-idx3-ubyte", "https://github.com/zalando"),
        ("cifar10", "cifar-10-batches-py/data_batch_1", "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"),
        ("cifar100", "cifar-100-python/train", "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"),
    ],
)
def test_a_missing_file_is_named_with_its_place_and_the_remedies(
    tmp_path: Path, name: str, file: str, origin: str
) -> None:
    with pytest.raises(
        RunError, match=rf"no file `{tmp_path}/{file}`; set `root` to .*, set `download = true`, or .* {origin}"
    ):
        load(source(name, tmp_path))


def test_one_file_that_is_missing_among_others_is_named(tmp_path: Path) -> None:
    write_idx(tmp_path / "MNIST" / "raw")
    labels = tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte"
    labels.rename(f"{labels}.gz")
    with pytest.raises(RunError, match=f"MNIST is packed: unpack `{labels}.gz` with `gunzip`"):
        load(source("mnist", tmp_path))
    Path(f"{labels}.gz").unlink()
    with pytest.raises(RunError, match=f"MNIST is not there: no file `{labels}`"):
        load(source("mnist", tmp_path))


@pytest.mark.parametrize("content", [b"", b"nonsense" * 4, b"\0\0\x08\x03" + b"\0\0\0\x09" * 3])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    write_idx(tmp_path / "MNIST" / "raw")
    images = tmp_path / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    images.write_bytes(content)
    with pytest.raises(RunError, match=f"`{images}` is not the file that MNIST publishes: delete it"):
        load(source("mnist", tmp_path))


@pytest.mark.parametrize("file", ["data_batch_4", "test_batch", "batches.meta"])
def test_a_changed_pickle_is_named_and_never_loaded(tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar(tmp_path, "CIFAR10", monkeypatch)
    changed = tmp_path / "cifar-10-batches-py" / file
    sprung = tmp_path / "sprung"
    changed.write_bytes(f"cpathlib\nPath.touch\n(cpathlib\nPath\n(V{sprung}\ntRtR.".encode())
    with pytest.raises(RunError, match=f"`{changed}` is not the file that CIFAR-10 publishes"):
        load(source("cifar10", tmp_path))
    assert not sprung.exists()


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_what_goes_wrong_while_fetching_is_one_line(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(self: object) -> None:
        raise RuntimeError("Error downloading:\nno network")

    monkeypatch.setattr(getattr(torchvision.datasets, (IDX | CIFAR)[name]), "download", offline)
    with pytest.raises(RunError, match=f"^cannot fetch .* into `{tmp_path}`: Error downloading: no network$"):
        load(source(name, tmp_path, download=True))


class Downloads:
    """Stands for `MNIST.download`: writes the files where they are not, and knows how many calls there were at once."""

    def __init__(self) -> None:
        self.counting = threading.Lock()
        self.now = self.most = self.fetched = 0

    def __call__(self, reader: torchvision.datasets.MNIST) -> None:
        with self.counting:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.2)
        if not reader._check_exists():
            self.fetched += 1
            write_idx(Path(reader.raw_folder))
        with self.counting:
            self.now -= 1


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> Downloads:
    found = Downloads()
    monkeypatch.setattr(torchvision.datasets.MNIST, "download", lambda reader: found(reader))
    return found


def test_one_process_fetches_at_a_time(tmp_path: Path, downloads: Downloads) -> None:
    # A file that is opened twice is locked by one of the two, in threads as in processes.
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(load, source("mnist", tmp_path / "new", download=True)) for _ in range(3)]
    assert {len(one.result().train) for one in asked} == {3}
    assert (downloads.most, downloads.fetched) == (1, 1)


def test_where_nothing_can_be_locked_data_are_fetched_all_the_same(
    tmp_path: Path, downloads: Downloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken" / ".download.lock").mkdir(parents=True)
    assert len(load(source("mnist", tmp_path / "taken", download=True)).train) == 3
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert len(load(source("mnist", tmp_path / "without", download=True)).train) == 3
    assert downloads.fetched == 2
