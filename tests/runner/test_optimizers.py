import pytest
import torch

from runner_specs import trainer
from symdsl.runner import optimizers, training
from symdsl.runner.optimizers import Adam, Soap


def gradients(shape, steps, seed=0, mixing=()):
    """Random gradients, mixed along their dimensions by matrices."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        found = torch.randn(shape, generator=generator, dtype=torch.float64)
        for dim, matrix in enumerate(mixing):
            found = torch.tensordot(found, matrix, dims=([dim], [1])).movedim(-1, dim)
        yield found


def weight(shape):
    return torch.zeros(shape, dtype=torch.float64)


@pytest.mark.parametrize(("optimizer", "shape"), [(Adam, (3, 4)), (Soap, (7,)), (Soap, (1, 7, 1))], ids=str)
def test_steps_of_adam_are_scaled_and_soap_takes_them_along_a_vector(optimizer, shape):
    ours, theirs = weight(shape).requires_grad_(), weight(shape).requires_grad_()
    one, other = optimizer({"w": ours}), torch.optim.Adam([theirs], lr=0.01)
    for number, gradient in enumerate(gradients(shape, 50), 1):
        ours.grad, theirs.grad = gradient, gradient
        one.step(number, 0.01, torch.tensor([0.5], dtype=torch.float64))
        other.step()
    torch.testing.assert_close(ours.detach(), 0.5 * theirs.detach())


@pytest.mark.parametrize("shape", [(4, 5), (5, 4), (3, 4, 5), (4, 3, 2, 2)], ids=str)
def test_a_step_is_that_of_adam_on_the_numbers_of_the_eigenbasis(shape):
    ours = weight(shape)
    one = Soap({"w": ours})
    steps = optimizers.INTERVAL + 5
    for number, gradient in enumerate(gradients(shape, steps), 1):
        ours.grad = gradient
        if number == steps:
            before, state = ours.clone(), one.tensors()
        one.step(number, 0.01, torch.ones(1))
    (moments,) = one._moments.values()
    whole = torch.eye(1, dtype=torch.float64)
    for dim in range(len(moments.order)):
        whole = torch.kron(whole, state[f"basis{dim}/w"])
    found = whole.T @ moments.gradient().flatten()
    mean = optimizers.MEAN * state["mean/w"].flatten() + (1 - optimizers.MEAN) * found
    square = optimizers.SQUARE * state["square/w"].flatten() + (1 - optimizers.SQUARE) * found**2
    step = (mean / (1 - optimizers.MEAN**steps)) / ((square / (1 - optimizers.SQUARE**steps)).sqrt() + 1e-8)
    moved = whole @ (-0.01 * step)
    ordered = (ours - before).reshape(moments.merged).permute(moments.order)
    torch.testing.assert_close(ordered.flatten(), moved)


def test_the_bases_become_the_eigenvectors_of_the_covariances_and_the_mean_turns_along():
    scales = torch.tensor([10.0, 3, 1, 0.3], dtype=torch.float64)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    mixing = rotation @ scales.diag()
    ours, plain = weight((4, 6)), torch.zeros(4, 6, dtype=torch.float64)
    one = Soap({"w": ours})
    for number, gradient in enumerate(gradients((4, 6), 10 * optimizers.INTERVAL, mixing=[mixing]), 1):
        ours.grad = gradient
        one.step(number, 0.01, torch.ones(1))
        plain.lerp_(gradient, 1 - optimizers.MEAN)
    state = one.tensors()
    alike = (state["basis0/w"].T @ rotation).abs()
    assert alike.diag().min() > 0.9
    turned = state["basis0/w"].T @ plain @ state["basis1/w"]
    torch.testing.assert_close(state["mean/w"], turned)


def test_directions_without_a_gradient_keep_their_basis():
    ours = weight((6, 5))
    one, bases = Soap({"w": ours}), []
    rows, columns = next(gradients((6,), 1)), next(gradients((5,), 1, seed=1))
    for number, size in enumerate(torch.linspace(1, 2, optimizers.INTERVAL), 1):
        ours.grad = size * torch.outer(rows, columns)
        one.step(number, 0.01, torch.ones(1))
        bases.append(one.tensors()["basis1/w"])
    turned = (bases[-2].T @ bases[-1]).abs()
    torch.testing.assert_close(turned, torch.eye(6, dtype=torch.float64), rtol=0, atol=1e-3)


def test_dimensions_of_a_kernel_are_turned_as_one_and_large_ones_are_not():
    kernel, dense = weight((8, 4, 3, 3)), weight((5, optimizers.LARGEST_SIDE + 1, 1))
    found = {key: tensor.shape for key, tensor in Soap({"k": kernel, "d": dense}).tensors().items()}
    bases = {key: shape for key, shape in found.items() if key.startswith("basis")}
    assert bases == {"basis0/k": (4, 4), "basis1/k": (8, 8), "basis2/k": (9, 9), "basis0/d": (5, 5)}


def test_correlated_weights_are_fitted_in_fewer_steps_than_by_adam():
    generator = torch.Generator().manual_seed(2)
    left, right = (torch.randn(8, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    target = torch.randn(8, 8, generator=generator, dtype=torch.float64)

    def loss(tensor):
        return (left @ (tensor - target) @ right).square().mean()

    def fitted(tensor, step):
        for number in range(1, 401):
            tensor.grad = None
            loss(tensor).backward()
            step(number)
        return float(loss(tensor).detach())

    ours, theirs = (weight((8, 8)).requires_grad_() for _ in range(2))
    one, other = Soap({"w": ours}), torch.optim.Adam([theirs], lr=0.02)
    assert fitted(ours, lambda number: one.step(number, 0.02, torch.ones(1))) < 0.3 * fitted(
        theirs, lambda _: other.step()
    )


def test_a_tensor_without_a_gradient_stays_and_one_that_is_not_finite_raises_nothing():
    still, wrong = weight((3, 3)), weight((3, 3))
    one = Soap({"still": still, "wrong": wrong})
    wrong.grad = torch.full((3, 3), torch.nan, dtype=torch.float64)
    one.step(1, 0.01, torch.ones(2))
    assert torch.equal(still, weight((3, 3)))
    assert wrong.isnan().all()


@pytest.mark.parametrize("optimizer", [Adam, Soap])
def test_what_is_restored_goes_on_as_before(optimizer):
    first, second = weight((3, 4, 2)), weight((3, 4, 2))
    one, other = optimizer({"w": first}), optimizer({"w": second})
    for number, gradient in enumerate(gradients((3, 4, 2), 2 * optimizers.INTERVAL), 1):
        if number == optimizers.INTERVAL:
            other.restore(one.tensors())
            second.copy_(first)
        first.grad = second.grad = gradient
        one.step(number, 0.01, torch.ones(1))
        if number >= optimizers.INTERVAL:
            other.step(number, 0.01, torch.ones(1))
    assert torch.equal(first, second)


def test_many_examples_are_trained_on_by_soap(small, monkeypatch):
    assert isinstance(trainer(small()).optimizer, Adam)
    monkeypatch.setattr(training, "FEW_EXAMPLES", 1)
    assert isinstance(trainer(small()).optimizer, Soap)


def test_steps_are_numbered_from_one_over_all_epochs(small, monkeypatch):
    """By their number SOAP corrects its running means, and tells when its bases turn."""
    one, numbers = trainer(small(search__batch=16)), []
    monkeypatch.setattr(one.optimizer, "step", lambda number, rate, scales: numbers.append(number))
    for _ in range(2):
        one.train_epoch()
    assert numbers == [1, 2, 3, 4, 5, 6]
