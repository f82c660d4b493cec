"""Networks on samples of a surface: on meshes of every kind, and on clouds of points with normals."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman.evaluation import TRANSFORMS, equivariance_gaps
from eman.variations import labelled, nearest, subdivided

#: A network small enough to train within seconds.
SMALL = {"surface": {"points": [256, 64], "blocks": [1, 1, 1]}}

CLASSES = 4


@pytest.fixture(scope="module")
def model() -> eman.Model:
    return eman.Model("surface", classes=CLASSES, seed=1, **SMALL)


@pytest.fixture(scope="module")
def mesh(horse: eman.creatures.Creature) -> eman.Mesh:
    return eman.Mesh(horse)


class TestResults:
    def test_agree_with_each_other(self, model: eman.Model, mesh: eman.Mesh) -> None:
        logits = model.logits(mesh)
        assert logits.shape == (800, CLASSES)
        assert np.allclose(np.exp(logits).sum(axis=1), 1, atol=1e-5)
        assert len(np.unique(logits, axis=0)) > 700, "vertices differ from each other"
        labels = model.predict(mesh)
        assert np.array_equal(labels, logits.argmax(axis=1))
        best, probabilities = model.top(mesh, 2)
        assert np.array_equal(best[:, 0], labels)
        assert np.allclose(probabilities[:, 0], np.exp(logits.max(axis=1)), atol=1e-6)

    def test_evaluate(self, model: eman.Model, mesh: eman.Mesh) -> None:
        target = np.arange(800) % CLASSES
        found = eman.evaluate(model, mesh, target)
        logits = model.logits(mesh)
        assert found.correct == np.count_nonzero(logits.argmax(axis=1) == target)
        assert found.loss == pytest.approx(-logits[np.arange(800), target].mean(), abs=1e-5)

    @pytest.mark.parametrize("kind", ["gem", "eman"])
    def test_equivariant(self, kind: str, mesh: eman.Mesh) -> None:
        network = eman.Model("surface", classes=CLASSES, seed=2, kind=kind, **SMALL)
        gaps = equivariance_gaps(network, mesh)
        assert set(gaps) == set(TRANSFORMS)
        assert max(gaps.values()) <= 1e-9

    def test_labels_do_not_depend_on_order(self, model: eman.Model, mesh: eman.Mesh) -> None:
        renumbered = eman.transforms.permutation(mesh, seed=3)
        assert np.array_equal(renumbered.vertices_back(model.predict(renumbered.mesh)), model.predict(mesh))

    def test_another_triangulation_has_much_the_same_labels(
        self, model: eman.Model, horse: eman.creatures.Creature, mesh: eman.Mesh
    ) -> None:
        finer = subdivided(labelled(horse.vertices, horse.faces, horse.labels), 3000)
        agree = model.predict(eman.Mesh(finer.vertices, finer.faces))[:800] == model.predict(mesh)
        assert agree.mean() > 0.8
        on_vertices = eman.Model("default", classes=CLASSES, seed=1)
        other = on_vertices.predict(eman.Mesh(finer.vertices, finer.faces))[:800] == on_vertices.predict(mesh)
        assert other.mean() < agree.mean(), "which a network on vertices has not"

    def test_classification(self, mesh: eman.Mesh) -> None:
        network = eman.Model("surface", classes=3, task="classification", **SMALL)
        assert network.logits(mesh).shape == (3,)
        assert network.predict(mesh) == int(network.logits(mesh).argmax())

    def test_estimate_grows_with_the_mesh(self, model: eman.Model) -> None:
        assert 0 < model.estimate(1000) <= model.estimate(1_000_000)
        assert model.estimate_work(1000) < model.estimate_work(1_000_000)

    def test_progress(self, model: eman.Model, mesh: eman.Mesh) -> None:
        seen: list[float] = []
        model.predict(mesh, progress=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == 1.0


class TestLife:
    def test_file_pickle_copy(self, model: eman.Model, mesh: eman.Mesh, tmp_path: Path) -> None:
        model.save(tmp_path / "model.safetensors")
        again = [
            eman.Model.load(tmp_path / "model.safetensors"),
            pickle.loads(pickle.dumps(model)),
            copy.copy(model),
        ]
        for other in again:
            assert other.spec == model.spec
            assert np.array_equal(other.logits(mesh), model.logits(mesh))

    def test_faces_have_the_class_of_their_corners(self, model: eman.Model, mesh: eman.Mesh) -> None:
        faces, logits = model.predict_faces(mesh), model.logits(mesh).astype(np.float64)
        mean = logits[mesh.faces].mean(1)
        best = np.sort(mean, 1)
        clear = best[:, -1] - best[:, -2] > 1e-5
        assert clear.mean() > 0.9
        assert np.array_equal(faces[clear], mean.argmax(1)[clear])
        rolled = eman.Mesh(mesh.vertices, np.roll(mesh.faces, 1, 1)[::-1])
        assert (model.predict_faces(rolled)[::-1] == faces).mean() > 0.999
        with pytest.raises(eman.InvalidArgumentError, match="whole meshes"):
            eman.Model("surface", classes=2, task="classification").predict_faces(mesh)

    def test_spec_makes_the_same_network(self, model: eman.Model, mesh: eman.Mesh) -> None:
        again = eman.Model(model.spec, seed=1)
        assert np.array_equal(again.logits(mesh), model.logits(mesh))
        assert again.spec["surface"]["points"] == [256, 64]
        assert again.spec["surface"]["neighbors"] == 24, "what is left out is the preset's"

    def test_wrong_fields_are_named(self) -> None:
        with pytest.raises(eman.InvalidModelError, match=r"surface\.points"):
            eman.Model("surface", classes=2, surface={"points": []})
        with pytest.raises(eman.InvalidModelError, match="pionts"):
            eman.Model("surface", classes=2, surface={"pionts": [3]})


class TestInside:
    """What a network computes can be read out by samples and by their edges."""

    def test_samples_are_spread_over_the_surface(self, model: eman.Model, mesh: eman.Mesh) -> None:
        positions, normals = model.samples(mesh)
        assert positions.shape == normals.shape == (256, 3)
        assert np.allclose(np.linalg.norm(normals, axis=1), 1)
        near = nearest(positions, mesh.vertices)
        edge = mesh.report().mean_length
        assert np.linalg.norm(positions - mesh.vertices[near], axis=1).max() < 2 * edge
        assert np.einsum("ij,ij->i", normals, mesh.vertex_normals[near]).min() > 0
        apart = np.linalg.norm(positions[:, None] - positions[None], axis=2) + 1e9 * np.eye(256)
        assert apart.min() > 0.3 * np.median(apart.min(axis=1))

    def test_features_of_a_level(self, model: eman.Model, mesh: eman.Mesh) -> None:
        for name, rows in (("levels.0.down.0.conv1", 256), ("levels.1.pool", 64), ("levels.0.unpool", 256)):
            assert model.layer_size(mesh, name)[0] == rows
            layer = next(layer for layer in model.layers if layer.name == name)
            found = model.features(mesh, name)
            assert found.shape == (rows, layer.channels, 2 * layer.order + 1)
            assert np.ptp(found) > 0

    def test_attention_and_its_edges(self, mesh: eman.Mesh) -> None:
        network = eman.Model("surface", classes=CLASSES, kind="eman", self_term=False, **SMALL)
        positions, _ = network.samples(mesh)
        for name, sources in (("levels.0.down.0.conv1", 256), ("levels.1.pool", 256), ("levels.0.unpool", 64)):
            offsets, indices = network.layer_neighbors(mesh, name)
            assert (len(offsets) - 1, len(indices)) == network.layer_size(mesh, name)
            assert indices.min() >= 0
            assert indices.max() < sources
            assert (np.diff(offsets) > 0).all()
            alpha = network.attention(mesh, name)
            assert np.allclose(np.add.reduceat(alpha[:, 0], offsets[:-1]), np.diff(offsets), rtol=1e-5)
            far = np.linalg.norm(
                positions[indices] - np.repeat(positions[: len(offsets) - 1], np.diff(offsets), 0), axis=1
            )
            assert far.mean() < 0.3 * np.ptp(positions, axis=0).max(), "neighbours are near"

    def test_on_vertices_the_edges_are_those_of_the_mesh(self, mesh: eman.Mesh) -> None:
        network = eman.Model("default", classes=2, blocks=1)
        for ours, theirs in zip(network.layer_neighbors(mesh, 0), mesh.neighbors):
            assert np.array_equal(ours, theirs)
        assert network.layer_size(mesh, -1) == (mesh.vertex_count, mesh.edge_count)
        with pytest.raises(eman.InvalidArgumentError, match="vertices"):
            network.samples(mesh)

    def test_unknown_layer(self, model: eman.Model, mesh: eman.Mesh) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="layer must be"):
            model.layer_neighbors(mesh, "levels.9")


TRAINING: dict[str, Any] = {
    "epochs": 12,
    "lr": 0.01,
    "schedule": "one_cycle",
    "dropout": 0.0,
    "clip_norm": 1.0,
    "augment": {"resample": True},
}


class TestTraining:
    def test_learns_and_resumes(self, mesh: eman.Mesh, tmp_path: Path) -> None:
        """Head and feet of a horse; interrupted and resumed it ends with the same bits."""
        height = mesh.vertices[:, 2]
        target = np.digitize(height, np.quantile(height, [0.25, 0.5, 0.75]))
        straight = eman.Model("surface", classes=CLASSES, **SMALL)
        assert eman.Trainer(straight).estimate(mesh.vertex_count, mesh.edge_count) > straight.estimate(800)
        assert eman.Trainer(straight).estimate_work(800) > straight.estimate_work(800)
        history = eman.fit(straight, [mesh], [target], **TRAINING)
        assert history[-1]["loss"] < 0.7 * history[0]["loss"]
        assert eman.accuracy(straight, mesh, target) > 0.6

        class StopError(Exception):
            pass

        def stop(step: eman.Step) -> None:
            if step.epoch == 5:
                raise StopError

        resumed = eman.Model("surface", classes=CLASSES, **SMALL)
        path = tmp_path / "training.safetensors"
        with pytest.raises(StopError):
            eman.fit(resumed, [mesh], [target], progress=stop, checkpoint=path, **TRAINING)
        eman.fit(resumed, [mesh], [target], checkpoint=path, **TRAINING)
        assert resumed.to_bytes() == straight.to_bytes()


class TestClouds:
    """Points with normals, without faces."""

    def test_as_the_mesh(self, model: eman.Model, mesh: eman.Mesh) -> None:
        cloud = eman.Mesh(mesh.vertices, normals=3 * mesh.vertex_normals)
        assert (cloud.vertex_count, cloud.face_count, cloud.edge_count) == (800, 0, 0)
        assert np.allclose(cloud.vertex_normals, mesh.vertex_normals)
        frames = cloud.frames
        assert np.allclose(frames @ frames.transpose(0, 2, 1), np.eye(3))
        assert np.allclose(np.linalg.det(frames), 1)
        assert (model.predict(cloud) == model.predict(mesh)).mean() > 0.7
        by_frames = eman.Mesh(mesh.vertices, None, gauge="custom", frames=mesh.frames)
        assert np.allclose(model.logits(by_frames), model.logits(cloud), atol=1e-4)

    def test_equivariant(self, model: eman.Model, mesh: eman.Mesh) -> None:
        gaps = equivariance_gaps(model, eman.Mesh(mesh.vertices, normals=mesh.vertex_normals))
        assert max(gaps.values()) <= 1e-9

    def test_normals_of_a_mesh(self, mesh: eman.Mesh) -> None:
        leaning = eman.Mesh(mesh.vertices, mesh.faces, normals=mesh.vertex_normals + [0, 0, 1e-3])
        assert leaning.edge_count == mesh.edge_count
        assert 1e-6 < np.abs(leaning.vertex_normals - mesh.vertex_normals).max() < 2e-3

    def test_pickled(self, mesh: eman.Mesh) -> None:
        cloud = eman.Mesh(mesh.vertices, normals=mesh.vertex_normals)
        again = pickle.loads(pickle.dumps(cloud))
        assert np.allclose(again.frames, cloud.frames, rtol=0, atol=1e-15)

    def test_from_a_file(self, mesh: eman.Mesh, tmp_path: Path) -> None:
        pytest.importorskip("meshio")
        pytest.importorskip("trimesh")
        names = ("x", "y", "z", "nx", "ny", "nz")
        header = f"ply\nformat ascii 1.0\nelement vertex {mesh.vertex_count}\n"
        header += "".join(f"property double {name}\n" for name in names) + "end_header\n"
        rows = np.concatenate([mesh.vertices, mesh.vertex_normals], axis=1)
        path = tmp_path / "cloud.ply"
        path.write_text(header + "".join(" ".join(map(repr, row)) + "\n" for row in rows.tolist()))
        cloud = eman.Mesh.from_file(path)
        assert (cloud.vertex_count, cloud.face_count) == (800, 0)
        assert np.array_equal(cloud.vertices, mesh.vertices)
        assert np.allclose(cloud.vertex_normals, mesh.vertex_normals, rtol=0, atol=1e-12)
        assert cloud.options["gauge"] == "custom"

    @pytest.mark.parametrize("length", [1e-300, 1e300])
    def test_normals_of_any_length(self, length: float) -> None:
        cloud = eman.Mesh([[0, 0, 0]], normals=[[0, length, length]])
        assert np.allclose(cloud.vertex_normals, [[0, 0.5**0.5, 0.5**0.5]])

    @pytest.mark.parametrize(
        ("normals", "message"),
        [
            ([[0, 0, 1], [0, 0, 0]], "vertex 1: the normal"),
            ([[0, 0, np.nan], [0, 0, 1]], "vertex 0: the normal"),
            ([[0, 0, 1]], "frames"),
            ([[0, 1], [1, 0]], r"normals must have shape \(N, 3\)"),
        ],
    )
    def test_refuses(self, normals: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            eman.Mesh([[0, 0, 0], [1, 0, 0]], normals=normals)

    def test_refuses_two_gauges(self) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="leave gauge and frames out"):
            eman.Mesh([[0, 0, 0]], normals=[[0, 0, 1]], gauge="random")

    def test_points_alone_are_no_mesh(self) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="faces are missing"):
            eman.Mesh([[0, 0, 0]])


def _sheet(n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """A flat square of n × n vertices."""
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + n, corner + 1], 1), np.stack([corner + n, corner + n + 1, corner + 1], 1)]
    )
    return np.stack([x, y, np.zeros_like(x)], 2).reshape(-1, 3).astype(float), faces


CORNER = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]

ODD = {
    "one triangle": (CORNER, [[0, 1, 2]]),
    "a flat sheet": _sheet(),
    "needles on a line": ([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]], [[0, 1, 2], [1, 2, 3]]),
    "needles": ([[0.0, 0, 0], [1, 1e-9, 0], [2, 0, 0], [3, 1e-9, 0]], [[0, 1, 2], [1, 2, 3]]),
    "one place": ([[1.0, 2, 3]] * 3, [[0, 1, 2]]),
    "three faces at an edge": ([*CORNER, [0.0, 0, 1], [0, -1, 0]], [[0, 1, 2], [0, 1, 3], [0, 1, 4]]),
    "faces against each other": (CORNER, [[0, 1, 2], [2, 1, 0]]),
    "a vertex without face": ([*CORNER, [5.0, 5, 5]], [[0, 1, 2]]),
    "two far apart": ([*CORNER, [1e6, 0, 0], [1e6, 1, 0], [1e6, 0, 1]], [[0, 1, 2], [3, 4, 5]]),
    "tiny": (1e-200 * np.array(CORNER), [[0, 1, 2]]),
    "huge": (1e200 * np.array(CORNER), [[0, 1, 2]]),
}


class TestOddSurfaces:
    @pytest.mark.parametrize("name", ODD)
    def test_give_a_result(self, name: str, model: eman.Model) -> None:
        vertices, faces = ODD[name]
        found = model.logits(eman.Mesh(vertices, faces))
        assert np.isfinite(found).all()
        assert np.allclose(np.exp(found).sum(axis=1), 1, atol=1e-5)

    def test_open_body(self, model: eman.Model, mesh: eman.Mesh) -> None:
        """Without a third of the body."""
        kept = mesh.faces[mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > np.quantile(mesh.vertices[:, 0], 0.33)]
        cut = eman.Mesh(mesh.vertices, kept)
        assert not cut.report().closed
        assert np.isfinite(model.logits(cut)).all()

    def test_inside_one_another(self, model: eman.Model, mesh: eman.Mesh) -> None:
        both = eman.Mesh(
            np.concatenate([mesh.vertices, 0.9 * mesh.vertices]), np.concatenate([mesh.faces, mesh.faces + 800])
        )
        assert np.isfinite(model.logits(both)).all()

    @pytest.mark.parametrize("vertices", [[[0.0, 0, 0]] * 3, []])
    def test_nothing_to_sample(self, vertices: Any, model: eman.Model) -> None:
        with pytest.raises(eman.InvalidMeshError, match="none to sample"):
            model.predict(eman.Mesh(vertices, []))

    def test_not_a_number(self) -> None:
        with pytest.raises(eman.InvalidMeshError, match="vertex 1"):
            eman.Mesh([[0, 0, 0], [np.nan, 0, 0], [0, 1, 0]], [[0, 1, 2]])
