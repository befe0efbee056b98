from __future__ import annotations

import torch

from data.by_hand import step, synthetic
from symdsl.data import Augmentation, Examples, fingerprint, load
from symdsl.data.records import seeded


def epoch(augmentation: Augmentation, x: torch.Tensor, index: torch.Tensor, turn: int = 0) -> torch.Tensor:
    change = augmentation.epoch(len(x), seeded("augment", turn), "cpu")
    return change(Examples(x[index], index), index).x


def numbered(examples: int, side: int = 5) -> torch.Tensor:
    """The same image with an entry of its own at every position, many times."""
    return torch.arange(1.0, side * side + 1).reshape(1, 1, side, side).expand(examples, 2, side, side)


def test_the_spec_says_what_is_done() -> None:
    assert Augmentation.of(synthetic(step("augment", flip=True, shift=2))) == Augmentation(flip=True, shift=2)
    assert Augmentation.of(synthetic()) == Augmentation(flip=False, shift=0)


def test_without_augmentation_a_batch_is_itself() -> None:
    batch = Examples(numbered(3), torch.arange(3))
    assert Augmentation().epoch(3, seeded(), "cpu")(batch, torch.arange(3)) is batch


def test_half_of_the_images_are_mirrored_left_to_right() -> None:
    x = numbered(1000)
    done = epoch(Augmentation(flip=True), x, torch.arange(1000))
    mirrored = (done == x.flip(3)).flatten(1).all(1)
    assert torch.equal(done[~mirrored], x[~mirrored])
    assert 400 < int(mirrored.sum()) < 600


def test_every_shift_within_the_limit_is_drawn_and_none_beyond() -> None:
    point = torch.zeros(2000, 1, 9, 9)
    point[:, :, 4, 4] = 1
    done = epoch(Augmentation(shift=2), point, torch.arange(2000))
    assert {(int(i), int(j)) for _, _, i, j in done.nonzero()} == {(i, j) for i in range(2, 7) for j in range(2, 7)}
    assert done.sum() == 2000


def test_what_happens_to_an_example_depends_on_the_epoch_and_not_on_its_batch() -> None:
    x, augmentation = numbered(50), Augmentation(flip=True, shift=3)
    whole = epoch(augmentation, x, torch.arange(50))
    index = torch.tensor([41, 3, 17])
    assert torch.equal(epoch(augmentation, x, index), whole[index])
    assert not torch.equal(epoch(augmentation, x, torch.arange(50), turn=1), whole)


def test_loading_augments_nothing() -> None:
    augmented = synthetic(step("augment", flip=True, shift=2))
    assert fingerprint(load(augmented)) == fingerprint(load(synthetic()))
