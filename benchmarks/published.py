"""Rows of the tables of Layer-wise Equivariances (van der Ouderaa et al., 2023), and the figures printed there."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from symdsl.runs.schema import Objective


@attrs.frozen
class Figures:
    """What a table prints for one row and objective; `None` and nothing where it prints nothing.

    Attributes:
        accuracy: on the test data, in per cent.
        nll: on the test data, nats per example.
        evidence: the negative log evidence, nats per example.
        shares: relative effective numbers over the layers, in per cent: mean (least-most).
    """

    accuracy: float | None = None
    nll: float | None = None
    evidence: float | None = None
    shares: str = ""


@attrs.frozen
class Row:
    """A row of a table.

    Attributes:
        name: for `--rows`.
        title: as the table says it.
        spec: the stem of a file in `specs/paper`.
        parameters: as printed.
        map: the figures without learning priors.
        laplace: the figures with priors learned by the evidence.
        overrides: what makes the spec this row.
    """

    name: str
    title: str
    spec: str
    parameters: str
    map: Figures = Figures()
    laplace: Figures = Figures()
    overrides: Mapping[str, str] = attrs.field(factory=dict, hash=False)

    def figures(self, objective: Objective) -> Figures:
        """What is printed for an objective."""
        return self.map if objective == "map" else self.laplace


def _of_table_1(task: str, accuracies: Mapping[str, float]) -> tuple[Row, ...]:
    spec = f"table1_{task}"
    fc, conv = ({"candidates": kinds} for kinds in ("[FC]", "[CONV(3)]"))
    by_map, by_laplace = ({kind: Figures(accuracies[f"{kind}, {way}"]) for kind in ("FC", "CONV")} for way in _WAYS)
    return (
        Row(f"{task}_fc", f"{task}, FC", spec, "112.7 M", by_map["FC"], by_laplace["FC"], fc),
        Row(f"{task}_conv", f"{task}, CONV", spec, "0.4 M", by_map["CONV"], by_laplace["CONV"], conv),
        Row(
            f"{task}_learned",
            f"{task}, F-FC + CONV",
            spec,
            "1.8 M",
            laplace=Figures(accuracies["learned"]),
        ),
    )


def _of_table_2(name: str, title: str, parameters: str, by_map: Figures, by_laplace: Figures) -> Row:
    return Row(name, title, f"table2_{name}", parameters, by_map, by_laplace)


def _of_table_3(name: str, title: str, by_map: Figures, by_laplace: Figures) -> Row:
    return Row(name, title, f"table3_{name}", "1.2 M", by_map, by_laplace)


def _of_table_7(name: str, title: str, parameters: str, accuracy: float) -> Row:
    return Row(name, title, f"table7_{name}", parameters, Figures(accuracy))


def _shares(f_fc: str, conv: str, gconv: str) -> str:
    return f"F-FC {f_fc}, CONV {conv}, GCONV {gconv}"


_WAYS = ("MAP", "Laplace")
_DIGIT = {"FC, MAP": 95.73, "CONV, MAP": 99.38, "FC, Laplace": 97.04, "CONV, Laplace": 99.23, "learned": 98.86}
_POSITION = {"FC, MAP": 95.10, "CONV, MAP": 24.68, "FC, Laplace": 95.46, "CONV, Laplace": 24.50, "learned": 99.00}

TABLES: Mapping[str, tuple[Row, ...]] = {
    "table1": (*_of_table_1("digit", _DIGIT), *_of_table_1("position", _POSITION)),
    "table2": (
        _of_table_2("fc", "FC", "133.6 M", Figures(64.42, 2.423), Figures(52.36, 1.319, 1.896)),
        _of_table_2("conv", "CONV", "0.3 M", Figures(82.81, 1.184), Figures(84.07, 0.464, 1.022)),
        _of_table_2("fc_conv", "FC + CONV", "133.9 M", Figures(76.93, 1.713), Figures(83.32, 0.489, 1.019)),
        _of_table_2("f_fc", "F-FC", "1.5 M", Figures(50.47, 4.291), Figures(53.38, 1.307, 2.119)),
        _of_table_2("f_fc_conv", "F-FC + CONV", "1.8 M", Figures(81.61, 1.343), Figures(83.92, 0.468, 1.277)),
        _of_table_2("s_fc", "S-FC, values", "0.8 M", Figures(50.21, 5.614), Figures(46.18, 1.496, 1.926)),
        _of_table_2("s_conv", "S-CONV, values", "0.2 M", Figures(82.53, 0.604), Figures(81.29, 0.562, 1.037)),
        _of_table_2(
            "s_fc_s_conv", "S-FC + S-CONV, values", "1.0 M", Figures(58.80, 5.485), Figures(81.55, 0.538, 0.978)
        ),
        _of_table_2(
            "s_fc_lengthscale", "S-FC, lengthscales", "0.8 M", Figures(49.69, 7.783), Figures(52.22, 1.319, 1.813)
        ),
        _of_table_2(
            "s_conv_lengthscale", "S-CONV, lengthscales", "0.2 M", Figures(81.84, 0.913), Figures(81.20, 0.549, 1.055)
        ),
        _of_table_2(
            "s_fc_s_conv_lengthscale",
            "S-FC + S-CONV, lengthscales",
            "1.0 M",
            Figures(77.97, 2.040),
            Figures(80.63, 0.564, 1.067),
        ),
    ),
    "table3": (
        _of_table_3(
            "mnist",
            "MNIST",
            Figures(97.59, 0.172),
            Figures(99.21, 0.023, 0.328, _shares("10 (0-46)", "15 (0-98)", "75 (1-100)")),
        ),
        _of_table_3(
            "translated_mnist",
            "translated MNIST",
            Figures(90.78, 0.812),
            Figures(98.27, 0.053, 0.216, _shares("0 (0-0)", "23 (0-99)", "77 (1-100)")),
        ),
        _of_table_3(
            "rotated_mnist",
            "rotated MNIST",
            Figures(91.02, 0.819),
            Figures(95.55, 0.136, 0.896, _shares("8 (0-20)", "8 (0-47)", "83 (47-100)")),
        ),
        _of_table_3(
            "cifar10",
            "CIFAR-10",
            Figures(68.33, 3.540),
            Figures(80.94, 0.552, 0.926, _shares("0 (0-1)", "44 (0-99)", "56 (0-100)")),
        ),
        _of_table_3(
            "rotated_cifar10",
            "rotated CIFAR-10",
            Figures(48.30, 5.953),
            Figures(55.68, 1.236, 1.630, _shares("4 (0-22)", "14 (0-41)", "82 (58-99)")),
        ),
    ),
    "table7": (
        _of_table_7("full", "GCONV, full", "1,025,380", 73.70),
        _of_table_7("separable", "GCONV, separable", "214,550", 61.31),
        _of_table_7("depthwise", "GCONV, depthwise", "139,735", 51.63),
        _of_table_7("full_6", "GCONV, full, width 6", "371,200", 69.89),
        _of_table_7("separable_13", "GCONV, separable, width 13", "358,463", 59.99),
        _of_table_7("depthwise_16", "GCONV, depthwise, width 16", "346,215", 49.77),
        _of_table_7("pointwise", "GCONV, pointwise", "338,770", 66.77),
        _of_table_7("conv", "CONV", "338,770", 57.89),
    ),
}
"""Every table that can be run, by name; in the order of its rows."""
