"""``eman reproduce`` as its users run it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eman import cli, datasets, reproduce

from .conftest import REPOSITORY

TRAINED = ("table2", "table3", "table4")


def run(experiment: str, output: Path, *more: str, data: str = "creatures") -> int:
    return cli.main(["reproduce", experiment, "--data", data, "--quick", "--output", str(output), *more])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of one block, so that all tables take seconds."""
    monkeypatch.setattr(
        reproduce, "Model", lambda *arguments, make=reproduce.Model, **options: make(*arguments, blocks=1, **options)
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("experiment", TRAINED)
def test_tables(experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = reproduce.EXPERIMENTS[experiment].rows
    assert run(experiment, tmp_path) == 0
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.split()[:1] == ["paper"] for line in printed) == len(rows)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == len(rows)
    assert run(experiment, tmp_path, "--json") == 0  # all of it is there
    found = json.loads(capsys.readouterr().out)
    assert (found["experiment"], found["epochs"], found["seeds"]) == (experiment, 2, 1)
    assert len(found["rows"]) == len(rows)
    for row in found["rows"]:
        for column in reproduce.EXPERIMENTS[experiment].columns:
            assert 0 <= row[column]["mean"] <= 100
        if row["bias"] == "angular":
            assert row["gauge"]["mean"] == row["test"]["mean"]
            assert row["features"] != "reltan" or row["similarity"]["mean"] == row["test"]["mean"]


def test_random_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("table1", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    equivariant = [[row[gap]["mean"] < 1e-9 for gap in ("gauge", "similarity")] for row in found["rows"]]
    assert equivariant == [[True, False], [False, False], [True, False], [True, False], [True, True]]
    assert [row["gauge"]["paper_mean"] for row in found["rows"]] == [0, 0.143, 7.95e-6, 8.75e-6, 1.31e-5]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("experiment", ["augmentation", "timing"])
def test_figures(experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("matplotlib.image")
    assert run(experiment, tmp_path, "--seeds", "2", "--epochs", "3") == 0
    assert "ms a step" in capsys.readouterr().out
    picture = image.imread(tmp_path / f"{experiment}.png")[..., :3]
    assert np.ptp(picture, axis=-1).max() > 0.3  # two coloured curves
    assert run(experiment, tmp_path, "--seeds", "2", "--epochs", "3", "--json") == 0
    for row in json.loads(capsys.readouterr().out)["rows"]:
        assert len(row["accuracy"]) == len(row["seconds"]) == 3
        assert row["seconds"] == sorted(row["seconds"])
        assert row["step_seconds"] > 0


@pytest.mark.usefixtures("small")
def test_interrupted_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished rows are skipped, the row in which it was interrupted goes on from its last epoch."""
    steps: list[Any] = []
    train = reproduce.fit

    def interrupted(*arguments: Any, progress: Any, **options: Any) -> Any:
        def note(step: Any) -> None:
            steps.append(step)
            if len(steps) == 13:  # in the second epoch of the second row
                raise KeyboardInterrupt
            progress(step)

        return train(*arguments, progress=note, **options)

    monkeypatch.setattr(reproduce, "fit", interrupted)
    assert run("table2", tmp_path) == 130
    runs = tmp_path / "runs.jsonl"
    first = runs.read_text()
    assert first.count("\n") == 1
    assert len(list(tmp_path.glob("run-*.safetensors"))) == 1
    runs.write_text(first + '{"run": {"netw')  # as when the disk was full
    assert run("table2", tmp_path) == 0
    assert [step.step for step in steps[13:17]] == [5, 6, 7, 8]
    assert len(steps) == 8 + 5 + 4 + 4 * 8
    assert runs.read_text().startswith(first)
    assert [json.loads(line)["run"]["network"][0] for line in runs.read_text().splitlines()] == ["spiral"] + ["gem"] * 5
    assert not list(tmp_path.glob("run-*.safetensors"))
    assert run("table2", tmp_path) == 0
    assert len(steps) == 49


@pytest.mark.usefixtures("small")
def test_tables_share_rows(tmp_path: Path) -> None:
    """Table 3 has four networks of table 2, with more seeds."""
    assert run("table2", tmp_path) == 0
    assert run("table3", tmp_path, "--seeds", "1") == 0
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 6 + 4


@pytest.mark.usefixtures("small")
def test_seeds_give_deviations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("table4", tmp_path, "--seeds", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    first = [line["result"]["train"] for line in lines[:2]]
    assert found["rows"][0]["train"]["mean"] == np.mean(first)
    assert found["rows"][0]["train"]["std"] == pytest.approx(np.std(first, ddof=1))
    assert found["rows"][0]["train"]["paper_std"] == 2.41


@pytest.mark.long
def test_on_bodies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    number = np.arange(100)
    made = datasets.creatures(1, vertices=800)[0].mesh
    bodies = made.vertices * (1 + number[:, None, None] / 100)
    path = tmp_path / "bodies.npz"
    np.savez(path, vertices=bodies, faces=made.faces, subject=number // 10, pose=number % 10)
    assert run("table1", tmp_path, data=str(path)) == 0
    assert "humans, 4 to train, 2 to test, 800 classes" in capsys.readouterr().out
    assert run("table4", tmp_path, "--epochs", "1", data=str(path)) == 0
    assert "10 classes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["table9", "--data", "creatures"], 2, "invalid choice"),
        (["table1"], 2, "required"),
        (["table1", "--data", "none.npz"], 1, "No such file"),
        (["table1", "--data", "."], 1, "no registrations.*, and no figures of TOSCA"),
        (["table2", "--data", "creatures", "--quick", "--seeds", "0"], 1, "--seeds must be positive"),
        (["table2", "--data", "creatures", "--quick", "--epochs", "0"], 1, "epochs: 0 is out of range"),
    ],
)
def test_errors(
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        found = cli.main(["reproduce", *arguments])
    except SystemExit as exit:
        found = exit.code  # type: ignore[assignment]
    assert found == status
    assert re.search(message, capsys.readouterr().err)


def test_data_for_another_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cat0.vert").write_text("0 0 0\n1 0 0\n0 1 0\n")
    (tmp_path / "cat0.tri").write_text("1 2 3\n")
    assert run("table2", tmp_path, data=str(tmp_path)) == 1
    assert "is for classification, this experiment is about segmentation" in capsys.readouterr().err


def test_humans_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("EMAN_DATA", str(tmp_path))
    (tmp_path / "humans.npz").write_text("no arrays")
    assert run("table1", tmp_path, data="humans") == 1
    assert "does not hold bodies" in capsys.readouterr().err


def test_figures_of_the_paper_are_transcribed() -> None:
    """Against the tables in the paper's source, where that is beside the repository."""
    source = REPOSITORY.parent / "shared" / "paper" / "equivariant-mesh-attention-networks.tex"
    if not source.exists():
        pytest.skip(f"{source} is missing")
    text = source.read_text()
    for experiment, label in (("table1", "eq_error"), ("table2", "model_equiv_comp"),
                              ("table3", "faust_main_exp"), ("table4", "tosca_main_exp")):  # fmt: skip
        at = text.index(rf"\label{{tab:{label}}}")
        begin, end = text.rindex(r"\begin{table", 0, at), text.index(r"\end{table", at)
        rows = [line for line in text[begin:end].splitlines() if r"\textsc{" in line]
        expected = []
        for line in rows:
            cells = line.split("&")[1:]
            while r"\textsc" not in cells[0]:
                cells = cells[1:]
            expected.append([_numbers(cell) for cell in cells[1:]])
        found = reproduce.EXPERIMENTS[experiment].rows.values()
        assert [[[x for x in figure if x is not None] for figure in row] for row in found] == expected


def _numbers(cell: str) -> list[float]:
    """Those of a cell such as ``\\redtext{1.03$\\cdot 10^{-1}$}`` or ``98.46 \\smallgraytext{(0.15)}``."""
    power = re.search(r"([\d.]+) ?\$\\cdot 10\^\{(-\d+)\}\$", cell)
    if power:
        return [float(f"{power.group(1)}e{power.group(2)}")]
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cell)]
