"""The models that the package brings, and how they are made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import eman
from eman import cli, shipped, variations
from eman.evaluation import equivariance_gaps
from eman.variations import Labelled

#: Kinds of meshes of the tiny recipe.
KINDS = ("as they are", "vertex noise of 20 % of the mean edge")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe of the creatures with a small network, one epoch and two of them."""
    recipe = shipped.RECIPES["creature-parts"]
    monkeypatch.setitem(
        shipped.RECIPES,
        "creature-parts",
        dataclasses.replace(
            recipe,
            train=lambda data: shipped._creatures(range(2)),
            test=lambda data: {kind: tests for kind, tests in recipe.test(data).items() if kind in KINDS},
            network={"surface": {"points": [64], "blocks": [1]}},
            options={"epochs": 1},
        ),
    )
    monkeypatch.setattr(shipped, "_UNSEEN", range(2, 4))


@pytest.fixture
def made(tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with the tiny model, taken for that of the package."""
    folder = tmp_path / "models"
    assert cli.main(["make-model", "creature-parts", "--output", str(folder), "--json"]) == 0
    (tmp_path / "printed.json").write_text(capsys.readouterr().out)
    monkeypatch.setattr(shipped, "_FOLDER", folder)
    return folder


class TestMaking:
    def test_weights_card_and_checksum(self, made: Path) -> None:
        printed = json.loads((made.parent / "printed.json").read_text())
        content = (made / "creature-parts.safetensors").read_bytes()
        assert printed["bytes"] == len(content)
        assert printed["sha256"] == hashlib.sha256(content).hexdigest()
        assert (made / "SHA256SUMS").read_text() == f"{printed['sha256']}  creature-parts.safetensors\n"
        card = (made / "creature-parts.md").read_text()
        assert printed["sha256"] in card
        assert set(printed["accuracy"]) == set(KINDS)
        for kind, found in printed["accuracy"].items():
            assert 0 <= found["worst"] <= found["mean"] <= 1
            row = f"| {kind} | 2 | {100 * found['mean']:.1f} % | {100 * found['worst']:.1f} % |"
            assert row in card
        assert max(printed["gaps"].values()) <= 1e-9

    def test_accuracy_is_that_of_the_model(self, made: Path) -> None:
        printed = json.loads((made.parent / "printed.json").read_text())
        model = eman.Model.shipped("creature-parts")
        shares = [
            eman.accuracy(model, eman.Mesh(body.vertices, body.faces), body.labels)
            for body in shipped._creatures(range(2, 4))
        ]
        assert printed["accuracy"]["as they are"]["mean"] == pytest.approx(np.mean(shares))

    def test_repeated_bit_for_bit(self, made: Path, tmp_path: Path) -> None:
        again = shipped.make("creature-parts", None, tmp_path / "again", progress=None)
        assert again["sha256"] == shipped.checksums()["creature-parts"]

    def test_other_models_of_the_folder_keep_their_checksums(self, made: Path) -> None:
        eman.Model("default", classes=2).save(made / "other.safetensors")
        shipped.make("creature-parts", None, made, progress=None, seed=1)
        assert shipped.names() == ["creature-parts", "other"]
        assert shipped.load("other").classes == 2

    def test_says_what_it_did(self, tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert shipped.main(["creature-parts", "--output", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert "creature-parts.safetensors: " in printed
        assert "as they are" in printed
        assert "gap under permutation" in printed

    def test_refuses(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="there is no recipe 'cat-parts'"):
            shipped.make("cat-parts", None, tmp_path)
        assert cli.main(["make-model", "human-parts", "--output", str(tmp_path)]) == 1
        assert "human-parts needs --data" in capsys.readouterr().err
        assert cli.main(["make-model", "human-parts", "--data", str(tmp_path / "none.npz")]) == 1
        assert "No such file" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


class TestLoading:
    def test_by_name(self, made: Path) -> None:
        assert shipped.names() == ["creature-parts"]
        model = eman.Model.shipped("creature-parts")
        assert model.labels == list(eman.creatures.PART_NAMES)
        assert model.to_bytes() == (made / "creature-parts.safetensors").read_bytes()

    def test_on_a_context(self, made: Path) -> None:
        context = eman.Context(threads=1)
        assert eman.Model.shipped("creature-parts", context=context).context is context

    def test_unknown_name(self, made: Path) -> None:
        with pytest.raises(
            eman.InvalidArgumentError, match="no model 'cat-parts' is shipped; there are creature-parts"
        ):
            eman.Model.shipped("cat-parts")

    def test_changed_file(self, made: Path) -> None:
        eman.Model("surface", classes=2).save(made / "creature-parts.safetensors")
        with pytest.raises(eman.FileError, match="its checksum differs"):
            eman.Model.shipped("creature-parts")

    def test_missing_file(self, made: Path) -> None:
        (made / "creature-parts.safetensors").unlink()
        with pytest.raises(eman.FileError, match="No such file"):
            eman.Model.shipped("creature-parts")

    def test_no_models_at_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shipped, "_FOLDER", tmp_path)
        assert shipped.names() == []
        with pytest.raises(eman.InvalidArgumentError, match="there are none"):
            eman.Model.shipped("human-parts")


# ---------------------------------------------------------------------------------------------------------------------


def bodies(name: str, data_folder: Path) -> list[Labelled]:
    """Two that the model was not trained on."""
    if name == "creature-parts":
        return list(shipped._creatures(shipped._UNSEEN[:2]))
    data = eman.datasets.humans(data_folder / "humans.npz", "part").test
    return [variations.labelled(data[i].mesh.vertices, data[i].mesh.faces, data[i].target) for i in (3, 17)]


@pytest.mark.parametrize("name", sorted(shipped.RECIPES))
class TestShipped:
    """The models themselves."""

    @pytest.fixture
    def model(self, name: str) -> eman.Model:
        if name not in shipped.names() and os.environ.get("CI") != "true":
            pytest.skip(f"{name} is not in this copy of the package")
        return eman.Model.shipped(name)

    def test_is_small_and_has_a_card(self, name: str, model: eman.Model) -> None:
        assert len(model.to_bytes()) <= 2_000_000
        card = (shipped._FOLDER / f"{name}.md").read_text()
        assert shipped.checksums()[name] in card
        assert ", ".join(model.labels) in card

    @pytest.mark.long
    def test_is_as_good_as_its_card_says(self, name: str, model: eman.Model, data_folder: Path) -> None:
        card = (shipped._FOLDER / f"{name}.md").read_text()
        worst = float(re.findall(r"\| as they are \| \d+ \| [\d.]+ % \| ([\d.]+) % \|", card)[0])
        for body in bodies(name, data_folder):
            found = eman.accuracy(model, eman.Mesh(body.vertices, body.faces), body.labels)
            assert 100 * found >= worst - 0.5

    @pytest.mark.long
    def test_other_triangulations_get_the_same_labels(self, name: str, model: eman.Model, data_folder: Path) -> None:
        pytest.importorskip("pyvista")
        body = bodies(name, data_folder)[0]
        labels = model.predict(eman.Mesh(body.vertices, body.faces))
        for other in (variations.decimated(body, 2000), variations.subdivided(body, 20_000)):
            mesh = eman.Mesh(other.vertices, other.faces, degenerate="drop")
            same = labels[variations.nearest(other.vertices, body.vertices)] == model.predict(mesh)
            assert same.mean() > 0.9

    @pytest.mark.long
    def test_is_equivariant(self, name: str, model: eman.Model, data_folder: Path) -> None:
        body = bodies(name, data_folder)[0]
        mesh = eman.Mesh(body.vertices, body.faces)
        assert max(equivariance_gaps(model, mesh).values()) <= 1e-9
        labels = model.predict(mesh)
        renumbered = eman.transforms.permutation(mesh, seed=1)
        for other in (
            model.predict(eman.transforms.gauge(mesh, seed=1).mesh),
            model.predict(eman.transforms.similarity(mesh, seed=1).mesh),
            renumbered.vertices_back(model.predict(renumbered.mesh)),
        ):
            different = np.flatnonzero(labels != other)
            _, probabilities = model.top(mesh, 2)
            assert np.ptp(probabilities[different], axis=1).max(initial=0) < 1e-5, "but for ties"
