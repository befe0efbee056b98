"""Data that are handed over in Python: what is taken, what is refused, and a search on them from start to resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import symdsl
from analysis.specs import found
from symdsl.cli import main
from symdsl.data import Dataset, Examples, fingerprint, from_datasets, from_tensors, load
from symdsl.diagnostics import RunError
from symdsl.runner.evaluate import evaluate
from symdsl.spec import Spec, parse

SPEC = """data given({given}) |> standardize
network n {{
  input image(channels, 4, {width})
  layer l1: F-FC + CONV(3) -> 2 |> relu
  flatten
  layer h1: FC -> classes
}}
search {{
  epochs = 2
  every  = 1
  batch  = 16
}}
"""


DIGITS = parse("data digits\nnetwork n {\n  input image(1, 8, 8)\n  flatten\n  layer h: FC -> classes\n}\n")


def spec(given: str = "1, 4, 3", width: int = 4) -> Spec:
    return parse(SPEC.format(given=given, width=width))


def images(count: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def classified(*shape: int, seed: int = 0) -> Dataset:
    train, test = images(24, *shape, seed=seed), images(9, *shape, seed=seed + 1)
    return from_tensors(train, torch.arange(24) % 3, test, torch.arange(9) % 3)


# ---------------------------------------------------------------- what is taken


@pytest.mark.parametrize("shape", [(4, 4), (1, 4, 4)])
@pytest.mark.parametrize("form", [torch.as_tensor, lambda values: values.numpy(), lambda values: values.tolist()])
def test_tensors_arrays_and_lists_are_taken(shape: tuple[int, ...], form: Any) -> None:
    x, y = images(6, *shape), torch.arange(6) % 2
    data = from_tensors(form(x), form(y), form(x[:2]), form(y[:2]))
    assert data.task == "classification"
    assert data.train.x.shape == (6, 1, 4, 4)
    assert torch.equal(data.train.x.flatten(), x.flatten())
    assert torch.equal(data.test.y, y[:2])


def test_bytes_become_shares_of_the_largest() -> None:
    data = from_tensors(np.full((2, 3, 3), 255, np.uint8), [0, 1], np.zeros((1, 3, 3), np.uint8), [1])
    assert data.train.x.unique().tolist() == [1.0]


def test_floats_are_targets() -> None:
    data = from_tensors(images(4, 3, 3).double(), torch.rand(4).double(), images(2, 3, 3), torch.rand(2, 1))
    assert data.task == "regression"
    assert data.train.y.shape == (4, 1)
    assert (data.train.x.dtype, data.train.y.dtype) == (torch.float32, torch.float64)


def test_datasets_of_torch_are_read_whole() -> None:
    x, y = images(700, 1, 3, 3), torch.arange(700) % 5
    data = from_datasets(TensorDataset(x, y), TensorDataset(x[:3], y[:3]))
    assert fingerprint(data) == fingerprint(from_tensors(x, y, x[:3], y[:3]))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x_train": torch.arange(16).reshape(1, 4, 4)}, TypeError, r"`x_train` \(=torch.int64\) must hold floats"),
        ({"x_test": torch.zeros(2, 4)}, ValueError, r"`x_test` \(of shape \[2, 4\]\) must be"),
        ({"y_train": torch.zeros(2, 1, dtype=torch.int64)}, ValueError, r"`y_train` \(of shape \[2, 1\]\) must be"),
        ({"y_train": torch.tensor([True, False])}, TypeError, r"`y_train` \(=torch.bool\) must hold"),
        ({"y_test": torch.zeros(2)}, TypeError, "must be both labels or both floats"),
    ],
)
def test_what_is_no_data_is_refused(change: dict[str, Tensor], error: type[Exception], message: str) -> None:
    y = torch.tensor([0, 1])
    given = {"x_train": torch.zeros(2, 4, 4), "y_train": y, "x_test": torch.zeros(2, 4, 4), "y_test": y}
    with pytest.raises(error, match=message):
        from_tensors(**(given | change))


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([], ValueError, "`train` must be a dataset with a length"),
        ([(images(1, 3, 3), 0), (images(1, 4, 4), 1)], ValueError, "images of `train` must all have the same shape"),
        ([(object(), 0)], TypeError, "`train` must hold pairs"),
        ([images(1, 3, 3)], TypeError, "`train` must hold pairs"),
        ([{"a": images(1, 3, 3)}, {"b": images(1, 3, 3)}], TypeError, "`train` must hold pairs"),
        ([([1.0], 0)], TypeError, "`train` must hold pairs"),
        ([(images(1, 3, 3), [1.0, 2.0])], TypeError, "targets of `train` must be numbers, or tensors"),
        ([(images(1, 3, 3), "cat")], TypeError, "targets of `train` must be numbers, or tensors"),
        (
            [(torch.zeros(1, 3, 3, dtype=torch.uint8), 0), (images(1, 3, 3), 1)],
            TypeError,
            "images of `train` must be all uint8, which is divided by 255, or all floats",
        ),
        (
            [(np.zeros((1, 3, 3), np.uint8), 0), (np.ones((1, 3, 3), np.float32), 1)],
            TypeError,
            "images of `train` must be all uint8",
        ),
        ([(1.0, 0), (2.0, 1)], ValueError, r"`x_train` \(of shape \[2\]\) must be"),
        ([(images(1, 3, 3), 0), (images(1, 3, 3), 0.5)], TypeError, "targets of `train` must be all labels or all fl"),
    ],
)
def test_a_dataset_of_something_else_is_refused(items: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        from_datasets(items, items)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ((images(1, 4, 4), 0), "the images of `train` must all have the same shape"),
        ((images(1, 3, 3), torch.zeros(2)), "and so must the targets"),
    ],
)
@pytest.mark.parametrize("alike", [1, 512])
def test_examples_of_unlike_shapes_are_refused(other: Any, message: str, alike: int) -> None:
    items = [(images(1, 3, 3), torch.zeros(1) if isinstance(other[1], Tensor) else 0)] * alike + [other]
    with pytest.raises(ValueError, match=message):
        from_datasets(items, items)  # type: ignore[arg-type]


def test_reading_a_dataset_of_torch_leaves_the_global_generator_alone() -> None:
    items = [(images(1, 3, 3), 0)]
    before = torch.get_rng_state()
    from_datasets(items, items)  # type: ignore[arg-type]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loader_is_no_dataset() -> None:
    loader = DataLoader([(images(1, 3, 3), 0)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"`train` \(a DataLoader\) must be a dataset"):
        from_datasets(loader, loader)  # type: ignore[arg-type]


def test_an_error_of_a_dataset_itself_is_its_own() -> None:
    class Failing(list[int]):
        def __getitem__(self, index: Any) -> Any:
            raise RuntimeError("out of memory in my transform")

    with pytest.raises(RuntimeError, match=r"^out of memory in my transform$"):
        from_datasets(Failing([1]), Failing([1]))  # type: ignore[arg-type]


# ---------------------------------------------------------------- specs


@pytest.mark.parametrize("given", ["1, 4, 3", "channels = 1, classes = 3, height = 4, width = 4"])
def test_a_spec_takes_the_shape_at_its_word(given: str) -> None:
    data = spec(given).facts.data
    assert (data.channels, data.height, data.width, data.classes) == (1, 4, 4, 3)


@pytest.mark.parametrize("given", ["1, classes = 3", "1, 4, 3, height = 4", "1, classes = 3, width = 4"])
def test_either_a_side_or_two_are_given(given: str) -> None:
    messages = [one.message for one in found(SPEC.format(given=given, width=4))]
    assert messages == ["`given` takes either `size`, or `height` and `width`"]


def test_how_many_examples_there_are_is_not_known_before() -> None:
    assert found(SPEC.format(given="1, 2, 3", width=4).replace("standardize", "quadrants |> subset(5)")) == ()


def test_data_that_are_not_what_the_spec_says_are_refused() -> None:
    with pytest.raises(RunError, match="`given`: images come out as 1x5x4, but the spec says 1x4x4"):
        load(spec(), given=classified(5, 4))
    with pytest.raises(RunError, match=r"`given`: `y_train\[2\]` \(=2\) must be a class from 0 to 1"):
        load(spec("1, 4, 2"), given=classified(4, 4))
    nothing = from_tensors(torch.zeros(0, 1, 4, 4), torch.zeros(0, 2), torch.zeros(2, 1, 4, 4), torch.zeros(2, 2))
    with pytest.raises(RunError, match="`given`: `x_train` is empty"):
        load(spec("1, 4, 2, task = regression"), given=nothing)
    with pytest.raises(RunError, match="`given`: the targets are class labels, but the task of the spec is regression"):
        load(spec("1, 4, 1, task = regression"), given=classified(4, 4))
    with pytest.raises(ValueError, match="the spec learns from `digits`"):
        load(DIGITS, given=classified(4, 4))


def test_transforms_act_on_what_is_given() -> None:
    data = classified(4, 4)
    loaded = load(spec(), given=data)
    assert float(loaded.train.x.mean()) == pytest.approx(0, abs=1e-6)
    assert not torch.equal(loaded.train.x, data.train.x)


# ---------------------------------------------------------------- runs


def test_a_search_on_given_data_records_and_demands_them(tmp_path: Path) -> None:
    run, data = tmp_path / "run", classified(4, 4)
    result = symdsl.search(spec(), device="cpu", out=run, data=data)
    assert 0 <= result["test"]["accuracy"] <= 1
    recorded = json.loads((run / "run.json").read_text(encoding="utf-8"))["dataset"]
    assert recorded == fingerprint(load(spec(), given=data))
    assert evaluate(run, data=data)["nll"] == pytest.approx(result["test"]["nll"], rel=1e-6)
    (run / "result.json").unlink()
    with pytest.raises(RunError, match="the data are not those the run was started with"):
        symdsl.search(device="cpu", resume=run, data=classified(4, 4, seed=5))
    again = symdsl.search(device="cpu", resume=run, data=data)
    assert again["test"] == result["test"]


@pytest.mark.parametrize("command", ["search", "map", "data"])
def test_the_command_line_says_how_to_hand_data_over(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.sym").write_text(spec().text(), encoding="utf-8")
    done = CliRunner().invoke(main, [command, "mine.sym"])
    assert done.exit_code == 3
    assert "symdsl.search(spec, data=symdsl.data.from_tensors(x_train, y_train, x_test, y_test))" in done.stderr
    assert CliRunner().invoke(main, ["compile", "mine.sym"]).exit_code == 0


def test_numbers_written_as_text_are_refused() -> None:
    with pytest.raises(TypeError, match="`x_train` must be a tensor or an array of numbers"):
        from_tensors(np.zeros((2, 4, 4)).astype(str), [0, 1], images(2, 4, 4), [0, 1])


def test_text_labels_are_told_how_to_become_numbers() -> None:
    with pytest.raises(TypeError, match=r"`y_train` holds texts: `numpy.unique\(y_train, return_inverse=True\)\[1\]`"):
        from_tensors(images(2, 4, 4), np.array(["cat", "dog"]), images(2, 4, 4), [0, 1])


def test_masked_targets_are_refused() -> None:
    y = np.ma.masked_array([1.0, -9999.0], [False, True])
    with pytest.raises(TypeError, match="`y_train` has masked values"):
        from_tensors(images(2, 4, 4), y, images(2, 4, 4), [1.0, 2.0])


def test_a_search_says_what_spec_and_data_must_be(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"`spec` \(='mine.sym'\) must be a Spec: `symdsl.load\(path\)` reads one"):
        symdsl.search("mine.sym", out=tmp_path / "run")  # type: ignore[arg-type]
    for function in (symdsl.data.load, symdsl.data.inspect):
        with pytest.raises(TypeError, match=r"`spec` \(='mine.sym'\) must be a Spec: `symdsl.load\(path\)` reads one"):
            function("mine.sym")  # type: ignore[operator]
    with pytest.raises(TypeError, match=r"`data` \(of type tuple\) must be made by `symdsl.data.from_tensors`"):
        symdsl.search(spec(), out=tmp_path / "run", data=(1, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (images(3, 1, 4, 4).double(), torch.arange(3), r"`x_train` must be a tensor of torch.float32 with 4 axes"),
        (images(3, 4, 4), torch.arange(3), r"`x_train` must be a tensor of torch.float32 with 4 axes"),
        (images(3, 1, 4, 4).numpy(), torch.arange(3), r"`x_train` must be a tensor of torch.float32 with 4 axes"),
        (images(3, 1, 4, 4), torch.arange(3).int(), r"`y_train` must be a tensor of torch.int64 with 1 axes"),
        (images(3, 1, 4, 4), torch.arange(3)[:, None], r"`y_train` must be a tensor of torch.int64 with 1 axes"),
    ],
)
def test_a_dataset_made_by_hand_has_the_types_of_one_that_symdsl_makes(
    tmp_path: Path, x: Any, y: Tensor, message: str
) -> None:
    made = Dataset(Examples(x, y), Examples(x, y), "classification")
    with pytest.raises(RunError, match=message):
        symdsl.search(spec(), device="cpu", out=tmp_path / "run", data=made)
    assert not (tmp_path / "run").exists()


def test_only_a_dataset_can_be_handed_over() -> None:
    with pytest.raises(TypeError, match=r"`data` \(of type tuple\) must be made by `symdsl.data.from_tensors`"):
        load(spec(), given=(1, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [0.0, 1.7e9])
def test_an_offset_of_targets_costs_no_digits(offset: float) -> None:
    x, y = images(40, 4, 4), torch.linspace(0, 1, 40).double() + offset
    spec = parse(
        "data given(1, 4, 1, task = regression) |> standardize(targets)\n"
        "network n {\n  input image(1, 4, 4)\n  flatten\n  layer h1: FC -> classes\n}\n"
    )
    found = load(spec, given=from_tensors(x, y, x, y)).train.y
    assert found.dtype == torch.float32
    assert torch.allclose(found, ((y - y.mean()) / y.std(correction=0)).float()[:, None], atol=1e-5)


def test_targets_beyond_float32_are_refused() -> None:
    x, spec = (
        images(4, 4, 4),
        "data given(1, 4, 1, task = regression)\nnetwork n {\n  input image(1, 4, 4)\n  flatten\n",
    )
    given = from_tensors(x, torch.arange(4.0).double() * 1e300, x, torch.arange(4.0))
    with pytest.raises(RunError, match=r"too large for float32: `standardize\(targets\)` scales them"):
        load(parse(spec + "  layer h1: FC -> classes\n}\n"), given=given)


def test_bytes_beside_floats_are_refused() -> None:
    with pytest.raises(TypeError, match="must be both uint8, which is divided by 255, or both floats"):
        from_tensors(np.zeros((2, 3, 3), np.uint8), [0, 1], np.zeros((1, 3, 3)), [1])


@pytest.mark.filterwarnings("error")
def test_arrays_in_any_order_of_bytes_and_axes_are_taken() -> None:
    x = np.random.default_rng(0).random((6, 4, 4)).astype(np.float32)
    fixed = x.copy()
    fixed.flags.writeable = False
    for form in (x[:, ::-1], x.astype(">f4"), fixed):
        assert np.array_equal(from_tensors(form, [0, 1] * 3, x, [0, 1] * 3).train.x[:, 0].numpy(), form)


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_a_search_learns_where_the_caller_has_turned_derivatives_off(off: Any, tmp_path: Path) -> None:
    x, y = images(24, 4, 4), torch.arange(24) % 2
    spec = parse(SPEC.format(given="1, 4, 2", width=4))
    expected = symdsl.search(spec, device="cpu", out=tmp_path / "on", data=from_tensors(x, y, x, y))
    with off():
        given = from_tensors(x, y, x, y)
        found = symdsl.search(spec, device="cpu", out=tmp_path / "off", data=given)
    assert found["train"] == expected["train"]


def test_a_search_says_that_it_computes_in_float32(tmp_path: Path) -> None:
    spec = parse("data digits\nnetwork n {\n  input image(1, 8, 8)\n  flatten\n  layer h1: FC -> classes\n}\n")
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ValueError, match=r"default dtype .* must be float32"):
            symdsl.search(spec, device="cpu", out=tmp_path / "run")
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_caller_may_have_another_default_device(tmp_path: Path) -> None:
    spec = parse("data digits\nnetwork n {\n  input image(1, 8, 8)\n  flatten\n  layer h1: FC -> classes\n}\n")
    expected = symdsl.data.fingerprint(load(spec)), symdsl.compile(spec).tensors()["h1.FC.w"]
    with torch.device("meta"):
        assert symdsl.data.fingerprint(load(spec)) == expected[0]
        assert torch.equal(symdsl.compile(spec).tensors()["h1.FC.w"], expected[1])
        with pytest.raises(ValueError, match=r"default device \(=meta\) must be the CPU: give `device` instead"):
            symdsl.search(spec, device="cpu", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_search_computes_in_float32_under_autocast(tmp_path: Path) -> None:
    x, y = images(24, 4, 4), torch.arange(24) % 2
    spec, given = parse(SPEC.format(given="1, 4, 2", width=4)), from_tensors(x, y, x, y)
    expected = symdsl.search(spec, device="cpu", out=tmp_path / "plain", data=given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = symdsl.search(spec, device="cpu", out=tmp_path / "cast", data=given)
    assert found["train"] == expected["train"]


def test_a_sparse_tensor_is_refused() -> None:
    x, y = images(2, 3, 3), torch.tensor([0, 1])
    with pytest.raises(TypeError, match=r"`x_train` must be .*: it is sparse .*; give `x_train.to_dense\(\)`"):
        from_tensors(x.to_sparse(), y, x, y)
