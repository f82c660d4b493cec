"""Many meshes at once: every one a row, whatever happens to it, to a worker, or to the whole run."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

pytest.importorskip("trimesh", reason="trimesh is not installed")

import eman
from eman import cli, distributed
from eman._journal import Journal
from eman.creatures import Creature

from .conftest import TETRAHEDRON, write_obj
from .test_lifetime import LIBRARY, PARENT

MODEL = "creature-parts"

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]  # a worker that nobody kills waits for ever


@pytest.fixture(scope="module")
def folder(horse: Creature, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four meshes, two of one name, in a folder and one below it."""
    top = tmp_path_factory.mktemp("meshes")
    (top / "more").mkdir()
    for number, name in enumerate(("a.obj", "b.obj", "more/a.obj", "more/c.obj")):
        write_obj(top / name, horse.vertices * (1, 1, 1 + number / 4), horse.faces)
    return top


def run(*arguments: Any, capsys: pytest.CaptureFixture[str], status: int = 0) -> dict[str, Any]:
    """What `eman batch` says with --json."""
    assert cli.main(["batch", *map(str, arguments), "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def wait_for(met: Callable[[], Any]) -> Any:
    """What a condition gives as soon as it is met; a machine may be as busy as it likes meanwhile."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = met()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("waited in vain")


class Pipe:
    """A mesh file that a worker waits in for as long as the test likes: a named pipe with nothing in it."""

    def __init__(self, path: Path, mesh: Creature) -> None:
        os.mkfifo(path)
        self.path, self._mesh = path, mesh
        self._kept = os.open(path, os.O_RDWR)  # nobody reads its end

    def readers(self) -> list[int]:
        """The processes that have it in hand.

        They opened it to read it: a worker that is just being started has, for a moment, what this process has open.
        """
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                opened = [each.name for each in (process / "fd").iterdir() if os.readlink(each) == str(self.path)]
                flags = [(process / "fdinfo" / each).read_text().split("flags:")[1].split()[0] for each in opened]
            except OSError:  # it has just ended
                continue
            if any(int(each, 8) & os.O_ACCMODE == os.O_RDONLY for each in flags):
                found.append(int(process.name))
        return found

    def kill_reader(self) -> None:
        """Kill the worker that has it in hand, as the system does when memory runs out."""
        (reader,) = wait_for(self.readers)
        os.kill(reader, signal.SIGKILL)
        wait_for(lambda: reader not in self.readers())

    def becomes_a_mesh(self) -> None:
        """For the next that opens it."""
        write_obj(self.path.with_suffix(".new"), self._mesh.vertices, self._mesh.faces).replace(self.path)

    def close(self) -> None:
        os.close(self._kept)


@pytest.fixture
def pipe(horse: Creature, tmp_path: Path) -> Iterator[Pipe]:
    made = Pipe(tmp_path / "pipe.obj", horse)
    yield made
    made.close()


def interrupted(batch: distributed.Batch, disturb: Callable[[], object]) -> list[distributed.Row]:
    """The rows of a batch that is disturbed meanwhile."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            disturb()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    rows = list(batch)
    thread.join()
    assert not failed
    return rows


def program(text: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A file that is started as a program of its own."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": str(PARENT), "EMAN_LIBRARY": LIBRARY, **environment},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def assert_right(batch: distributed.Batch, done: int) -> None:
    """Nothing is lost and nothing there twice, on the disk as well, and labels are those of a model in this process."""
    rows = batch.rows()
    assert Counter(row.mesh for row in rows) == Counter(batch.meshes)
    assert sum(row.status == "done" for row in rows) == done
    model = eman.Model.shipped(MODEL)
    for row in rows:
        if row.status == "done":
            labels = model.predict(eman.Mesh.from_file(row.mesh))
            assert np.array_equal(batch.load(row, "labels"), labels)  # type: ignore[arg-type]
    named = {name for row in rows for name in (row.outputs or {}).values()}
    assert {path.name for path in batch.output.iterdir()} == named | {"batch.json", "results.jsonl"}


class TestResults:
    def test_labels_are_those_of_the_model(self, folder: Path, tmp_path: Path) -> None:
        batch = distributed.predict(folder, MODEL, tmp_path / "out", confidence=True, workers=2)
        fractions: list[float] = []
        summary = batch.run(progress=fractions.append)
        assert str(summary) == "4 meshes: 4 done, 0 errors; 3,200 vertices"
        assert fractions == [0.25, 0.5, 0.75, 1.0]
        assert_right(batch, done=4)
        model = eman.Model.shipped(MODEL)
        for row in batch.rows():
            mesh = eman.Mesh.from_file(row.mesh)
            probabilities = model.top(mesh, 1)[1][:, 0]
            assert np.array_equal(batch.load(row, "confidence"), probabilities)
            assert row.confidence == pytest.approx(probabilities.mean())
            counts = np.bincount(model.predict(mesh), minlength=16)  # type: ignore[arg-type]
            assert row.counts == {name: count for name, count in zip(model.labels, counts) if count}
            assert (row.vertices, row.faces, row.attempts) == (800, 1596, 1)
            with pytest.raises(eman.InvalidArgumentError, match="has no array 'reltan', but labels, confidence"):
                batch.load(row, "reltan")

    def test_features(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        output = tmp_path / "out"
        arguments = (folder, "--features", "reltan", "--powers", 1, "--space", "ambient", "--workers", 1)
        assert run(*arguments, "--output", output, capsys=capsys)["done"] == 4
        batch = distributed.features(folder, output, powers=[1], space="ambient")
        assert list(batch) == []
        for row in batch.rows():
            expected = eman.Mesh.from_file(row.mesh).reltan([1], "ambient")
            assert np.array_equal(batch.load(row, "reltan"), expected)
        with pytest.raises(eman.InvalidArgumentError, match=r"other settings: powers was \[1.0\] and is \[0.5, 0.7\]"):
            distributed.features(folder, output, space="ambient")

    def test_everything_at_once(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Good meshes, bad ones, one of a list, one of an archive; as JSON lines, Parquet and coloured meshes."""
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        (tmp_path / "empty.obj").touch()
        (tmp_path / "text.ply").write_text("There is no mesh in here.\n")
        (tmp_path / "folder.obj").mkdir()
        with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
            archive.write(folder / "b.obj", "b.obj")
        listed = [f"file://{folder}/more/*.obj", f"zip://b.obj::file://{tmp_path}/archive.zip", f"{folder}/more/a.obj"]
        (tmp_path / "list.txt").write_text("\n".join(listed) + "\n\n")
        bad = [tmp_path / name for name in ("empty.obj", "text.ply", "none.obj")]
        found = run(
            folder / "b.obj", *bad, "--list", tmp_path / "list.txt", "--model", MODEL, "--output", tmp_path / "out",
            "--coloured", "--parquet", "--workers", 2, capsys=capsys, status=1,
        )  # fmt: skip
        assert (found["meshes"], found["done"], found["errors"], found["missing"]) == (8, 5, 3, 0)
        errors = {Path(each["mesh"]): each["error"] for each in found["failed"]}
        assert set(errors) == set(bad)
        assert all(str(path) in error for path, error in errors.items())
        assert errors[tmp_path / "none.obj"].startswith("FileError: [Errno 2] No such file")
        rows = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
        table = parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist()
        for row, same in zip(rows, table):
            assert {**same, "outputs": row["outputs"], "counts": row["counts"]} == row
            assert dict(same["outputs"] or ()) == (row["outputs"] or {})
        outputs = [row["outputs"] for row in rows if row["status"] == "done"]
        assert len({name for each in outputs for name in each.values()}) == 2 * 5
        for each in outputs:
            labels = np.load(tmp_path / "out" / each["labels"])
            assert np.array_equal(eman._files.vertex_properties(tmp_path / "out" / each["coloured"])["label"], labels)

    def test_names_that_are_not_utf_8(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        from pyarrow import parquet

        batch = distributed.features(tmp_path / "body\udcff.obj", tmp_path / "out", workers=1, threads=1)
        (row,) = batch
        assert row.mesh.endswith("body\udcff.obj")
        assert batch.rows() == [row]
        (same,) = parquet.read_table(batch.to_parquet()).to_pylist()
        assert same["mesh"].endswith("body\\udcff.obj")

    def test_patterns_and_results_among_the_meshes(self, folder: Path, tmp_path: Path) -> None:
        def meshes(named: Any) -> list[str]:
            return [os.path.relpath(mesh, folder) for mesh in distributed.features(named, tmp_path / "out").meshes]

        assert meshes(folder) == ["a.obj", "b.obj", "more/a.obj", "more/c.obj"]
        assert meshes(f"{folder}/**/a.obj") == ["a.obj", "more/a.obj"]
        assert meshes([folder / "more", folder / "a.obj", str(folder / "more" / "a.obj")]) == [
            "more/a.obj",
            "more/c.obj",
            "a.obj",
        ]
        write_obj(tmp_path / "one.obj", *TETRAHEDRON)
        write_obj(tmp_path / "out" / "two.obj", *TETRAHEDRON)
        assert distributed.features(tmp_path, tmp_path / "out").meshes == [str(tmp_path / "one.obj")]
        assert distributed.features(f"file://{folder}/", tmp_path / "out").meshes == [
            f"file://{folder}/{name}" for name in ("a.obj", "b.obj", "more/a.obj", "more/c.obj")
        ]

    def test_whole_meshes(self, folder: Path, tmp_path: Path) -> None:
        model = eman.Model("default", labels=["cat", "dog"], task="classification", seed=3)
        batch = distributed.predict(folder / "a.obj", model, tmp_path / "out", workers=1, threads=1)
        (row,) = batch
        label, probability = model.top(eman.Mesh.from_file(folder / "a.obj"), 1)
        assert (row.label, row.confidence, row.outputs) == (model.labels[label[0]], probability[0], {})
        with pytest.raises(eman.InvalidArgumentError, match="labels a mesh as a whole"):
            distributed.predict(folder, model, tmp_path / "other", coloured=True)


class TestRefused:
    def test_arguments(self, folder: Path, tmp_path: Path) -> None:
        output = tmp_path / "out"
        for wrong, words in (
            ({"engine": "dask"}, "engine must be one of " + ", ".join(map(repr, distributed.ENGINES))),
            ({"workers": 0}, "workers must be at least 1"),
            ({"threads": -1}, "threads must be at least 1"),
            ({"address": "auto"}, "address is that of a Ray cluster"),
            ({"kind": "xyz"}, "kind must be one of"),
            ({"space": "outer"}, "space must be one of"),
            ({"normals": "mean"}, "normals must be one of"),
            ({"powers": []}, "powers must be 1 to 64"),
            ({"powers": [float("nan")]}, "powers"),
        ):
            with pytest.raises(eman.InvalidArgumentError, match=words):
                distributed.features(folder, output, **wrong)  # type: ignore[arg-type]
        with pytest.raises(eman.InvalidArgumentError, match="meshes must be paths or URLs, got b'a'"):
            distributed.features([b"a"], output)  # type: ignore[list-item]
        with pytest.raises(eman.InvalidArgumentError, match="Protocol not known"):
            distributed.features("gopher://x/a.obj", output)
        for named in (tmp_path, f"{tmp_path}/*.obj", f"file://{tmp_path}/"):
            with pytest.raises(eman.FileError, match="has no mesh"):
                distributed.features(named, output)
        assert not output.exists()

    @pytest.mark.parametrize("links", [True, False])
    def test_two_that_begin_at_a_time(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
    ) -> None:
        """Both find the folder empty; the settings stay those of one, and the other is refused."""
        exists, asked = Path.exists, []

        def racing(path: Path) -> bool:
            if path.name != "batch.json" or asked:
                return exists(path)
            asked.append(path)
            distributed.features(folder, tmp_path, powers=(1.0,))
            return False

        def unsupported(*_: object) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(Path, "exists", racing)
        if not links:
            monkeypatch.setattr(os, "link", unsupported)
        with pytest.raises(eman.InvalidArgumentError, match=r"powers was \[1.0\] and is \[0.5, 0.7\]"):
            distributed.features(folder, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["batch.json"]

    def test_folders_of_results(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(eman.FileError, match="File exists"):
            distributed.features(folder, tmp_path / "file")
        (tmp_path / "batch.json").write_text("{}")
        with pytest.raises(eman.FileError, match=r"batch\.json does not describe a batch"):
            distributed.features(folder, tmp_path)
        output = tmp_path / "out"
        first = distributed.predict(folder / "a.obj", MODEL, output, workers=1)
        with pytest.raises(eman.InvalidArgumentError, match="holds results of other settings: model_sha256 was"):
            distributed.predict(folder, "human-parts", output)
        for row in first:  # which is still at work
            assert row.status == "done"
            with pytest.raises(eman.FileError, match="another process is at work there"):
                list(distributed.predict(folder, MODEL, output))
        (output / "results.jsonl").write_text("{}\n[1]\n")
        with pytest.raises(eman.FileError, match=r"results\.jsonl, line 2: not a record"):
            first.rows()
        for record in ("{}", '{"mesh": "a.obj", "status": "done", "colour": 1}'):
            (output / "results.jsonl").write_text(f"{record}\n")
            with pytest.raises(eman.FileError, match=r"results\.jsonl, line 1: not the record of a mesh"):
                first.rows()
        (tmp_path / "batch.json").write_text('{"settings": 1}')
        with pytest.raises(eman.FileError, match=r"batch\.json does not describe a batch"):
            distributed.features(folder, tmp_path)
        assert cli.main(["batch", "--output", str(output), "--model", MODEL]) == 1
        assert "no mesh is named" in capsys.readouterr().err

    def test_folders_without_permission(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """One inside a folder of meshes ends the run before it begins; root may read everything."""
        scan = os.scandir

        def refuse(path: Any) -> Any:
            if str(path).endswith("more"):
                raise PermissionError(13, "Permission denied", str(path))
            return scan(path)

        monkeypatch.setattr(os, "scandir", refuse)
        assert cli.main(["batch", str(folder), "--features", "get", "--output", str(tmp_path / "out")]) == 1
        assert capsys.readouterr().err == f"eman: [Errno 13] Permission denied: '{folder / 'more'}'\n"

    def test_missing_packages(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setitem(sys.modules, "ray", None)
        for named, more in (
            ("s3://bucket/", []),
            (str(folder), ["--parquet"]),
            (str(folder), ["--engine", "ray"]),
        ):
            arguments = ["batch", named, "--features", "get", "--output", str(tmp_path / "out"), *more]
            assert cli.main(arguments) == 3
            assert "pip install eman[" in capsys.readouterr().err

    def test_workers_that_cannot_begin(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What would be wrong for every mesh is an error of the run, not of each mesh."""
        batch = distributed.features(folder, tmp_path / "out", workers=1)
        monkeypatch.setenv("EMAN_LIBRARY", str(tmp_path / "none.so"))
        with pytest.raises(eman.LibraryError, match=r"none\.so"):
            list(batch)
        assert isinstance(batch.summary(), distributed.Summary)
        assert batch.summary().missing == 4

    def test_programs_that_workers_would_start_again(self, folder: Path, tmp_path: Path) -> None:
        """Without `if __name__ == "__main__":`; a sentence, where multiprocessing itself may wait for ever."""
        text = f"""
            import eman
            try:
                eman.distributed.predict({str(folder)!r}, {MODEL!r}, {str(tmp_path / "out")!r}, workers=1).run()
            except eman.EmanError as error:
                if __name__ == "__main__":
                    print(error)
                raise SystemExit(1)
            """
        with program(text, tmp_path) as process:
            printed, _ = process.communicate(timeout=100)
        assert printed.startswith("workers end before they are ready; a script must start a batch below `if __name__")


class TestDeath:
    def test_a_worker_is_killed(self, folder: Path, pipe: Pipe, tmp_path: Path) -> None:
        """The mesh it had in hand is tried again; the others are not concerned."""
        batch = distributed.predict([pipe.path, folder], MODEL, tmp_path / "out", workers=2)

        def disturb() -> None:
            (reader,) = wait_for(pipe.readers)
            pipe.becomes_a_mesh()
            os.kill(reader, signal.SIGKILL)

        rows = interrupted(batch, disturb)
        assert {Path(row.mesh).name: row.attempts for row in rows if row.attempts > 1} == {"pipe.obj": 2}
        assert_right(batch, done=5)

    def test_a_mesh_that_workers_die_of(self, folder: Path, pipe: Pipe, tmp_path: Path) -> None:
        """It is an error; taken again when asked for."""
        batch = distributed.predict([pipe.path, folder], MODEL, tmp_path / "out", workers=2)
        rows = interrupted(batch, lambda: [pipe.kill_reader(), pipe.kill_reader()])
        assert {Path(row.mesh).name: row.error for row in rows if row.error} == {
            "pipe.obj": "WorkerDied: the process that had the mesh in hand died, 2 times: killed, or out of memory"
        }
        assert_right(batch, done=4)
        pipe.becomes_a_mesh()
        assert batch.pending == list(batch) == []
        again = distributed.predict([pipe.path, folder], MODEL, tmp_path / "out", workers=1, retry_errors=True)
        assert [row.mesh for row in again] == [str(pipe.path)]
        assert_right(again, done=5)

    def test_the_whole_run_is_killed(self, folder: Path, pipe: Pipe, tmp_path: Path) -> None:
        """Its workers end as well, and the next run does what is missing."""
        output = tmp_path / "out"
        with program(
            f"""
            import eman
            if __name__ == "__main__":
                meshes = [{str(pipe.path)!r}, {str(folder)!r}]
                eman.distributed.predict(meshes, {MODEL!r}, {str(output)!r}, workers=2).run()
            """,
            tmp_path,
        ) as process:
            results = output / "results.jsonl"
            wait_for(lambda: results.exists() and results.read_text().count("\n") == 4)
            (reader,) = pipe.readers()
            process.kill()
        wait_for(lambda: not Path(f"/proc/{reader}").exists())
        with results.open("a") as file:
            file.write('{"mesh": "half a l')  # as when the power failed
        before = {path.name: path.stat().st_mtime_ns for path in output.glob("*.npy")}
        assert len(before) == 4
        pipe.becomes_a_mesh()
        batch = distributed.predict([pipe.path, folder], MODEL, output, workers=1)
        assert [row.mesh for row in batch] == [str(pipe.path)]
        assert_right(batch, done=5)
        assert before.items() <= {path.name: path.stat().st_mtime_ns for path in output.glob("*.npy")}.items()

    def test_left_in_the_middle(self, folder: Path, pipe: Pipe, tmp_path: Path) -> None:
        """As by break or Ctrl-C: at once, although a worker is in the middle of a mesh."""
        batch = distributed.predict([pipe.path, folder], MODEL, tmp_path / "out", workers=2)
        rows = iter(batch)
        taken = [next(rows) for _ in range(2)]
        (reader,) = wait_for(pipe.readers)
        rows.close()  # type: ignore[attr-defined]
        assert not Path(f"/proc/{reader}").exists()
        assert batch.rows() == taken
        assert len(batch.pending) == 3


class TestRay:
    def test_a_worker_of_a_cluster_is_killed(self, folder: Path, pipe: Pipe, tmp_path: Path) -> None:
        """A cluster of two workers; then one that the batch starts itself.  Nothing of them stays."""
        pytest.importorskip("ray", reason="Ray is not installed")
        output = tmp_path / "out"
        with (
            tempfile.TemporaryDirectory(prefix="ray-") as short,
            program(
                f"""
            import eman, ray
            meshes = [{str(pipe.path)!r}, {str(folder)!r}]

            def batch(*more):
                return eman.distributed.predict([*meshes, *more], {MODEL!r}, {str(output)!r}, engine="ray", workers=2)

            ray.init(num_cpus=2, log_to_driver=False)
            try:
                eman.distributed.features({str(folder)!r}, {str(tmp_path / "other")!r}, engine="ray", threads=3).run()
            except eman.InvalidArgumentError as error:
                print([str(error)])
            rows = list(batch())
            print([row.mesh for row in rows if row.attempts == 2], len(rows), ray.is_initialized())
            ray.shutdown()
            rows = list(batch({str(tmp_path / "none.obj")!r}))
            print([row.error.split(":")[0] for row in rows], ray.is_initialized())
            """,
                tmp_path,
                RAY_TMPDIR=short,  # names of sockets have their limit
                RAY_USAGE_STATS_ENABLED="0",
                RAY_AUTH_MODE="disabled",  # writes no token into the user's folder
            ) as process,
        ):
            (reader,) = wait_for(pipe.readers)
            pipe.becomes_a_mesh()
            os.kill(reader, signal.SIGKILL)
            printed, _ = process.communicate(timeout=200)
            wait_for(lambda: not of_session(process.pid))
        ours = [line for line in printed.splitlines() if line.startswith("[")]  # Ray also says that the worker died
        refused = "['threads is 3, but no machine of the Ray cluster has more than 2']"
        assert ours == [refused, f"[{str(pipe.path)!r}] 5 True", "['FileError'] False"]
        assert_right(distributed.predict([pipe.path, folder, tmp_path / "none.obj"], MODEL, output), done=5)


def of_session(leader: int) -> list[str]:
    """The processes that a program left."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append((process / "comm").read_text())
    return found


class TestJournal:
    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file is named, which the system does not do; the next record comes after the last whole one."""
        path, other = tmp_path / "a.jsonl", tmp_path / "other"
        journal = Journal(path)
        journal.add({"a": 1})
        other.write_bytes(b"before")

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(eman.FileError, match=r"No space left on device: .*a\.jsonl"):
                journal.add({"a": 2})
            with pytest.raises(eman.FileError, match=r"No space left on device: .*other"):
                eman._files.write_whole(other, b"after")
        journal.add({"a": 3})
        assert [record["a"] for record in Journal(path).records] == [1, 3]
        assert other.read_bytes() == b"before"
        assert {each.name for each in tmp_path.iterdir()} == {"a.jsonl", "other"}

    def test_lines_that_were_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        journal = Journal(path)
        journal.keep(lambda record: False)
        assert not path.exists()
        journal.add({"a": 1})
        journal.add({"a": 2})
        whole = path.read_bytes()
        for length in range(len(whole) + 1):
            path.write_bytes(whole[:length])
            again = Journal(path)
            assert [record["a"] for record in again.records] == [1, 2][: whole[:length].count(b"\n")]
            again.add({"a": 3})
            again.add({"a": 4})
            assert Journal(path).records == again.records
            again.keep(lambda record: record["a"] != 3)
            assert Journal(path).records == again.records
            assert again.records[-1] == {"a": 4}
        assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]
